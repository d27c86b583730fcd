//! The overall state and the one sentence that explains it.

use jiff::Timestamp;

use crate::record::Stream;
use crate::sync::positions::SinkPlace;
use crate::sync::rebuild::Damage;
use crate::sync::report::status::{
    BreakerState, BreakerStatus, OverallState, SinkState, StreamState, StreamStatus, TaskRestarts, TokenState,
};
use crate::sync::report::summary::ErrorReport;
use crate::sync::report::{Filling, StatusReport};

/// A sink that must be loaded.
pub(super) struct Reload {
    sink: String,
    streams: Vec<&'static str>,
    /// Whether the next `sync` does it unasked: the sink has a place that its load can be relative to.
    by_itself: bool,
}

impl Reload {
    pub(super) fn of(sink: &str, place: &SinkPlace) -> Option<Self> {
        let streams = place.note.unloaded.iter().map(|stream| stream.name()).collect();
        place.needs_reload().then(|| Self { sink: sink.to_owned(), streams, by_itself: place.position.attached })
    }

    fn sentence(&self) -> String {
        let Self { sink, streams, by_itself } = self;
        if *by_itself {
            let streams = streams.join(", ");
            return format!("Sink {sink} is still to be loaded with {streams}: `sierra-sync sync` does it.");
        }
        let commands: Vec<String> =
            streams.iter().map(|stream| format!("`sierra-sync backfill {stream} --sink {sink} --force`")).collect();
        format!("Sink {sink} must be loaded again: run {}.", commands.join(", then "))
    }
}

/// What the sentence on top is made of, beside the report.
pub(super) struct Told<'a> {
    /// First loads that do not get on.
    pub(super) stuck: &'a [String],
    pub(super) reloads: &'a [Reload],
    /// Streams that are paused and growing stale.
    pub(super) stale: &'a [&'static str],
    /// Streams of which the first load found nothing.
    pub(super) empty: &'a [&'static str],
    /// Streams of which no deletion was listed for long, and since when.
    pub(super) quiet: &'a [(&'static str, Timestamp)],
    /// Last passes that failed.
    pub(super) failing: &'a [String],
    pub(super) damage: Option<&'a Damage>,
}

