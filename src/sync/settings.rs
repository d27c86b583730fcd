//! What the engine obeys; the configuration layer fills it in.

use std::time::Duration;

use crate::record::Stream;

/// How long a worker may hold a piece of work before another may take it. Every retry budget must be shorter (C8),
/// or a second worker starts while the first still backs off.
pub const WORK_LEASE: Duration = Duration::from_secs(10 * 60);

/// How one stream is followed. Ranges are checked by `config`; defaults are those of the sample file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSettings {
    /// The stream.
    pub stream: Stream,
    /// When update passes run.
    pub cadence: Cadence,
    /// How often the delete pass runs.
    pub deleted_interval: Duration,
    /// How far each window reaches back over the one before.
    pub overlap: Duration,
    /// How far behind Sierra's clock a window ends, so that late commits are not missed.
    pub settle: Duration,
    /// Days added on both sides of the delete pass.
    pub deleted_overlap_days: u8,
    /// How often the last 48 hours are read again; `None` is off.
    pub late_sweep: Option<Repeat>,
    /// How often the whole stream is compared; `None` is off.
    pub reconcile: Option<Repeat>,
    /// Entries asked per page, 1 to 2000.
    pub page_size: u32,
    /// Calls at once on this endpoint (A19).
    pub concurrency: u32,
    /// The `fields` asked for, without those the engine always adds.
    pub fields: Vec<String>,
    /// Location codes that count, with one trailing `*` allowed each; empty means all.
    pub locations: Vec<String>,
    /// Fixed fields left out of sameness, by number.
    pub hash_ignore: Vec<String>,
    /// Emit records that were read again without a change.
    pub emit_unchanged: bool,
}

/// When a pass runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cadence {
    /// Every so often.
    Every(Duration),
    /// By a cron expression in an IANA zone.
    Cron {
        /// Five or six fields.
        expression: String,
        /// The zone's IANA name.
        zone: String,
    },
}

/// How often a sweep runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Once a day.
    Daily,
    /// Once a week.
    Weekly,
}

/// What the engine must know of one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSettings {
    /// The sink's name.
    pub name: String,
    /// The streams it takes.
    pub streams: Vec<Stream>,
    /// What it is told of suppressed records.
    pub suppressed: SuppressedAs,
    /// Location codes that count for this sink, with one trailing `*` allowed each; empty means all.
    pub locations: Vec<String>,
    /// Whether deliveries are held.
    pub paused: bool,
    /// What happens when its backlog fills the outbox.
    pub when_full: WhenFull,
}

impl RouteSettings {
    /// What decides which records the sink holds, as text that is the same for settings that mean the same.
    #[must_use]
    pub fn choice(&self) -> String {
        let mut locations: Vec<&str> = self.locations.iter().map(|code| code.trim()).collect();
        locations.sort_unstable();
        locations.dedup();
        let suppressed = match self.suppressed {
            SuppressedAs::Flag => "flag",
            SuppressedAs::Delete => "delete",
        };
        format!("suppressed {suppressed}, locations {}", locations.join(" "))
    }
}

/// What a sink is told of suppressed records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuppressedAs {
    /// An upsert with `suppressed: true`.
    Flag,
    /// A delete with reason `suppressed`.
    Delete,
}

/// What happens when a sink's backlog fills the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// The sink loses its place and must be loaded again.
    Detach,
    /// Capture waits for it.
    Hold,
}

#[cfg(test)]
pub(in crate::sync) mod tests {
    use super::*;

    /// Those of a new configuration, for tests of what obeys them.
    pub(in crate::sync) fn settings(stream: Stream) -> StreamSettings {
        StreamSettings {
            stream,
            cadence: Cadence::Every(Duration::from_secs(300)),
            deleted_interval: Duration::from_secs(900),
            overlap: Duration::from_secs(600),
            settle: Duration::from_secs(30),
            deleted_overlap_days: 1,
            late_sweep: Some(Repeat::Daily),
            reconcile: Some(Repeat::Weekly),
            page_size: 2000,
            concurrency: 2,
            fields: Vec::new(),
            locations: Vec::new(),
            hash_ignore: Vec::new(),
            emit_unchanged: false,
        }
    }
}
