//! The ledger of one API key, as a pure state machine: who may call when, and what every answer teaches.
//!
//! It holds the server's window, our pace, the gates that refusals close, the calls in flight and the part that
//! backfills may take. It neither sleeps nor sends: [`Ledger::admit`] says "go" or "ask again then", and the driver
//! does the waiting.

use std::time::Duration;

use rand::Rng;
use tokio::time::Instant;

use super::gate::{Gate, Passage};
use super::pacer::Pacer;
use super::waiter::{Class, WaitCause, Waiter};
use super::window::{Room, Spread, Window};
use crate::resilience::endpoint::{Endpoint, PerEndpoint};
use crate::resilience::rate_headers::RateFacts;
use crate::resilience::settings::QuotaSettings;

/// A gate for the key is never closed for longer: a hostile or mistaken header cannot stop us for good (C4).
pub(super) const LONGEST_GATE: Duration = Duration::from_secs(3600);
/// Waits without a known end are looked at again after this, should a wake-up be missed.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A call that may go, as the ledger knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    id: u64,
    endpoint: Endpoint,
    class: Class,
    window: u64,
    sent_at: Instant,
    /// Sent to see whether a window that would end absurdly late has ended already.
    is_scout: bool,
}

/// The answer to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may go, now.
    Go(Grant),
    /// Ask again then, or when something changed.
    Wait {
        /// When to ask again.
        until: Instant,
        /// Why.
        cause: WaitCause,
    },
}

/// What the answer to a call said about quota, beside its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoted {
    /// The call was served, or failed for reasons of its own.
    Served,
    /// 429.
    Throttled,
    /// Sierra's own refusal of the endpoint, for this long.
    Refused(Duration),
}

/// See the module documentation.
#[derive(Debug)]
pub struct Ledger {
    settings: QuotaSettings,
    pacer: Pacer,
    pub(super) window: Window,
    pub(super) key_gate: Option<Gate>,
    pub(super) endpoint_gates: PerEndpoint<Option<Gate>>,
    in_flight: PerEndpoint<u32>,
    /// The key's gate stands for the end of the window, and not for a refusal.
    gate_is_of_window: bool,
    /// The key's gate opens earlier than what the server said.
    gate_was_cut: bool,
    cautious: bool,
    behind: bool,
    paced_in_window: (u64, u32),
    last_paced: Option<Instant>,
    next_id: u64,
    pub(super) refused: u64,
}

impl Ledger {
    /// A ledger that knows nothing of the server yet. The settings have no problems.
    #[must_use]
    pub fn new(settings: QuotaSettings, now: Instant) -> Self {
        Self {
            settings,
            pacer: Pacer::new(settings.rate, now),
            window: Window::new(now),
            key_gate: None,
            endpoint_gates: PerEndpoint::default(),
            in_flight: PerEndpoint::default(),
            gate_is_of_window: false,
            gate_was_cut: false,
            cautious: false,
            behind: false,
            paced_in_window: (0, 0),
            last_paced: None,
            next_id: 0,
            refused: 0,
        }
    }

    /// Whether a call may go now, or when to ask again. "Go" counts the call as sent.
    pub fn admit(&mut self, waiter: &mut Waiter, now: Instant, rng: &mut impl Rng) -> Admission {
        self.pass_time(now);
        let endpoint = waiter.endpoint;
        let endpoint_gate = self.endpoint_gates.of_mut(endpoint).as_mut();
        let through_endpoint =
            endpoint_gate.map_or(Passage::Follow, |gate| gate.pass(&mut waiter.endpoint_ticket, now, rng));
        let through_key =
            self.key_gate.as_mut().map_or(Passage::Follow, |gate| gate.pass(&mut waiter.key_ticket, now, rng));
        match (through_endpoint, through_key) {
            (Passage::Closed(until), _) => return Admission::Wait { until, cause: WaitCause::Refusal },
            (_, Passage::Closed(until)) => return Admission::Wait { until, cause: WaitCause::Quota },
            (Passage::Queue(until), _) | (_, Passage::Queue(until)) => {
                return Admission::Wait { until, cause: WaitCause::Turn };
            }
            _ => {}
        }
        if !self.has_place(endpoint) {
            return Admission::Wait { until: now + LOOK_AGAIN, cause: WaitCause::Concurrency };
        }
        // The stated end was too far off to be believed: one call goes regardless of it, and looks.
        let is_scout = self.gate_was_cut && through_key == Passage::First;
        if !is_scout && let Some((until, cause)) = self.held_by_window(waiter, now, rng) {
            return Admission::Wait { until, cause };
        }
        if let Err(until) = self.pacer.check(now) {
            return Admission::Wait { until, cause: WaitCause::Pace };
        }
        self.gate_was_cut &= !is_scout;
        Admission::Go(self.grant(waiter, through_endpoint, through_key, is_scout, now))
    }

