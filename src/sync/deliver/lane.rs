//! One sink's lane: from its place in the outbox to its end, again and again.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::courier::{Courier, Met};
use super::ending::Ending;
use super::health::Verdict;
use super::standing::Standing;
use crate::clock::SharedClock;
use crate::failure::Disposition;
use crate::sync::observer::{Event, SharedObserver};
use crate::sync::ports::Holding;
use crate::sync::positions::Positions;
use crate::sync::rebuild::Rebuild;
use crate::sync::report::status::Pause;
use crate::sync::route::route;
use crate::sync::settings::RouteSettings;
use crate::sync::signal;
use crate::sync::store_handle::StoreHandle;
use crate::sync::{Change, Seq, SinkError, StoreError};

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
    pub(in crate::sync) bell: signal::Receiver<Seq>,
    pub(in crate::sync) paused: signal::Sender<bool>,
    /// Who paused it by command.
    pub(in crate::sync) pause: StdMutex<Option<Pause>>,
    /// Held by whoever delivers: one run at a time.
    pub(in crate::sync) sink: Mutex<Courier>,
    pub(in crate::sync) standing: StdMutex<Standing>,
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
        self.paused.get()
    }

    /// Who paused it by command, if somebody did.
    #[must_use]
    pub fn pause(&self) -> Option<Pause> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Holds its deliveries, or lets them go on as far as the configuration does.
    pub(in crate::sync) fn set_pause(&self, pause: Option<Pause>) {
        self.paused.set(pause.is_some() || self.route.paused);
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = pause;
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
    /// something loses its place; one without a place may lose more, which is told as well.
    async fn take_stock(&self, courier: &mut Courier) -> Result<(), StoreError> {
        let before = self.positions.stock(self.name()).await;
        // A sink that does not answer now is asked again: what its deliveries run into is told there.
        let Ok(holding) = courier.sink.holding(before.as_ref()).await else { return Ok(()) };
        courier.stock_taken = Some(Instant::now());
        match holding {
            Holding { missing: Some(missing), held } => self.positions.lose(self.name(), &missing, held).await,
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
        // What the first delivery after a rest brings is counted at once: whoever is killed a moment later has begun to
        // count.
        courier.stock_taken = None;
        let mut bell = self.bell.clone();
        let mut paused = self.paused.subscribe();
        let mut is_settled = false;
        while !ending.too_late.is_cancelled() {
            // Wake-ups are armed before work is looked for, so that none is missed in between.
            let _rung_so_far = bell.see();
            let (is_wanted, is_last_look) = (ending.is_wanted(), ending.has_capture_ended());
            if paused.see() {
                if is_wanted {
                    break;
                }
                self.wait(&mut paused, None, &ending.asked).await;
                continue;
            }
            let Some(confirmed) = self.positions.confirmed(self.name()).await else {
                if courier.stock_taken.is_none_or(|taken| taken.elapsed() >= STOCK_EVERY) {
                    self.take_stock(&mut courier).await?;
                }
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
                courier.stock_taken = None;
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
            // Counted before it is confirmed: who dies in between and then loses what was brought has counted it.
            if courier.stock_taken.is_none_or(|taken| taken.elapsed() >= STOCK_EVERY) {
                self.take_stock(courier).await?;
            }
            self.positions.confirm(self.name(), through).await?;
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

    async fn settle(&self, courier: &mut Courier) -> Result<(), StoreError> {
        match courier.sink.settle().await {
            // Nothing waits and the sink is well: whatever was the matter is over.
            Ok(()) => self.recovers(courier).await,
            Err(error) => self.is_retried(courier.health.failures(), &error).await,
        }
    }

    async fn wait<T: Clone>(
        &self,
        signal: &mut signal::Receiver<T>,
        limit: Option<Duration>,
        cancel: &CancellationToken,
    ) {
        let limit = limit.unwrap_or(Duration::MAX);
        self.timed_out(signal, limit, cancel).await;
    }

    /// Waits for `signal`, at most for `limit`; tells whether that passed.
    async fn timed_out<T: Clone>(
        &self,
        signal: &mut signal::Receiver<T>,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> bool {
        tokio::select! {
            biased;
            () = signal.changed() => false,
            () = tokio::time::sleep(limit) => true,
            () = cancel.cancelled() => false,
        }
    }

    async fn wait_for_either<T: Clone, U: Clone>(
        &self,
        one: &mut signal::Receiver<T>,
        other: &mut signal::Receiver<U>,
        cancel: &CancellationToken,
    ) {
        tokio::select! {
            biased;
            () = one.changed() => {}
            () = other.changed() => {}
            () = cancel.cancelled() => {}
        }
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
