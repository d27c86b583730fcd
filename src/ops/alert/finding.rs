//! What the status shows that somebody should know.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sync::report::status::{
    BreakerState, Gap, QuotaState, SinkState, SinkStatus, StoreState, StreamState, StreamStatus, TaskRestarts,
    TokenState,
};
use crate::sync::report::{Filling, StatusReport};

use super::cause::Cause;

/// Failures that mend themselves with the next attempt are not told: they have so long.
const MENDS_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Something that is wrong now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What.
    pub cause: Cause,
    /// The stream, sink or endpoint; empty where it concerns everything.
    pub subject: String,
    /// One sentence, with a capital and a full stop. Holds no private value: it is made of what the status shows.
    pub message: String,
    /// The command that repairs it, or shows more.
    pub command: String,
    /// It is told when it has lasted so long.
    pub lasts: Duration,
}

/// Everything that `report` shows, the deepest cause first, at most one for each cause and subject: forty failed windows
/// of a stream are one finding. `stale_after` is how long a first load may fail.
#[must_use]
pub fn findings(report: &StatusReport, stale_after: Duration) -> Vec<Finding> {
    let mut found = Vec::new();
    of_everything(report, &mut found);
    for (name, stream) in &report.streams {
        of_stream(name, stream, report, stale_after, &mut found);
    }
    for (name, sink) in &report.sinks {
        of_sink(name, sink, &mut found);
    }
    for (task, restarts) in &report.restarted {
        if restarts.is_recent(report.now) {
            found.push(restarted(task, *restarts));
        }
    }
    found.sort_by(|one, other| (one.cause, &one.subject).cmp(&(other.cause, &other.subject)));
    found
}

fn of_everything(report: &StatusReport, found: &mut Vec<Finding>) {
    if report.store.state == StoreState::Failed {
        found.push(at_once(
            Cause::StoreFailed,
            "",
            "The store failed; nothing is captured or delivered until the service is started again.".to_owned(),
            "sierra-sync check --offline".to_owned(),
        ));
    }
    let filling = Filling::of(report);
    if let Some(held) = &report.store.held {
        let command = filling.as_ref().map_or("sierra-sync status", |filling| filling.command.as_str());
        found.push(at_once(Cause::NoRoom, "", format!("Nothing is captured: {held}."), command.to_owned()));
    }
    if report.token.state == TokenState::Latched {
        let message = "Sierra refuses the credential: put a valid secret in place, or have the key enabled.";
        found.push(at_once(Cause::CredentialRefused, "", message.to_owned(), "sierra-sync recover".to_owned()));
    }
    if report.breaker.state != BreakerState::Closed {
        let reason = report.breaker.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        let message = format!("The breaker is open, no call goes to Sierra{reason}.");
        let is_held = report.breaker.is_held(report.now);
        let command = if is_held { "sierra-sync breaker close --yes" } else { "sierra-sync check" };
        found.push(at_once(Cause::BreakerOpen, "", message, command.to_owned()));
    }
    for endpoint in &report.breaker.suspended_endpoints {
        let message =
            format!("Sierra's endpoint {endpoint} fails while others work; it is suspended until it recovers.");
        found.push(at_once(Cause::EndpointSuspended, endpoint, message, "sierra-sync check".to_owned()));
    }
    // One state was restored, however many streams it holds.
    let rebuilding = report.streams.iter().filter(|(_, stream)| stream.rebuilding).map(|(name, _)| name.as_str());
    let rebuilding = rebuilding.collect::<Vec<_>>().join(", ");
    if !rebuilding.is_empty() {
        let message = format!(
            "Everything is read and delivered again as a whole, since the state was restored, replaced or damaged; it \
             ends by itself. Under way: {rebuilding}."
        );
        found.push(at_once(Cause::Rebuild, "", message, "sierra-sync status".to_owned()));
    }
    if let Some(filling) = filling {
        found.push(lasting(Cause::QueueFilling, "", format!("{}.", filling.told()), filling.command));
    }
}

