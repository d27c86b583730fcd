//! The book: once per cause, a reminder a day later, and word when it is over.

use jiff::SignedDuration;
use sierra_sync::ops::alert::{Cause, NoticeKind};
use sierra_sync::sync::report::status::{
    BreakerState, Pause, QuotaState, SinkState, SinkStatus, StoreState, StreamState, TaskRestarts, TokenState,
};
use sierra_sync::sync::report::summary::ErrorReport;

use super::super::papers::assert_typed;
use super::{Desk, open, short};

/// BR-075: forty windows that fail are one alert, with what to run.
#[test]
fn forty_failed_windows_of_one_stream_are_one_alert() {
    let mut desk = Desk::quiet();
    desk.owe("bibs", 40);
    let told = desk.watch(SignedDuration::from_hours(3));
    assert_eq!(told.iter().map(short).collect::<Vec<_>>(), ["raised gap/bibs"]);
    let notice = &told[0];
    assert!(notice.message.contains("40 windows are owed, the oldest from 2026-01-05T09:00:00Z"), "{notice:?}");
    assert_eq!(notice.command, "sierra-sync check");
}

/// Windows of every stream fail when Sierra is down: that is one alert, of the breaker.
#[test]
fn what_an_open_breaker_explains_is_not_told_beside_it() {
    let mut desk = Desk::quiet();
    open(&mut desk);
    desk.owe("bibs", 20);
    desk.owe("items", 20);
    for stream in ["bibs", "items"] {
        desk.stream(stream).lag_seconds = Some(4 * 3600);
        desk.stream(stream).state = StreamState::Behind;
    }
    assert_eq!(desk.tells(), ["raised breaker_open/"]);
    // It closes, and everything mends: one word that it is over, none of what was never told.
    let (now, book) = (desk.report.now, std::mem::take(&mut desk.book));
    desk = Desk { book, ..Desk::quiet() };
    desk.report.now = now;
    assert_eq!(desk.tells(), ["recovered breaker_open/"]);
}

/// A gap that outlives its cause is told after all.
#[test]
fn what_was_explained_is_told_when_it_stays() {
    let mut desk = Desk::quiet();
    open(&mut desk);
    desk.owe("bibs", 2);
    assert_eq!(desk.tells(), ["raised breaker_open/"]);
    desk.report.breaker.state = BreakerState::Closed;
    assert_eq!(desk.tells(), ["recovered breaker_open/", "raised gap/bibs"]);
}

#[test]
fn a_window_that_is_had_at_the_next_try_calls_nobody() {
    let mut desk = Desk::quiet();
    desk.owe("bibs", 3);
    assert_eq!(desk.watch(SignedDuration::from_mins(4)), []);
    desk.owe("bibs", 0);
    assert_eq!(desk.tells(), Vec::<String>::new());
}

#[test]
fn a_breaker_that_closes_and_opens_again_is_one_outage() {
    let mut desk = Desk::quiet();
    let mut told = Vec::new();
    for _ in 0..20 {
        open(&mut desk);
        told.extend(desk.watch(SignedDuration::from_secs(60)));
        desk.report.breaker.state = BreakerState::HalfOpen;
        told.extend(desk.watch(SignedDuration::from_secs(10)));
        desk.report.breaker.state = BreakerState::Closed;
        told.extend(desk.watch(SignedDuration::from_secs(60)));
    }
    assert_eq!(told.iter().map(short).collect::<Vec<_>>(), ["raised breaker_open/"]);
    let raised = told[0].clone();
    let over = desk.watch(SignedDuration::from_mins(5));
    assert_eq!(over.iter().map(short).collect::<Vec<_>>(), ["recovered breaker_open/"]);
    assert_eq!((&over[0].alert, over[0].since), (&raised.alert, raised.since), "one alert has one name");
}

/// BR-006, BR-075: once when it begins, and once a day as long as it lasts.
#[test]
fn what_lasts_is_told_again_once_a_day() {
    let mut desk = Desk::quiet();
    open(&mut desk);
    let told = desk.watch(SignedDuration::from_hours(24 * 3 + 1));
    let kinds: Vec<NoticeKind> = told.iter().map(|notice| notice.kind).collect();
    use NoticeKind::{Raised, Reminder};
    assert_eq!(kinds, [Raised, Reminder, Reminder, Reminder]);
    let mut ids: Vec<&str> = told.iter().map(|notice| notice.id.as_str()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 4, "each message has a name of its own");
}

