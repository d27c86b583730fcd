//! How many of our calls were answered in any stretch of the recent past.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Calls closer together than this are one entry, so that memory stays bounded: an hour is 14,400 entries at most.
const GRAIN: Duration = Duration::from_millis(250);
/// Entries kept; the oldest give way.
const LONGEST: usize = 20_000;

/// A log of our own calls. Counts err on the side of more: an entry is as young as its youngest call.
#[derive(Debug, Clone, Default)]
pub(super) struct Sends {
    entries: VecDeque<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    first: Instant,
    last: Instant,
    calls: u32,
}

impl Sends {
    pub(super) fn record(&mut self, now: Instant) {
        match self.entries.back_mut() {
            Some(entry) if now.saturating_duration_since(entry.first) < GRAIN => {
                entry.calls += 1;
                entry.last = entry.last.max(now);
            }
            _ => self.entries.push_back(Entry { first: now, last: now, calls: 1 }),
        }
        if self.entries.len() > LONGEST {
            self.entries.pop_front();
        }
    }

    /// Calls after `moment`.
    pub(super) fn since(&self, moment: Instant) -> u32 {
        self.entries.iter().rev().take_while(|entry| entry.last > moment).map(|entry| entry.calls).sum()
    }

    /// Calls after `from`, up to and including `to`.
    pub(super) fn between(&self, from: Instant, to: Instant) -> u32 {
        self.since(from).saturating_sub(self.since(to))
    }

    /// The latest call of the oldest entry after `moment`: when it leaves a window that began there, room appears.
    pub(super) fn oldest_since(&self, moment: Instant) -> Option<Instant> {
        self.entries.iter().find(|entry| entry.last > moment).map(|entry| entry.last)
    }

    /// Forgets what is older than `moment`.
    pub(super) fn forget_before(&mut self, moment: Instant) {
        while self.entries.front().is_some_and(|entry| entry.last < moment) {
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_cover_any_stretch() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut sends = Sends::default();
        for second in 0..10 {
            sends.record(at(second));
            sends.record(at(second));
        }
        assert_eq!(sends.since(at(4)), 10);
        assert_eq!(sends.between(at(2), at(4)), 4);
        assert_eq!(sends.oldest_since(at(4)), Some(at(5)));
        sends.forget_before(at(7));
        assert_eq!(sends.since(start), 6);
    }
}