fn of_stream(
    name: &str,
    stream: &StreamStatus,
    report: &StatusReport,
    stale_after: Duration,
    found: &mut Vec<Finding>,
) {
    let last_error = || match &stream.last_error {
        Some(error) => format!(" The last failure: {}.", error.message.trim_end_matches('.')),
        None => String::new(),
    };
    let hint = || stream.last_error.as_ref().and_then(|error| error.hint.clone());
    if stream.state == StreamState::Stopped {
        let advice = hint().map_or_else(String::new, |hint| format!(" To do: {}.", hint.trim_end_matches('.')));
        let message = format!("Stream {name} is stopped until you act.{}{advice}", last_error());
        found.push(at_once(Cause::StreamStopped, name, message, resume(name)));
    }
    if let Some(oldest) = stream.gaps.iter().min_by(|one, other| one.from.cmp(&other.from)) {
        // Of a paused stream nothing is asked for.
        let command = if stream.paused.is_some() { resume(name) } else { "sierra-sync check".to_owned() };
        found.push(lasting(Cause::Gap, name, owed(name, stream.gaps.len(), oldest), command));
    }
    let is_stale = stream.is_stale();
    let never_loaded = stream.lag_seconds.is_none()
        && match stream.state {
            // One that was cut off says nothing of the next.
            StreamState::Loading => stream.last_error.as_ref().is_some_and(|error| error.kind != "interrupted"),
            state => state == StreamState::Behind,
        };
    if is_stale && (stream.state == StreamState::WaitingQuota || report.quota.state == QuotaState::WaitingQuota) {
        let message = format!(
            "Stream {name} is {} behind because the quota is used up; other users of the API key may take it.",
            minutes(stream.lag_seconds.unwrap_or(0))
        );
        found.push(lasting(Cause::QuotaStarved, name, message, "sierra-sync status".to_owned()));
    } else if is_stale && stream.paused.is_some() {
        let behind = minutes(stream.lag_seconds.unwrap_or(0));
        let message = format!("Stream {name} is paused by a person, and {behind} behind.");
        found.push(lasting(Cause::StreamStale, name, message, resume(name)));
    } else if is_stale {
        let behind = minutes(stream.lag_seconds.unwrap_or(0));
        let message = format!("Stream {name} is {behind} behind.{}", last_error());
        found.push(lasting(Cause::StreamStale, name, message, "sierra-sync check".to_owned()));
    } else if never_loaded {
        let message = format!("The first load of stream {name} does not succeed.{}", last_error());
        let command = "sierra-sync check".to_owned();
        found.push(Finding { lasts: stale_after, ..lasting(Cause::StreamStale, name, message, command) });
    }
    if let Some(since) = stream.silent_since.filter(|_| !is_stale && !never_loaded) {
        let message = format!(
            "Stream {name} is asked for and has brought nothing since {since:.0}, which is unlikely at these hours of the \
             week unless nobody works."
        );
        found.push(at_once(Cause::StreamStale, name, message, format!("sierra-sync reconcile {name}")));
    }
}

fn of_sink(name: &str, sink: &SinkStatus, found: &mut Vec<Finding>) {
    // A sink that is new, and loaded unasked, has no such error.
    let lost = sink.error.as_ref().filter(|error| sink.state == SinkState::NeedsReload && error.kind == "needs_reload");
    if let Some(error) = lost {
        let message = format!("Sink {name} {}.", error.message.trim_end_matches('.'));
        let command = error.hint.as_deref().and_then(first_command).unwrap_or("sierra-sync status").to_owned();
        found.push(at_once(Cause::SinkDetached, name, message, command));
    } else if matches!(sink.state, SinkState::Open | SinkState::Retrying) {
        let why = sink.error.as_ref().map_or_else(String::new, |error| format!(": {}", error.message));
        let message = format!("Sink {name} takes no deliveries{why}; {} changes wait in the queue.", sink.pending);
        found.push(lasting(Cause::SinkDown, name, message, "sierra-sync check".to_owned()));
    }
}

/// What is to be told about records of `stream` that were set aside: `count` of them are, more than before.
#[must_use]
pub(super) fn set_aside(stream: &str, count: u64) -> Finding {
    let (records, are) = if count == 1 { ("record", "is") } else { ("records", "are") };
    at_once(
        Cause::QuarantineGrowth,
        stream,
        format!("{count} {records} of stream {stream} {are} set aside, more than before."),
        format!("sierra-sync quarantine list --stream {stream}"),
    )
}

fn restarted(task: &str, restarts: TaskRestarts) -> Finding {
    let TaskRestarts { times, last } = restarts;
    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    let message = format!(
        "Task {task} met a defect and was started again, {times}, the last time at {}; please report the place that the \
         log names.",
        last.strftime("%Y-%m-%dT%H:%M:%SZ")
    );
    at_once(Cause::TaskRestarted, task, message, "sierra-sync status".to_owned())
}

fn owed(name: &str, count: usize, oldest: &Gap) -> String {
    let windows = if count == 1 { "1 window is".to_owned() } else { format!("{count} windows are") };
    let why = oldest.error.as_ref().map_or_else(String::new, |error| format!(": {}", error.trim_end_matches('.')));
    format!(
        "Stream {name} has a gap: {windows} owed, the oldest from {} to {}, tried {} times{why}.",
        oldest.told_from(),
        oldest.to,
        oldest.attempts
    )
}

fn minutes(seconds: u64) -> String {
    match seconds / 60 {
        minutes @ 0..120 => format!("{minutes} min"),
        minutes => format!("{} h", minutes / 60),
    }
}

/// What lets a stream go on, be it paused or stopped.
fn resume(stream: &str) -> String {
    format!("sierra-sync resume --stream {stream}")
}

/// The first command in backquotes.
fn first_command(hint: &str) -> Option<&str> {
    hint.split('`').nth(1)
}

fn at_once(cause: Cause, subject: &str, message: String, command: String) -> Finding {
    Finding { cause, subject: subject.to_owned(), message, command, lasts: Duration::ZERO }
}

fn lasting(cause: Cause, subject: &str, message: String, command: String) -> Finding {
    Finding { lasts: MENDS_WITHIN, ..at_once(cause, subject, message, command) }
}
