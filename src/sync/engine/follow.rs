//! The service: every stream on its schedule, every sink as changes come, until shutdown.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::schedule::Ticker;
use super::supervise::supervised;
use super::sync_once::{Stop, ask_for_time, interrupted, joined, post, run_pass, without_time};
use super::{Board, Engine};
use crate::clock::SharedClock;
use crate::sync::StoreError;
use crate::sync::backfill::{Backfill, Book, owed_loads};
use crate::sync::capture::Lane;
use crate::sync::capture::pass::{Owed, PassOrder, PassReport};
use crate::sync::ledger::own_rows;
use crate::sync::positions::Positions;
use crate::sync::report::summary::StreamOutcome;
use crate::sync::settings::Cadence;
use crate::sync::timekeeper::Timekeeper;

/// A stream that could not run is tried again within this time, or its interval if that is shorter.
const SOON: Duration = Duration::from_secs(30);
/// How often it is looked whether a sink must be loaded.
const LOOK_FOR_LOADS: Duration = Duration::from_secs(60);

/// How often it is looked for changes that have waited too long.
const LOOK_FOR_EXPIRED: Duration = Duration::from_secs(3_600);

impl Engine {
    /// Follows Sierra until `cancel`. Returns once everything in flight is committed, and delivered to the sinks that
    /// are well as far as a few seconds allow.
    ///
    /// # Errors
    /// Only when the store fails: everything then ends.
    pub async fn follow(&self, cancel: &CancellationToken) -> Result<(), StoreError> {
        let stop = Stop::on(cancel);
        let (captured, capture_ended) = watch::channel(false);
        let (mut passes, mut deliveries) = (JoinSet::new(), JoinSet::new());
        for lane in self.sinks.values().map(Arc::clone) {
            let (ending, observer) = (stop.ending(false, &capture_ended), Arc::clone(&self.observer));
            let cancel = stop.asked.clone();
            deliveries.spawn(async move {
                let task = format!("sink {}", lane.name());
                supervised(&task, &observer, &cancel, || lane.run(ending.clone())).await
            });
        }
        let (positions, over) = (Arc::clone(&self.positions), stop.asked.clone());
        passes.spawn(async move { expire(&positions, &over).await });
        for lane in self.lanes.values() {
            let seed = self.seed;
            let (lane, timekeeper, board) = (Arc::clone(lane), Arc::clone(&self.timekeeper), Arc::clone(&self.board));
            let (cancel, observer, clock) = (stop.asked.clone(), Arc::clone(&self.observer), Arc::clone(&self.clock));
            let (loading, book) = (Arc::clone(&lane), Arc::clone(&self.book));
            let (over, told, time) = (cancel.clone(), Arc::clone(&observer), Arc::clone(&clock));
            passes.spawn(async move {
                let task = format!("load {}", loading.stream());
                supervised(&task, &told, &over, || load_sinks(&loading, &book, &time, &over)).await
            });
            passes.spawn(async move {
                let task = format!("stream {}", lane.stream());
                let follower = || Follower {
                    generator: seed.generator(&format!("schedule {}", lane.stream())),
                    lane: Arc::clone(&lane),
                    timekeeper: Arc::clone(&timekeeper),
                    board: Arc::clone(&board),
                    clock: Arc::clone(&clock),
                };
                supervised(&task, &observer, &cancel, || follower().run(&cancel)).await
            });
        }
        let capture = async {
            let outcome = joined(&mut passes, &stop).await;
            captured.send_replace(true);
            outcome
        };
        let (captured, delivered) = tokio::join!(capture, joined(&mut deliveries, &stop));
        captured.and(delivered)
    }
}

/// Removes what may not wait any longer, every hour.
async fn expire(positions: &Positions, cancel: &CancellationToken) -> Result<(), StoreError> {
    while !cancel.is_cancelled() {
        positions.expire().await?;
        tokio::select! {
            biased;
            () = tokio::time::sleep(LOOK_FOR_EXPIRED) => {}
            () = cancel.cancelled() => break,
        }
    }
    Ok(())
}

/// Loads the sinks that must be loaded with the stream of `lane`, beside its live passes.
async fn load_sinks(
    lane: &Lane,
    book: &Book,
    clock: &SharedClock,
    cancel: &CancellationToken,
) -> Result<(), StoreError> {
    while !cancel.is_cancelled() {
        let mut resume_at = None;
        for order in owed_loads(lane, false).await? {
            let report = Backfill { lane, book, order: &order, now: clock.now(), cancel }.run().await?;
            resume_at = report.resume_at.or(resume_at);
        }
        let left = resume_at.map(|at| Duration::try_from(at.duration_since(clock.now())).unwrap_or_default());
        tokio::select! {
            biased;
            () = tokio::time::sleep(left.unwrap_or_default().max(LOOK_FOR_LOADS)) => {}
            () = cancel.cancelled() => break,
        }
    }
    Ok(())
}

