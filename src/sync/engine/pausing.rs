//! What people say to streams and sinks while the engine is open: pause, go on, run now.

use super::reins::Reins;
use super::{Engine, EngineError};
use crate::record::Stream;
use crate::sync::StoreError;
use crate::sync::pause::{self, Pausable};
use crate::sync::report::status::Pause;

impl Engine {
    /// Pauses a stream or a sink, here and for every later process. A pass that is under way ends as at a shutdown:
    /// without a page that would have to be fetched again. Tells whether it was not paused before.
    ///
    /// # Errors
    /// When it is not configured, or the store fails.
    pub async fn pause(&self, what: &Pausable, pause: Pause) -> Result<bool, EngineError> {
        self.is_known(what)?;
        let is_new = self.keep(what, Some(pause.clone())).await?;
        if is_new {
            self.obey(what, Some(pause))?;
        }
        Ok(is_new)
    }

    /// Lets a stream or a sink go on. One that stopped until a person acts is tried again too. Tells whether it was
    /// paused or stopped.
    ///
    /// # Errors
    /// When it is not configured, when the configuration pauses the sink, or the store fails.
    pub async fn resume(&self, what: &Pausable) -> Result<bool, EngineError> {
        self.is_known(what)?;
        let was_paused = self.keep(what, None).await?;
        let was_stopped = match what {
            Pausable::Stream(stream) => self.board.read(*stream).needs_person,
            Pausable::Sink(name) => {
                let lane = self.sink(name)?;
                if lane.route.paused {
                    lane.set_pause(None);
                    return Err(EngineError::PausedByConfiguration { name: name.clone() });
                }
                lane.is_paused() && !was_paused
            }
        };
        self.obey(what, None)?;
        Ok(was_paused || was_stopped)
    }

    /// Asks `stream` for a pass at once, over everything that is owed, due or not; one that stopped until a person acts
    /// is tried again. Takes effect while the engine follows.
    ///
    /// # Errors
    /// When the stream is not configured, or paused.
    pub fn ask_for_pass(&self, stream: Stream) -> Result<(), EngineError> {
        let reins = self.reins_of(stream)?;
        if reins.paused().is_some() {
            return Err(EngineError::Paused { stream });
        }
        self.resume_stream(stream);
        reins.ask();
        Ok(())
    }

    /// Who paused `stream`, if somebody did.
    #[must_use]
    pub fn paused(&self, stream: Stream) -> Option<Pause> {
        self.reins.get(&stream).and_then(|reins| reins.paused())
    }

    /// The streams that are followed.
    pub fn streams(&self) -> impl Iterator<Item = Stream> {
        self.lanes.keys().copied()
    }

    fn is_known(&self, what: &Pausable) -> Result<(), EngineError> {
        match what {
            Pausable::Stream(stream) => self.reins_of(*stream).map(drop),
            Pausable::Sink(name) => self.sink(name).map(drop),
        }
    }

    async fn keep(&self, what: &Pausable, pause: Option<Pause>) -> Result<bool, StoreError> {
        let what = what.clone();
        self.store.call(move |store| pause::keep(store, &what, pause)).await
    }

    fn obey(&self, what: &Pausable, pause: Option<Pause>) -> Result<(), EngineError> {
        match what {
            Pausable::Stream(stream) => {
                if pause.is_none() {
                    self.resume_stream(*stream);
                }
                self.reins_of(*stream)?.set(pause);
            }
            Pausable::Sink(name) => self.sink(name)?.set_pause(pause),
        }
        Ok(())
    }

    fn reins_of(&self, stream: Stream) -> Result<&Reins, EngineError> {
        self.reins.get(&stream).map(AsRef::as_ref).ok_or(EngineError::UnknownStream { stream })
    }
}
