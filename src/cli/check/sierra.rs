//! Whether Sierra can be reached, lets us in, tells the time, and serves each stream page by page.

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::cli::exit::Exit;
use crate::clock::SharedClock;
use crate::config::Config;
use crate::record::{RecordNumber, Stream};
use crate::sync::ports::{Answer, CallClass, FieldSet, PageFilter, PageQuery, SourceError};
use crate::sync::rebuild::EARLIEST;
use crate::sync::{Source, settings::StreamSettings};

use super::{ProbeLine, Tell};

/// Clocks further apart than this are worth a note. Sierra's clock decides either way.
const NOTED_OFFSET_SECONDS: u64 = 60;

/// Probes Sierra with a handful of small calls. Returns the streams that the key may not read; `None` when Sierra could
/// not be reached: nothing else is asked then, since every answer would be the same.
pub(super) async fn probe(
    config: &Config,
    source: &dyn Source,
    clock: &SharedClock,
    tell: &mut Tell<'_>,
) -> Option<Vec<Stream>> {
    let pulse = match source.pulse().await {
        Ok(pulse) => pulse,
        Err(error) => {
            tell.line(&failed("token", &error));
            return None;
        }
    };
    tell.line(&ProbeLine::good("token", format!("granted at {}", config.sierra.base_url)));
    tell.line(&match pulse.date {
        None => {
            let hint = "windows end 5 minutes behind this machine's clock; see to it that it is right";
            ProbeLine::note("clock", "Sierra's answers carry no Date", hint)
        }
        Some(date) => offset(date.duration_since(clock.now()).as_secs()),
    });
    let today = TimeZone::UTC.to_datetime(clock.now()).date();
    let mut refused = Vec::new();
    for settings in &config.streams {
        let line = stream(settings, source).await;
        if line.exit == Exit::Credentials {
            refused.push(settings.stream);
        }
        let is_readable = line.ok;
        tell.line(&line);
        if is_readable {
            tell.line(&deletions(settings, source, today).await);
        }
    }
    Some(refused)
}

fn offset(seconds: i64) -> ProbeLine {
    let apart = seconds.unsigned_abs();
    let direction = if seconds > 0 { "ahead of" } else { "behind" };
    if apart <= NOTED_OFFSET_SECONDS {
        return ProbeLine::good("clock", format!("within {apart} s of Sierra's"));
    }
    let hint = "nothing depends on it, since Sierra's clock decides; if this machine is wrong, mend its time service";
    ProbeLine::note("clock", format!("Sierra's clock is {apart} s {direction} this machine's"), hint)
}

/// One record, then the page after it: keyset paging is what everything else rests on.
async fn stream(settings: &StreamSettings, source: &dyn Source) -> ProbeLine {
    let stream = settings.stream;
    let probe = format!("stream {stream}");
    let first = match source.page(&query(stream, None, 1)).await {
        Ok(Answer::Nothing { .. }) => {
            let hint = "if there should be some, ask the vendor whether this key is limited to a location";
            return ProbeLine::note(&probe, "readable, and without a single record", hint);
        }
        Ok(Answer::Page(page)) => page,
        Err(error) => return failed(&probe, &error),
    };
    let second = match source.page(&query(stream, Some(first.last_id), 2)).await {
        Ok(Answer::Nothing { .. }) => return ProbeLine::good(&probe, "readable, one record"),
        Ok(Answer::Page(page)) => page,
        Err(error) => return failed(&probe, &error),
    };
    let bad = [&first, &second].iter().flat_map(|page| &page.entries).filter(|entry| entry.is_err()).count();
    if bad > 0 {
        let hint = "look at what Sierra sends for it; a sync sets such records aside and goes on";
        return ProbeLine::note(&probe, format!("readable, but {bad} of the first 3 records cannot be decoded"), hint);
    }
    ProbeLine::good(&probe, "readable page by page")
}

