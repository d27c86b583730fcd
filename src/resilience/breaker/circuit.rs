//! One circuit as a pure state machine: closed, open, half-open, recovering.
//!
//! The key's breaker is one circuit, each endpoint that can be suspended is another. A circuit does not know why
//! calls fail, whom it protects or what time it is: every method takes `now`. It never gets stuck: an open circuit
//! always has a time at which its next health check is due, and a health check or recovery call that nobody answers
//! for is reclaimed when its lease ends (BRK-1, BR-109).

use std::time::Duration;

use rand::{Rng, RngExt};
use tokio::time::Instant;

use super::event::{ClosedBy, OpenReason};
use crate::resilience::settings::BreakerSettings;

/// A health check must be answered within this, or its slot is reclaimed. Longer than the check's own time-out.
pub const PROBE_LEASE: Duration = Duration::from_secs(20);
/// A call admitted while recovering must be answered within this, or its slot is reclaimed.
const RECOVERY_LEASE: Duration = Duration::from_secs(180);
/// Successes after which an outage is over.
const SUCCESSES_TO_RESET: u32 = 10;
/// A neutral health check taught us nothing; the next one is due after this, and the open time does not grow.
const AFTER_NEUTRAL: Duration = Duration::from_secs(5);
/// After closing, calls to other endpoints let the endpoint that tripped go first for this long.
const TRIAL_GRACE: Duration = Duration::from_secs(5);
/// Openings of one outage at which somebody should look: the first two windows have passed.
const OPENINGS_TO_ESCALATE: u32 = 3;

/// Where a circuit stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    Closed,
    /// The health check is due at `until`.
    Open {
        until: Instant,
    },
    /// Held open by a person, until then or without end.
    Held {
        until: Option<Instant>,
    },
    /// A health check is on its way; its slot is reclaimed at `expires`.
    HalfOpen {
        lease: u64,
        expires: Instant,
    },
    /// A health check passed at `since`; calls go again, a few at a time.
    Recovering {
        since: Instant,
        successes: u32,
        trial_done: bool,
        admitted: Vec<(u64, Instant)>,
    },
}

/// Why calls are held back, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outage {
    pub(super) reason: OpenReason,
    pub(super) since: Instant,
    /// How often it has opened in this outage, the first time included; sets the open time.
    pub(super) openings: u32,
    pub(super) escalated: bool,
}

/// An admitted call, as the circuit knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) generation: u64,
    /// Set while recovering: the slot that this call holds.
    pub(super) slot: Option<u64>,
    /// The first real call after an outage: ask for as little as possible.
    pub(super) trial: bool,
}

/// How a call stands to the outage that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// It goes to the endpoint whose failures opened the circuit, or there is no telling which that was.
    Tripped,
    /// It goes to another endpoint, and lets that one go first.
    Other,
    /// It is no real call but serves one: a token call.
    Service,
}

/// The answer to a call that asks to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Go(Ticket),
    /// Recovering, and enough calls are on their way: ask again then, or when something changed.
    Wait(Instant),
    /// Open; the health check is due then, if it is known.
    Rejected(Option<Instant>),
}

/// What a transition did, for the machine to tell the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Opened { until: Option<Instant> },
    Reopened { reason: OpenReason, until: Instant },
    Escalated { open_for: Duration },
    Closed { by: ClosedBy },
    Recovered { after: Duration },
}

#[derive(Debug, Clone)]
pub(super) struct Circuit {
    settings: BreakerSettings,
    phase: Phase,
    outage: Option<Outage>,
    generation: u64,
    next_slot: u64,
}

impl Circuit {
    pub(super) fn new(settings: BreakerSettings) -> Self {
        Self { settings, phase: Phase::Closed, outage: None, generation: 0, next_slot: 0 }
    }

    pub(super) fn phase(&self) -> &Phase {
        &self.phase
    }

    pub(super) fn outage(&self) -> Option<&Outage> {
        self.outage.as_ref()
    }

    pub(super) fn is_current(&self, ticket: Ticket) -> bool {
        ticket.generation == self.generation
    }

    pub(super) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Calls may go, freely or a few at a time.
    pub(super) fn passes(&self) -> bool {
        matches!(self.phase, Phase::Closed | Phase::Recovering { .. })
    }

    pub(super) fn recovering_since(&self) -> Option<Instant> {
        match self.phase {
            Phase::Recovering { since, .. } => Some(since),
            _ => None,
        }
    }