    /// When a caller may go at the earliest, as far as closed gates go; draws its places behind them.
    pub fn planned(&mut self, waiter: &mut Waiter, now: Instant, rng: &mut impl Rng) -> Option<Instant> {
        let endpoint_gate = self.endpoint_gates.of_mut(waiter.endpoint).as_mut().filter(|gate| gate.is_closed(now));
        let of_endpoint = endpoint_gate.map(|gate| gate.release(&mut waiter.endpoint_ticket, rng));
        let key_gate = self.key_gate.as_mut().filter(|gate| gate.is_closed(now));
        let of_key = key_gate.map(|gate| gate.release(&mut waiter.key_ticket, rng));
        of_endpoint.max(of_key)
    }

    /// When the last of the gates in the way to an endpoint opens, if one is closed. Draws no place.
    #[must_use]
    pub fn opens_at(&self, endpoint: Endpoint, now: Instant) -> Option<Instant> {
        let gates = self.endpoint_gates.of(endpoint).iter().chain(self.key_gate.iter());
        gates.filter(|gate| gate.is_closed(now)).map(Gate::opens_at).max()
    }

    /// A call came back, with what its headers and its body say. Returns how long the other side asked to be left
    /// alone, if it said so usably: a gate is then closed for that long.
    pub fn answered(&mut self, grant: Grant, facts: &RateFacts, quoted: Quoted, now: Instant) -> Option<Duration> {
        self.pass_time(now);
        self.land(grant);
        for gate in self.gates_of(grant.endpoint) {
            gate.answered(grant.id);
        }
        let in_flight = self.in_flight.iter().map(|(_, calls)| *calls).sum();
        self.window.landed(grant.sent_at, now);
        if grant.is_scout && !self.window.agrees_with(facts, now) {
            self.window.forget(grant.sent_at);
        }
        self.window.learn(facts, grant.sent_at, now, in_flight, &self.settings);
        if let (Some(gate), Some(end)) = (&mut self.key_gate, self.window.ends_at()) {
            // A better idea of when the window ends opens its gate earlier, never later.
            if gate.is_untouched() && gate.is_closed(now) && self.gate_is_of_window && end < gate.opens_at() {
                gate.move_opening(end);
            }
        }
        match quoted {
            Quoted::Served => None,
            Quoted::Refused(wait) => {
                self.refused += 1;
                let id = self.new_id();
                close(self.endpoint_gates.of_mut(grant.endpoint), now + wait, id, now);
                Some(wait)
            }
            Quoted::Throttled => {
                self.refused += 1;
                self.window.refused();
                self.pacer.slow_down(now);
                let wait = facts.usable_wait()?;
                // A stated number of seconds is kept to the letter; a reset is over when it is over for certain.
                let reset = facts.reset.filter(|_| facts.remaining.is_none_or(|left| left == 0));
                let stated = reset.map_or(wait.nominal, |reset| wait.nominal.max(reset.latest));
                let wait = stated.min(LONGEST_GATE);
                self.gate_was_cut |= stated > wait;
                let id = self.new_id();
                // A closed gate that stood for the window now stands for the longer of both.
                self.gate_is_of_window &= self.key_gate.as_ref().is_some_and(|gate| gate.opens_at() > now + wait);
                close(&mut self.key_gate, now + wait, id, now);
                Some(wait)
            }
        }
    }

