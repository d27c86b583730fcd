//! What was asked and what was answered, for assertions: no `offset` ever sent, one token call, never more than two
//! calls at once.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use super::api::Endpoint;

/// Calls remembered in full; counters go on beyond it.
const REMEMBERED: usize = 100_000;

/// One request and its fate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Counts all requests from one.
    pub number: u64,
    /// When it arrived.
    pub at: Timestamp,
    /// When the answer was complete, or the caller gave up.
    pub finished: Option<Timestamp>,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The decoded query parameters in the order they came.
    pub parameters: Vec<(String, String)>,
    /// The status of the answer; nothing when no answer was ever to come.
    pub status: Option<u16>,
    /// Records in the answer.
    pub entries: usize,
    /// The fault that met it, if one did.
    pub fault: Option<String>,
    /// Which connection it came on.
    pub connection: u64,
    /// Calls under way at this endpoint when it arrived, itself included.
    pub in_flight: usize,
}

impl Call {
    /// The value of a query parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    }
}

impl Call {
    /// Whether it brought records, or the word that there are none, without any fault.
    pub(crate) fn is_good_page(&self) -> bool {
        self.endpoint.is_list() && self.fault.is_none() && matches!(self.status, Some(200 | 404))
    }
}

/// All calls since the start, or since [`Journal::clear`].
#[derive(Debug, Default)]
pub struct Journal {
    calls: VecDeque<Call>,
    counts: BTreeMap<Endpoint, u64>,
    in_flight: BTreeMap<Endpoint, usize>,
    most_in_flight: BTreeMap<Endpoint, usize>,
    total: u64,
}

impl Journal {
    /// The remembered calls, oldest first: the last 100,000.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.calls.iter()
    }

    /// The remembered calls of one endpoint.
    pub fn calls_to(&self, endpoint: Endpoint) -> impl DoubleEndedIterator<Item = &Call> {
        self.calls.iter().filter(move |call| call.endpoint == endpoint)
    }

    /// How many calls an endpoint had.
    #[must_use]
    pub fn count(&self, endpoint: Endpoint) -> u64 {
        self.counts.get(&endpoint).copied().unwrap_or(0)
    }

    /// How many calls there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The most calls that were ever under way at once at an endpoint.
    #[must_use]
    pub fn most_in_flight(&self, endpoint: Endpoint) -> usize {
        self.most_in_flight.get(&endpoint).copied().unwrap_or(0)
    }

    /// Calls under way at an endpoint.
    #[must_use]
    pub fn in_flight(&self, endpoint: Endpoint) -> usize {
        self.in_flight.get(&endpoint).copied().unwrap_or(0)
    }

    /// The number of the last call; nought when there was none.
    pub(crate) fn last_number(&self) -> u64 {
        self.total
    }

    /// Forgets all calls and counts, but not which calls are under way.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.counts.clear();
        self.most_in_flight.clear();
    }

    /// Notes an arrival and returns its number.
    pub(crate) fn arrived(&mut self, mut call: Call) -> u64 {
        self.total += 1;
        *self.counts.entry(call.endpoint).or_default() += 1;
        let under_way = self.in_flight.entry(call.endpoint).or_default();
        *under_way += 1;
        let most = self.most_in_flight.entry(call.endpoint).or_default();
        *most = (*most).max(*under_way);
        (call.number, call.in_flight) = (self.total, *under_way);
        if self.calls.len() == REMEMBERED {
            self.calls.pop_front();
        }
        self.calls.push_back(call);
        self.total
    }

    /// Notes what a call is answered with.
    pub(crate) fn answered(&mut self, number: u64, status: Option<u16>, entries: usize, fault: Option<String>) {
        if let Some(call) = self.find(number) {
            (call.status, call.entries, call.fault) = (status, entries, fault);
        }
    }

    /// Notes that a call is over.
    pub(crate) fn finished(&mut self, number: u64, endpoint: Endpoint, now: Timestamp) {
        if let Some(under_way) = self.in_flight.get_mut(&endpoint) {
            *under_way = under_way.saturating_sub(1);
        }
        if let Some(call) = self.find(number) {
            call.finished = Some(now);
        }
    }

    fn find(&mut self, number: u64) -> Option<&mut Call> {
        let position = self.calls.partition_point(|call| call.number < number);
        self.calls.get_mut(position).filter(|call| call.number == number)
    }
}
