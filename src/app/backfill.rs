//! `backfill`: records read once more, delivered until the sinks are drained.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::assembly::{Assembly, Reach, Wishes};
use super::chronicle::Chronicle;
use super::desk::{OpenDesk, Question, document_of_holder};
use super::errands;
use super::forecast::{self, Forecast, SECONDS_PER_CALL};
use super::pass::{CutShort, Interrupts, close};
use crate::cli::exit::Refused;
use crate::config::Config;
use crate::record::{RecordNumber, Stream};
use crate::resilience::quota::Patience;
use crate::resilience::settings::QuotaSettings;
use crate::sierra::SierraClient;
use crate::sync::Pass;
use crate::sync::backfill::{BackfillOrder, Cut, JobState, Numbers, Progress, Selection, Via};
use crate::sync::engine::EngineError;
use crate::sync::observer::{Event, Observer};
use crate::sync::report::PassSummary;
use crate::sync::report::status::BackfillStatus;

/// How often it is looked how far the process is that runs a backfill for this one.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a backfill would take, and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backfilled {
    /// Its ranges.
    pub ranges: Vec<Cut>,
    /// Records that the store knows in them; `None` when it knows none.
    pub records: Option<u64>,
    /// Calls, at least.
    pub calls: u64,
    /// What the quota makes of them.
    pub forecast: Forecast,
}

/// How far a backfill is, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackfillView {
    /// Records read.
    pub done: u64,
    /// Records in all, if that is known.
    pub total: Option<u64>,
    /// Seconds still to go, if that can be told.
    pub eta_seconds: Option<f64>,
}

/// Shows progress; called from tasks, so it must return at once.
pub type Shown = Arc<dyn Fn(BackfillView) + Send + Sync>;

/// Runs a backfill and drains every sink that is neither paused nor detached; a service that holds the state runs it
/// beside its streams, and goes on with it when nobody waits for the answer any more. SIGTERM and SIGINT end it early, without
/// a page that would have to be fetched again; the same order goes on from there.
///
/// # Errors
/// When nothing could be done at all, or stream or sink are not configured; all else is in the summary.
pub async fn backfill(config: Config, order: &BackfillOrder, shown: Option<Shown>) -> anyhow::Result<PassSummary> {
    let patience = if order.wait_for_quota { Patience::endless() } else { Patience::default() };
    let usual = Wishes::usual();
    let meter = Arc::new(Meter {
        shown,
        quota: config.quota,
        chronicle: Arc::clone(&usual.chronicle),
        client: OnceLock::new(),
        state: Mutex::default(),
    });
    let wishes = Wishes { patience, observer: meter.clone(), ..usual };
    let assembly = match Assembly::open(&config, wishes).await {
        Ok(assembly) => Arc::new(assembly),
        Err(held) => {
            let question = Question::Backfill(BackfillQuestion::of(order, false));
            let asking = document_of_holder(&config, &question, held);
            return tokio::select! {
                answered = asking => Ok(answered?.0),
                never = follow_from_afar(&config, order.stream, meter.shown.as_ref()) => match never {},
            };
        }
    };
    let desk = OpenDesk::open(&config, &assembly, None);
    // Set once, before anything is observed that needs it.
    drop(meter.client.set(Arc::clone(&assembly.client)));
    let interrupts = Interrupts::listen();
    assembly.client.await_health_checks(interrupts.cancel.clone());
    let summary = assembly.engine.backfill(order, &interrupts.cancel).await;
    drop(interrupts);
    let mut summary = summary.map_err(|error| match error {
        EngineError::Store(error) => anyhow::Error::new(error).context(CutShort),
        error => refused(error),
    })?;
    close(&assembly, &mut summary).await;
    assembly.keep_vitals()?;
    if let Some(desk) = desk {
        desk.close().await;
    }
    Ok(summary)
}

/// Shows how far the backfill of `stream` is that another process runs, for ever, and says once why it waits when there is
/// no room. What that process does not tell is not shown.
async fn follow_from_afar(config: &Config, stream: Stream, shown: Option<&Shown>) -> Infallible {
    let mut has_told = false;
    loop {
        sleep(LOOK_AGAIN).await;
        let Ok(report) = super::status(config).await else { continue };
        match &report.store.held {
            Some(held) if !has_told => tracing::warn!(event = "backfill_waits", %stream, "the backfill waits: {held}"),
            _ => {}
        }
        has_told = report.store.held.is_some();
        let Some(shown) = shown else { continue };
        let backfill = report.streams.get(stream.name()).and_then(|stream| stream.backfill.as_ref());
        if let Some(view) = backfill.and_then(|backfill| seen_from_afar(backfill, report.now)) {
            shown(view);
        }
    }
}

/// A backfill as its process tells of it; one that only waits to be gone on with is another's.
fn seen_from_afar(backfill: &BackfillStatus, now: Timestamp) -> Option<BackfillView> {
    let eta = backfill.eta.map(|eta| eta.duration_since(now).as_secs_f64().max(0.0));
    let view = BackfillView { done: backfill.done, total: backfill.total, eta_seconds: eta };
    (backfill.state == JobState::Running.name()).then_some(view)
}

