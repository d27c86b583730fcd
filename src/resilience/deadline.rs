//! The wall budget of one call, on the monotonic clock (B2, C3, C5).

use std::time::Duration;

use tokio::time::Instant;

/// How long a call may still go on. Waits for quota are added back: they belong to the server, not to the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    started: Instant,
    budget: Duration,
    excused: Duration,
}

impl Deadline {
    /// A budget that starts to run at `now`.
    #[must_use]
    pub fn starting(now: Instant, budget: Duration) -> Self {
        Self { started: now, budget, excused: Duration::ZERO }
    }

    /// Time spent waiting for quota does not count.
    pub fn excuse(&mut self, waited: Duration) {
        self.excused = self.excused.saturating_add(waited);
    }

    /// Since the start, excused waits included.
    #[must_use]
    pub fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// What is left of the budget.
    #[must_use]
    pub fn left(&self, now: Instant) -> Duration {
        let spent = self.elapsed(now).saturating_sub(self.excused);
        self.budget.saturating_sub(spent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excused_waits_do_not_spend_the_budget() {
        let start = Instant::now();
        let mut deadline = Deadline::starting(start, Duration::from_secs(90));
        let later = start + Duration::from_secs(60);
        assert_eq!(deadline.left(later), Duration::from_secs(30));
        deadline.excuse(Duration::from_secs(45));
        assert_eq!(deadline.left(later), Duration::from_secs(75));
        assert_eq!(deadline.left(start + Duration::from_secs(1000)), Duration::ZERO);
        assert_eq!(deadline.elapsed(later), Duration::from_secs(60));
    }
}
