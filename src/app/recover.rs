//! `recover`: back to work after a stall, one careful call at a time (A18).
//!
//! The calls that show whether the quota holds are the smallest there are: one sign of life, then one record number of
//! each stream that is on, since a gateway may well refuse lists and let signs of life pass. Nothing is captured.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, interval, sleep};

use crate::cli::exit::Exit;
use crate::clock::{Clock, SharedClock, SystemClock};
use crate::config::Config;
use crate::ops::control::Reply;
use crate::record::Stream;
use crate::resilience::quota::Patience;
use crate::resilience::recovery::RecoveryProgress;
use crate::sierra::SierraClient;
use crate::sync::ledger::lift_quota_waits;
use crate::sync::ports::{CallClass, FieldSet, PageFilter, PageQuery, SourceError, SourceErrorKind};
use crate::sync::report::summary::ErrorReport;
use crate::sync::{Source, Store, StoreError};

use super::actions::{self, Action, Operator};
use super::assembly::{self, Assembly, Reach, Wishes};
use super::desk::{self, Question};
use super::pass::asked_to_stop;

/// Progress is told at least so often.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// Where too little of the quota is left and the server does not say when there is more, it is looked at again then.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// What is under way is given so long to end; then the re-engagement begins beside it.
const LONGEST_DRAIN: Duration = Duration::from_secs(10);
/// Without `--wait` so much is waited for quota in all.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What came of it: the last line of `recover --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecoverReport {
    /// Version of this shape: 1.
    pub schema: u32,
    /// Whether the quota holds, so that calls go at their usual pace again.
    pub ok: bool,
    /// The exit code.
    pub exit: u8,
    /// How long it took.
    pub elapsed_seconds: f64,
    /// Whether the credential latch was closed and is lifted.
    pub latch_lifted: bool,
    /// Calls that were answered since the re-engagement began, or began anew.
    pub answers: u32,
    /// Answers that it takes.
    pub needed: u32,
    /// 429 among them.
    pub refusals: u32,
    /// Calls that the server grants per window, if it says so.
    pub limit: Option<u32>,
    /// Calls left of them, if it says so.
    pub remaining: Option<u32>,
    /// One sentence: how it stands, and what to do.
    pub message: String,
    /// Why it ended before the quota held.
    pub error: Option<ErrorReport>,
}

/// Recovers from a stall: forgets what was remembered of the server's limits and gates, lifts the credential latch, takes
/// a fresh token, and makes small calls, one at a time and with waits from a base of two seconds, until more than 30 % of
/// the quota is left and less than one answer in a hundred is a 429. `wait` sits out long waits for quota. A process that
/// holds the state does all this itself, beside its work, which is as careful meanwhile.
///
/// # Errors
/// When the process that holds the state does not answer, or on any storage error; how the calls went is in the report.
pub async fn recover(config: &Config, operator: &Operator, wait: bool) -> anyhow::Result<RecoverReport> {
    let clock: SharedClock = Arc::new(SystemClock);
    let streams: Vec<Stream> = config.streams.iter().map(|settings| settings.stream).collect();
    let store = match assembly::open_store(config, &clock, Reach::Everything, None).await {
        Ok(opened) => opened.store,
        Err(held) if desk::is_held(&held) => {
            let question = Question::Recover { streams, operator: operator.clone(), wait };
            return desk::hand_over(config, &question, held).await;
        }
        Err(error) => return Err(error),
    };
    let wishes = Wishes { patience: if wait { Patience::endless() } else { Patience::default() }, ..Wishes::usual() };
    wishes.chronicle.watch(&store);
    let line = assembly::line(config, &wishes, store.as_ref(), clock.now())?;
    let client = assembly::client(config, line, store.as_ref(), &clock, wishes.patience)?;
    let report = carry_out(&client, store.as_ref(), streams.clone(), operator, wait, asked_to_stop()).await?;
    if report.ok {
        // Nobody else holds the state: no row is being walked.
        for stream in streams {
            lift_quota_waits(store.as_ref(), stream, |_| true, clock.now())?;
        }
    }
    Ok(report)
}

