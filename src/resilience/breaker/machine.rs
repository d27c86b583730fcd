//! The whole breaker as a pure state machine: one circuit for the key, one for each endpoint that can be suspended.
//!
//! When calls fail, this decides whom to hold back. If all failures of the last minute are on one endpoint while a
//! list endpoint other than it answered well since the first of them, that endpoint alone is suspended; otherwise the
//! key's circuit opens and *all* outbound calls halt (A10). Sierra's bib endpoint is known to fail for hours at
//! night while items work.

use std::sync::Arc;

use rand::Rng;
use tokio::time::Instant;

use super::circuit::{Change, Circuit, Entry, Phase, Rank, Ticket};
use super::event::{BreakerEvent, OpenReason, Scope};
use super::history::History;
use super::state::BreakerState;
use crate::resilience::endpoint::{Endpoint, PerEndpoint};
use crate::resilience::settings::BreakerSettings;
use crate::resilience::taxonomy::Mark;

/// Fewer calls than this within a minute say nothing about a ratio.
const RATIO_CALLS: u32 = 10;

/// What a health check asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProbeTarget {
    /// Is the other side there at all? For Sierra: `/info/token`, with a token call first if needed.
    Health,
    /// Does this endpoint serve records? One call with `limit=1`.
    Endpoint(Endpoint),
}

/// Why a call may not go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// What is held back.
    pub scope: Scope,
    /// When the next health check is due; `None` while held open without end.
    pub retry_at: Option<Instant>,
}

/// An admitted call, as the breaker knows it. To be reported once, under the generation in which it was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    endpoint: Option<Endpoint>,
    key: Ticket,
    lane: Option<Ticket>,
}

impl Admitted {
    /// Whether this is the first real call after an outage, which asks for as little as possible.
    pub(super) fn is_trial(&self) -> bool {
        self.key.trial || self.lane.is_some_and(|lane| lane.trial)
    }
}

/// The answer to a call that asks to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may go.
    Go(Admitted),
    /// Recovering: ask again at that time, or when something changed.
    Wait(Instant),
    /// Open or suspended.
    Rejected(Rejection),
}

/// The slot for one health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    scope: Scope,
    id: u64,
    /// What to ask.
    pub target: ProbeTarget,
}

/// The state of all circuits. Pure: time and chance are arguments, effects are returned.
#[derive(Debug, Clone)]
pub struct BreakerMachine {
    settings: BreakerSettings,
    pub(super) key: Circuit,
    pub(super) lanes: PerEndpoint<Circuit>,
    records: PerEndpoint<History>,
    /// Calls to no endpoint in particular: deliveries to a sink.
    unnamed: History,
    /// Failures in a row, over all endpoints, those of earlier processes included.
    pub(super) consecutive: u32,
    /// The list endpoint whose failure opened the key's circuit; `None` when it was another call's.
    pub(super) tripped: Option<Endpoint>,
    /// The last recovery ended because a call failed although the health check had passed.
    health_check_misled: bool,
}

impl BreakerMachine {
    /// Everything closed.
    #[must_use]
    pub fn new(settings: BreakerSettings, now: Instant) -> Self {
        Self {
            settings,
            key: Circuit::new(settings),
            lanes: PerEndpoint::from_fn(|_| Circuit::new(settings)),
            records: PerEndpoint::from_fn(|_| History::new(now)),
            unnamed: History::new(now),
            consecutive: 0,
            tripped: None,
            health_check_misled: false,
        }
    }

    /// Whether a call to `endpoint` may go.
    pub fn admit(&mut self, endpoint: Option<Endpoint>, now: Instant) -> Admission {
        let rank = match endpoint {
            Some(Endpoint::Token | Endpoint::TokenInfo) => Rank::Service,
            _ if self.tripped.is_none_or(|tripped| endpoint == Some(tripped)) => Rank::Tripped,
            _ => Rank::Other,
        };
        let key = match self.key.admit(rank, now) {
            Entry::Go(ticket) => ticket,
            Entry::Wait(until) => return Admission::Wait(until),
            Entry::Rejected(retry_at) => return Admission::Rejected(Rejection { scope: Scope::Key, retry_at }),
        };
        let Some(endpoint) = endpoint else {
            return Admission::Go(Admitted { endpoint: None, key, lane: None });
        };
        match self.lanes.of_mut(endpoint).admit(Rank::Tripped, now) {
            Entry::Go(lane) => Admission::Go(Admitted { endpoint: Some(endpoint), key, lane: Some(lane) }),
            Entry::Wait(until) => {
                self.key.release(key);
                Admission::Wait(until)
            }
            Entry::Rejected(retry_at) => {
                self.key.release(key);
                Admission::Rejected(Rejection { scope: Scope::Endpoint(endpoint), retry_at })
            }
        }
    }