    /// A call went out and its answer is not known: cancelled, timed out, cut.
    pub fn lost(&mut self, grant: Grant, now: Instant) {
        self.abandon(grant, now);
        self.window.landed(grant.sent_at, now);
    }

    /// A call that was let go was not made after all.
    pub fn returned(&mut self, grant: Grant, now: Instant) {
        self.abandon(grant, now);
        self.window.take_back(grant.sent_at, grant.window);
        if let (Class::Paced, (window, calls)) = (grant.class, self.paced_in_window)
            && window == grant.window
        {
            self.paced_in_window = (window, calls.saturating_sub(1));
        }
    }

    /// Whether a live stream is behind, so that paced calls keep to half of the grant.
    pub fn set_behind(&mut self, behind: bool) {
        self.behind = behind;
    }

    /// Whether to allow only one call at once, token calls apart, as while recovering from a stall (A18).
    pub fn set_cautious(&mut self, cautious: bool) {
        self.cautious = cautious;
    }

    /// Whether only one call goes at once.
    #[must_use]
    pub fn is_cautious(&self) -> bool {
        self.cautious
    }

    /// New settings, from now on. They have no problems.
    pub fn set_settings(&mut self, settings: QuotaSettings) {
        self.settings = settings;
        self.pacer.set_rate(settings.rate);
    }

    /// Forgets what the server said about its limits, and opens every gate (A18).
    pub fn forget(&mut self, now: Instant) {
        self.window.forget(now);
        self.key_gate = None;
        self.endpoint_gates = PerEndpoint::default();
    }

    /// Calls in flight on an endpoint.
    #[must_use]
    pub fn in_flight(&self, endpoint: Endpoint) -> u32 {
        *self.in_flight.of(endpoint)
    }

    /// Statements about quota that were ignored so far.
    #[must_use]
    pub fn nonsense(&self) -> u64 {
        self.window.nonsense
    }