/// Recovers in the process that holds the state, telling how far it is through `reply`.
///
/// # Errors
/// On any storage error.
pub(super) async fn by_the_holder(
    assembly: &Assembly,
    streams: Vec<Stream>,
    operator: &Operator,
    wait: bool,
    reply: &Reply,
) -> Result<RecoverReport, StoreError> {
    let client = &assembly.client;
    let mut recovering =
        pin!(carry_out(client, assembly.store.as_ref(), streams, operator, wait, std::future::pending()));
    let mut beat = interval(TELL_EVERY);
    loop {
        tokio::select! {
            report = &mut recovering => {
                let report = report?;
                if report.ok {
                    assembly.engine.lift_quota_waits();
                }
                return Ok(report);
            }
            _ = beat.tick() => {
                if let Some(progress) = client.recovery_progress().filter(|_| client.line().is_recovering()) {
                    reply.talk(standing(progress)).await;
                }
            }
        }
    }
}

async fn carry_out(
    client: &SierraClient,
    store: &dyn Store,
    streams: Vec<Stream>,
    operator: &Operator,
    wait: bool,
    stop: impl Future<Output = ()>,
) -> Result<RecoverReport, StoreError> {
    let started = Instant::now();
    let was_latched = !client.latch_snapshot().is_empty();
    let (ending, last) = match client.held_open() {
        Some(outage) => (Ending::Held(outage.reason.to_string()), None),
        None => {
            client.drain(LONGEST_DRAIN).await;
            client.recover();
            tracing::info!(event = "recovery_began", "forgot limits and gates; re-engaging one call at a time");
            let mut engagement =
                Engagement { streams, client, is_patient: wait, waited: Duration::ZERO, told: None, last: None };
            let ending = tokio::select! {
                ending = engagement.run() => ending,
                () = stop => Ending::Interrupted,
            };
            (ending, engagement.last)
        }
    };
    let latch_lifted = was_latched && client.latch_snapshot().is_empty();
    assembly::keep_vitals(client, store)?;
    let report = report(&ending, last, latch_lifted, started.elapsed());
    let Operator { by, reason } = operator.clone();
    let outcome = report.message.clone();
    let action = Action { at: SystemClock.now(), command: "recover".to_owned(), by, reason, until: None, outcome };
    actions::note(store, action)?;
    Ok(report)
}

/// How it ended.
#[derive(Debug)]
enum Ending {
    /// The quota holds.
    Holds,
    /// A person holds the breaker open, for this reason; nothing was asked.
    Held(String),
    /// It would take a longer wait for quota than was allowed.
    TooLong(Option<Timestamp>),
    /// A call failed for good.
    Failed(Box<SourceError>),
    /// It was asked to stop.
    Interrupted,
}

/// The careful calls.
struct Engagement<'a> {
    streams: Vec<Stream>,
    client: &'a SierraClient,
    is_patient: bool,
    waited: Duration,
    told: Option<Instant>,
    last: Option<RecoveryProgress>,
}