    /// What holds calls to `endpoint` back at present, if anything does. Takes nothing.
    #[must_use]
    pub fn rejects(&self, endpoint: Option<Endpoint>) -> Option<Rejection> {
        let lane = endpoint.map(|endpoint| (Scope::Endpoint(endpoint), self.lanes.of(endpoint)));
        let blocking =
            [Some((Scope::Key, &self.key)), lane].into_iter().flatten().find(|(_, circuit)| !circuit.passes());
        blocking.map(|(scope, circuit)| Rejection { scope, retry_at: circuit.due() })
    }

    /// Whether a call admitted earlier still stands: nothing opened since.
    #[must_use]
    pub fn is_current(&self, call: &Admitted) -> bool {
        self.key.is_current(call.key)
            && match (call.endpoint, call.lane) {
                (Some(endpoint), Some(lane)) => self.lanes.of(endpoint).is_current(lane),
                _ => true,
            }
    }

    /// Reports what an admitted call taught us. A late report, from before a transition, changes nothing.
    pub fn report(
        &mut self,
        call: Admitted,
        mark: Mark,
        correlation_id: Option<&Arc<str>>,
        now: Instant,
        rng: &mut impl Rng,
    ) -> Vec<BreakerEvent> {
        if !self.is_current(&call) {
            return Vec::new();
        }
        let mut events = Vec::new();
        match mark {
            Mark::Neutral => {
                self.key.release(call.key);
                if let (Some(endpoint), Some(lane)) = (call.endpoint, call.lane) {
                    self.lanes.of_mut(endpoint).release(lane);
                }
            }
            Mark::Healthy => {
                self.consecutive = 0;
                self.record(call.endpoint).succeeded(now);
                let changes = self.key.succeeded(call.key, now);
                self.publish(Scope::Key, changes, None, &mut events);
                if let (Some(endpoint), Some(lane)) = (call.endpoint, call.lane) {
                    let changes = self.lanes.of_mut(endpoint).succeeded(lane, now);
                    self.publish(Scope::Endpoint(endpoint), changes, None, &mut events);
                }
                if self.key.is_closed() {
                    self.tripped = None;
                    self.health_check_misled = false;
                }
            }
            Mark::Failed => {
                self.key.release(call.key);
                self.record(call.endpoint).failed(now);
                self.consecutive = self.consecutive.saturating_add(1);
                self.after_failure(call, correlation_id, now, rng, &mut events);
            }
        }
        events
    }

    /// The next health check: when, and what it asks. While the key's circuit does not pass, nothing else is checked.
    #[must_use]
    pub fn next_probe(&self) -> Option<(Instant, ProbeTarget)> {
        if !self.key.passes() {
            return self.key.due().map(|due| (due, self.key_target()));
        }
        let lanes =
            self.lanes.iter().filter_map(|(endpoint, lane)| Some((lane.due()?, ProbeTarget::Endpoint(endpoint))));
        lanes.min_by_key(|(due, _)| *due)
    }

    /// Takes the slot of the health check that is due, if one is due and none is on its way.
    pub fn try_probe(&mut self, now: Instant) -> Option<Lease> {
        if !self.key.passes() {
            let target = self.key_target();
            return self.key.try_probe(now).map(|id| Lease { scope: Scope::Key, id, target });
        }
        self.lanes.iter_mut().find_map(|(endpoint, lane)| {
            let id = lane.try_probe(now)?;
            Some(Lease { scope: Scope::Endpoint(endpoint), id, target: ProbeTarget::Endpoint(endpoint) })
        })
    }

    /// Reports a health check. A late report, after the lease was reclaimed, changes nothing.
    pub fn report_probe(&mut self, lease: Lease, mark: Mark, now: Instant, rng: &mut impl Rng) -> Vec<BreakerEvent> {
        let Some(circuit) = self.circuit_mut(lease.scope) else { return Vec::new() };
        let changes = match mark {
            Mark::Healthy => circuit.probe_passed(lease.id, now),
            Mark::Failed => circuit.probe_failed(lease.id, now, rng),
            Mark::Neutral => {
                circuit.probe_neutral(lease.id, now);
                Vec::new()
            }
        };
        let mut events = Vec::new();
        self.publish(lease.scope, changes, None, &mut events);
        events
    }

