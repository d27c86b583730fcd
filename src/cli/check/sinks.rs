//! Whether each sink answers.

use super::ProbeLine;
use crate::cli::exit::Exit;
use crate::sink::SinkSettings;
use crate::sync::{Sink, SinkError};

/// A sink as it was built from its settings, or why it could not be.
pub type BuiltSink = Result<Box<dyn Sink>, SinkError>;

/// What is said of files that no run has begun yet: to open them would make them, under the user that checks.
pub(super) fn not_begun(name: &str, settings: &SinkSettings) -> Option<ProbeLine> {
    let SinkSettings::File(file) = settings else { return None };
    let told = || format!("holds nothing yet; {} will be made by the first run", file.path.display());
    (!file.is_begun()).then(|| ProbeLine::good(&format!("sink {name}"), told()))
}

/// Asks the sink how far it is, which writes nothing, and lets go of it. While a process of ours holds the state the
/// sinks are its own, and are not opened beside it: `holder` says who that is.
pub(super) async fn probe(name: &str, sink: BuiltSink, holder: impl Fn() -> Option<String>) -> ProbeLine {
    let probe = format!("sink {name}");
    let held = || {
        let held =
            |holder| format!("held by {holder}, which delivers to it; not opened. `sierra-sync status` shows how far");
        holder().map(|holder| ProbeLine::good(&probe, held(holder)))
    };
    if let Some(line) = held() {
        return line;
    }
    let asked = match sink {
        Ok(mut sink) => sink.highest_seq().await,
        Err(error) => Err(error),
    };
    match asked {
        Ok(Some(seq)) => ProbeLine::good(&probe, format!("answers, holds changes up to {seq}")),
        Ok(None) => ProbeLine::good(&probe, "answers"),
        // A process that began meanwhile has taken it.
        Err(error) => held().unwrap_or_else(|| {
            ProbeLine::bad(&probe, format!("failed to {}", error.message), Some(error.hint), Exit::Unavailable)
        }),
    }
}