/// One stream on its schedule. It never overlaps itself: its next pass begins after the last one ended.
struct Follower {
    lane: Arc<Lane>,
    timekeeper: Arc<Timekeeper>,
    board: Arc<Board>,
    clock: SharedClock,
    generator: StdRng,
}

impl Follower {
    async fn run(mut self, cancel: &CancellationToken) -> Result<(), StoreError> {
        let now = Instant::now();
        let settings = &self.lane.settings;
        // Another cadence is refused when the engine is opened.
        let Cadence::Every(interval) = settings.cadence else { return Ok(()) };
        let mut update = Ticker::new(interval, now);
        let mut deletes = Ticker::new(settings.deleted_interval, now);
        let mut owed_at: Option<Instant> = None;
        while !cancel.is_cancelled() {
            let next = [Some(update.due()), Some(deletes.due()), owed_at].into_iter().flatten().min();
            self.announce(next);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(next.unwrap_or(now)) => {}
                () = cancel.cancelled() => break,
            }
            let now = Instant::now();
            let due = Due { update: update.is_due(now), deletes: deletes.is_due(now) };
            let report = if self.board.read(self.lane.stream()).needs_person {
                None
            } else {
                Some(self.pass(due, cancel).await?)
            };
            let now = Instant::now();
            let could_run = report.as_ref().is_none_or(has_run);
            for (ticker, is_due) in [(&mut update, due.update), (&mut deletes, due.deletes)] {
                match (is_due, could_run) {
                    (true, true) => ticker.done(now, &mut self.generator),
                    (true, false) => ticker.again_within(now, SOON),
                    (false, _) => {}
                }
            }
            owed_at = self.next_owed(report.as_ref(), now).await?;
        }
        self.announce(None);
        Ok(())
    }

    async fn pass(&self, due: Due, cancel: &CancellationToken) -> Result<PassReport, StoreError> {
        let stream = self.lane.stream();
        let report = match ask_for_time(&self.timekeeper, &[stream], cancel).await? {
            Some(Ok((time, traffic))) => {
                let order = PassOrder {
                    now: time.now,
                    reach_back: self.timekeeper.reach_back(stream).await,
                    owed: Owed::Due,
                    update: due.update,
                    deletes: due.deletes,
                    wait_for_quota: false,
                };
                let mut report = run_pass(&self.lane, &self.timekeeper, order, cancel).await?;
                report.tally.traffic += traffic;
                report
            }
            Some(Err(error)) => without_time(&self.lane, &error, error.traffic).await?,
            None => return interrupted(&self.lane).await,
        };
        post(&self.board, &self.timekeeper, stream, &report).await?;
        Ok(report)
    }

    /// When the next owed row has rested, or quota is there again.
    async fn next_owed(&self, report: Option<&PassReport>, now: Instant) -> Result<Option<Instant>, StoreError> {
        if report.is_none() {
            return Ok(None);
        }
        let stream = self.lane.stream();
        let rows = self.lane.store.call(move |store| own_rows(store, stream)).await?;
        let rested = rows.iter().filter(|row| row.is_owed()).filter_map(|row| row.resume_at);
        let resumes = report.and_then(|report| report.resume_at);
        let soonest = rested.chain(resumes).min();
        // Never at once again: what is due now and was not done would spin.
        Ok(soonest.map(|at| now + self.time_until(at).max(Duration::from_secs(1))))
    }

    fn time_until(&self, at: Timestamp) -> Duration {
        let left: SignedDuration = at.duration_since(self.clock.now());
        left.try_into().unwrap_or_default()
    }

    fn announce(&self, next: Option<Instant>) {
        let left = next.map(|next| SignedDuration::try_from(next - Instant::now()).unwrap_or_default());
        let next_run = left.and_then(|left| self.clock.now().checked_add(left).ok());
        self.board.note(self.lane.stream(), |note| note.next_run = next_run);
    }
}

/// What is due.
#[derive(Debug, Clone, Copy)]
struct Due {
    update: bool,
    deletes: bool,
}

/// Whether Sierra could be asked at all.
fn has_run(report: &PassReport) -> bool {
    !matches!(report.outcome, StreamOutcome::Failed | StreamOutcome::Suspended)
}