/// The book is kept: whoever starts again neither repeats an alert nor forgets to say that it is over.
#[test]
fn a_restart_repeats_nothing_and_forgets_nothing() {
    let mut desk = Desk::quiet();
    open(&mut desk);
    assert_eq!(desk.tells(), ["raised breaker_open/"]);
    let kept = serde_json::to_vec(&desk.book).expect("plain");
    desk.book = serde_json::from_slice(&kept).expect("what was written");
    assert_eq!(desk.tells(), Vec::<String>::new());
    desk.report.breaker.state = BreakerState::Closed;
    assert_eq!(desk.tells(), ["recovered breaker_open/"]);
    assert_eq!(desk.book.next().map(short).as_deref(), Some("raised breaker_open/"), "the oldest is brought first");
}

/// Every cause, each with a status that shows it and nothing else.
#[test]
fn each_cause_is_found_and_told_with_a_command() {
    let mut seen = Vec::new();
    for cause in Cause::ALL {
        let mut desk = Desk::quiet();
        show(cause, &mut desk);
        let told = desk.watch(SignedDuration::from_mins(40));
        assert_eq!(told.iter().map(|notice| notice.cause).collect::<Vec<_>>(), [cause]);
        let notice = &told[0];
        assert_typed(notice.command.strip_prefix("sierra-sync ").expect("a command of ours"));
        assert!(notice.message.ends_with('.') && notice.text.contains(&notice.message), "{notice:?}");
        seen.push(format!("{:?} {} {}\n    {}", notice.severity, short(notice), notice.command, notice.message));
    }
    insta::assert_snapshot!(seen.join("\n"));
}

/// A command is one that repairs what is the case, not only what the cause is called.
#[test]
fn the_command_is_that_which_helps_in_this_case() {
    let paused = |desk: &mut Desk| {
        let since = desk.report.now;
        desk.stream("bibs").state = StreamState::Paused;
        desk.stream("bibs").paused = Some(Pause { since, by: None, reason: None });
    };
    let slow_sink = |desk: &mut Desk, status: SinkStatus| {
        desk.report.outbox.bytes = desk.report.outbox.max_bytes;
        desk.report.sinks.insert("archive".to_owned(), status);
    };
    type Act = Box<dyn Fn(&mut Desk)>;
    let cases: [(&str, Act); 8] = [
        (
            "sierra-sync breaker close --yes",
            Box::new(|desk| {
                open(desk);
                desk.report.breaker.held = true;
            }),
        ),
        (
            "sierra-sync check",
            Box::new(|desk| {
                open(desk);
                desk.report.breaker.held = true;
                desk.report.breaker.next_probe = Some(desk.report.now);
            }),
        ),
        (
            "sierra-sync resume --stream bibs",
            Box::new(move |desk| {
                paused(desk);
                desk.stream("bibs").lag_seconds = Some(2 * 3600);
            }),
        ),
        (
            "sierra-sync resume --stream bibs",
            Box::new(move |desk| {
                paused(desk);
                desk.owe("bibs", 1);
            }),
        ),
        (
            "sierra-sync reconcile bibs",
            Box::new(|desk| {
                desk.stream("bibs").silent_since = Some(desk.report.now);
            }),
        ),
        (
            "sierra-sync check",
            Box::new(|desk| drop(desk.report.sinks.insert("archive".to_owned(), sink(SinkState::Retrying, None)))),
        ),
        (
            "sierra-sync resume --sink archive",
            Box::new(move |desk| {
                let pause = Pause { since: desk.report.now, by: None, reason: None };
                slow_sink(desk, SinkStatus { paused: Some(pause), ..sink(SinkState::Paused, None) });
            }),
        ),
        ("sierra-sync queue list", Box::new(move |desk| slow_sink(desk, sink(SinkState::Paused, None)))),
    ];
    for (expected, case) in cases {
        let mut desk = Desk::quiet();
        case(&mut desk);
        let told = desk.watch(SignedDuration::from_mins(40));
        assert_eq!(told.iter().map(|notice| notice.command.as_str()).collect::<Vec<_>>(), [expected], "{told:?}");
        assert_typed(expected.strip_prefix("sierra-sync ").expect("a command of ours"));
    }
}

