//! The holder's side of the control socket.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Desk, Line, MAX_QUESTION, Reply, place};

/// A caller has this long to send its question.
const QUESTION_WITHIN: Duration = Duration::from_secs(5);
/// Answers under way have so long at the end: enough for whoever looks, too little for whoever follows a backfill.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// Callers at once; the next one waits.
const MAX_CALLERS: usize = 16;

/// A bound control socket; its file goes with it.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    at_length: TaskTracker,
}

impl ControlSocket {
    /// Binds the socket of `state`, readable by its owner alone (mode 0600). The caller must hold the state: a socket
    /// that an earlier holder left is replaced.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn bind(state: &Path) -> io::Result<Self> {
        let path = place::to_bind(state)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, path, at_length: TaskTracker::new() })
    }

    /// Where it lies, when that is not `<state>/control.sock`.
    #[must_use]
    pub fn elsewhere(&self, state: &Path) -> Option<&Path> {
        (self.path != place::usual(state)).then_some(self.path.as_path())
    }

    /// Lets whoever waits for a long answer wait in `talks`, for as long as that takes.
    #[must_use]
    pub fn talking_at_length_in(mut self, talks: TaskTracker) -> Self {
        self.at_length = talks;
        self
    }

    /// Answers callers until `shutdown`; answers under way then have a moment more before they are dropped, but for the
    /// long ones.
    pub async fn serve(&self, desk: Arc<dyn Desk>, shutdown: CancellationToken) {
        let mut callers = JoinSet::new();
        let seats = Arc::new(Semaphore::new(MAX_CALLERS));
        loop {
            let next = async {
                let seat = Arc::clone(&seats).acquire_owned().await;
                (seat, self.listener.accept().await)
            };
            let (seat, accepted) = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some(_) = callers.join_next() => continue,
                next = next => next,
            };
            match (seat, accepted) {
                (Ok(seat), Ok((stream, _))) => {
                    let (desk, at_length) = (Arc::clone(&desk), self.at_length.clone());
                    callers.spawn(async move { converse(stream, desk.as_ref(), seat, &at_length).await });
                }
                // Out of descriptors, most likely: better tried again than given up.
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        let ending = async { while callers.join_next().await.is_some() {} };
        drop(tokio::time::timeout(ENDS_WITHIN, ending).await);
        callers.shutdown().await;
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// One question and its answer. A caller that breaks off has nobody else to tell.
async fn converse(stream: UnixStream, desk: &dyn Desk, seat: OwnedSemaphorePermit, at_length: &TaskTracker) {
    let (read, write) = stream.into_split();
    let mut question = String::new();
    let mut read = BufReader::new(read.take(MAX_QUESTION));
    let asked = tokio::time::timeout(QUESTION_WITHIN, read.read_line(&mut question)).await;
    if !matches!(asked, Ok(Ok(length)) if length > 0) || !question.ends_with('\n') {
        return;
    }
    let question = question.trim_end();
    let (reply, lines) = Reply::channel();
    if let Some(answer) = desk.answer_at_length(question, &reply) {
        drop(reply);
        at_length.spawn(async move {
            let _seat = seat;
            talk(answer, lines, write).await;
        });
        return;
    }
    let answer = Box::pin(async move { desk.answer(question, &reply).await });
    talk(answer, lines, write).await;
}

/// Writes what `answer` says, until it has ended and whatever it said is written.
async fn talk(answer: BoxFuture<'_, u8>, mut lines: Receiver<Line>, mut write: OwnedWriteHalf) {
    let writing = async {
        let mut is_there = write_line(&mut write, &Line::Accepted).await.is_ok();
        while let Some(line) = lines.recv().await {
            // The answer goes on for its effects, and its lines must not fill the channel.
            is_there = is_there && write_line(&mut write, &line).await.is_ok();
        }
    };
    let (code, ()) = tokio::join!(answer, writing);
    drop(write_line(&mut write, &Line::Exit(code)).await);
}

async fn write_line(write: &mut (impl AsyncWriteExt + Unpin), line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    write.write_all(&text).await
}
