//! How far each sink is and what waits for it: the counting that both stores share.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::record::Stream;
use crate::sync::Seq;
use crate::sync::ports::SinkPosition;

/// All sinks by name.
pub(super) type Backlogs = BTreeMap<String, Backlog>;

/// One sink's position and what waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Backlog {
    pub(super) confirmed: Seq,
    pub(super) attached: bool,
    pub(super) streams: Vec<Stream>,
    pub(super) pending: u64,
    /// The first change that waits; set whenever `pending` is not zero.
    pub(super) oldest: Option<(Seq, Timestamp)>,
}

/// What decides whether a change waits for a sink.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting<'a> {
    pub(super) seq: Seq,
    pub(super) stream: Stream,
    pub(super) captured: Timestamp,
    pub(super) only_for: Option<&'a str>,
}

impl Backlog {
    /// The position that a caller decided, with nothing counted yet.
    pub(super) fn at(position: &SinkPosition) -> Self {
        Self {
            confirmed: position.confirmed,
            attached: position.attached,
            streams: position.streams.clone(),
            pending: 0,
            oldest: None,
        }
    }

    /// What the engine sees of it.
    pub(super) fn position(&self, quarantined: u64) -> SinkPosition {
        SinkPosition {
            confirmed: self.confirmed,
            attached: self.attached,
            streams: self.streams.clone(),
            oldest_pending: self.oldest.map(|(_, captured)| captured),
            pending: self.pending,
            quarantined,
        }
    }

    /// Whether `change` waits for this sink, which is called `name`.
    pub(super) fn wants(&self, name: &str, change: &Waiting<'_>) -> bool {
        self.attached
            && change.seq > self.confirmed
            && self.streams.contains(&change.stream)
            && change.only_for.is_none_or(|only| only == name)
    }

    /// Counts one change more. Call in the order of seqs.
    pub(super) fn add(&mut self, name: &str, change: &Waiting<'_>) {
        if self.wants(name, change) {
            self.pending += 1;
            self.oldest.get_or_insert((change.seq, change.captured));
        }
    }

    /// Whether going to `position` only confirms more, so that counting what lies between is enough.
    pub(super) fn only_advances_to(&self, position: &SinkPosition) -> bool {
        self.attached && position.attached && self.streams == position.streams && position.confirmed >= self.confirmed
    }
}

/// The first seq that some attached sink still waits for; everything before it can be trimmed, and all of it when
/// there is none.
pub(super) fn first_needed(backlogs: &Backlogs) -> Option<Seq> {
    backlogs.values().filter_map(|backlog| backlog.oldest.map(|(seq, _)| seq)).min()
}