/// A stream is as old as its schedule makes it: a night without a pass is none that is missed.
#[test]
fn what_the_schedule_explains_is_not_stale() {
    let mut desk = Desk::quiet();
    desk.stream("bibs").lag_seconds = Some(23 * 3600);
    desk.stream("bibs").stale_after_seconds = 24 * 3600;
    assert_eq!(desk.tells(), Vec::<String>::new());
    desk.stream("bibs").stale_after_seconds = 1800;
    assert_eq!(desk.tells(), ["raised stream_stale/bibs"]);
}

/// What is over is what people were told of, whatever it looked like at last.
#[test]
fn the_end_is_told_in_the_words_of_the_beginning() {
    let mut desk = Desk::quiet();
    open(&mut desk);
    let raised = desk.watch(SignedDuration::from_mins(10)).remove(0);
    desk.report.breaker.reason = Some("a call failed while recovering".to_owned());
    assert_eq!(desk.tells(), Vec::<String>::new());
    desk.report.breaker.state = BreakerState::Closed;
    let over = desk.watch(SignedDuration::from_mins(10)).remove(0);
    assert_eq!((over.kind, &over.message), (NoticeKind::Recovered, &raised.message));
}

/// Passes of a timer: nobody looks between two nights, so that what one did not mend is told that night, and its end in
/// the night that mends it.
#[test]
fn what_a_nightly_pass_leaves_is_told_that_night() {
    let (mut desk, night) = (Desk::quiet(), SignedDuration::from_hours(24));
    assert_eq!(desk.pass(night), Vec::<String>::new());
    desk.owe("bibs", 2);
    assert_eq!(desk.pass(night), ["raised gap/bibs"]);
    desk.owe("bibs", 0);
    assert_eq!(desk.pass(night), ["recovered gap/bibs"]);
}

/// Passes every five minutes look as often as a service: what the next one mends calls nobody.
#[test]
fn what_the_next_pass_mends_calls_nobody_where_it_comes_soon() {
    let (mut desk, soon) = (Desk::quiet(), SignedDuration::from_secs(290));
    assert_eq!(desk.pass(soon), Vec::<String>::new());
    desk.owe("bibs", 2);
    assert_eq!(desk.pass(soon), Vec::<String>::new());
    desk.owe("bibs", 0);
    assert_eq!(desk.pass(soon), Vec::<String>::new());
    desk.owe("bibs", 1);
    assert_eq!((desk.pass(soon), desk.pass(soon)), (Vec::new(), Vec::new()));
    assert_eq!(desk.pass(soon), ["raised gap/bibs"]);
}

