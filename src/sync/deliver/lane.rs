//! One sink's lane: from its place in the outbox to its end, again and again.

use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::health::{Health, Verdict};
use super::refusals::Refusals;
use crate::clock::SharedClock;
use crate::failure::Disposition;
use crate::record::Stream;
use crate::sync::capture::fingerprint;
use crate::sync::observer::{Event, SharedObserver};
use crate::sync::ports::{Holding, QuarantineEntry, QuarantineState, Slice};
use crate::sync::positions::Positions;
use crate::sync::rebuild::Rebuild;
use crate::sync::report::status::SinkState;
use crate::sync::report::summary::ErrorReport;
use crate::sync::route::route;
use crate::sync::settings::RouteSettings;
use crate::sync::store_handle::StoreHandle;
use crate::sync::{Change, Payload, Seq, Sink, SinkError, StoreError};

/// Changes read from the outbox at once, so many…
const BATCH: usize = 500;
/// …or about so many bytes.
const BATCH_BYTES: usize = 4 << 20;
/// How often an idle sink may publish what has ripened.
const SETTLE_EVERY: Duration = Duration::from_secs(30);
/// How long a lane rests that stopped because its sink refuses too much.
const STOPPED_FOR: Duration = Duration::from_secs(600);
/// How often a busy sink is asked how much it holds.
const STOCK_EVERY: Duration = Duration::from_secs(1);

/// A sink, its place, and how it fares.
pub struct SinkLane {
    pub(in crate::sync) route: RouteSettings,
    pub(in crate::sync) store: StoreHandle,
    pub(in crate::sync) positions: Arc<Positions>,
    /// What begins when the sink is ahead of the store.
    pub(in crate::sync) rebuild: Arc<Rebuild>,
    pub(in crate::sync) clock: SharedClock,
    pub(in crate::sync) observer: SharedObserver,
    /// Rings after each commit of capture.
    pub(in crate::sync) bell: watch::Receiver<Seq>,
    pub(in crate::sync) paused: watch::Sender<bool>,
    /// Held by whoever delivers: one run at a time.
    pub(in crate::sync) sink: Mutex<Courier>,
    pub(in crate::sync) standing: StdMutex<Standing>,
}

/// The sink itself with what its deliveries have taught.
pub struct Courier {
    pub(in crate::sync) sink: Box<dyn Sink>,
    pub(in crate::sync) health: Health,
    pub(in crate::sync) refusals: Refusals,
    pub(in crate::sync) generator: StdRng,
    pub(in crate::sync) met: Met,
    /// When the sink last said how much it holds.
    pub(in crate::sync) stock_taken: Option<Instant>,
}

/// How far a sink turned out to be when it was first asked, before anything was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It has not answered yet.
    Never,
    /// It answered, and nobody has looked at that yet.
    At(Option<Seq>),
    /// It is known whether it was ahead of the store.
    Judged,
}

impl Courier {
    /// Asks the sink how far it is, unless that was done.
    async fn meet(&mut self) -> Result<(), SinkError> {
        if self.met == Met::Never {
            self.met = Met::At(self.sink.highest_seq().await?);
        }
        Ok(())
    }
}

/// How a sink fares, for reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// `None` while all is well.
    pub trouble: Option<SinkState>,
    /// The last failure, until a delivery succeeds.
    pub error: Option<ErrorReport>,
    /// Changes confirmed since the engine was opened.
    pub delivered: u64,
    /// Changes refused for good since the engine was opened.
    pub refused: u64,
}

/// When a lane's run ends.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Whether it is asked for from the start, and not only by a shutdown. Once it is, a run ends when nothing waits and
    /// capture has ended, or the sink is paused, detached, or does not take deliveries.
    pub when_drained: bool,
    /// Turns `true` when capture has ended.
    pub captured: watch::Receiver<bool>,
    /// The shutdown: what is captured is still delivered…
    pub asked: CancellationToken,
    /// …but not beyond this moment. The rest stays queued.
    pub too_late: CancellationToken,
}

