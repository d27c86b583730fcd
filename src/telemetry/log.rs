//! Setting up the log: on stderr, as text for people or as flat JSON lines.

use std::fmt;
use std::io;

use jiff::Timestamp;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use super::json_lines::JsonLines;

/// The least grave lines that are logged.
pub type LogLevel = LevelFilter;

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    /// The form of a line.
    pub format: LogFormat,
    /// The least grave lines that are logged. Of other libraries nothing below a warning ever is: they log addresses
    /// and headers, which are private here.
    pub level: LogLevel,
    /// Whether text may be coloured.
    pub is_coloured: bool,
}

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, every field at top level and numbers as numbers, so that
    /// `jq 'select(.status_code == 429 and .attempt > 3)'` finds a retry storm (A13).
    Json,
}

/// Starts logging for the whole process. `now` stamps the lines. A second call changes nothing.
pub fn start(settings: &LogSettings, now: fn() -> Timestamp) {
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match settings.format {
        LogFormat::Json => Box::new(JsonLines::new(now, io::stderr)),
        LogFormat::Text => Box::new(
            tracing_subscriber::fmt::layer()
                .with_writer(io::stderr)
                .with_timer(Stamp(now))
                .with_target(false)
                .with_ansi(settings.is_coloured),
        ),
    };
    let others = settings.level.min(LevelFilter::WARN);
    let filter = Targets::new().with_default(others).with_target("sierra_sync", settings.level);
    drop(tracing_subscriber::registry().with(layer.with_filter(filter)).try_init());
}

struct Stamp(fn() -> Timestamp);

impl FormatTime for Stamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:.3}", (self.0)())
    }
}
