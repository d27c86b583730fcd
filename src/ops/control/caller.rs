//! The caller's side of the control socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::{Line, place};

/// A holder that is alive accepts a question within this time; what the answer takes is up to the question.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(5);

/// Why a holder could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody answers.
    #[error("nobody answers at {}", path.display())]
    NoAnswer {
        /// The socket.
        path: PathBuf,
    },
    /// Somebody is there and does not take the question: it may do so later.
    #[error("the process at {} takes no question within five seconds", path.display())]
    Stalled {
        /// The socket.
        path: PathBuf,
    },
    /// The answer broke off.
    #[error("the process that holds the state ended before its answer did; ask again")]
    BrokenOff,
    /// The caller could not take the answer.
    #[error("write the answer")]
    Output(#[source] std::io::Error),
}

/// Asks the holder of `state`, whose socket lies at `socket` unless that is `None`, and hands on each line of data and
/// talk. Returns the exit code that the holder gives.
///
/// # Errors
/// When nobody answers, or takes the question in time, or the answer breaks off.
pub async fn ask(
    state: &Path,
    socket: Option<&Path>,
    question: &str,
    mut hear: impl FnMut(Line) -> std::io::Result<()>,
) -> Result<u8, AskError> {
    let path = socket.map_or_else(|| place::usual(state), Path::to_owned);
    let no_answer = || AskError::NoAnswer { path: path.clone() };
    let greeting = async {
        let (read, mut write) = UnixStream::connect(&path).await?.into_split();
        write.write_all(format!("{question}\n").as_bytes()).await?;
        let mut lines = BufReader::new(read).lines();
        let first = lines.next_line().await?;
        Ok::<_, std::io::Error>((first, lines, write))
    };
    let Ok(greeted) = tokio::time::timeout(ACCEPTED_WITHIN, greeting).await else {
        return Err(AskError::Stalled { path });
    };
    let Ok((Some(first), mut lines, _write)) = greeted else { return Err(no_answer()) };
    if !matches!(serde_json::from_str(&first), Ok(Line::Accepted)) {
        return Err(no_answer());
    }
    loop {
        let line = lines.next_line().await.ok().flatten().ok_or(AskError::BrokenOff)?;
        match serde_json::from_str(&line).map_err(|_| AskError::BrokenOff)? {
            Line::Exit(code) => return Ok(code),
            Line::Accepted => {}
            line => hear(line).map_err(AskError::Output)?,
        }
    }
}
