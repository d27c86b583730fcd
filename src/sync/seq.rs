//! The global order of changes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The place of a change in the one global order: strictly increasing in commit order, not dense, below 2⁵³ so that
/// every JSON reader holds it exactly. Sinks compare it, and nothing else, to keep the newer of two changes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Seq(u64);

impl Seq {
    /// Before every change.
    pub const ZERO: Self = Self(0);
    /// The largest value: 2⁵³ − 1.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// Wraps `value`; `None` beyond [`Seq::MAX`].
    #[must_use]
    pub const fn new(value: u64) -> Option<Self> {
        if value <= Self::MAX.0 { Some(Self(value)) } else { None }
    }

    /// The lowest seq that a store opened at `unix_seconds` may issue: seconds × 2²⁰, so that a store made anew is
    /// above what any sink holds. Clamped to the valid range.
    #[must_use]
    pub fn floor_at(unix_seconds: i64) -> Self {
        let seconds = u64::try_from(unix_seconds).unwrap_or(0);
        Self(seconds.saturating_mul(1 << 20).min(Self::MAX.0))
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The seq after this one; stays at [`Seq::MAX`].
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 < Self::MAX.0 { Self(self.0 + 1) } else { self }
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