/// Whether Sierra lists any deletion. A library that keeps none has a feed that is empty for ever (BR-049).
async fn deletions(settings: &StreamSettings, source: &dyn Source, today: Date) -> ProbeLine {
    let stream = settings.stream;
    let probe = format!("deletions {stream}");
    // It may be tomorrow already where the library is.
    let ever = PageFilter::Deleted { from: EARLIEST, to: today.saturating_add(2.days()) };
    let query = PageQuery { filter: ever, fields: FieldSet::Tombstones, ..query(stream, None, 1) };
    match source.page(&query).await {
        Ok(Answer::Page(_)) => ProbeLine::good(&probe, "listed"),
        Ok(Answer::Nothing { .. }) => {
            let hint = if settings.reconcile.is_some() {
                format!("if it keeps none, streams.{stream}.reconcile finds what vanished; see that it is often enough")
            } else {
                format!("if it keeps none, set streams.{stream}.reconcile: nothing else finds what vanished")
            };
            ProbeLine::note(&probe, "Sierra lists no deleted record at all", hint)
        }
        Err(error) => failed(&probe, &error),
    }
}

fn query(stream: Stream, after: Option<RecordNumber>, limit: u32) -> PageQuery {
    PageQuery {
        stream,
        filter: PageFilter::Live,
        after,
        until: None,
        limit,
        fields: FieldSet::Configured,
        fresh_connection: false,
        class: CallClass::Incremental,
    }
}

fn failed(probe: &str, error: &SourceError) -> ProbeLine {
    let hint = Some(hint(&error.hint)).filter(|hint| !hint.is_empty());
    ProbeLine::bad(probe, error.message.clone(), hint, Exit::of_source(error.kind))
}

