//! The dashboard's day, and the file that keeps it.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use sierra_sync::ops::History;
use sierra_sync::sync::report::status::{BreakerState, StoreState};

use super::report;

fn start() -> Timestamp {
    "2026-01-05T10:00:00Z".parse().expect("a time")
}

/// Looks every two seconds for a while, from a moment on.
fn look(history: &History, from: Timestamp, seconds: i64) -> Timestamp {
    for second in (0..seconds).step_by(2) {
        let mut seen = report(StoreState::Ok);
        seen.now = from + SignedDuration::from_secs(second);
        seen.outbox.entries = u64::try_from(second).expect("positive");
        history.record(&seen);
    }
    history.pause();
    history.save();
    from + SignedDuration::from_secs(seconds)
}

#[test]
fn a_day_of_minutes_survives_a_restart_and_no_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("dashboard-history");
    let end = look(&History::kept_in(&file, start()), start(), 30 * 3600);
    let history = History::kept_in(&file, end);
    let samples = history.samples(None);
    assert!((1_430..=1_441).contains(&samples.len()), "{}", samples.len());
    assert!(end.as_second() - samples[0].at <= 86_400 && end.as_second() - samples.last().expect("some").at <= 60);
    assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
    let last = samples[samples.len() - 2].at;
    assert_eq!(history.samples(Some(last)).len(), 1, "only what is new");
    let end = look(&history, end, 600);
    assert_eq!(History::kept_in(&file, end).samples(Some(samples.last().expect("some").at)).len(), 10);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).expect("there").permissions());
    assert_eq!(mode & 0o777, 0o600);
}

/// A short outage is in the minute that it happened in, with its reason.
#[test]
fn what_was_short_is_not_thinned_away() {
    let history = History::default();
    for second in 0..180 {
        let mut seen = report(StoreState::Ok);
        seen.now = start() + SignedDuration::from_secs(second);
        if second == 31 {
            seen.breaker.state = BreakerState::Open;
            seen.breaker.since = Some(seen.now);
            seen.breaker.reason = Some("10 failures in a row".to_owned());
        }
        history.record(&seen);
    }
    history.pause();
    let halts: Vec<_> = history.samples(None).into_iter().flat_map(|sample| sample.halts).collect();
    assert_eq!(halts.len(), 1);
    assert_eq!((halts[0].who.as_str(), halts[0].why.as_deref()), ("sierra", Some("10 failures in a row")));
    assert_eq!(halts[0].since, Some(start().as_second() + 31));
}

#[test]
fn torn_and_damaged_lines_are_passed_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("dashboard-history");
    let end = look(&History::kept_in(&file, start()), start(), 600);
    let text = fs::read_to_string(&file).expect("text");
    assert_eq!(text.lines().count(), 10);
    let count = |text: &[u8]| {
        fs::write(&file, text).expect("written");
        History::kept_in(&file, end).samples(None).len()
    };
    assert_eq!(count(&text.as_bytes()[..text.len() - 20]), 9, "torn at its end");
    assert_eq!(count(text.replacen("640", "641", 1).as_bytes()), 9, "one digit is another");
    assert_eq!(count(&[0xff; 100_000]), 0);
    assert_eq!(count(b""), 0);
    assert_eq!(count(b"\n\n00000000 {}\nnonsense\n"), 0);
    // Where none can be written, none is.
    let history = History::kept_in(&directory.path().join("nowhere/history"), start());
    look(&history, start(), 600);
    assert!(history.samples(None).len() >= 10, "what is in memory is shown all the same");
}
