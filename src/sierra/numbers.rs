//! Numbers for requests: drawn when one is sent and again when its answer is complete, they order reads.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::RequestNumber;

/// How many numbers one boot has: a million a second last for twelve days, and 2²³ boots fit below 2⁶³.
const NUMBERS_PER_BOOT: u64 = 1 << 40;

/// The counter of this boot.
#[derive(Debug)]
pub(super) struct RequestNumbers {
    boot: u64,
    next: AtomicU64,
}

impl RequestNumbers {
    /// Starts above every number of earlier boots; `boot` was raised durably when the store was opened.
    pub(super) fn of_boot(boot: u64) -> Self {
        Self { boot, next: AtomicU64::new(boot.saturating_mul(NUMBERS_PER_BOOT).saturating_add(1)) }
    }

    /// The next number.
    pub(super) fn draw(&self) -> RequestNumber {
        // Readers compare numbers that one task handed to another, which orders them already.
        RequestNumber(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A text that no other call has, to tie log lines together.
    pub(super) fn correlation_id(&self) -> String {
        format!("{:x}-{:x}", self.boot, self.draw().0 % NUMBERS_PER_BOOT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_within_a_boot_and_from_boot_to_boot() {
        let first = RequestNumbers::of_boot(7);
        let (a, b) = (first.draw(), first.draw());
        assert!(a < b && b < RequestNumbers::of_boot(8).draw());
        assert_eq!(a.0, 7 * (1 << 40) + 1);
        assert_ne!(first.correlation_id(), first.correlation_id());
    }
}