/// The overall state and the sentence that explains it, the gravest matter first.
pub(super) fn overall(report: &StatusReport, told: &Told<'_>) -> (OverallState, String) {
    let Told { stuck, reloads, stale, empty, quiet, failing, damage } = *told;
    let streams_in = |wanted: &dyn Fn(&StreamStatus) -> bool| {
        let names = report.streams.iter().filter(|(_, stream)| wanted(stream)).map(|(name, _)| name.as_str());
        Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    };
    if report.token.state == TokenState::Latched {
        let hint = "Sierra refuses the credential: put a valid secret in place, or have the key enabled; a changed \
                    address, key or secret is tried at once, the same one once an hour, or as soon as you run \
                    `sierra-sync recover`.";
        return (OverallState::Failing, hint.into());
    }
    if let Some(names) = streams_in(&|stream| stream.state == StreamState::Stopped) {
        return (OverallState::Failing, stopped(report, &names));
    }
    if let Some(held) = &report.store.held {
        return (OverallState::Degraded, format!("Nothing is captured: {held}."));
    }
    if report.breaker.state != BreakerState::Closed {
        return (OverallState::Degraded, halted(&report.breaker, report.now));
    }
    if let Some(endpoint) = report.breaker.suspended_endpoints.first() {
        return (
            OverallState::Degraded,
            format!(
                "The endpoint {endpoint} fails while others work, and is left alone until it recovers; it is probed by itself, \
             so there is nothing to do unless it lasts: then ask whoever runs Sierra."
            ),
        );
    }
    if let Some(sentence) = stuck.first() {
        return (OverallState::Degraded, sentence.clone());
    }
    if let Some(reload) = reloads.first() {
        return (OverallState::Degraded, reload.sentence());
    }
    let asked_to_wait = |stream: &StreamStatus| {
        let error = stream.last_error.as_ref().filter(|error| error.kind == "asked_to_wait");
        error.filter(|_| stream.state == StreamState::Suspended).map(|error| error.message.clone())
    };
    if let Some(message) = report.streams.values().find_map(asked_to_wait) {
        return (OverallState::Degraded, format!("Nothing is asked for now: {message}."));
    }
    if let Some(names) = streams_in(&|stream| !stream.gaps.is_empty()) {
        return (
            OverallState::Degraded,
            format!(
                "Windows are owed: {names}. They are tried again by themselves; the last error stands beside them, and \
                 `sierra-sync check` asks Sierra anew."
            ),
        );
    }
    if let Some(sentence) = failing.first() {
        return (OverallState::Degraded, sentence.clone());
    }
    if let Some(names) = streams_in(&|stream| stream.state == StreamState::Behind) {
        return (OverallState::Degraded, format!("Behind: {names}. `sierra-sync check` tells what is in the way."));
    }
    if !stale.is_empty() {
        let (names, options) = (stale.join(", "), stale.join(" --stream "));
        let sentence =
            format!("Paused and growing stale: {names}. `sierra-sync resume --stream {options}` lets it go on.");
        return (OverallState::Degraded, sentence);
    }
    if let Some((name, _)) = report.sinks.iter().find(|(_, sink)| sink.state == SinkState::Open) {
        return (
            OverallState::Degraded,
            format!(
                "Sink {name} does not take deliveries; they wait in the queue and are tried again: `sierra-sync check` tells \
             what it says."
            ),
        );
    }
    if let Some(sentence) = beside(report) {
        return (OverallState::Ok, sentence);
    }
    if let Some(names) = streams_in(&|stream| stream.rebuilding) {
        let why = damage.map_or_else(
            || "a sink held more than this state ever issued".to_owned(),
            |damage| format!("the state was damaged and lies in {} of the state directory", damage.set_aside),
        );
        return (OverallState::Ok, format!("A rebuild is under way, since {why}; it ends by itself: {names}."));
    }
    if let Some(names) = streams_in(&|stream| stream.state == StreamState::Loading) {
        return (OverallState::Ok, format!("The first load is under way: {names}."));
    }
    if let Some(names) = streams_in(&|stream| stream.state == StreamState::WaitingQuota) {
        let at =
            report.quota.resume_at.map_or_else(String::new, |at| format!(" at {}", at.strftime("%Y-%m-%dT%H:%M:%SZ")));
        return (OverallState::Ok, format!("Waiting for quota: {names}. Nothing to do: it goes on by itself{at}."));
    }
    let ahead = report.streams.iter().filter_map(|(name, stream)| Some((name, stream.ahead_seconds?)));
    if let Some((name, seconds)) = ahead.max_by_key(|(_, seconds)| *seconds) {
        let hint = "one of the two clocks is wrong, and `sierra-sync check` compares them";
        return (
            OverallState::Ok,
            format!(
                "The stamps of {name} are {seconds} s ahead of this machine's clock, so that no lag can be told: {hint}."
            ),
        );
    }
    if let Some(sentence) = set_aside(report) {
        return (OverallState::Ok, sentence);
    }
    if let Some(sentence) = held(report) {
        return (OverallState::Ok, sentence);
    }
    if !empty.is_empty() {
        let names = empty.join(", ");
        let hint = "see the roles of the API key (`sierra-sync check`) and sierra.base_url if there should be some";
        return (OverallState::Ok, format!("The first load found no record at all: {names}; {hint}."));
    }
    let silent = report.streams.iter().find_map(|(name, stream)| Some((name, stream.silent_since?)));
    if let Some((name, since)) = silent {
        let since = since.strftime("%Y-%m-%dT%H:%M:%SZ");
        return (
            OverallState::Ok,
            format!(
                "All streams are fresh; but nothing has come of {name} since {since}, which is unlikely at these hours \
                 unless nobody works: `sierra-sync reconcile {name}` tells whether something is missing."
            ),
        );
    }
    if let Some((name, since)) = quiet.first() {
        let day = since.strftime("%Y-%m-%d");
        return (
            OverallState::Ok,
            format!(
                "All streams are fresh; but Sierra has listed no deletion of {name} since {day}: if some were deleted \
                 meanwhile, it does not keep them, and only `sierra-sync reconcile {name} --repair` finds them."
            ),
        );
    }
    (OverallState::Ok, "All streams are fresh.".into())
}