impl SinkLane {
    /// The sink's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.route.name
    }

    /// How it fares.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.stand().clone()
    }

    /// Whether deliveries are held.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        *self.paused.borrow()
    }

    /// Asks the sink how far it is; begins a rebuild if it is ahead of the store. A sink that does not answer is asked
    /// again before its first delivery.
    ///
    /// # Errors
    /// Only when the store fails.
    pub(in crate::sync) async fn meet(&self) -> Result<(), StoreError> {
        let mut courier = self.sink.lock().await;
        // Its first delivery runs into the same and tells of it.
        let _unanswered = courier.meet().await;
        self.judge(&mut courier).await
    }

    /// Looks at how far the sink was when it was first asked.
    async fn judge(&self, courier: &mut Courier) -> Result<(), StoreError> {
        let Met::At(held) = courier.met else { return Ok(()) };
        if let Some(held) = held {
            self.rebuild.look_at(self.name(), held).await?;
        }
        courier.met = Met::Judged;
        Ok(())
    }

    /// Compares what the sink holds with what it held when it was last asked, and keeps the answer. A sink that lost
    /// something loses its place.
    async fn take_stock(&self, courier: &mut Courier) -> Result<(), StoreError> {
        if self.positions.confirmed(self.name()).await.is_none() {
            courier.stock_taken = None;
            return Ok(());
        }
        let before = self.positions.stock(self.name()).await;
        // A sink that does not answer now is asked again: what its deliveries run into is told there.
        let Ok(holding) = courier.sink.holding(before.as_ref()).await else { return Ok(()) };
        courier.stock_taken = Some(Instant::now());
        match holding {
            Holding { missing: Some(missing), .. } => self.positions.lose(self.name(), &missing).await,
            Holding { held: Some(held), .. } => self.positions.take_stock(self.name(), held).await,
            Holding { held: None, .. } => Ok(()),
        }
    }

    /// Delivers until `ending`.
    ///
    /// # Errors
    /// Only when the store fails: a sink's failures are in its [`Standing`].
    pub async fn run(&self, ending: Ending) -> Result<(), StoreError> {
        let mut courier = self.sink.lock().await;
        self.take_stock(&mut courier).await?;
        // What the first delivery brings is counted at once: whoever is killed a moment later has begun to count.
        courier.stock_taken = None;
        let mut bell = self.bell.clone();
        let mut paused = self.paused.subscribe();
        let mut is_settled = false;
        while !ending.too_late.is_cancelled() {
            // Wake-ups are armed before work is looked for, so that none is missed in between.
            bell.mark_unchanged();
            let (is_wanted, is_last_look) = (ending.is_wanted(), ending.has_capture_ended());
            if *paused.borrow_and_update() {
                if is_wanted {
                    break;
                }
                self.wait(&mut paused, None, &ending.asked).await;
                continue;
            }
            let Some(confirmed) = self.positions.confirmed(self.name()).await else {
                if is_wanted && is_last_look {
                    break;
                }
                if is_wanted {
                    // A load that begins meanwhile gives it a place again.
                    self.wait_for_either(&mut bell, &mut ending.captured.clone(), &ending.too_late).await;
                    continue;
                }
                self.wait(&mut bell, Some(SETTLE_EVERY), &ending.asked).await;
                continue;
            };
            let read = move |store: &dyn crate::sync::Store| store.outbox_after(confirmed, BATCH, BATCH_BYTES);
            let changes = self.store.call(read).await?;
            if let Some(last) = changes.last().map(|change| change.seq) {
                is_settled = false;
                if !self.deliver(&mut courier, changes, last, &ending).await? {
                    if ending.is_wanted() {
                        break;
                    }
                    // Stopped for refusing too much: until somebody resumes it, or a long while has passed.
                    self.wait(&mut paused, Some(STOPPED_FOR), &ending.asked).await;
                    courier.refusals.forget();
                }
                continue;
            }
            if !is_settled {
                self.settle(&mut courier).await?;
                self.take_stock(&mut courier).await?;
                is_settled = true;
                // It may have lost its place with that.
                continue;
            }
            if !is_wanted {
                is_settled = !self.timed_out(&mut bell, SETTLE_EVERY, &ending.asked).await;
            } else if is_last_look {
                break;
            } else {
                self.wait_for_either(&mut bell, &mut ending.captured.clone(), &ending.too_late).await;
            }
        }
        Ok(())
    }

    /// Publishes what is open and releases the destination.
    ///
    /// # Errors
    /// Those of the sink.
    pub async fn close(&self) -> Result<(), SinkError> {
        self.sink.lock().await.sink.close().await
    }

    /// Delivers what was read up to `last` and confirms it. `false` ends the run.
    async fn deliver(
        &self,
        courier: &mut Courier,
        changes: Vec<Change>,
        last: Seq,
        ending: &Ending,
    ) -> Result<bool, StoreError> {
        let routed: Vec<Change> = changes.into_iter().filter_map(|change| route(change, &self.route)).collect();
        let Progress { through, delivered, stopped } = self.hand_over(courier, &routed, ending).await?;
        let through = if stopped { through } else { Some(last) };
        self.judge(courier).await?;
        if let Some(through) = through {
            self.positions.confirm(self.name(), through).await?;
            if courier.stock_taken.is_none_or(|taken| taken.elapsed() >= STOCK_EVERY) {
                self.take_stock(courier).await?;
            }
            if delivered > 0 {
                self.stand().delivered += delivered;
                let sink = self.name().to_owned();
                self.observer.observe(&Event::Delivered { sink, changes: delivered, through });
            }
        }
        Ok(!stopped)
    }

    /// Hands `changes` over: as one batch, and one by one if that is refused.
    async fn hand_over(
        &self,
        courier: &mut Courier,
        changes: &[Change],
        ending: &Ending,
    ) -> Result<Progress, StoreError> {
        let mut progress = Progress::default();
        let mut refused = 0_usize;
        let mut size = changes.len().max(1);
        let mut rest = changes;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(size.min(rest.len()));
            match self.attempt(courier, batch, ending).await? {
                Handed::Taken => {
                    courier.refusals.on_taken();
                    progress.delivered += u64::try_from(batch.len()).unwrap_or(0);
                }
                Handed::Refused(_) if batch.len() > 1 => {
                    size = 1;
                    continue;
                }
                Handed::Refused(error) => {
                    if !courier.refusals.on_refused() {
                        self.goes_down(courier, &error).await?;
                        progress.stopped = true;
                        return Ok(progress);
                    }
                    refused += 1;
                    for change in batch {
                        self.set_aside(change, &error).await?;
                    }
                }
                Handed::Stopped => {
                    progress.stopped = true;
                    return Ok(progress);
                }
            }
            progress.through = batch.last().map(|change| change.seq);
            rest = after;
        }
        if !courier.refusals.on_batch(changes.len(), refused) {
            let message = format!("{refused} of {} changes were refused", changes.len());
            let hint = "the log names each refused change and why; repair the sink, then sync again".into();
            let error = SinkError { disposition: Disposition::Halt, message, hint, culprit: None, source: None };
            self.goes_down(courier, &error).await?;
            progress.stopped = true;
        }
        Ok(progress)
    }

    /// Delivers one batch, retrying what is worth it.
    async fn attempt(&self, courier: &mut Courier, batch: &[Change], ending: &Ending) -> Result<Handed, StoreError> {
        loop {
            let delivery = async {
                courier.meet().await?;
                courier.sink.deliver(batch).await
            };
            let delivered = tokio::select! {
               biased;
                delivered = delivery => delivered,
                () = ending.too_late.cancelled() => return Ok(Handed::Stopped),
            };
            let error = match delivered {
                Ok(()) => {
                    self.recovers(courier).await?;
                    return Ok(Handed::Taken);
                }
                Err(error) => error,
            };
            let verdict = match error.disposition {
                Disposition::Quarantine | Disposition::NarrowWindow => return Ok(Handed::Refused(error)),
                Disposition::RetryLater { not_before } => courier.health.on_failure(not_before, &mut courier.generator),
                Disposition::Reauthenticate => courier.health.on_failure(None, &mut courier.generator),
                Disposition::Halt => courier.health.on_refusal(),
            };
            let after = match verdict {
                Verdict::Retry { after } => {
                    self.is_retried(courier.health.failures(), &error).await?;
                    after
                }
                Verdict::Open { after } => {
                    self.is_down(&error).await?;
                    if ending.is_wanted() {
                        return Ok(Handed::Stopped);
                    }
                    courier.refusals.forget();
                    after
                }
            };
            tokio::select! {
                biased;
                () = tokio::time::sleep(after) => {}
                // A shutdown does not wait for a sink that is not well.
                () = ending.asked.cancelled() => return Ok(Handed::Stopped),
            }
        }
    }

    /// Puts a refused change into the quarantine. Only then may the place move past it (BR-116).
    async fn set_aside(&self, change: &Change, error: &SinkError) -> Result<(), StoreError> {
        let now = self.clock.now();
        let reason = format!("{}: {}", self.name(), error.message);
        let entry = QuarantineEntry {
            stream: change.stream,
            record: change.id.clone(),
            fingerprint: fingerprint(&reason),
            reason: reason.clone(),
            attempts: 1,
            last_status: None,
            first_seen: now,
            last_seen: now,
            state: QuarantineState::Open,
            sink: Some(self.name().to_owned()),
            payload: payload_text(change),
        };
        self.store.call(move |store| store.commit(Slice { quarantined: vec![entry], ..Slice::default() })).await?;
        self.stand().refused += 1;
        self.observer.observe(&Event::ChangeRefused { sink: self.name().into(), seq: change.seq, reason });
        Ok(())
    }

    async fn settle(&self, courier: &mut Courier) -> Result<(), StoreError> {
        match courier.sink.settle().await {
            // Nothing waits and the sink is well: whatever was the matter is over.
            Ok(()) => self.recovers(courier).await,
            Err(error) => self.is_retried(courier.health.failures(), &error).await,
        }
    }

    async fn recovers(&self, courier: &mut Courier) -> Result<(), StoreError> {
        let was_open = courier.health.is_open();
        courier.health.on_success();
        self.stands(None).await?;
        if was_open {
            self.observer.observe(&Event::SinkUp { sink: self.name().into() });
        }
        Ok(())
    }

    async fn is_retried(&self, attempt: u32, error: &SinkError) -> Result<(), StoreError> {
        let report = report(error);
        self.stands(Some((SinkState::Retrying, report.clone()))).await?;
        self.observer.observe(&Event::DeliveryRetried { sink: self.name().into(), attempt, error: report });
        Ok(())
    }

    async fn goes_down(&self, courier: &mut Courier, error: &SinkError) -> Result<(), StoreError> {
        courier.health.on_refusal();
        self.is_down(error).await
    }

    async fn is_down(&self, error: &SinkError) -> Result<(), StoreError> {
        let report = report(error);
        self.stands(Some((SinkState::Open, report.clone()))).await?;
        self.observer.observe(&Event::SinkDown { sink: self.name().into(), error: report });
        Ok(())
    }

    /// Notes how the sink fares, here and for the next process.
    async fn stands(&self, trouble: Option<(SinkState, ErrorReport)>) -> Result<(), StoreError> {
        {
            let mut standing = self.stand();
            (standing.trouble, standing.error) = trouble.clone().unzip();
        }
        self.positions.troubled(self.name(), trouble).await
    }

    fn stand(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait<T>(&self, signal: &mut watch::Receiver<T>, limit: Option<Duration>, cancel: &CancellationToken) {
        let limit = limit.unwrap_or(Duration::MAX);
        self.timed_out(signal, limit, cancel).await;
    }

    /// Waits for `signal`, at most for `limit`; tells whether that passed.
    async fn timed_out<T>(&self, signal: &mut watch::Receiver<T>, limit: Duration, cancel: &CancellationToken) -> bool {
        tokio::select! {
            biased;
            changed = signal.changed() => {
                if changed.is_err() {
                    // Nobody will ring any more: only the shutdown is left to wait for.
                    cancel.cancelled().await;
                }
                false
            }
            () = tokio::time::sleep(limit) => true,
            () = cancel.cancelled() => false,
        }
    }

    async fn wait_for_either<T, U>(
        &self,
        one: &mut watch::Receiver<T>,
        other: &mut watch::Receiver<U>,
        cancel: &CancellationToken,
    ) {
        tokio::select! {
            biased;
            _ = one.changed() => {}
            _ = other.changed() => {}
            () = cancel.cancelled() => {}
        }
    }
}

