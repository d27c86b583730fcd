//! The breaker as it is shown to people and kept across restarts. Holds dates, since instants die with the process.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::circuit::{Circuit, Outage, Phase};
use super::event::{OpenReason, Scope};
use super::machine::BreakerMachine;
use super::state::BreakerState;
use crate::resilience::endpoint::{Endpoint, PerEndpoint};
use crate::resilience::settings::BreakerSettings;

/// A restored open time is never longer than this, whatever a stepped clock makes of it.
const LONGEST_RESTORED: Duration = Duration::from_secs(60);

/// Everything worth knowing about a breaker at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerSnapshot {
    /// Of the key's circuit.
    pub state: BreakerState,
    /// The outage of the key, if there is one; it may be closed again already, but not yet recovered.
    pub outage: Option<OutageSnapshot>,
    /// The endpoint whose failure opened the key's circuit.
    pub tripped: Option<Endpoint>,
    /// The outages of single endpoints.
    pub suspended: Vec<SuspensionSnapshot>,
    /// Failures in a row, over all endpoints: processes that end after a few calls must come to an opening as well (A10).
    #[serde(default)]
    pub consecutive: u32,
}

/// One outage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutageSnapshot {
    /// Why it opened.
    pub reason: OpenReason,
    /// When it began.
    pub since: Timestamp,
    /// When the next health check is due; `None` while held open without end, or once calls go again.
    pub next_probe: Option<Timestamp>,
    /// How often it has opened.
    pub openings: u32,
    /// Whether it has been escalated.
    pub escalated: bool,
    /// Whether calls go again, carefully.
    pub recovering: bool,
    /// Whether a person holds it open.
    pub held: bool,
    /// Calls that succeeded since calls go again.
    #[serde(default)]
    pub successes: u32,
    /// Whether the first real call since then has succeeded.
    #[serde(default)]
    pub trial_done: bool,
}

/// The outage of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspensionSnapshot {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Its outage.
    pub outage: OutageSnapshot,
}

impl BreakerSnapshot {
    /// The endpoints to which no calls go at present.
    pub fn suspended_endpoints(&self) -> impl Iterator<Item = Endpoint> {
        self.suspended.iter().filter(|suspension| !suspension.outage.recovering).map(|suspension| suspension.endpoint)
    }
}

impl BreakerMachine {
    /// The breaker as it stands, in dates.
    #[must_use]
    pub fn snapshot(&self, now: Instant, date: Timestamp) -> BreakerSnapshot {
        let dates = Dates { now, date };
        let suspended = self
            .lanes
            .iter()
            .filter_map(|(endpoint, lane)| Some(SuspensionSnapshot { endpoint, outage: dates.outage(lane)? }));
        BreakerSnapshot {
            state: self.state(),
            outage: dates.outage(&self.key),
            tripped: self.tripped,
            suspended: suspended.collect(),
            consecutive: self.consecutive,
        }
    }

    /// Takes up where an earlier process left: what was left of the open time is served, then the check runs. An
    /// outage that was recovering goes on recovering: the successes of processes that end after a few calls add up, and
    /// the next failure opens it at once, as ever.
    #[must_use]
    pub fn restored(settings: BreakerSettings, snapshot: &BreakerSnapshot, now: Instant, date: Timestamp) -> Self {
        let dates = Dates { now, date };
        let mut machine = Self::new(settings, now);
        if let Some(outage) = &snapshot.outage {
            dates.restore(&mut machine.key, outage);
            machine.tripped = snapshot.tripped.filter(|endpoint| endpoint.can_be_suspended());
        }
        machine.consecutive = snapshot.consecutive;
        let mut lanes = PerEndpoint::from_fn(|_| Circuit::new(settings));
        for suspension in &snapshot.suspended {
            if suspension.endpoint.can_be_suspended() {
                dates.restore(lanes.of_mut(suspension.endpoint), &suspension.outage);
            }
        }
        machine.lanes = lanes;
        machine
    }
}

/// One moment on both clocks, to convert between them.
struct Dates {
    now: Instant,
    date: Timestamp,
}

impl Dates {
    fn outage(&self, circuit: &Circuit) -> Option<OutageSnapshot> {
        let outage = circuit.outage()?;
        let (successes, trial_done) = match circuit.phase() {
            Phase::Recovering { successes, trial_done, .. } => (*successes, *trial_done),
            _ => (0, false),
        };
        let (next_probe, recovering, held) = match circuit.phase() {
            Phase::Open { until } => (Some(*until), false, false),
            Phase::HalfOpen { .. } => (Some(self.now), false, false),
            Phase::Held { until } => (*until, false, true),
            Phase::Closed | Phase::Recovering { .. } => (None, true, false),
        };
        Some(OutageSnapshot {
            reason: outage.reason.clone(),
            since: self.to_date(outage.since),
            next_probe: next_probe.map(|instant| self.to_date(instant)),
            openings: outage.openings,
            escalated: outage.escalated,
            recovering,
            held,
            successes,
            trial_done,
        })
    }

    fn restore(&self, circuit: &mut Circuit, snapshot: &OutageSnapshot) {
        let left = snapshot.next_probe.map(|due| Duration::try_from(due.duration_since(self.date)).unwrap_or_default());
        let left = match (snapshot.held, left) {
            (true, left) => left,
            (false, left) => Some(left.unwrap_or_default().min(LONGEST_RESTORED)),
        };
        let age = Duration::try_from(self.date.duration_since(snapshot.since)).unwrap_or_default();
        let outage = Outage {
            reason: snapshot.reason.clone(),
            since: self.now.checked_sub(age).unwrap_or(self.now),
            openings: snapshot.openings.max(1),
            escalated: snapshot.escalated,
        };
        if snapshot.recovering && !snapshot.held {
            return circuit.restore_recovering(outage, snapshot.successes, snapshot.trial_done, self.now);
        }
        circuit.restore(outage, left.map(|left| self.now + left), snapshot.held);
    }

    fn to_date(&self, instant: Instant) -> Timestamp {
        let ahead = instant.saturating_duration_since(self.now);
        let behind = self.now.saturating_duration_since(instant);
        let offset = SignedDuration::try_from(ahead).unwrap_or(SignedDuration::MAX)
            - SignedDuration::try_from(behind).unwrap_or(SignedDuration::ZERO);
        self.date.checked_add(offset).unwrap_or(Timestamp::MAX)
    }
}

impl std::fmt::Display for OutageSnapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} since {}", self.reason, self.since)
    }
}

impl Scope {
    /// As metric label and in `/status`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Endpoint(endpoint) => endpoint.name(),
        }
    }
}
