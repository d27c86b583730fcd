//! A queue that is nearly full, and what empties it.

use super::StatusReport;
use super::status::SinkState;
use crate::sync::fullness::ALERT_PERCENT;

/// The queue, once it is nearly full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filling {
    /// How full it is.
    pub percent: u64,
    /// The sink for which most of it waits.
    pub sink: Option<String>,
    /// The command that lets it drain, or shows what waits.
    pub command: String,
}

impl Filling {
    /// The queue of `report`; `None` while there is room.
    #[must_use]
    pub fn of(report: &StatusReport) -> Option<Self> {
        let (bytes, max) = (report.outbox.bytes, report.outbox.max_bytes);
        let percent = bytes.saturating_mul(100).checked_div(max).filter(|percent| *percent >= ALERT_PERCENT)?;
        let slowest = report.sinks.iter().filter(|(_, sink)| sink.pending > 0).max_by_key(|(_, sink)| sink.pending);
        let command = match slowest {
            // One that the configuration pauses goes on only with another configuration.
            Some((name, sink)) if sink.paused.is_some() => format!("sierra-sync resume --sink {name}"),
            Some((_, sink)) if matches!(sink.state, SinkState::Open | SinkState::Retrying) => {
                "sierra-sync check".to_owned()
            }
            _ => "sierra-sync queue list".to_owned(),
        };
        Some(Self { percent, sink: slowest.map(|(name, _)| name.clone()), command })
    }

    /// What is the case, as the beginning of a sentence.
    #[must_use]
    pub fn told(&self) -> String {
        let whose = self.sink.as_ref().map_or_else(String::new, |name| format!(", most of it for sink {name}"));
        format!("The durable queue is {} % full{whose}", self.percent)
    }
}
