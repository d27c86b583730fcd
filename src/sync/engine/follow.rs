//! The service: every stream on its schedule, every sink as changes come, until shutdown.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::not_begun::{interrupted, still_asked_to_wait, without_time};
use super::reins::Reins;
use super::sweeps::sweep_when_due;
use super::sync_once::{Stop, ask_for_time, joined, post, run_pass};
use super::{Board, Engine};
use crate::clock::SharedClock;
use crate::sync::backfill::{Backfill, Book, owed_loads};
use crate::sync::capture::Lane;
use crate::sync::capture::pass::{Owed, PassOrder, PassReport};
use crate::sync::ledger::{is_own, lift_quota_waits, own_rows};
use crate::sync::positions::Positions;
use crate::sync::report::summary::StreamOutcome;
use crate::sync::runs::{Run, RunKind, Runs};
use crate::sync::schedule::{CronSchedule, Moment, Ticker};
use crate::sync::settings::Cadence;
use crate::sync::signal;
use crate::sync::timekeeper::Timekeeper;
use crate::sync::{Store, StoreError};

/// A stream that could not run is tried again within this time, or its interval if that is shorter.
const SOON: Duration = Duration::from_secs(30);
/// How often the clock on the wall is looked at while nothing is due: timers stand still in a suspended machine.
const LOOK_AT_THE_CLOCK: Duration = Duration::from_secs(60);
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
        let (captured, capture_ended) = signal::channel(false);
        let (mut passes, mut deliveries) = (JoinSet::new(), JoinSet::new());
        for lane in self.sinks.values().map(Arc::clone) {
            let (ending, supervisor) = (stop.ending(false, &capture_ended), Arc::clone(&self.supervisor));
            let cancel = stop.asked.clone();
            deliveries.spawn(async move {
                let task = format!("sink {}", lane.name());
                supervisor.run(&task, &cancel, || lane.run(ending.clone())).await
            });
        }
        let (positions, over, supervisor) =
            (Arc::clone(&self.positions), stop.asked.clone(), Arc::clone(&self.supervisor));
        passes.spawn(async move { supervisor.run("expiry", &over, || expire(&positions, &over)).await });
        for lane in self.lanes.values() {
            let seed = self.seed;
            let (lane, timekeeper, board) = (Arc::clone(lane), Arc::clone(&self.timekeeper), Arc::clone(&self.board));
            let (cancel, supervisor) = (stop.asked.clone(), Arc::clone(&self.supervisor));
            let clock = Arc::clone(&self.clock);
            let (loading, book) = (Arc::clone(&lane), Arc::clone(&self.book));
            let Some(reins) = self.reins.get(&lane.stream()).map(Arc::clone) else { continue };
            let (runs, held, noted) = (Arc::clone(&self.runs), Arc::clone(&reins), Arc::clone(&self.runs));
            let (over, overseer, time) = (cancel.clone(), Arc::clone(&supervisor), Arc::clone(&clock));
            passes.spawn(async move {
                let task = format!("load {}", loading.stream());
                overseer.run(&task, &over, || load_sinks(&loading, &book, &held, &noted, &time, &over)).await
            });
            let (sweeping, beside, rein) = (Arc::clone(&lane), Arc::clone(&board), Arc::clone(&reins));
            let (until, keeper) = (cancel.clone(), Arc::clone(&supervisor));
            passes.spawn(async move {
                let task = format!("sweeps {}", sweeping.stream());
                keeper.run(&task, &until, || sweep_when_due(&sweeping, &beside, &rein, &until)).await
            });
            passes.spawn(async move {
                let task = format!("stream {}", lane.stream());
                let follower = || Follower {
                    generator: seed.generator(&format!("schedule {}", lane.stream())),
                    lane: Arc::clone(&lane),
                    timekeeper: Arc::clone(&timekeeper),
                    board: Arc::clone(&board),
                    clock: Arc::clone(&clock),
                    reins: Arc::clone(&reins),
                    runs: Arc::clone(&runs),
                };
                supervisor.run(&task, &cancel, || follower().run(&cancel)).await
            });
        }
        let capture = async {
            let outcome = joined(&mut passes, &stop).await;
            captured.set(true);
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
    reins: &Reins,
    runs: &Runs,
    clock: &SharedClock,
    cancel: &CancellationToken,
) -> Result<(), StoreError> {
    let mut lifts = lane.quota_lifts.subscribe();
    while !cancel.is_cancelled() {
        tokio::select! {
            biased;
            () = reins.free() => {}
            () = cancel.cancelled() => break,
        }
        let mut resume_at = None;
        let _lifts_so_far = lifts.see();
        for order in owed_loads(lane, false).await? {
            let now = clock.now();
            let load = async |over| Backfill { lane, book, order: &order, now, cancel: &over }.run().await;
            let report = reins.under(cancel, load).await?;
            runs.note(Run::of(lane.stream(), RunKind::Backfill, now, clock.now(), &report));
            resume_at = report.resume_at.or(resume_at);
        }
        let left = resume_at.map(|at| Duration::try_from(at.duration_since(clock.now())).unwrap_or_default());
        tokio::select! {
            biased;
            () = tokio::time::sleep(left.unwrap_or_default().max(LOOK_FOR_LOADS)) => {}
            () = lifts.changed() => {}
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
    reins: Arc<Reins>,
    runs: Arc<Runs>,
}

impl Follower {
    async fn run(mut self, cancel: &CancellationToken) -> Result<(), StoreError> {
        let began = Instant::now();
        let (mut update, mut deletes) = self.tickers(self.moment(began)).await?;
        let mut owed_at: Option<Duration> = None;
        let mut lifts = self.lane.quota_lifts.subscribe();
        while !cancel.is_cancelled() {
            if self.reins.paused().is_some() {
                self.announce(None);
                tokio::select! {
                    biased;
                    () = self.reins.free() => {}
                    () = cancel.cancelled() => break,
                }
            }
            let now = self.moment(began);
            [&mut update, &mut deletes].into_iter().for_each(|ticker| ticker.look(now));
            let owed = owed_at.map(|at| at.saturating_sub(now.steady));
            let left = [Some(update.left(now)), Some(deletes.left(now)), owed].into_iter().flatten().min();
            let left = left.unwrap_or_default();
            self.announce(Some(left));
            let is_asked = tokio::select! {
                biased;
                () = self.reins.held() => continue,
                () = self.reins.asked() => true,
                () = tokio::time::sleep(left.min(LOOK_AT_THE_CLOCK)) => false,
                () = lifts.changed() => {
                    self.lift_quota_waits().await?;
                    owed_at = Some(self.moment(began).steady);
                    false
                }
                () = cancel.cancelled() => break,
            };
            let now = self.moment(began);
            let due = match is_asked {
                true => Due { update: true, deletes: true, owed: Owed::All },
                false => Due { update: update.is_due(now), deletes: deletes.is_due(now), owed: Owed::Due },
            };
            if !due.update && !due.deletes && owed_at.is_none_or(|at| at > now.steady) {
                continue;
            }
            let report = if self.board.read(self.lane.stream()).needs_person {
                None
            } else {
                let began = self.clock.now();
                let report = self.reins.under(cancel, async |over| self.pass(due, &over).await).await?;
                self.runs.note(Run::of(self.lane.stream(), RunKind::Pass, began, self.clock.now(), &report));
                Some(report)
            };
            let now = self.moment(began);
            let could_run = report.as_ref().is_none_or(has_run);
            for (ticker, is_due) in [(&mut update, due.update), (&mut deletes, due.deletes)] {
                match (is_due, could_run) {
                    (true, true) => ticker.done(now, &mut self.generator),
                    (true, false) => ticker.again_within(now, SOON),
                    (false, _) => {}
                }
            }
            owed_at = self.next_owed(report.as_ref(), now.steady).await?;
        }
        self.announce(None);
        Ok(())
    }

    /// Lets what waits for quota be tried now. No pass is under way: the rows are ours.
    async fn lift_quota_waits(&self) -> Result<(), StoreError> {
        let (stream, now) = (self.lane.stream(), self.clock.now());
        let lift = move |store: &dyn Store| lift_quota_waits(store, stream, |row| is_own(row.pass), now);
        self.lane.store.call(lift).await.map(drop)
    }

    /// When updates and deletions are due. What a cron schedule missed while nothing ran is due at once.
    async fn tickers(&self, now: Moment) -> Result<(Ticker, Ticker), StoreError> {
        let settings = &self.lane.settings;
        let deletes = Ticker::every(settings.deleted_interval, now);
        let update = match &settings.cadence {
            Cadence::Every(interval) => Ticker::every(*interval, now),
            Cadence::Cron { expression, zone } => {
                let last = self.timekeeper.last_success(self.lane.stream()).await;
                match CronSchedule::new(expression, zone) {
                    Ok(schedule) => Ticker::cron(schedule, last, now),
                    // Refused when the engine is opened.
                    Err(_) => Ticker::every(settings.deleted_interval, now),
                }
            }
        };
        Ok((update, deletes))
    }

    fn moment(&self, began: Instant) -> Moment {
        Moment { wall: self.clock.now(), steady: began.elapsed() }
    }

    async fn pass(&self, due: Due, cancel: &CancellationToken) -> Result<PassReport, StoreError> {
        let stream = self.lane.stream();
        if let Some(report) = still_asked_to_wait(&self.lane, &self.timekeeper, self.clock.now()).await? {
            return Ok(report);
        }
        let report = match ask_for_time(&self.timekeeper, &[stream], cancel).await? {
            Some(Ok((time, traffic))) => {
                let order = PassOrder {
                    now: time.now,
                    reach_back: self.timekeeper.reach_back(stream).await,
                    owed: due.owed,
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
    async fn next_owed(&self, report: Option<&PassReport>, now: Duration) -> Result<Option<Duration>, StoreError> {
        if report.is_none() {
            return Ok(None);
        }
        let stream = self.lane.stream();
        let rows = self.lane.store.call(move |store| own_rows(store, stream)).await?;
        let rested = rows.iter().filter(|row| row.is_owed()).filter_map(|row| row.resume_at);
        let resumes = report.and_then(|report| report.resume_at);
        let soonest = match report.and_then(|report| report.asked_to_wait_until) {
            Some(until) => Some(until),
            None => rested.chain(resumes).min(),
        };
        // Never at once again: what is due now and was not done would spin.
        Ok(soonest.map(|at| now + self.time_until(at).max(Duration::from_secs(1))))
    }

    fn time_until(&self, at: Timestamp) -> Duration {
        let left: SignedDuration = at.duration_since(self.clock.now());
        left.try_into().unwrap_or_default()
    }

    fn announce(&self, left: Option<Duration>) {
        let left = left.map(|left| SignedDuration::try_from(left).unwrap_or(SignedDuration::MAX));
        let next_run = left.and_then(|left| self.clock.now().checked_add(left).ok());
        self.board.note(self.lane.stream(), |note| note.next_run = next_run);
    }
}

/// What is due.
#[derive(Debug, Clone, Copy)]
struct Due {
    update: bool,
    deletes: bool,
    owed: Owed,
}

/// Whether Sierra could be asked at all.
fn has_run(report: &PassReport) -> bool {
    !matches!(report.outcome, StreamOutcome::Failed | StreamOutcome::Suspended)
}
