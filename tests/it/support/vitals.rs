//! A connection to Sierra about which there is nothing to say.

use std::time::Duration;

use sierra_sync::sync::engine::{StatusInputs, Vitals};
use sierra_sync::sync::report::status::{
    BreakerState, BreakerStatus, QuotaState, QuotaStatus, TokenState, TokenStatus,
};

/// All is well with the connection.
pub(crate) struct NoVitals;

impl NoVitals {
    /// What `status` needs, with streams stale after half an hour.
    pub(crate) fn inputs(&self) -> StatusInputs<'_> {
        StatusInputs { vitals: self, version: "0.0.0", started: None, stale_after: Duration::from_secs(1800) }
    }
}

impl Vitals for NoVitals {
    fn quota(&self) -> QuotaStatus {
        let state = QuotaState::Ok;
        QuotaStatus {
            limit: None,
            remaining: None,
            resets_at: None,
            state,
            resume_at: None,
            waited_seconds: 0.0,
            refused: 0,
        }
    }

    fn breaker(&self) -> BreakerStatus {
        let state = BreakerState::Closed;
        BreakerStatus {
            state,
            reason: None,
            since: None,
            next_probe: None,
            held: false,
            suspended_endpoints: Vec::new(),
        }
    }

    fn token(&self) -> TokenStatus {
        TokenStatus { state: TokenState::Ok, expires_at: None }
    }
}