/// Why streams stopped, and what lets them be tried again.
fn stopped(report: &StatusReport, names: &str) -> String {
    let errors = report.streams.values().filter(|stream| stream.state == StreamState::Stopped);
    let error = errors.filter_map(|stream| stream.last_error.as_ref()).next();
    let why = error.map_or_else(String::new, |error| format!(" ({})", error.message));
    let hint = error.and_then(|error| error.hint.as_deref()).map_or_else(String::new, |hint| format!("{hint}; then "));
    let options = names.replace(", ", " --stream ");
    format!(
        "Stopped until you act: {names}{why}. {hint}`sierra-sync resume --stream {options}` lets it be tried again."
    )
}

/// What people should know although every stream is read.
fn beside(report: &StatusReport) -> Option<String> {
    let retrying = report.sinks.iter().find(|(_, sink)| sink.state == SinkState::Retrying);
    if let Some((name, sink)) = retrying {
        let why = sink.error.as_ref().map_or_else(String::new, |error| format!(" ({})", error.message));
        return Some(format!(
            "Sink {name} did not take its last delivery{why}; it is tried again by itself: `sierra-sync check` tells what \
             it says."
        ));
    }
    if let Some(filling) = Filling::of(report) {
        let Filling { command, .. } = &filling;
        return Some(format!("{}; what to do first: `{command}`.", filling.told()));
    }
    let recent = report.restarted.iter().filter(|(_, restarts)| restarts.is_recent(report.now));
    let (task, TaskRestarts { times, .. }) = recent.max_by_key(|(_, restarts)| restarts.last)?;
    let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
    let kept_quiet = match task.split_once(' ') {
        Some(("sink", name)) => format!("; if it goes on, `sierra-sync pause --sink {name}` keeps it quiet"),
        Some(("stream" | "load" | "sweeps", name)) => {
            format!("; if it goes on, `sierra-sync pause --stream {name}` keeps it quiet")
        }
        _ => String::new(),
    };
    Some(format!(
        "Task {task} met a defect and was started again, {times}: please report the place that the log names{kept_quiet}."
    ))
}

/// Records that wait for a person while all else is well.
fn set_aside(report: &StatusReport) -> Option<String> {
    let aside: Vec<(&String, &u64)> = report.quarantine.iter().filter(|(_, count)| **count > 0).collect();
    let told = aside.iter().map(|(name, count)| format!("{count} of {name}"));
    let option = match aside.as_slice() {
        [] => return None,
        [(name, _)] => format!(" --stream {name}"),
        _ => String::new(),
    };
    let told = told.collect::<Vec<_>>().join(", ");
    Some(format!(
        "All streams are fresh; but records are set aside ({told}): `sierra-sync quarantine list{option}` tells why."
    ))
}

/// What is paused while all else is well.
fn held(report: &StatusReport) -> Option<String> {
    let streams = report.streams.iter().filter(|(_, stream)| stream.paused.is_some());
    let sinks = report.sinks.iter().filter(|(_, sink)| sink.paused.is_some());
    let options: Vec<String> = streams
        .map(|(name, _)| format!("--stream {name}"))
        .chain(sinks.map(|(name, _)| format!("--sink {name}")))
        .collect();
    let is_one = !options.is_empty();
    is_one.then(|| {
        format!("All is well but for what is paused; `sierra-sync resume {}` lets it go on.", options.join(" "))
    })
}

/// That the last pass over `stream` failed; `None` when it was only cut off, which says nothing of the next.
pub(super) fn failed(stream: Stream, error: &ErrorReport) -> Option<String> {
    let hint = error.hint.as_deref().unwrap_or("run `sierra-sync check`");
    let sentence = || format!("The last pass over {stream} failed: {}; {hint}.", error.message_under(stream.name()));
    (error.kind != "interrupted").then(sentence)
}