impl Ending {
    /// Whether the run is to end once nothing waits.
    fn is_wanted(&self) -> bool {
        self.when_drained || self.asked.is_cancelled()
    }

    fn has_capture_ended(&self) -> bool {
        *self.captured.borrow()
    }
}

/// How far a batch came.
#[derive(Debug, Default)]
struct Progress {
    through: Option<Seq>,
    delivered: u64,
    stopped: bool,
}

/// What became of one call.
#[derive(Debug)]
enum Handed {
    Taken,
    Refused(SinkError),
    Stopped,
}

/// The change's record as text, for the quarantine; none for patrons.
fn payload_text(change: &Change) -> Option<String> {
    match &change.payload {
        _ if change.stream == Stream::Patrons => None,
        Payload::Bib { record, .. } | Payload::Item { record, .. } => Some(record.get().to_owned()),
        Payload::Patron(_) | Payload::Nothing => None,
    }
}

/// A sink's error as people and programs see it.
fn report(error: &SinkError) -> ErrorReport {
    let kind = match error.disposition {
        Disposition::RetryLater { .. } | Disposition::Reauthenticate => "unavailable",
        Disposition::NarrowWindow | Disposition::Quarantine => "refused",
        Disposition::Halt => "stopped",
    };
    ErrorReport {
        kind: kind.into(),
        message: format!("failed to {}", error.message),
        endpoint: None,
        status_code: None,
        code: None,
        correlation_id: None,
        hint: Some(error.hint.clone()),
    }
}
