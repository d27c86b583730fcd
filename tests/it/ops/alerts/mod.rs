//! Who is called, when, and how often.

mod brought;
mod told;
mod week;

use jiff::{SignedDuration, Timestamp};
use sierra_sync::ops::alert::{AlertBook, Notice, NoticeKind, findings};
use sierra_sync::sync::report::StatusReport;
use sierra_sync::sync::report::status::{BreakerState, Gap, StoreState, StreamState, StreamStatus};

/// Streams are stale after half an hour.
const STALE_AFTER: std::time::Duration = std::time::Duration::from_secs(1800);

/// A status that is looked at again and again while things change.
struct Desk {
    report: StatusReport,
    book: AlertBook,
}

impl Desk {
    fn quiet() -> Self {
        let mut report = super::report(StoreState::Ok);
        report.streams = ["bibs", "items"].into_iter().map(|name| (name.to_owned(), fresh(report.now))).collect();
        Self { report, book: AlertBook::default() }
    }

    fn stream(&mut self, name: &str) -> &mut StreamStatus {
        self.report.streams.get_mut(name).expect("a stream")
    }

    fn owe(&mut self, stream: &str, windows: usize) {
        let gap = |number: usize| Gap {
            from: format!("2026-01-05T09:{number:02}:00Z"),
            to: format!("2026-01-05T09:{:02}:00Z", number + 1),
            attempts: 2,
            error: Some("503 from items".to_owned()),
        };
        self.stream(stream).gaps = (0..windows).map(gap).collect();
    }

    /// Looks every ten seconds for `time`, beginning now, and returns what is told.
    fn watch(&mut self, time: SignedDuration) -> Vec<Notice> {
        let end = self.report.now + time;
        let mut told = Vec::new();
        while self.report.now < end {
            let found = findings(&self.report, STALE_AFTER);
            told.extend(self.book.look(&self.report, found, true));
            self.report.now += SignedDuration::from_secs(10);
        }
        told
    }

    /// What is told after a pass that ends now; the next one comes after `time`.
    fn pass(&mut self, time: SignedDuration) -> Vec<String> {
        let found = findings(&self.report, STALE_AFTER);
        let told = self.book.look_after_a_pass(&self.report, found, true);
        self.report.now += time;
        told.iter().map(short).collect()
    }

    /// What is told within ten minutes, as `kind cause/subject`.
    fn tells(&mut self) -> Vec<String> {
        self.watch(SignedDuration::from_mins(10)).iter().map(short).collect()
    }
}

fn short(notice: &Notice) -> String {
    let kind = match notice.kind {
        NoticeKind::Raised => "raised",
        NoticeKind::Reminder => "reminder",
        NoticeKind::Recovered => "recovered",
    };
    format!("{kind} {}/{}", notice.cause.name(), notice.subject)
}

pub(super) fn fresh(now: Timestamp) -> StreamStatus {
    StreamStatus {
        state: StreamState::Ok,
        lag_seconds: Some(42),
        stale_after_seconds: 1800,
        watermark: Some(now),
        deleted_through: Some(now),
        last_success: Some(now),
        silent_since: None,
        next_run: None,
        gaps: Vec::new(),
        ahead_seconds: None,
        rebuilding: false,
        read_to: None,
        backfill: None,
        reconcile: None,
        paused: None,
        last_error: None,
        quarantined: 0,
    }
}

fn open(desk: &mut Desk) {
    desk.report.breaker.state = BreakerState::Open;
    desk.report.breaker.reason = Some("10 failures in a row".to_owned());
}