    /// Our pace in force, in calls per second; below the configured one for a while after a refusal.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.pacer.rate()
    }

    /// Closes the key's gate as an earlier process had closed it.
    pub(super) fn restore_key_gate(&mut self, opens_at: Instant) {
        self.key_gate = Some(Gate::closed_until(opens_at, self.new_id()));
        self.gate_is_of_window = false;
    }

    /// Closes an endpoint's gate as an earlier process had closed it.
    pub(super) fn restore_endpoint_gate(&mut self, endpoint: Endpoint, opens_at: Instant) {
        let gate = Gate::closed_until(opens_at, self.new_id());
        *self.endpoint_gates.of_mut(endpoint) = Some(gate);
    }

    fn pass_time(&mut self, now: Instant) {
        self.window.roll(now);
        for (_, gate) in self.endpoint_gates.iter_mut() {
            gate.take_if(|gate| gate.is_over(now));
        }
        self.key_gate.take_if(|gate| gate.is_over(now));
    }

    /// Until when the window has no room for this caller, if it has none.
    fn held_by_window(
        &mut self,
        waiter: &mut Waiter,
        now: Instant,
        rng: &mut impl Rng,
    ) -> Option<(Instant, WaitCause)> {
        let until = match self.window.room(&self.settings, now) {
            Room::Calls(room) if waiter.class == Class::Paced => {
                return self.paced_turn(room, now).map(|turn| (turn, WaitCause::Spread));
            }
            Room::Calls(_) => None,
            Room::Later { at } if at <= now + LONGEST_GATE => Some(at),
            Room::Later { at: until } | Room::Spent { until } => Some(self.close_until(until, waiter, now, rng)),
        };
        until.map(|until| (until, WaitCause::Quota))
    }

    fn grant(
        &mut self,
        waiter: &Waiter,
        through_endpoint: Passage,
        through_key: Passage,
        is_scout: bool,
        now: Instant,
    ) -> Grant {
        let id = self.new_id();
        if let (Passage::First, Some(gate)) = (through_endpoint, self.endpoint_gates.of_mut(waiter.endpoint)) {
            gate.led_by(id, now);
        }
        if let (Passage::First, Some(gate)) = (through_key, &mut self.key_gate) {
            gate.led_by(id, now);
        }
        *self.in_flight.of_mut(waiter.endpoint) += 1;
        self.window.sent(now);
        if waiter.class == Class::Paced {
            self.last_paced = Some(now);
            let (window, calls) = self.paced_in_window;
            let present = self.window.generation;
            self.paced_in_window = (present, if window == present { calls + 1 } else { 1 });
        }
        let (endpoint, class, window) = (waiter.endpoint, waiter.class, self.window.generation);
        Grant { id, endpoint, class, window, sent_at: now, is_scout }
    }

    /// The window is spent: everybody waits for its end behind one gate.
    fn close_until(&mut self, until: Instant, waiter: &mut Waiter, now: Instant, rng: &mut impl Rng) -> Instant {
        let id = self.new_id();
        let opens_at = until.min(now + LONGEST_GATE);
        close(&mut self.key_gate, opens_at, id, now);
        self.gate_is_of_window = true;
        self.gate_was_cut = opens_at < until;
        self.key_gate.as_mut().map_or(until, |gate| gate.release(&mut waiter.key_ticket, rng))
    }

    /// When the next paced call may go, if not now. `room` is what is left of the window for any call. A window of
    /// days is treated as one of an hour: its end may be a mistake.
    fn paced_turn(&self, room: u32, now: Instant) -> Option<Instant> {
        let grant = self.settings.grant(self.window.limit()?);
        let (window, calls) = self.paced_in_window;
        let used = if window == self.window.generation { calls } else { 0 };
        let half = grant.div_ceil(2);
        let interval = match self.window.time_to_spread_over(now)? {
            Spread::Over(left) => {
                let room = if self.behind { room.min(half.saturating_sub(used)) } else { room };
                if room == 0 {
                    return self.window.ends_at().map(|end| end.min(now + LONGEST_GATE));
                }
                left.min(LONGEST_GATE) / room
            }
            // A little faster than even, since the length is rounded; the grant holds by itself.
            Spread::Steady(length) => length.min(LONGEST_GATE).mul_f64(0.97) / if self.behind { half } else { grant },
        };
        let next = self.last_paced? + interval;
        (next > now).then_some(next)
    }

    /// Whether one more call may be under way to `endpoint` (A19). While cautious, one call of any kind is the worker,
    /// and what serves it (tokens, signs of life) goes beside it.
    fn has_place(&self, endpoint: Endpoint) -> bool {
        let flying = *self.in_flight.of(endpoint);
        if !self.cautious {
            return flying < (*self.settings.concurrency.of(endpoint)).max(1);
        }
        let serves = |endpoint| matches!(endpoint, Endpoint::Token | Endpoint::TokenInfo);
        if serves(endpoint) {
            return flying == 0;
        }
        self.in_flight.iter().all(|(other, calls)| *calls == 0 || serves(other))
    }

    /// A call is over without an answer.
    fn abandon(&mut self, grant: Grant, now: Instant) {
        self.pass_time(now);
        self.land(grant);
        for gate in self.gates_of(grant.endpoint) {
            gate.abandoned(grant.id);
        }
    }

    fn land(&mut self, grant: Grant) {
        let in_flight = self.in_flight.of_mut(grant.endpoint);
        *in_flight = in_flight.saturating_sub(1);
    }

    fn gates_of(&mut self, endpoint: Endpoint) -> impl Iterator<Item = &mut Gate> {
        self.endpoint_gates.of_mut(endpoint).iter_mut().chain(self.key_gate.iter_mut())
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

/// Closes a gate, or keeps a closed one closed for longer.
fn close(gate: &mut Option<Gate>, opens_at: Instant, id: u64, now: Instant) {
    match gate {
        Some(closed) if closed.is_closed(now) => closed.move_opening(closed.opens_at().max(opens_at)),
        _ => *gate = Some(Gate::closed_until(opens_at, id)),
    }
}
