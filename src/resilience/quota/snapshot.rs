//! The ledger as it is shown to people and kept across restarts. Holds dates, since instants die with the process.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::ledger::{LONGEST_GATE, Ledger};
use crate::resilience::endpoint::Endpoint;

/// Sierra's own refusals last longer than a header may make us wait, but not longer than this.
const LONGEST_REFUSAL: Duration = Duration::from_secs(24 * 3600);

/// Everything worth knowing about the quota at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuotaSnapshot {
    /// Calls that the server grants per window, if it says so.
    pub limit: Option<u32>,
    /// Calls left in the window, by what it said and what we did since.
    pub remaining: Option<u32>,
    /// When the window is over for certain.
    pub resets_at: Option<Timestamp>,
    /// Length of the window, if it is known.
    pub window: Option<Duration>,
    /// Until when every call of the key waits, if it does.
    pub resume_at: Option<Timestamp>,
    /// Endpoints that Sierra refused, and until when.
    pub refused_endpoints: Vec<(Endpoint, Timestamp)>,
    /// Calls per second in force.
    pub rate: f64,
    /// Time that calls have spent waiting for quota since the start.
    pub waited: Duration,
    /// Refusals of any kind since the start.
    pub refused: u64,
    /// Statements about quota that were ignored as nonsense since the start.
    pub nonsense: u64,
    /// Calls go one at a time, since a stall has not been recovered from yet (A18).
    #[serde(default)]
    pub cautious: bool,
}

impl QuotaSnapshot {
    /// The state in `/status`: `ok` or `waiting_quota`.
    #[must_use]
    pub const fn state(&self) -> &'static str {
        if self.resume_at.is_some() { "waiting_quota" } else { "ok" }
    }

    /// Fewer than a tenth of the window's calls are left (BR-076).
    #[must_use]
    pub fn is_low(&self) -> bool {
        matches!((self.limit, self.remaining), (Some(limit), Some(left)) if u64::from(left) * 10 < u64::from(limit))
    }
}

impl Ledger {
    /// The ledger as it stands, in dates. `waited` is kept by the driver.
    #[must_use]
    pub fn snapshot(&self, now: Instant, date: Timestamp, waited: Duration) -> QuotaSnapshot {
        let to_date = |instant: Instant| {
            let ahead = SignedDuration::try_from(instant.saturating_duration_since(now)).unwrap_or(SignedDuration::MAX);
            date.checked_add(ahead).unwrap_or(Timestamp::MAX)
        };
        let closed = self.endpoint_gates.iter().filter_map(|(endpoint, gate)| {
            let gate = gate.as_ref().filter(|gate| gate.is_closed(now))?;
            Some((endpoint, to_date(gate.opens_at())))
        });
        QuotaSnapshot {
            limit: self.window.limit(),
            remaining: self.window.remaining(now),
            resets_at: self.window.ends_at().filter(|end| *end > now).map(to_date),
            window: self.window.length(),
            resume_at: self.key_gate.as_ref().filter(|gate| gate.is_closed(now)).map(|gate| to_date(gate.opens_at())),
            refused_endpoints: closed.collect(),
            rate: self.rate(),
            waited,
            refused: self.refused,
            nonsense: self.window.nonsense,
            cautious: self.is_cautious(),
        }
    }

    /// Takes up what an earlier process knew: the window if it still runs, and the gates that are still closed.
    pub fn restore(&mut self, snapshot: &QuotaSnapshot, now: Instant, date: Timestamp) {
        let ahead = |then: Timestamp, longest: Duration| {
            let ahead = Duration::try_from(then.duration_since(date)).ok().filter(|ahead| !ahead.is_zero())?;
            Some(now + ahead.min(longest))
        };
        let end = snapshot.resets_at.and_then(|end| ahead(end, LONGEST_GATE));
        self.set_cautious(snapshot.cautious);
        self.window.restore(snapshot.limit, snapshot.remaining, end, now);
        if let Some(opens_at) = snapshot.resume_at.and_then(|at| ahead(at, LONGEST_GATE)) {
            self.restore_key_gate(opens_at);
        }
        for (endpoint, until) in &snapshot.refused_endpoints {
            if let Some(opens_at) = ahead(*until, LONGEST_REFUSAL) {
                self.restore_endpoint_gate(*endpoint, opens_at);
            }
        }
    }
}