/// What else to do than to run the command that is running. What other commands say about it is one clause of theirs.
fn hint(said: &str) -> String {
    let is_news = |clause: &&str| !clause.contains("`sierra-sync check`");
    said.split("; ")
        .filter(is_news)
        .map(|clause| clause.trim_start_matches("if it finds nothing, "))
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt;
    use futures_util::future::{BoxFuture, ready};
    use jiff::Timestamp;

    use super::*;
    use crate::clock::SimClock;
    use crate::config::{Environment, load};
    use crate::sync::ports::{BadEntry, Page, Pulse, SourceErrorKind, Traffic};
    use crate::sync::{RequestNumber, ports::PageQuery};

    /// A Sierra that answers every page with the same, and remembers what it was asked.
    struct Scripted {
        pulse: Result<Option<Timestamp>, SourceErrorKind>,
        page: Result<Vec<u64>, SourceErrorKind>,
        asked: Mutex<Vec<(Stream, Option<u64>, u32)>>,
    }

    fn error(kind: SourceErrorKind) -> SourceError {
        SourceError {
            kind,
            message: "list bibs: 403 Forbidden".to_owned(),
            endpoint: "bibs",
            status_code: None,
            code: None,
            correlation_id: "c".to_owned(),
            hint: "ask for the role".to_owned(),
            traffic: Traffic::default(),
        }
    }

    impl Source for Scripted {
        fn pulse(&self) -> BoxFuture<'_, Result<Pulse, SourceError>> {
            ready(self.pulse.map(|date| Pulse { date, traffic: Traffic::default() }).map_err(error)).boxed()
        }

        fn page<'a>(&'a self, query: &'a PageQuery) -> BoxFuture<'a, Result<Answer, SourceError>> {
            let after = query.after.map(|number| number.value());
            self.asked.lock().expect("nobody panicked").push((query.stream, after, query.limit));
            let answer = self.page.clone().map_err(error).map(|numbers| {
                let bad = BadEntry { id: None, reason: "bibIds[0]: expected a number".to_owned(), payload: None };
                let last_id = numbers.last().map(|number| RecordNumber::new(*number));
                let (sent, answered, date) = (RequestNumber::default(), RequestNumber::default(), None);
                let traffic = Traffic::default();
                match last_id {
                    None => Answer::Nothing { sent, answered, date, traffic },
                    Some(last_id) => {
                        let (entries, was_out_of_order) = (vec![Err(bad)], false);
                        Answer::Page(Page { entries, last_id, was_out_of_order, sent, answered, date, traffic })
                    }
                }
            });
            ready(answer).boxed()
        }
    }

    async fn probed(source: &Scripted) -> (Vec<ProbeLine>, Option<Vec<Stream>>) {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/config/minimal.toml");
        let environment = Environment::from_iter([("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "secret")]);
        let (config, _) = load(Some(file.as_ref()), &environment, &[]).expect("it is valid");
        let clock: SharedClock = Arc::new(SimClock::starting_at(Timestamp::UNIX_EPOCH));
        let mut lines = Vec::new();
        let print = |line: &ProbeLine| {
            lines.push(line.clone());
            Ok(())
        };
        let mut tell = Tell { print: Box::new(print), exits: Vec::new(), broken: None };
        let refused = probe(&config, source, &clock, &mut tell).await;
        drop(tell);
        (lines, refused)
    }

    fn scripted(page: Result<Vec<u64>, SourceErrorKind>) -> Scripted {
        Scripted { pulse: Ok(Some(Timestamp::UNIX_EPOCH)), page, asked: Mutex::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn refused_credentials_end_the_probes_with_their_own_code() {
        let source = Scripted { pulse: Err(SourceErrorKind::Credentials), ..scripted(Ok(Vec::new())) };
        let (lines, refused) = probed(&source).await;
        assert_eq!((lines.len(), lines[0].ok, lines[0].exit, refused), (1, false, Exit::Credentials, None));
        assert!(source.asked.into_inner().expect("nobody panicked").is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_closed_to_the_key_says_what_to_ask_for() {
        let (lines, refused) = probed(&scripted(Err(SourceErrorKind::Stopped))).await;
        assert_eq!(refused, Some(vec![Stream::Bibs]));
        let line = lines.last().expect("one of the stream");
        assert_eq!((line.probe.as_str(), line.ok, line.exit), ("stream bibs", false, Exit::Credentials));
        assert_eq!(line.hint.as_deref(), Some("ask for the role"));
    }

    #[tokio::test(start_paused = true)]
    async fn paging_is_tried_with_two_small_calls_from_record_to_record() {
        let source = scripted(Ok(vec![100_001]));
        let (lines, refused) = probed(&source).await;
        assert!(refused == Some(Vec::new()) && lines.iter().all(|line| line.ok));
        let asked = source.asked.into_inner().expect("nobody panicked");
        assert_eq!(asked, [(Stream::Bibs, None, 1), (Stream::Bibs, Some(100_001), 2), (Stream::Bibs, None, 1)]);
        let [.., stream, deletions] = lines.as_slice() else { panic!("two lines: {lines:?}") };
        assert!(stream.message.contains("2 of the first 3 records cannot be decoded"), "{stream:?}");
        assert_eq!((deletions.probe.as_str(), deletions.message.as_str()), ("deletions bibs", "listed"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_stream_is_noted() {
        let (lines, _) = probed(&scripted(Ok(Vec::new()))).await;
        let [.., stream, deletions] = lines.as_slice() else { panic!("two lines: {lines:?}") };
        assert!(stream.ok && stream.message.contains("without a single record"), "{stream:?}");
        assert!(deletions.ok && deletions.message.contains("no deleted record at all"), "{deletions:?}");
        assert!(deletions.hint.as_ref().is_some_and(|hint| hint.contains("streams.bibs.reconcile")), "{deletions:?}");
    }

    #[test]
    fn the_running_command_is_not_what_to_run_next() {
        let told = hint("run `sierra-sync check`; if it finds nothing, please report this message");
        assert_eq!(told, "please report this message");
        assert_eq!(hint("ask for the role; `sierra-sync check` lists the roles it has"), "ask for the role");
        assert_eq!(hint("look at it; then again"), "look at it; then again");
    }

    #[test]
    fn a_clock_that_is_off_is_noted_and_stops_nothing() {
        assert_eq!(offset(60).hint, None);
        let line = offset(-300);
        assert!(line.ok && line.hint.is_some());
        assert_eq!(line.message, "Sierra's clock is 300 s behind this machine's");
    }
}
