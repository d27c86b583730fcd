//! Setting entries aside, and letting them go when a good version arrives.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::map::Refused;
use crate::record::Stream;
use crate::sync::ports::{QuarantineEntry, QuarantineKey, QuarantineState};
use crate::sync::{Store, StoreError};

/// Entries looked at to tell new ones from known ones. Beyond that many every one counts as new.
const LOOKED_AT: usize = 10_000;

/// What stands in the quarantine of one stream already.
#[derive(Debug, Default)]
pub(super) struct Known {
    by_capture: HashMap<String, Vec<QuarantineKey>>,
    /// By record and sink.
    by_sink: HashMap<(String, String), Vec<QuarantineKey>>,
    keys: HashSet<QuarantineKey>,
}

impl Known {
    /// Reads what there is: as a rule nothing, and then this costs one count.
    pub(super) fn read(store: &dyn Store, stream: Stream) -> Result<Self, StoreError> {
        let mut known = Self::default();
        if store.quarantine_count(stream)? > 0 {
            for entry in store.quarantine(stream, LOOKED_AT)? {
                known.add(&entry);
            }
        }
        Ok(known)
    }

    /// Whether there is anything at all.
    pub(super) fn any(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Takes note of `entry`; tells whether it is new.
    pub(super) fn add(&mut self, entry: &QuarantineEntry) -> bool {
        let key = entry.key();
        let named = match &entry.sink {
            None => self.by_capture.entry(entry.record.clone()).or_default(),
            Some(sink) => self.by_sink.entry((entry.record.clone(), sink.clone())).or_default(),
        };
        named.push(key.clone());
        self.keys.insert(key)
    }

    /// The entries that a good reading of `record` without new content makes void: what capture set aside. What a sink
    /// refused stays, since that sink still lacks it.
    pub(super) fn healed(&mut self, record: &str) -> Vec<QuarantineKey> {
        self.by_capture.remove(record).unwrap_or_default()
    }

    /// The same when the reading is emitted to `sink` once more: what that sink refused of it is void too.
    pub(super) fn healed_for(&mut self, record: &str, sink: &str) -> Vec<QuarantineKey> {
        let mut healed = self.healed(record);
        healed.extend(self.by_sink.remove(&(record.to_owned(), sink.to_owned())).unwrap_or_default());
        healed
    }
}

/// The quarantine entry of a refused one.
pub(super) fn entry_of(stream: Stream, refused: Refused, seen: Timestamp) -> QuarantineEntry {
    QuarantineEntry {
        stream,
        record: refused.id,
        fingerprint: fingerprint(&refused.reason),
        reason: refused.reason,
        attempts: 1,
        last_status: None,
        first_seen: seen,
        last_seen: seen,
        state: QuarantineState::Open,
        sink: None,
        payload: refused.payload,
    }
}

/// Tells equal causes from different ones: 16 hexadecimal digits over the reason.
pub(crate) fn fingerprint(reason: &str) -> String {
    blake3::hash(reason.as_bytes()).to_hex().chars().take(16).collect()
}