fn show(cause: Cause, desk: &mut Desk) {
    match cause {
        Cause::StoreFailed => desk.report.store.state = StoreState::Failed,
        Cause::NoRoom => {
            desk.report.store.held = Some("only 9 bytes are free below the state directory; make room".to_owned());
        }
        Cause::CredentialRefused => desk.report.token.state = TokenState::Latched,
        Cause::BreakerOpen => open(desk),
        Cause::EndpointSuspended => desk.report.breaker.suspended_endpoints.push("bibs".to_owned()),
        Cause::StreamStopped => {
            desk.stream("bibs").state = StreamState::Stopped;
            desk.stream("bibs").last_error = Some(error("schema", "more than 5 % of the records cannot be read"));
        }
        Cause::Gap => desk.owe("items", 1),
        Cause::QuotaStarved => {
            desk.report.quota.state = QuotaState::WaitingQuota;
            desk.stream("bibs").state = StreamState::WaitingQuota;
            desk.stream("bibs").lag_seconds = Some(3 * 3600);
        }
        Cause::StreamStale => {
            desk.stream("bibs").state = StreamState::Loading;
            desk.stream("bibs").lag_seconds = None;
            desk.stream("bibs").last_error = Some(error("network", "connect to catalog.example.edu"));
        }
        Cause::SinkDetached => {
            let mut lost = error("needs_reload", "gets nothing until it is loaded again: its backlog filled the queue");
            lost.hint = Some("run `sierra-sync backfill bibs --sink archive --force`".to_owned());
            desk.report.sinks.insert("archive".to_owned(), sink(SinkState::NeedsReload, Some(lost)));
        }
        Cause::SinkDown => {
            let down = error("io", "write to ./out/bibs");
            desk.report.sinks.insert("archive".to_owned(), sink(SinkState::Open, Some(down)));
        }
        Cause::QueueFilling => desk.report.outbox.bytes = desk.report.outbox.max_bytes / 10 * 9,
        Cause::QuarantineGrowth => drop(desk.report.quarantine.insert("bibs".to_owned(), 3)),
        Cause::Rebuild => desk.stream("bibs").rebuilding = true,
        Cause::TaskRestarted => {
            let restarts = TaskRestarts { times: 3, last: desk.report.now };
            desk.report.restarted.insert("stream bibs".to_owned(), restarts);
        }
    }
}

/// The same records stay set aside for weeks: that calls nobody again. One more does.
#[test]
fn the_quarantine_is_told_when_it_grows_and_not_while_it_stays() {
    let mut desk = Desk::quiet();
    desk.report.quarantine.insert("bibs".to_owned(), 3);
    let told: Vec<String> = desk.watch(SignedDuration::from_hours(24 * 7)).iter().map(short).collect();
    assert_eq!(told, ["raised quarantine_growth/bibs", "recovered quarantine_growth/bibs"]);
    desk.report.quarantine.insert("bibs".to_owned(), 4);
    assert_eq!(desk.tells(), ["raised quarantine_growth/bibs"]);
    desk.report.quarantine.insert("bibs".to_owned(), 0);
    assert_eq!(desk.tells(), ["recovered quarantine_growth/bibs"]);
}

/// One restored state is one cause, however many streams it holds.
#[test]
fn a_rebuild_of_every_stream_is_told_once() {
    let mut desk = Desk::quiet();
    desk.stream("bibs").rebuilding = true;
    desk.stream("items").rebuilding = true;
    assert_eq!(desk.tells(), ["raised rebuild/"]);
    desk.stream("bibs").rebuilding = false;
    assert_eq!(desk.tells(), Vec::<String>::new());
    desk.stream("items").rebuilding = false;
    assert_eq!(desk.tells(), ["recovered rebuild/"]);
}

/// BR-065: empty windows are told once they are unlikely, by the stream that brings nothing.
#[test]
fn an_unlikely_silence_is_told_and_ends_with_the_next_change() {
    let mut desk = Desk::quiet();
    assert_eq!(desk.tells(), Vec::<String>::new());
    desk.stream("bibs").silent_since = Some(desk.report.now);
    assert_eq!(desk.tells(), ["raised stream_stale/bibs"]);
    desk.stream("bibs").silent_since = None;
    assert_eq!(desk.tells(), ["recovered stream_stale/bibs"]);
}

/// A sink that is new is loaded unasked; nobody has to do anything.
#[test]
fn a_new_sink_that_is_being_loaded_calls_nobody() {
    let mut desk = Desk::quiet();
    desk.report.sinks.insert("archive".to_owned(), sink(SinkState::NeedsReload, None));
    assert_eq!(desk.tells(), Vec::<String>::new());
}

fn error(kind: &str, message: &str) -> ErrorReport {
    ErrorReport {
        kind: kind.to_owned(),
        message: message.to_owned(),
        endpoint: None,
        status_code: None,
        code: None,
        correlation_id: None,
        hint: None,
    }
}

fn sink(state: SinkState, error: Option<ErrorReport>) -> SinkStatus {
    SinkStatus {
        state,
        pending: 12,
        oldest_age_seconds: Some(60),
        since: None,
        breaker: BreakerState::Closed,
        published: std::collections::BTreeMap::new(),
        gaps: Vec::new(),
        paused: None,
        error,
    }
}
