//! How long Sierra takes to answer.

use std::time::Duration;

use serde::Deserialize;

/// What `isRequestable` costs Sierra for each record (`sierra-api.md` §2.3).
const SLOW_ENTRY: Duration = Duration::from_millis(73);

/// The time before the first byte. The default is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Latency {
    /// For any call.
    pub base_ms: u64,
    /// For each record in the answer, in microseconds.
    pub per_record_us: u64,
    /// Times the square of the calls under way at the endpoint, this one not counted: a server that many threads only
    /// slow down (BR-004).
    pub crowding_ms: u64,
}

impl Latency {
    /// How long an answer takes that carries `entries` records, of which `slow_entries` are expensive, while
    /// `in_flight` calls are under way.
    pub(crate) fn of(self, entries: usize, slow_entries: usize, in_flight: usize) -> Duration {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let others = count(in_flight.saturating_sub(1));
        let crowding = self.crowding_ms.saturating_mul(others.saturating_mul(others));
        let records = self.per_record_us.saturating_mul(count(entries));
        let slow = SLOW_ENTRY.saturating_mul(u32::try_from(slow_entries).unwrap_or(u32::MAX));
        Duration::from_millis(self.base_ms.saturating_add(crowding)) + Duration::from_micros(records) + slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowding_grows_with_the_square_of_the_others() {
        let latency = Latency { base_ms: 10, per_record_us: 500, crowding_ms: 100 };
        assert_eq!(latency.of(20, 0, 1), Duration::from_millis(20));
        assert_eq!(latency.of(0, 0, 4), Duration::from_millis(10 + 900));
    }
}