impl Engagement<'_> {
    /// Asks until the quota holds.
    async fn run(&mut self) -> Ending {
        for number in 0_usize.. {
            let asked = self.ask(number).await;
            self.last = self.client.recovery_progress().or(self.last);
            if let Err(error) = asked {
                match error.kind {
                    SourceErrorKind::WaitingQuota { resume_at } if self.is_patient => {
                        self.pause(Self::until(resume_at)).await;
                    }
                    SourceErrorKind::WaitingQuota { resume_at } => return Ending::TooLong(Some(resume_at)),
                    _ => return Ending::Failed(Box::new(error)),
                }
            }
            let Some(progress) = self.last else { continue };
            if !self.client.line().is_recovering() {
                return Ending::Holds;
            }
            self.tell(progress);
            if !progress.has_enough_left() {
                let resets_at = self.client.quota_status().resets_at;
                let wait = resets_at.map_or(LOOK_AGAIN, |at| Self::until(at).max(Duration::from_millis(100)));
                if !self.is_patient && self.waited + wait > LONGEST_WAIT {
                    return Ending::TooLong(resets_at);
                }
                self.pause(wait).await;
            }
        }
        unreachable!("there are more numbers than calls")
    }

    /// One small call: a sign of life, then one record number of each stream in turn.
    async fn ask(&self, number: usize) -> Result<(), SourceError> {
        let turn = number % (self.streams.len() + 1);
        match turn.checked_sub(1).and_then(|index| self.streams.get(index)) {
            None => self.client.pulse().await.map(|_| ()),
            Some(stream) => self.client.page(&smallest(*stream)).await.map(|_| ()),
        }
    }

    fn until(date: Timestamp) -> Duration {
        Duration::try_from(date.duration_since(SystemClock.now())).unwrap_or_default()
    }

    async fn pause(&mut self, wait: Duration) {
        tracing::info!(
            event = "recovery_waiting",
            delay = wait.as_secs_f64(),
            "waits until there is more of the quota"
        );
        self.waited += wait;
        sleep(wait).await;
    }

    fn tell(&mut self, progress: RecoveryProgress) {
        if self.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let RecoveryProgress { answers, needed, refusals, limit, remaining } = progress;
        tracing::info!(
            event = "recovery_progress",
            answers,
            needed,
            refusals,
            limit,
            rate_limit_remaining = remaining,
            "{}",
            standing(progress)
        );
    }
}

fn smallest(stream: Stream) -> PageQuery {
    PageQuery {
        stream,
        filter: PageFilter::Live,
        after: None,
        until: None,
        limit: 1,
        fields: FieldSet::IdOnly,
        fresh_connection: false,
        class: CallClass::Incremental,
    }
}

/// How far it is, as the beginning of a sentence.
fn standing(progress: RecoveryProgress) -> String {
    let RecoveryProgress { answers, needed, refusals, limit, remaining } = progress;
    let left = match (limit, remaining) {
        (Some(limit), Some(remaining)) => format!("{remaining} of {limit} calls left"),
        (None, Some(remaining)) => format!("{remaining} calls left"),
        _ => "the server does not tell its quota".to_owned(),
    };
    format!("{answers} of {needed} answers, {refusals} refused with 429, {left}")
}

fn report(ending: &Ending, last: Option<RecoveryProgress>, latch_lifted: bool, elapsed: Duration) -> RecoverReport {
    let exit = match ending {
        Ending::Holds => Exit::Ok,
        Ending::Held(_) => Exit::Unavailable,
        Ending::TooLong(_) | Ending::Interrupted => Exit::TryLater,
        Ending::Failed(error) => Exit::of_source(error.kind),
    };
    let so_far = last.map_or_else(|| "no answer yet".to_owned(), standing);
    let message = match ending {
        Ending::Holds => format!("The quota holds ({so_far}): calls go at their usual pace again."),
        Ending::Held(reason) => format!(
            "Nothing was asked: the breaker was {reason}; `sierra-sync breaker reset --yes` ends that, then recover."
        ),
        Ending::TooLong(None) => {
            format!("The quota does not hold yet ({so_far}): run it again later, or with --wait.")
        }
        Ending::TooLong(Some(at)) => format!(
            "The quota does not hold yet ({so_far}): run it again after {}, or with --wait.",
            at.strftime("%Y-%m-%dT%H:%M:%SZ")
        ),
        Ending::Interrupted => {
            format!("Interrupted ({so_far}): calls stay slow, one at a time, until the quota holds.")
        }
        Ending::Failed(error) => format!("Not recovered ({so_far}): {}; {}.", error.message, error.hint),
    };
    let error = match ending {
        Ending::Failed(error) => Some(crate::sync::capture::error::source_report(error)),
        _ => None,
    };
    RecoverReport {
        schema: 1,
        ok: exit == Exit::Ok,
        exit: exit.code(),
        elapsed_seconds: elapsed.as_secs_f64(),
        latch_lifted,
        answers: last.map_or(0, |last| last.answers),
        needed: last.map_or(0, |last| last.needed),
        refusals: last.map_or(0, |last| last.refusals),
        limit: last.and_then(|last| last.limit),
        remaining: last.and_then(|last| last.remaining),
        message,
        error,
    }
}
