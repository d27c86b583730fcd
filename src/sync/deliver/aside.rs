//! Setting aside what a sink refuses.

use super::lane::SinkLane;
use crate::record::Stream;
use crate::sync::capture::fingerprint;
use crate::sync::observer::Event;
use crate::sync::ports::{QuarantineEntry, QuarantineState, Slice};
use crate::sync::{Change, Payload, SinkError, StoreError};

impl SinkLane {
    /// Puts a refused change into the quarantine. Only then may the place move past it (BR-116).
    pub(super) async fn set_aside(&self, change: &Change, error: &SinkError) -> Result<(), StoreError> {
        let now = self.clock.now();
        let reason = format!("{}: {}", self.name(), error.message);
        let entry = QuarantineEntry {
            stream: change.stream,
            record: change.id.clone(),
            fingerprint: fingerprint(&reason),
            reason: reason.clone(),
            attempts: 1,
            last_status: None,
            first_seen: now,
            last_seen: now,
            state: QuarantineState::Open,
            sink: Some(self.name().to_owned()),
            payload: payload_text(change),
        };
        self.store.call(move |store| store.commit(Slice { quarantined: vec![entry], ..Slice::default() })).await?;
        self.stand().refused += 1;
        self.observer.observe(&Event::ChangeRefused { sink: self.name().into(), seq: change.seq, reason });
        Ok(())
    }
}

/// The change's record as text, for the quarantine; none for patrons.
fn payload_text(change: &Change) -> Option<String> {
    match &change.payload {
        _ if change.stream == Stream::Patrons => None,
        Payload::Bib { record, .. } | Payload::Item { record, .. } => Some(record.get().to_owned()),
        Payload::Patron(_) | Payload::Nothing => None,
    }
}
