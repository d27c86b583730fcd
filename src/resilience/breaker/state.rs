//! What a breaker is called from outside.

/// The standard words: closed = calls pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// Calls are held back.
    Open,
    /// Calls are held back while a health check is on its way.
    HalfOpen,
}

impl BreakerState {
    /// As in `/status` and as metric label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}