/// Tells what a backfill would take. Asks Sierra nothing and changes nothing.
///
/// # Errors
/// When the state cannot be read, or stream or sink are not configured.
pub async fn plan_backfill(config: &Config, order: &BackfillOrder) -> anyhow::Result<Backfilled> {
    match Assembly::open(config, Wishes { reach: Reach::Look, ..Wishes::usual() }).await {
        Ok(assembly) => plan_of(&assembly, order).await,
        Err(held) => {
            let question = Question::Backfill(BackfillQuestion::of(order, true));
            Ok(document_of_holder(config, &question, held).await?.0)
        }
    }
}

async fn plan_of(assembly: &Assembly, order: &BackfillOrder) -> anyhow::Result<Backfilled> {
    let plan = assembly.engine.plan_backfill(order).await.map_err(refused)?;
    let calls = plan.calls();
    Ok(Backfilled {
        records: plan.is_measured.then(|| plan.records()),
        calls,
        forecast: forecast::of(&assembly.client, &assembly.quota, calls, SECONDS_PER_CALL),
        ranges: plan.cuts,
    })
}

/// A backfill as it is asked for between processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BackfillQuestion {
    stream: Stream,
    numbers: NumbersQuestion,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    locations: Vec<String>,
    via: Via,
    sink: Option<String>,
    force: bool,
    wait: bool,
    /// Whether only to say what it would take.
    plan: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum NumbersQuestion {
    All,
    Range { from: Option<RecordNumber>, to: Option<RecordNumber> },
    List(Vec<RecordNumber>),
}

impl BackfillQuestion {
    fn of(order: &BackfillOrder, plan: bool) -> Self {
        let BackfillOrder { stream, selection, via, sink, force, wait_for_quota, meaning: _ } = order.clone();
        let Selection { numbers, since, until, locations } = selection;
        let numbers = match numbers {
            Numbers::All => NumbersQuestion::All,
            Numbers::Range { from, to } => NumbersQuestion::Range { from, to },
            Numbers::List(list) => NumbersQuestion::List(list.to_vec()),
        };
        Self { stream, numbers, since, until, locations, via, sink, force, wait: wait_for_quota, plan }
    }

    pub(super) fn order(&self) -> BackfillOrder {
        let Self { stream, numbers, since, until, locations, via, sink, force, wait, plan: _ } = self.clone();
        let numbers = match numbers {
            NumbersQuestion::All => Numbers::All,
            NumbersQuestion::Range { from, to } => Numbers::Range { from, to },
            NumbersQuestion::List(list) => Numbers::List(list.into()),
        };
        let selection = Selection { numbers, since, until, locations };
        BackfillOrder { stream, selection, via, sink, force, wait_for_quota: wait, meaning: None }
    }

    /// Whether it is only asked what a backfill would take.
    pub(super) fn is_plan(&self) -> bool {
        self.plan
    }

    /// Answers from an assembly that is at work what a backfill would take, in one JSON document; a backfill itself is
    /// the errand of a service.
    pub(super) async fn answer(&self, assembly: &Assembly, serving: bool) -> anyhow::Result<String> {
        if self.plan {
            return Ok(serde_json::to_string(&plan_of(assembly, &self.order()).await?)?);
        }
        Err(errands::not_here(serving))
    }
}

/// What is not configured is a matter of the command line.
pub(super) fn refused(error: EngineError) -> anyhow::Error {
    match error {
        EngineError::Store(error) => error.into(),
        error => Refused(error.to_string()).into(),
    }
}

/// Logs what happens, and shows how far it is.
struct Meter {
    shown: Option<Shown>,
    quota: QuotaSettings,
    chronicle: Arc<Chronicle>,
    client: OnceLock<Arc<SierraClient>>,
    state: Mutex<Metered>,
}

#[derive(Default)]
struct Metered {
    progress: Progress,
    /// Read since the engine last told how far it is.
    read: u64,
    pages: u64,
    began: Option<Instant>,
}

impl Observer for Meter {
    fn observe(&self, event: &Event) {
        self.chronicle.observe(event);
        let Some(shown) = &self.shown else { return };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::BackfillMoved { progress, .. } => {
                state.began.get_or_insert_with(Instant::now);
                (state.progress, state.read) = (*progress, 0);
            }
            Event::PageCaptured { pass: Pass::Backfill, entries, .. } => {
                state.read += entries.fetched();
                state.pages += 1;
            }
            _ => return,
        }
        shown(self.view(&state));
    }
}

impl Meter {
    #[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
    fn view(&self, state: &Metered) -> BackfillView {
        let elapsed = state.began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        let per_call = if state.pages > 0 { elapsed / state.pages as f64 } else { SECONDS_PER_CALL };
        let eta_seconds = match (state.progress.calls_left, self.client.get()) {
            (Some(calls), Some(client)) => forecast::of(client, &self.quota, calls, per_call).eta_seconds,
            _ => None,
        };
        BackfillView { done: state.progress.done + state.read, total: state.progress.total, eta_seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_process_runs_is_shown_and_what_it_left_is_not() {
        let now: Timestamp = "2026-01-05T10:00:00Z".parse().expect("a timestamp");
        let told = |state: &str| BackfillStatus {
            id: "bibs-0a1b2c3d4e".to_owned(),
            done: 120,
            total: Some(480),
            percent: Some(25.0),
            eta: Some("2026-01-05T10:01:30Z".parse().expect("a timestamp")),
            calls_left: Some(9),
            state: state.to_owned(),
        };
        let view = BackfillView { done: 120, total: Some(480), eta_seconds: Some(90.0) };
        assert_eq!(seen_from_afar(&told("running"), now), Some(view));
        assert_eq!(seen_from_afar(&told("parked"), now), None);
    }
}
