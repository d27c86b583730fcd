//! NDJSON on standard output.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::error::SinkFault;
use super::event;
use crate::sync::{Change, Seq, Sink, SinkError};

/// Writes events to a stream of bytes, standard output as a rule. Confirmed means written and flushed: what the reader
/// does with it is the reader's business, and nobody can tell later what it holds.
pub struct LineSink<W> {
    writer: Arc<Mutex<W>>,
    written: Seq,
}

impl LineSink<io::Stdout> {
    /// A sink on standard output.
    #[must_use]
    pub fn stdout() -> Self {
        Self::new(io::stdout())
    }
}

impl<W: Write + Send + 'static> LineSink<W> {
    /// A sink on `writer`.
    #[must_use]
    pub fn new(writer: W) -> Self {
        Self { writer: Arc::new(Mutex::new(writer)), written: Seq::ZERO }
    }
}

impl<W: Write + Send + 'static> Sink for LineSink<W> {
    fn deliver<'a>(&'a mut self, batch: &'a [Change]) -> BoxFuture<'a, Result<(), SinkError>> {
        async move {
            let mut lines = Vec::new();
            let mut last = self.written;
            for change in batch.iter().filter(|change| change.seq > self.written) {
                event::append_line(change, &mut lines);
                last = last.max(change.seq);
            }
            let writer = Arc::clone(&self.writer);
            // A reader that stalls holds this up, and nothing else.
            let written = tokio::task::spawn_blocking(move || {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                writer.write_all(&lines).and_then(|()| writer.flush())
            });
            let outcome = written.await.map_err(|_| SinkFault::Aborted)?;
            outcome.map_err(|source| SinkFault::Stdout { source })?;
            self.written = last;
            Ok(())
        }
        .boxed()
    }

    fn highest_seq(&mut self) -> BoxFuture<'_, Result<Option<Seq>, SinkError>> {
        async { Ok(None) }.boxed()
    }

    fn settle(&mut self) -> BoxFuture<'_, Result<(), SinkError>> {
        async { Ok(()) }.boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), SinkError>> {
        async { Ok(()) }.boxed()
    }
}