    /// Lets time pass: reclaims health checks and recovery calls that nobody answered for.
    pub fn tick(&mut self, now: Instant, rng: &mut impl Rng) -> Vec<BreakerEvent> {
        let mut events = Vec::new();
        let changes = self.key.tick(now, rng);
        self.publish(Scope::Key, changes, None, &mut events);
        for endpoint in Endpoint::ALL {
            let changes = self.lanes.of_mut(endpoint).tick(now, rng);
            self.publish(Scope::Endpoint(endpoint), changes, None, &mut events);
        }
        events
    }

    /// A person holds everything back, until `until` or without end.
    pub fn hold(
        &mut self,
        by: Option<String>,
        reason: String,
        until: Option<Instant>,
        now: Instant,
    ) -> Vec<BreakerEvent> {
        let mut events = Vec::new();
        let changes = self.key.hold(by, reason, until, now);
        self.publish(Scope::Key, changes, None, &mut events);
        events
    }

    /// A person closes every circuit; calls go again as carefully as after a health check.
    pub fn close(&mut self, now: Instant) -> Vec<BreakerEvent> {
        let mut events = Vec::new();
        let changes = self.key.close(now);
        self.publish(Scope::Key, changes, None, &mut events);
        for endpoint in Endpoint::ALL {
            let changes = self.lanes.of_mut(endpoint).close(now);
            self.publish(Scope::Endpoint(endpoint), changes, None, &mut events);
        }
        self.forgive();
        events
    }

    /// A person declares every outage over and forgets what led to it.
    pub fn reset(&mut self, now: Instant) -> Vec<BreakerEvent> {
        let mut events = Vec::new();
        let changes = self.key.reset(now);
        self.publish(Scope::Key, changes, None, &mut events);
        for endpoint in Endpoint::ALL {
            let changes = self.lanes.of_mut(endpoint).reset(now);
            self.publish(Scope::Endpoint(endpoint), changes, None, &mut events);
        }
        self.forgive();
        self.tripped = None;
        self.health_check_misled = false;
        events
    }

    fn after_failure(
        &mut self,
        call: Admitted,
        correlation_id: Option<&Arc<str>>,
        now: Instant,
        rng: &mut impl Rng,
        events: &mut Vec<BreakerEvent>,
    ) {
        let scope = match call.endpoint {
            Some(endpoint) if self.lanes.of(endpoint).outage().is_some() => {
                // A suspended endpoint that is only just recovering fails again: that is no news about the key.
                self.consecutive = self.consecutive.saturating_sub(1);
                self.records.of_mut(endpoint).forgive();
                let changes = self.lanes.of_mut(endpoint).open(OpenReason::FailedWhileRecovering, now, rng);
                return self.publish(Scope::Endpoint(endpoint), changes, correlation_id, events);
            }
            Some(endpoint) if self.is_alone(endpoint, now) => Scope::Endpoint(endpoint),
            _ => Scope::Key,
        };
        let Some(reason) = self.verdict(scope, now) else { return };
        match scope {
            Scope::Endpoint(endpoint) => {
                self.consecutive = 0;
                self.records.of_mut(endpoint).forgive();
                let changes = self.lanes.of_mut(endpoint).open(reason, now, rng);
                self.publish(scope, changes, correlation_id, events);
            }
            Scope::Key => {
                self.health_check_misled = self.key.recovering_since().is_some();
                // A call for a token is no call of its own: nobody would ever go first.
                self.tripped = call.endpoint.filter(|endpoint| endpoint.can_be_suspended());
                self.forgive();
                let changes = self.key.open(reason, now, rng);
                self.publish(scope, changes, correlation_id, events);
            }
        }
    }

    /// Whether the failures amount to an outage of `scope`.
    fn verdict(&self, scope: Scope, now: Instant) -> Option<OpenReason> {
        if self.key.recovering_since().is_some() {
            return Some(OpenReason::FailedWhileRecovering);
        }
        let of_key = self.records.iter().map(|(_, record)| record).chain([&self.unnamed]);
        let (all_failures, all_calls) = of_key
            .map(|record| record.recent(now))
            .fold((0, 0), |(failures, calls), (more_failures, more)| (failures + more_failures, calls + more));
        let (consecutive, failures, calls) = match scope {
            Scope::Key => (self.consecutive, all_failures, all_calls),
            Scope::Endpoint(endpoint) => {
                let record = self.records.of(endpoint);
                let (failures, calls) = record.recent(now);
                (record.consecutive, failures, calls)
            }
        };
        let too_many = |failures: u32, calls: u32| calls >= RATIO_CALLS && failures * 2 >= calls;
        if consecutive >= self.settings.failure_threshold {
            Some(OpenReason::ConsecutiveFailures { failures: consecutive })
        } else if too_many(failures, calls) {
            Some(OpenReason::FailureRatio { failures, calls })
        } else {
            // The key as a whole is bad enough to open; the one endpoint that is to blame is suspended in its stead.
            too_many(all_failures, all_calls)
                .then_some(OpenReason::FailureRatio { failures: all_failures, calls: all_calls })
        }
    }

