//! Where "now" comes from: dates from a [`Clock`], durations from `tokio::time::Instant`.
//!
//! Nothing else in the crate reads the system's clocks; `clippy.toml` bans it.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the date and time in UTC.
///
/// Durations are never computed from two readings of a `Clock`: it may be stepped. Use `tokio::time::Instant`.
pub trait Clock: Send + Sync + Debug {
    /// The current date and time by this machine's (or the simulation's) clock.
    fn now(&self) -> Timestamp;
}

/// A clock that is shared between tasks.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock for simulations: a fixed epoch plus the time that tokio says has passed, plus a step.
///
/// Under tokio's paused time one `sleep` moves both this clock and every timer.
#[derive(Debug)]
pub struct SimClock {
    epoch: Timestamp,
    started: Instant,
    step_milliseconds: AtomicI64,
}

impl SimClock {
    /// Starts at `epoch`; must be called inside a tokio runtime.
    #[must_use]
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, started: Instant::now(), step_milliseconds: AtomicI64::new(0) }
    }

    /// Steps the clock by `by` (forward or back), as an operator or NTP would.
    pub fn step(&self, by: SignedDuration) {
        let milliseconds = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.step_milliseconds.fetch_add(milliseconds, Ordering::SeqCst);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        let step = SignedDuration::from_millis(self.step_milliseconds.load(Ordering::SeqCst));
        self.epoch.checked_add(elapsed).and_then(|now| now.checked_add(step)).unwrap_or(Timestamp::MAX)
    }
}
