//! A gate that every worker shares: closed until a point in time, then one call first, then the rest, spread (A3).
//!
//! The one that goes first shows whether the wait was long enough. If it was not, its refusal closes the gate again
//! before the others have spent anything.

use std::time::Duration;

use rand::{Rng, RngExt};
use tokio::time::Instant;

/// The rest follows spread over U(0, 2 s), but never on the heels of the first.
const SPREAD: Duration = Duration::from_secs(2);
/// What the first call has to itself in any case.
const HEAD_START: Duration = Duration::from_millis(50);
/// If the first call is not answered for by then, the others go.
const PATIENCE: Duration = Duration::from_secs(10);

/// One caller's place behind one gate. Kept across wake-ups, so that it is drawn once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    gate: u64,
    offset: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leader {
    Nobody,
    OnItsWay { permit: u64, since: Instant },
    Answered { since: Instant },
}

/// What a caller in front of the gate is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// Go as the first; the gate is to be told the permit.
    First,
    /// Go with the others.
    Follow,
    /// Closed until then.
    Closed(Instant),
    /// Open, but one's turn comes then, or when the first has been answered.
    Queue(Instant),
}

#[derive(Debug, Clone)]
pub(super) struct Gate {
    id: u64,
    opens_at: Instant,
    first_ticket_is_taken: bool,
    leader: Leader,
}

impl Gate {
    /// A closed gate. `id` is unique among the gates that one caller can meet.
    pub(super) fn closed_until(opens_at: Instant, id: u64) -> Self {
        Self { id, opens_at, first_ticket_is_taken: false, leader: Leader::Nobody }
    }

    pub(super) fn opens_at(&self) -> Instant {
        self.opens_at
    }

    pub(super) fn is_closed(&self, now: Instant) -> bool {
        now < self.opens_at
    }

    /// Nobody went through it yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.leader == Leader::Nobody
    }

    /// Moves the opening of a gate that nobody has passed yet; tickets keep their places.
    pub(super) fn move_opening(&mut self, opens_at: Instant) {
        self.opens_at = opens_at;
    }

    /// Whether it has done its work and can be taken away.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        match self.leader {
            Leader::Nobody => false,
            Leader::OnItsWay { since, .. } => now >= since + PATIENCE,
            Leader::Answered { since } => now >= since + SPREAD,
        }
    }

    /// What the caller that holds `ticket` is to do; draws the ticket on the first visit.
    pub(super) fn pass(&mut self, ticket: &mut Option<Ticket>, now: Instant, rng: &mut impl Rng) -> Passage {
        let release = self.release(ticket, rng);
        if now < self.opens_at {
            return Passage::Closed(release);
        }
        if now < release {
            return Passage::Queue(release);
        }
        match self.leader {
            Leader::Nobody => Passage::First,
            Leader::OnItsWay { since, .. } if now < since + PATIENCE => Passage::Queue(since + PATIENCE),
            Leader::OnItsWay { .. } | Leader::Answered { .. } => Passage::Follow,
        }
    }

    /// When the caller that holds `ticket` may go at the earliest; draws the ticket on the first visit.
    pub(super) fn release(&mut self, ticket: &mut Option<Ticket>, rng: &mut impl Rng) -> Instant {
        let offset = match ticket {
            Some(ticket) if ticket.gate == self.id => ticket.offset,
            _ if !self.first_ticket_is_taken => {
                self.first_ticket_is_taken = true;
                Duration::ZERO
            }
            _ => rng.random_range(HEAD_START..=SPREAD),
        };
        *ticket = Some(Ticket { gate: self.id, offset });
        match self.leader {
            Leader::Nobody => self.opens_at + offset,
            Leader::OnItsWay { since, .. } | Leader::Answered { since } => since + offset.max(HEAD_START),
        }
    }

    /// The first call is on its way.
    pub(super) fn led_by(&mut self, permit: u64, now: Instant) {
        self.leader = Leader::OnItsWay { permit, since: now };
    }

    /// A call came back; if it was the first, the others may follow.
    pub(super) fn answered(&mut self, permit: u64) {
        if let Leader::OnItsWay { permit: leader, since } = self.leader
            && leader == permit
        {
            self.leader = Leader::Answered { since };
        }
    }

    /// A call was given up; if it was the first, another one is to go first.
    pub(super) fn abandoned(&mut self, permit: u64) {
        if matches!(self.leader, Leader::OnItsWay { permit: leader, .. } if leader == permit) {
            self.leader = Leader::Nobody;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::RootSeed;

    #[test]
    fn one_goes_first_and_the_rest_wait_for_its_answer_and_their_turn() {
        let mut rng = RootSeed::new(5).generator("gate");
        let start = Instant::now();
        let opens_at = start + Duration::from_secs(30);
        let mut gate = Gate::closed_until(opens_at, 1);
        let (mut first, mut second) = (None, None);
        assert_eq!(gate.pass(&mut first, start, &mut rng), Passage::Closed(opens_at));
        assert!(matches!(gate.pass(&mut second, start, &mut rng), Passage::Closed(at) if at > opens_at));
        assert_eq!(gate.pass(&mut first, opens_at, &mut rng), Passage::First);
        gate.led_by(7, opens_at);
        let late = opens_at + SPREAD;
        assert_eq!(gate.pass(&mut second, late, &mut rng), Passage::Queue(opens_at + PATIENCE));
        gate.answered(6);
        assert!(matches!(gate.pass(&mut second, late, &mut rng), Passage::Queue(_)), "that was another call");
        gate.answered(7);
        assert_eq!(gate.pass(&mut second, late, &mut rng), Passage::Follow);
        assert!(gate.is_over(late));
    }

    #[test]
    fn a_leader_that_vanishes_or_hangs_does_not_keep_the_others() {
        let mut rng = RootSeed::new(6).generator("gate");
        let opens_at = Instant::now();
        let mut gate = Gate::closed_until(opens_at, 1);
        let (mut first, mut second) = (None, None);
        assert_eq!(gate.pass(&mut first, opens_at, &mut rng), Passage::First);
        gate.led_by(1, opens_at);
        gate.abandoned(1);
        assert_eq!(gate.pass(&mut second, opens_at + SPREAD, &mut rng), Passage::First);
        gate.led_by(2, opens_at + SPREAD);
        let later = opens_at + SPREAD + PATIENCE;
        assert_eq!(gate.pass(&mut None, later, &mut rng), Passage::Follow);
        assert!(gate.is_over(later));
    }
}