    /// Whether every failure of the last minute is on `endpoint` while another list endpoint answered well since the
    /// first of them. Token calls vouch for nothing: with one stream on, the key's circuit opens.
    fn is_alone(&self, endpoint: Endpoint, now: Instant) -> bool {
        if !endpoint.can_be_suspended() || self.unnamed.recent(now).0 > 0 {
            return false;
        }
        let others_failed = self.records.iter().any(|(other, record)| other != endpoint && record.recent(now).0 > 0);
        let first = self.records.of(endpoint).first_failure(now).unwrap_or(now);
        // After a recovery the failures before it are forgotten: what answered well since then vouches.
        let since = self.key.recovering_since().map_or(first, |recovery| recovery.min(first));
        let vouched = self.records.iter().any(|(other, record)| {
            other != endpoint
                && other.is_list()
                && self.lanes.of(other).is_closed()
                && record.last_success.is_some_and(|success| success >= since)
        });
        !others_failed && vouched
    }

    /// What the key's health check asks. `/info/token` can pass while every list fails; when it has just misled us
    /// that way, the endpoint that tripped is asked instead, which costs one call a window instead of two. Not when
    /// another list endpoint was well when last asked: that one must get its chance.
    fn key_target(&self) -> ProbeTarget {
        let other_is_well = self.records.iter().any(|(other, record)| {
            Some(other) != self.tripped && other.is_list() && record.is_well() && self.lanes.of(other).is_closed()
        });
        match self.tripped.filter(|endpoint| endpoint.can_be_suspended()) {
            Some(endpoint) if self.health_check_misled && !other_is_well => ProbeTarget::Endpoint(endpoint),
            _ => ProbeTarget::Health,
        }
    }

    fn publish(
        &self,
        scope: Scope,
        changes: Vec<Change>,
        correlation_id: Option<&Arc<str>>,
        events: &mut Vec<BreakerEvent>,
    ) {
        let circuit = match scope {
            Scope::Key => &self.key,
            Scope::Endpoint(endpoint) => self.lanes.of(endpoint),
        };
        let reason = || circuit.outage().map(|outage| outage.reason.clone());
        events.extend(changes.into_iter().filter_map(|change| {
            Some(match change {
                Change::Opened { until } => {
                    BreakerEvent::Opened { scope, reason: reason()?, correlation_id: correlation_id.cloned(), until }
                }
                Change::Reopened { reason, until } => BreakerEvent::Reopened { scope, reason, until },
                Change::Escalated { open_for } => BreakerEvent::Escalated { scope, open_for },
                Change::Closed { by } => BreakerEvent::Closed { scope, by },
                Change::Recovered { after } => BreakerEvent::Recovered { scope, after },
            })
        }));
    }

    fn circuit_mut(&mut self, scope: Scope) -> Option<&mut Circuit> {
        match scope {
            Scope::Key => Some(&mut self.key),
            Scope::Endpoint(endpoint) => Some(self.lanes.of_mut(endpoint)),
        }
    }

    fn record(&mut self, endpoint: Option<Endpoint>) -> &mut History {
        match endpoint {
            Some(endpoint) => self.records.of_mut(endpoint),
            None => &mut self.unnamed,
        }
    }

    fn forgive(&mut self) {
        self.consecutive = 0;
        self.unnamed.forgive();
        for (_, record) in self.records.iter_mut() {
            record.forgive();
        }
    }

    /// How often the key's circuit has opened in the present outage; `None` without one.
    #[must_use]
    pub fn openings(&self) -> Option<u32> {
        self.key.outage().map(|outage| outage.openings)
    }

    /// The same of the circuits that a call to `endpoint` meets: the key's and its own.
    #[must_use]
    pub fn openings_before(&self, endpoint: Endpoint) -> [Option<u32>; 2] {
        [self.openings(), self.lanes.of(endpoint).outage().map(|outage| outage.openings)]
    }

    /// Whether calls pass, are held back, or wait for a health check that is on its way.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        match self.key.phase() {
            Phase::Closed | Phase::Recovering { .. } => BreakerState::Closed,
            Phase::Open { .. } | Phase::Held { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }
}
