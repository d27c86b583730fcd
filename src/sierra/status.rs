//! What the client shows of itself, what it keeps across restarts, and what a person may do to it.

use std::time::Duration;

use super::client::SierraClient;
use crate::resilience::breaker::{BreakerSnapshot, BreakerState as Circuit, OutageSnapshot};
use crate::resilience::endpoint::Endpoint;
use crate::resilience::line::Line;
use crate::resilience::quota::QuotaSnapshot;
use crate::resilience::recovery::RecoveryProgress;
use crate::sync::report::status::{BreakerState, BreakerStatus, QuotaState, QuotaStatus, TokenStatus};

impl SierraClient {
    /// The quota ledger, for `status`.
    #[must_use]
    pub fn quota_status(&self) -> QuotaStatus {
        let quota = self.inner.line.quota().map(|quota| quota.snapshot(self.inner.clock.now()));
        let Some(quota) = quota else {
            return QuotaStatus {
                limit: None,
                remaining: None,
                resets_at: None,
                state: QuotaState::Ok,
                resume_at: None,
                waited_seconds: 0.0,
                refused: 0,
            };
        };
        QuotaStatus {
            limit: quota.limit.map(u64::from),
            remaining: quota.remaining.map(u64::from),
            resets_at: quota.resets_at,
            state: if quota.resume_at.is_some() { QuotaState::WaitingQuota } else { QuotaState::Ok },
            resume_at: quota.resume_at,
            waited_seconds: quota.waited.as_secs_f64(),
            refused: quota.refused,
        }
    }

    /// The key's breaker, for `status`.
    #[must_use]
    pub fn breaker_status(&self) -> BreakerStatus {
        shown_breaker(&self.inner.line.breaker().snapshot(self.inner.clock.now()))
    }

    /// Why a person holds the breaker open, if one does, in the words of an error.
    #[must_use]
    pub fn held_open(&self) -> Option<OutageSnapshot> {
        self.inner.outage().filter(|outage| outage.held)
    }

    /// The session token, for `status`.
    #[must_use]
    pub fn token_status(&self) -> TokenStatus {
        self.inner.auth.status()
    }

    /// Whether quota holds this endpoint's calls back, and until when.
    #[must_use]
    pub fn refused_endpoints(&self) -> Vec<(Endpoint, jiff::Timestamp)> {
        let quota = self.inner.line.quota().map(|quota| quota.snapshot(self.inner.clock.now()));
        quota.map(|quota| quota.refused_endpoints).unwrap_or_default()
    }

    /// Breaker, quota and retries of the key.
    #[must_use]
    pub fn line(&self) -> &Line {
        &self.inner.line
    }

    /// The breaker, to be kept across restarts: read again with [`read_breaker_snapshot`].
    #[must_use]
    pub fn breaker_snapshot(&self) -> Vec<u8> {
        write_breaker_snapshot(&self.inner.line.breaker().snapshot(self.inner.clock.now()))
    }

    /// The quota ledger, to be kept across restarts: read again with [`read_quota_snapshot`].
    #[must_use]
    pub fn quota_snapshot(&self) -> Vec<u8> {
        let quota = self.inner.line.quota().map(|quota| quota.snapshot(self.inner.clock.now()));
        quota.map(|quota| written(&quota)).unwrap_or_default()
    }

    /// The credential latch, to be kept across restarts and handed to the next client; empty when it is lifted.
    #[must_use]
    pub fn latch_snapshot(&self) -> Vec<u8> {
        self.inner.auth.latch_snapshot()
    }

    /// A person holds every call back: for so long, or without end (`breaker open`).
    pub fn open_breaker(&self, by: Option<&str>, reason: &str, duration: Option<Duration>) {
        self.inner.line.breaker().hold(by, reason, duration);
    }

    /// A person closes the breaker; calls go again as carefully as after a health check (`breaker close`).
    pub fn close_breaker(&self) {
        self.inner.line.breaker().close();
    }

    /// A person declares every outage over, a refused credential included (`breaker reset`).
    pub fn reset_breaker(&self) {
        self.inner.line.breaker().reset();
        self.inner.auth.lift();
    }

    /// Comes back after a stall (A18): forgets what was remembered of the server's limits, lifts the latch, has the next
    /// call fetch a fresh token, and goes slower and one call at a time until the quota holds. To be called when what
    /// was under way is drained: see [`Self::drain`].
    pub fn recover(&self) {
        self.inner.line.recover();
        self.inner.auth.lift();
        self.inner.auth.forget();
    }

    /// Lets no more than one call go at once, and waits until none is under way, but not longer than `longest`.
    pub async fn drain(&self, longest: Duration) {
        if let Some(quota) = self.inner.line.quota() {
            quota.set_cautious(true);
            drop(tokio::time::timeout(longest, quota.drained()).await);
        }
    }

    /// How far the re-engagement after a stall is, or how it ended; `None` when there was none.
    #[must_use]
    pub fn recovery_progress(&self) -> Option<RecoveryProgress> {
        self.inner.line.recovery_progress()
    }
}

/// A breaker as `status` shows it.
#[must_use]
pub fn shown_breaker(breaker: &BreakerSnapshot) -> BreakerStatus {
    let state = match breaker.state {
        Circuit::Closed => BreakerState::Closed,
        Circuit::Open => BreakerState::Open,
        Circuit::HalfOpen => BreakerState::HalfOpen,
    };
    // An outage that calls are just coming back from is over for whoever looks.
    let outage = breaker.outage.as_ref().filter(|_| state != BreakerState::Closed);
    BreakerStatus {
        state,
        reason: outage.map(|outage| outage.reason.to_string()),
        since: outage.map(|outage| outage.since),
        next_probe: outage.and_then(|outage| outage.next_probe),
        held: outage.is_some_and(|outage| outage.held && outage.reason.is_operators()),
        suspended_endpoints: breaker.suspended_endpoints().map(|endpoint| endpoint.name().to_owned()).collect(),
    }
}

/// The breaker, to be kept across restarts: read again with [`read_breaker_snapshot`].
#[must_use]
pub fn write_breaker_snapshot(breaker: &BreakerSnapshot) -> Vec<u8> {
    written(breaker)
}

/// Reads what [`SierraClient::breaker_snapshot`] wrote; `None` when there is nothing readable.
#[must_use]
pub fn read_breaker_snapshot(bytes: &[u8]) -> Option<BreakerSnapshot> {
    read(bytes)
}

/// Reads what [`SierraClient::quota_snapshot`] wrote; `None` when there is nothing readable.
#[must_use]
pub fn read_quota_snapshot(bytes: &[u8]) -> Option<QuotaSnapshot> {
    read(bytes)
}

/// The version byte of stored snapshots.
const VERSION: u8 = 1;

fn written(snapshot: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(serde_json::to_vec(snapshot).unwrap_or_default());
    bytes
}

fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (version, json) = bytes.split_first()?;
    if *version == VERSION { serde_json::from_slice(json).ok() } else { None }
}
