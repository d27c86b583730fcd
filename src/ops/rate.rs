//! How many requests are answered: pure, on the monotonic clock.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// What may be asked of the endpoint as a whole. Probes of liveness and readiness are not counted.
#[derive(Debug)]
pub(super) struct Rates {
    /// Pages and documents.
    pub(super) reads: Bucket,
    /// Actions.
    pub(super) actions: Bucket,
    /// Wrong tokens.
    pub(super) wrong: Bucket,
}

impl Rates {
    /// As many as a wall of dashboards needs, and too few guesses to find a token.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            reads: Bucket::new(100.0, 400.0, now),
            actions: Bucket::new(1.0, 20.0, now),
            wrong: Bucket::new(1.0, 10.0, now),
        }
    }
}

/// A token bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: f64,
    capacity: f64,
    left: Mutex<(f64, Instant)>,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(per_second: f64, capacity: f64, now: Instant) -> Self {
        Self { per_second, capacity, left: Mutex::new((capacity, now)) }
    }

    /// Takes one out, if there is one.
    pub(super) fn take(&self, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_duration_since(left.1).as_secs_f64();
        *left = ((left.0 + since * self.per_second).min(self.capacity), now);
        let is_there = left.0 >= 1.0;
        if is_there {
            left.0 -= 1.0;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_its_capacity_at_once_and_then_its_rate() {
        let start = Instant::now();
        let bucket = Bucket::new(2.0, 5.0, start);
        let taken = |now| std::iter::repeat_with(|| bucket.take(now)).take(100).filter(|taken| *taken).count();
        assert_eq!(taken(start), 5);
        assert_eq!(taken(start + Duration::from_secs(1)), 2);
        assert_eq!(taken(start + Duration::from_secs(600)), 5);
        assert_eq!(taken(start), 0, "a clock that goes back gives nothing");
    }
}