/// Why calls are halted, and what ends that.
fn halted(breaker: &BreakerStatus, now: Timestamp) -> String {
    let reason = breaker.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    match breaker.next_probe {
        // Time has passed since somebody looked: nothing is halted any more, nor known to be well.
        Some(next) if next <= now => {
            format!("Calls to Sierra were halted{reason}; a health check is due, and is the first thing that is asked.")
        }
        // A person did it, and a person may end it sooner.
        Some(next) if breaker.held => {
            format!(
                "Calls to Sierra are halted{reason} until {}, or until you run `sierra-sync breaker close --yes`.",
                next.strftime("%Y-%m-%dT%H:%M:%SZ")
            )
        }
        Some(next) => format!(
            "Calls to Sierra are halted{reason} until a health check passes; the next is due at {}.",
            next.strftime("%Y-%m-%dT%H:%M:%SZ")
        ),
        // Only a person can halt them without end.
        None => format!("Calls to Sierra are halted{reason} until you run `sierra-sync breaker close --yes`."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The sentence over a service that is well but for `what`, at this place of the document.
    fn told(place: &str, what: Value) -> String {
        let mut report = json!({
            "schema": 1, "version": "0.1.0", "state": "ok", "message": "", "now": "2026-01-05T10:00:00Z", "started": null,
            "streams": {}, "quarantine": {"bibs": 0, "items": 0}, "sinks": {},
            "quota": {"limit": 1000, "remaining": 640, "resets_at": null, "state": "ok", "resume_at": null,
                      "waited_seconds": 0.0, "refused": 0},
            "breaker": {"state": "closed", "reason": null, "since": null, "next_probe": null, "suspended_endpoints": []},
            "token": {"state": "ok", "expires_at": null},
            "outbox": {"entries": 9, "bytes": 100, "max_bytes": 1000}, "store": {"state": "ok"}, "restarted": {}
        });
        *report.pointer_mut(place).expect("a place") = what;
        let report = serde_json::from_value(report).expect("a status");
        let told = Told { stuck: &[], reloads: &[], stale: &[], empty: &[], quiet: &[], failing: &[], damage: None };
        overall(&report, &told).1
    }

    fn sink(state: &str, pending: u64) -> Value {
        json!({"archive": {
            "state": state, "pending": pending, "oldest_age_seconds": 60, "since": null, "breaker": "closed",
            "published": {}, "gaps": [], "error": null
        }})
    }

    #[test]
    fn what_people_are_called_for_is_named_on_top_with_what_helps() {
        assert_eq!(told("/sinks", json!({})), "All streams are fresh.");
        let restarts = |task: &str, last: &str| json!({task: {"times": 2, "last": last}});
        for (place, what, expected) in [
            ("/quarantine/bibs", json!(3), "3 of bibs): `sierra-sync quarantine list --stream bibs`"),
            ("/quarantine", json!({"bibs": 3, "items": 1}), "3 of bibs, 1 of items): `sierra-sync quarantine list`"),
            ("/restarted", restarts("stream bibs", "2026-01-05T09:30:00Z"), "`sierra-sync pause --stream bibs`"),
            ("/restarted", restarts("sink archive", "2026-01-05T09:30:00Z"), "`sierra-sync pause --sink archive`"),
            ("/restarted", restarts("expiry", "2026-01-05T09:30:00Z"), "Task expiry met a defect"),
            ("/outbox/bytes", json!(900), "The durable queue is 90 % full; what to do first: `sierra-sync queue list`"),
            ("/sinks", sink("retrying", 4), "Sink archive did not take its last delivery"),
        ] {
            let sentence = told(place, what);
            assert!(sentence.contains(expected), "{sentence}");
        }
        assert_eq!(told("/restarted", restarts("expiry", "2026-01-05T08:59:00Z")), "All streams are fresh.");
    }
}
