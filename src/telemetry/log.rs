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
    /// The least grave lines that are logged. Of other libraries only warnings and errors are, and only from `debug`
    /// on: below a warning they log addresses and headers, which are private here.
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
    drop(tracing_subscriber::registry().with(layer.with_filter(filter(settings.level))).try_init());
}

/// What is heard at `level`. Whatever other libraries find wrong we say ourselves, in our own words and once; whoever
/// looks for the cause of something asks for more and hears them too.
fn filter(level: LevelFilter) -> Targets {
    let others = if level >= LevelFilter::DEBUG { LevelFilter::WARN } else { LevelFilter::OFF };
    Targets::new().with_default(others).with_target("sierra_sync", level)
}

struct Stamp(fn() -> Timestamp);

impl FormatTime for Stamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:.3}", (self.0)())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn other_libraries_are_heard_at_debug_and_never_below_a_warning() {
        for level in [LevelFilter::ERROR, LevelFilter::WARN, LevelFilter::INFO] {
            assert!(!filter(level).would_enable("rustls_platform_verifier", &Level::ERROR), "{level}");
            assert!(filter(level).would_enable("sierra_sync::sierra", &Level::ERROR), "{level}");
        }
        for level in [LevelFilter::DEBUG, LevelFilter::TRACE] {
            assert!(filter(level).would_enable("sled::pagecache", &Level::WARN), "{level}");
            assert!(!filter(level).would_enable("hyper", &Level::INFO), "{level}");
        }
    }
}
