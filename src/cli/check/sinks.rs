//! Whether each sink answers.

use super::{ProbeLine, Tell};
use crate::cli::exit::Exit;
use crate::sync::{Sink, SinkError};

/// A sink as it was built from its settings, or why it could not be.
pub type BuiltSink = Result<Box<dyn Sink>, SinkError>;

/// Asks the sink how far it is, which writes nothing, and lets go of it.
pub(super) async fn probe(name: &str, sink: BuiltSink, tell: &mut Tell<'_>) {
    let probe = format!("sink {name}");
    let asked = match sink {
        Ok(mut sink) => sink.highest_seq().await,
        Err(error) => Err(error),
    };
    tell.line(&match asked {
        Ok(Some(seq)) => ProbeLine::good(&probe, format!("answers, holds changes up to {seq}")),
        Ok(None) => ProbeLine::good(&probe, "answers"),
        Err(error) => {
            ProbeLine::bad(&probe, format!("failed to {}", error.message), Some(error.hint), Exit::Unavailable)
        }
    });
}