    /// Lets time pass: reclaims what nobody answered for.
    pub(super) fn tick(&mut self, now: Instant, rng: &mut impl Rng) -> Vec<Change> {
        match &mut self.phase {
            Phase::HalfOpen { expires, .. } if *expires <= now => self.reopen(OpenReason::HealthCheckLost, now, rng),
            Phase::Held { until: Some(until) } if *until <= now => {
                self.phase = Phase::Open { until: *until };
                Vec::new()
            }
            Phase::Recovering { admitted, .. } => {
                admitted.retain(|(_, expires)| *expires > now);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a call may go.
    pub(super) fn admit(&mut self, rank: Rank, now: Instant) -> Entry {
        let generation = self.generation;
        match &mut self.phase {
            Phase::Closed => Entry::Go(Ticket { generation, slot: None, trial: false }),
            Phase::Open { until } => Entry::Rejected(Some(*until)),
            Phase::Held { until } => Entry::Rejected(*until),
            Phase::HalfOpen { expires, .. } => Entry::Rejected(Some(*expires)),
            Phase::Recovering { since, successes, trial_done, admitted } => {
                let yields_until = *since + TRIAL_GRACE;
                if !*trial_done && rank == Rank::Other && now < yields_until {
                    return Entry::Wait(yields_until);
                }
                // One, then two, then four at once: a server that has just come back is not hit by all at once.
                let at_once = 1_usize << (*successes).min(16);
                if admitted.len() >= at_once {
                    let reclaimed = admitted.iter().map(|(_, expires)| *expires).min();
                    return Entry::Wait(reclaimed.unwrap_or(now));
                }
                let slot = self.next_slot;
                self.next_slot += 1;
                admitted.push((slot, now + RECOVERY_LEASE));
                Entry::Go(Ticket { generation, slot: Some(slot), trial: rank == Rank::Tripped && !*trial_done })
            }
        }
    }

    /// A call came back well. Only tickets of the current generation may be reported.
    pub(super) fn succeeded(&mut self, ticket: Ticket, now: Instant) -> Vec<Change> {
        self.release(ticket);
        let Phase::Recovering { successes, trial_done, .. } = &mut self.phase else { return Vec::new() };
        *successes += 1;
        *trial_done |= ticket.trial;
        if *successes < SUCCESSES_TO_RESET {
            return Vec::new();
        }
        self.phase = Phase::Closed;
        self.end_outage(now)
    }

    /// A call taught us nothing: its slot is free again.
    pub(super) fn release(&mut self, ticket: Ticket) {
        if let (Phase::Recovering { admitted, .. }, Some(slot)) = (&mut self.phase, ticket.slot) {
            admitted.retain(|(held, _)| *held != slot);
        }
    }

    /// Opens the circuit: a new outage if it was closed, the next window of this one otherwise.
    pub(super) fn open(&mut self, reason: OpenReason, now: Instant, rng: &mut impl Rng) -> Vec<Change> {
        if self.outage.is_some() {
            return self.reopen(reason, now, rng);
        }
        self.outage = Some(Outage { reason, since: now, openings: 1, escalated: false });
        let until = now + self.open_time(1, rng);
        self.enter(Phase::Open { until });
        vec![Change::Opened { until: Some(until) }]
    }

    /// Takes the one slot for a health check, if one is due (B7, BRK-1).
    pub(super) fn try_probe(&mut self, now: Instant) -> Option<u64> {
        let Phase::Open { until } = self.phase else { return None };
        if now < until {
            return None;
        }
        let lease = self.next_slot;
        self.next_slot += 1;
        self.phase = Phase::HalfOpen { lease, expires: now + PROBE_LEASE };
        Some(lease)
    }

    /// When a health check is due, or the slot of the present one is reclaimed.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Open { until } => Some(until),
            Phase::HalfOpen { expires, .. } => Some(expires),
            Phase::Held { until } => until,
            Phase::Closed | Phase::Recovering { .. } => None,
        }
    }

    /// The health check that held `lease` passed. A late answer, after the lease was reclaimed, changes nothing.
    pub(super) fn probe_passed(&mut self, lease: u64, now: Instant) -> Vec<Change> {
        if !self.holds(lease) {
            return Vec::new();
        }
        let of_hold = |outage: &Outage| outage.reason.is_operators() && outage.openings == 1;
        let by = if self.outage.as_ref().is_some_and(of_hold) { ClosedBy::EndOfHold } else { ClosedBy::HealthCheck };
        self.start_recovering(now);
        vec![Change::Closed { by }]
    }

    /// The health check that held `lease` failed.
    pub(super) fn probe_failed(&mut self, lease: u64, now: Instant, rng: &mut impl Rng) -> Vec<Change> {
        if self.holds(lease) { self.reopen(OpenReason::HealthCheckFailed, now, rng) } else { Vec::new() }
    }

    /// The health check that held `lease` taught us nothing: the open time does not grow, and the next is due soon.
    pub(super) fn probe_neutral(&mut self, lease: u64, now: Instant) {
        if self.holds(lease) {
            self.phase = Phase::Open { until: now + AFTER_NEUTRAL };
        }
    }

    /// A person holds it open, until `until` or without end. What it was open for before makes way.
    pub(super) fn hold(
        &mut self,
        by: Option<String>,
        reason: String,
        until: Option<Instant>,
        now: Instant,
    ) -> Vec<Change> {
        let reason = OpenReason::Operator { reason, by };
        self.outage = Some(Outage { reason, since: now, openings: 1, escalated: false });
        self.enter(Phase::Held { until });
        vec![Change::Opened { until }]
    }

    /// A person closes it: calls go again, as carefully as after a health check.
    pub(super) fn close(&mut self, now: Instant) -> Vec<Change> {
        if self.passes() {
            return Vec::new();
        }
        self.start_recovering(now);
        vec![Change::Closed { by: ClosedBy::Operator }]
    }

    /// A person says that the outage is over.
    pub(super) fn reset(&mut self, now: Instant) -> Vec<Change> {
        self.enter(Phase::Closed);
        self.end_outage(now)
    }

    /// Takes up an outage where an earlier process left it.
    pub(super) fn restore(&mut self, outage: Outage, until: Option<Instant>, held: bool) {
        self.outage = Some(outage);
        self.enter(match (held, until) {
            (false, Some(until)) => Phase::Open { until },
            (_, until) => Phase::Held { until },
        });
    }

    /// Takes up a recovery where an earlier process left it: what had succeeded by then counts.
    pub(super) fn restore_recovering(&mut self, outage: Outage, successes: u32, trial_done: bool, now: Instant) {
        self.outage = Some(outage);
        let successes = successes.min(SUCCESSES_TO_RESET - 1);
        self.enter(Phase::Recovering { since: now, successes, trial_done, admitted: Vec::new() });
    }

    fn reopen(&mut self, reason: OpenReason, now: Instant, rng: &mut impl Rng) -> Vec<Change> {
        let Some(outage) = &mut self.outage else { return self.open(reason, now, rng) };
        outage.openings = outage.openings.saturating_add(1);
        let openings = outage.openings;
        let escalates = openings >= OPENINGS_TO_ESCALATE && !outage.escalated;
        outage.escalated |= escalates;
        let open_for = now.saturating_duration_since(outage.since);
        let until = now + self.open_time(openings, rng);
        self.enter(Phase::Open { until });
        let mut changes = vec![Change::Reopened { reason, until }];
        if escalates {
            changes.push(Change::Escalated { open_for });
        }
        changes
    }

    /// 30 s doubling to 60 s by default, shortened by up to a fifth so that several installations do not probe in step.
    fn open_time(&self, openings: u32, rng: &mut impl Rng) -> Duration {
        let doubled = self.settings.open_for.saturating_mul(2_u32.saturating_pow(openings.saturating_sub(1)));
        doubled.min(self.settings.open_cap).mul_f64(rng.random_range(0.8..=1.0))
    }

    fn start_recovering(&mut self, now: Instant) {
        self.enter(Phase::Recovering { since: now, successes: 0, trial_done: false, admitted: Vec::new() });
    }

    fn end_outage(&mut self, now: Instant) -> Vec<Change> {
        let ended = self.outage.take();
        ended
            .map(|outage| Change::Recovered { after: now.saturating_duration_since(outage.since) })
            .into_iter()
            .collect()
    }

    /// Enters a phase in which results of earlier calls mean nothing any more.
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.generation += 1;
    }

    fn holds(&self, lease: u64) -> bool {
        matches!(self.phase, Phase::HalfOpen { lease: held, .. } if held == lease)
    }
}
