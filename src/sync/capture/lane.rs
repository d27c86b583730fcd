//! What every walk of one stream shares, and how one page is asked for.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use super::absorb::{AbsorbError, Absorbed, Batch, Intake, NO_ROW, absorb};
use super::error::WalkError;
use super::map::Mapper;
use super::rows::failed_event;
use super::tripwire::Tripwire;
use crate::clock::SharedClock;
use crate::record::Stream;
use crate::sync::clock_guard::Doubt;
use crate::sync::observer::{Event, SharedObserver};
use crate::sync::ports::{Answer, PageQuery, Source};
use crate::sync::positions::Positions;
use crate::sync::settings::StreamSettings;
use crate::sync::signal;
use crate::sync::store_handle::StoreHandle;
use crate::sync::{LedgerRow, Seq};

/// How long a call in flight may still take once shutdown was asked for: long enough for an ordinary page, so that
/// none is fetched again, and short enough for a clean stop within five seconds.
const LAST_CALL: Duration = Duration::from_secs(3);
/// How long a walk of a service waits for room in the outbox or on the disk before its window is put off. One of a command
/// waits as long as a sink is about to make room, and not at all where none is.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often room is looked for meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// One stream's capture.
pub struct Lane {
    pub(in crate::sync) settings: StreamSettings,
    pub(in crate::sync) source: Arc<dyn Source>,
    pub(in crate::sync) store: StoreHandle,
    pub(in crate::sync) mapper: Arc<Mapper>,
    /// What the stream's events mean under the present settings; `None` where nobody compares.
    pub(in crate::sync) meaning: Option<String>,
    /// The library's zone.
    pub(in crate::sync) zone: jiff::tz::TimeZone,
    pub(in crate::sync) clock: SharedClock,
    pub(in crate::sync) observer: SharedObserver,
    /// Which of Sierra's stamps tell nothing since its clock was set back.
    pub(in crate::sync) doubt: Arc<StdMutex<Option<Doubt>>>,
    pub(in crate::sync) positions: Arc<Positions>,
    /// Rung after each commit, so that deliveries look for work.
    pub(in crate::sync) ringer: Arc<signal::Sender<Seq>>,
    /// Changes when quota is there again sooner than was said.
    pub(in crate::sync) quota_lifts: Arc<signal::Sender<u64>>,
    /// Held while a page is absorbed: two walks of one stream must not judge one record at the same time.
    pub(in crate::sync) tripwire: Mutex<Tripwire>,
    /// Whoever sweeps has its one permit: never two sweeps of one stream at a time.
    pub(in crate::sync) sweeping: Semaphore,
}

impl Lane {
    /// The stream.
    #[must_use]
    pub fn stream(&self) -> Stream {
        self.settings.stream
    }

    /// Returns when the next page may be asked for.
    pub(in crate::sync) async fn ready(&self, cancel: &CancellationToken) -> Result<(), WalkError> {
        let mut waited = Duration::ZERO;
        loop {
            if cancel.is_cancelled() {
                return Err(WalkError::Cancelled);
            }
            let Err(held) = self.positions.room().await? else { return Ok(()) };
            if waited.is_zero() {
                let reason = format!("{held}; {}", held.hint());
                self.observer.observe(&Event::CaptureHeld { stream: self.stream(), reason });
            }
            match self.positions.is_being_freed(&held).await? {
                Some(true) => {}
                None if waited < PATIENCE => {}
                Some(false) | None => return Err(WalkError::Held(held)),
            }
            self.pause(LOOK_EVERY, cancel).await?;
            waited += LOOK_EVERY;
        }
    }

    /// Asks for one page. A shutdown meanwhile leaves it a moment to complete.
    pub(in crate::sync) async fn ask(
        &self,
        query: &PageQuery,
        cancel: &CancellationToken,
    ) -> Result<Answer, WalkError> {
        let too_late = async {
            cancel.cancelled().await;
            tokio::time::sleep(LAST_CALL).await;
        };
        tokio::select! {
           biased;
            answer = self.source.page(query) => Ok(answer?),
            () = too_late => Err(WalkError::Cancelled),
        }
    }

    /// Waits for `time`, or until shutdown.
    pub(in crate::sync) async fn pause(&self, time: Duration, cancel: &CancellationToken) -> Result<(), WalkError> {
        if time.is_zero() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(time) => Ok(()),
            () = cancel.cancelled() => Err(WalkError::Cancelled),
        }
    }

    /// Waits for quota: until `resume_at`, or until it is there sooner; `false` when a shutdown came first.
    pub(in crate::sync) async fn sit_out(&self, resume_at: Timestamp, cancel: &CancellationToken) -> bool {
        let left = Duration::try_from(resume_at.duration_since(self.clock.now())).unwrap_or_default();
        let mut lifts = self.quota_lifts.subscribe();
        tokio::select! {
            biased;
            () = cancel.cancelled() => false,
            () = tokio::time::sleep(left) => true,
            () = lifts.changed() => true,
        }
    }

    /// Absorbs a page for `row` and tells of it.
    pub(super) async fn absorb(
        &self,
        intake: &Intake,
        batch: Batch,
        row: &mut LedgerRow,
    ) -> Result<Absorbed, WalkError> {
        let mut tripwire = self.tripwire.lock().await;
        // What is asked for because it was bad says nothing about the share of bad entries.
        let is_new = row.id != NO_ROW && (row.attempts == 0 || batch.unread.is_empty());
        let mut wire = if is_new { tripwire.clone() } else { Tripwire::default() };
        let (mapper, mut intake, before) = (Arc::clone(&self.mapper), intake.clone(), row.clone());
        intake.rules.doubt = *self.doubt.lock().unwrap_or_else(PoisonError::into_inner);
        let work = move |store: &dyn crate::sync::Store| -> Result<(Absorbed, Tripwire), AbsorbError> {
            let absorbed = absorb(store, &mapper, &intake, batch, before, &mut wire)?;
            Ok((absorbed, wire))
        };
        let (absorbed, wire) = self.store.call(work).await?;
        if is_new {
            *tripwire = wire;
        }
        *row = absorbed.row.clone();
        if let Some(last_seq) = absorbed.last_seq {
            self.ringer.set(last_seq);
        }
        for owed in &absorbed.opened {
            self.observer.observe(&failed_event(owed, WalkError::Unread.report(owed.stream)));
        }
        self.observer.observe(&Event::PageCaptured {
            stream: row.stream,
            pass: row.pass,
            entries: absorbed.entries,
            changes: absorbed.changes,
            last_seq: absorbed.last_seq,
        });
        Ok(absorbed)
    }
}
