//! The control socket: how other commands reach the process that holds the state.
//!
//! One question a connection. The caller sends one line of JSON; the holder answers in lines: `"accepted"` at once,
//! then any number of `{"data":"…"}` (for the caller's stdout) and `{"talk":"…"}` (for its stderr), last
//! `{"exit":code}`. A caller that goes away ends nothing: what it asked for goes on. Whoever waits for a long answer
//! goes on waiting while the socket is closed and another opened, as when a service reads its configuration again.

mod caller;
mod place;
mod socket;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

pub use caller::{AskError, ask};
pub use socket::ControlSocket;

/// The longest question, in bytes.
const MAX_QUESTION: u64 = 64 * 1024;

/// One line of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The question arrived.
    Accepted,
    /// A line of data: a JSON document.
    Data(String),
    /// A line for people.
    Talk(String),
    /// The last line: the exit code of the command.
    Exit(u8),
}

/// Whoever answers questions.
pub trait Desk: Send + Sync {
    /// Answers `question`, a JSON text that nobody has checked. Returns the exit code of the command.
    fn answer<'a>(&'a self, question: &'a str, reply: &'a Reply) -> BoxFuture<'a, u8>;

    /// The answer to a `question` that may take longer than this desk lasts, if it is such a question. It may hold
    /// nothing of the desk: whoever asks is left waiting for it after [`ControlSocket::serve`] has ended.
    fn answer_at_length(&self, question: &str, reply: &Reply) -> Option<BoxFuture<'static, u8>> {
        let _ = (question, reply);
        None
    }
}

/// Where an answer goes, line by line. Whether anybody still listens does not matter to whoever answers.
#[derive(Debug, Clone)]
pub struct Reply(mpsc::Sender<Line>);

impl Reply {
    /// A reply and where its lines come out; a slow reader slows the answer down.
    #[must_use]
    pub fn channel() -> (Self, mpsc::Receiver<Line>) {
        let (sender, receiver) = mpsc::channel(64);
        (Self(sender), receiver)
    }

    /// Sends a JSON document.
    pub async fn data(&self, line: impl Into<String>) {
        self.send(Line::Data(line.into())).await;
    }

    /// Says something to the person who asked.
    pub async fn talk(&self, line: impl Into<String>) {
        self.send(Line::Talk(line.into())).await;
    }

    async fn send(&self, line: Line) {
        // Nobody listens any more: the answer is for its effects then.
        drop(self.0.send(line).await);
    }
}
