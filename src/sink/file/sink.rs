//! The port's side of the file sink: encodes where it is called and blocks elsewhere.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::batch::encode;
use super::folder::Folder;
use crate::clock::SharedClock;
use crate::sink::FileSettings;
use crate::sink::error::SinkFault;
use crate::sync::ports::{Held, Holding};
use crate::sync::{Change, Seq, Sink, SinkError};

/// The largest change that is written: beyond it no reader of lines or of XML copes (BR-017).
const LIMIT_BYTES: usize = 64 << 20;

/// Writes changes to files below a directory.
///
/// The directory is opened at the first call, so a disk that is away for a while is an error of that call and not of
/// the start. A call that is dropped half-way goes on to its end on its own; the next one waits for it.
pub struct FileSink {
    name: String,
    settings: FileSettings,
    clock: SharedClock,
    limit_bytes: usize,
    folder: Arc<Mutex<Option<Folder>>>,
}

impl FileSink {
    /// A sink called `name`; nothing is touched yet.
    #[must_use]
    pub fn new(name: &str, settings: &FileSettings, clock: SharedClock) -> Self {
        let settings = settings.clone();
        Self { name: name.to_owned(), settings, clock, limit_bytes: LIMIT_BYTES, folder: Arc::default() }
    }

    /// Refuses changes that take more than `limit_bytes` as they are encoded.
    #[must_use]
    pub fn with_limit(mut self, limit_bytes: usize) -> Self {
        self.limit_bytes = limit_bytes;
        self
    }

    /// Runs `work` on the open directory, away from the runtime.
    async fn with_folder<T: Send + 'static>(
        &self,
        work: impl FnOnce(Folder, Timestamp) -> Result<(Option<Folder>, T), SinkFault> + Send + 'static,
    ) -> Result<T, SinkError> {
        let (shared, name, settings) = (Arc::clone(&self.folder), self.name.clone(), self.settings.clone());
        let now = self.clock.now();
        let done = tokio::task::spawn_blocking(move || {
            // A panic left nothing half done behind the lock: the folder was taken out, and is opened anew.
            let mut slot = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let folder = match slot.take() {
                Some(folder) => folder,
                None => Folder::open(&name, &settings, now)?,
            };
            let (folder, outcome) = work(folder, now)?;
            *slot = folder;
            Ok(outcome)
        });
        done.await.map_err(|_| SinkFault::Aborted).flatten().map_err(SinkError::from)
    }
}

impl Sink for FileSink {
    fn deliver<'a>(&'a mut self, batch: &'a [Change]) -> BoxFuture<'a, Result<(), SinkError>> {
        async move {
            let batch = encode(batch, self.settings.format, self.limit_bytes)?;
            self.with_folder(move |mut folder, now| {
                folder.deliver(&batch, now)?;
                Ok((Some(folder), ()))
            })
            .await
        }
        .boxed()
    }

    fn highest_seq(&mut self) -> BoxFuture<'_, Result<Option<Seq>, SinkError>> {
        self.with_folder(|folder, _| {
            let highest = folder.highest();
            Ok((Some(folder), highest))
        })
        .boxed()
    }

    fn holding<'a>(&'a mut self, before: Option<&'a Held>) -> BoxFuture<'a, Result<Holding, SinkError>> {
        let before = before.cloned();
        self.with_folder(move |mut folder, now| {
            let holding = folder.holding(before.as_ref(), now)?;
            Ok((Some(folder), holding))
        })
        .boxed()
    }

    fn settle(&mut self) -> BoxFuture<'_, Result<(), SinkError>> {
        self.with_folder(|mut folder, now| {
            folder.settle(now)?;
            Ok((Some(folder), ()))
        })
        .boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), SinkError>> {
        self.with_folder(|folder, now| {
            folder.close(now)?;
            Ok((None, ()))
        })
        .boxed()
    }
}
