//! Looks at the status every ten seconds and sees to it that people hear what they must.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rand::rngs::StdRng;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::ops::StatusSource;
use crate::resilience::backoff::{Backoff, Jitter};
use crate::sync::report::StatusReport;
use crate::sync::report::status::OverallState;

use super::active::ActiveAlerts;
use super::book::AlertBook;
use super::cause::Severity;
use super::courier::Courier;
use super::finding::{Finding, findings};
use super::notice::{Notice, NoticeKind};

/// How often the status is looked at.
const LOOKS_EVERY: Duration = Duration::from_secs(10);
/// How often the dead-man switch hears that all goes on.
const LIVES_EVERY: Duration = Duration::from_secs(60);
/// The first wait after a webhook took nothing, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(5 * 60));

/// How the book is asked what is to be told.
type Look = fn(&mut AlertBook, &StatusReport, Vec<Finding>, bool) -> Vec<Notice>;

/// Where the book is kept between processes.
pub trait AlertMemory: Send + Sync {
    /// The book as it was kept last; an empty one if there is none, or none that can be read: then something may be
    /// told twice, which is better than not at all.
    fn recall(&self) -> BoxFuture<'_, AlertBook>;

    /// Keeps `book`. Returns once it is durable, or could not be made so: what failed is then told by the store itself.
    fn keep<'a>(&'a self, book: &'a AlertBook) -> BoxFuture<'a, ()>;
}

/// Watches one process.
pub struct Watch {
    memory: Arc<dyn AlertMemory>,
    courier: Courier,
    stale_after: Duration,
    book: AlertBook,
    active: ActiveAlerts,
    backoff: Option<Backoff>,
    chance: StdRng,
    /// Attempts in a row that the webhook took nothing, and when it is tried again.
    refused: (u32, Option<Instant>),
}

impl Watch {
    /// A watch that goes on where the last one ended. `chance` spreads the attempts at a webhook that takes nothing.
    pub async fn begin(memory: Arc<dyn AlertMemory>, courier: Courier, stale_after: Duration, chance: StdRng) -> Self {
        let book = memory.recall().await;
        let backoff = Backoff::new(BACKOFF.0, BACKOFF.1, Jitter::Full);
        let active = ActiveAlerts::default();
        Self { memory, courier, stale_after, book, active, backoff, chance, refused: (0, None) }
    }

    /// Shows the alerts that stand in `active`, too, beginning with those that an earlier process told of.
    #[must_use]
    pub fn showing(self, active: ActiveAlerts) -> Self {
        let watch = Self { active, ..self };
        watch.show();
        watch
    }

    fn show(&self) {
        self.active.set(self.book.active().map(|finding| (finding.cause, finding.subject.clone())).collect());
    }

    /// Watches until `shutdown`. `goes_on` is whether the process makes progress: only then is the dead-man switch told
    /// so, and only while nothing is failing.
    pub async fn run(
        mut self,
        status: Arc<dyn StatusSource>,
        goes_on: impl Fn(&StatusReport) -> bool + Send,
        shutdown: CancellationToken,
    ) {
        let mut ticks = interval(LOOKS_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut alive_at: Option<Instant> = None;
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            let report = status.status().await;
            self.look(&report, AlertBook::look).await;
            if shutdown.run_until_cancelled(self.bring(&report)).await.is_none() {
                break;
            }
            if alive_at.is_none_or(|at| at.elapsed() >= LIVES_EVERY) && goes_on(&report) {
                alive_at = Some(Instant::now());
                if shutdown.run_until_cancelled(self.live(&report)).await.is_none() {
                    break;
                }
            }
        }
    }

    /// One look, for a pass that has ended: what is to be told is told, and brought if the webhook takes it now. The
    /// dead-man switch hears of a pass that `did_its_work`, and of no other.
    pub async fn once(mut self, report: &StatusReport, did_its_work: bool) {
        self.look(report, AlertBook::look_after_a_pass).await;
        self.bring(report).await;
        if did_its_work {
            self.live(report).await;
        }
    }

    /// Says in the log what is to be told, and keeps it for the webhook.
    async fn look(&mut self, report: &StatusReport, how: Look) {
        let before = self.book.clone();
        let found = findings(report, self.stale_after);
        for notice in how(&mut self.book, report, found, self.courier.has_webhook()) {
            log(&notice);
        }
        self.show();
        if self.book != before {
            self.memory.keep(&self.book).await;
        }
    }

    /// Brings what waits for the webhook, in order, until it takes no more.
    async fn bring(&mut self, report: &StatusReport) {
        if self.refused.1.is_some_and(|at| Instant::now() < at) {
            return;
        }
        while let Some(notice) = self.book.next().cloned() {
            match self.courier.bring(&notice, report.now.as_second()).await {
                Ok(()) => {
                    self.refused = (0, None);
                    self.book.brought(&notice.id);
                    self.memory.keep(&self.book).await;
                }
                Err(error) => {
                    let attempt = self.refused.0;
                    let wait = self.backoff.map(|backoff| backoff.delay(attempt, None, &mut self.chance));
                    self.refused = (attempt.saturating_add(1), wait.map(|wait| Instant::now() + wait));
                    tracing::warn!(
                        event = "alert_not_brought",
                        alert = notice.alert,
                        attempt = self.refused.0,
                        "failed to {error}; tries again, see that alerts.webhook is right"
                    );
                    return;
                }
            }
        }
    }

    async fn live(&self, report: &StatusReport) {
        if !self.courier.has_deadman() || report.state == OverallState::Failing {
            return;
        }
        if let Err(error) = self.courier.sign_of_life().await {
            tracing::warn!(event = "deadman_not_told", "failed to {error}");
        }
    }
}

fn log(notice: &Notice) {
    let (cause, subject, command) = (notice.cause.name(), notice.subject.as_str(), notice.command.as_str());
    let (alert, message) = (notice.alert.as_str(), notice.message.as_str());
    match (notice.kind, notice.severity) {
        (NoticeKind::Recovered, _) => {
            tracing::info!(event = "alert_recovered", alert, cause, subject, "over: {message}");
        }
        (kind, Severity::Critical) => {
            tracing::error!(event = event_of(kind), alert, cause, subject, command, "{message} Run `{command}`.");
        }
        (kind, Severity::Warning) => {
            tracing::warn!(event = event_of(kind), alert, cause, subject, command, "{message} Run `{command}`.");
        }
    }
}

fn event_of(kind: NoticeKind) -> &'static str {
    match kind {
        NoticeKind::Raised => "alert_raised",
        NoticeKind::Reminder => "alert_reminder",
        NoticeKind::Recovered => "alert_recovered",
    }
}
