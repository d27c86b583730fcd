//! Whether Sierra can be reached, lets us in, tells the time, and serves each stream page by page.

use crate::cli::exit::Exit;
use crate::clock::SharedClock;
use crate::config::Config;
use crate::record::{RecordNumber, Stream};
use crate::sync::ports::{Answer, CallClass, FieldSet, PageFilter, PageQuery, SourceError};
use crate::sync::{Source, settings::StreamSettings};

use super::{ProbeLine, Tell};

/// Clocks further apart than this are worth a note. Sierra's clock decides either way.
const NOTED_OFFSET_SECONDS: u64 = 60;

/// Probes Sierra with a handful of small calls. Returns whether it could be reached: if not, nothing else is asked,
/// since every answer would be the same.
pub(super) async fn probe(config: &Config, source: &dyn Source, clock: &SharedClock, tell: &mut Tell) -> bool {
    let pulse = match source.pulse().await {
        Ok(pulse) => pulse,
        Err(error) => {
            tell.line(&failed("token", &error));
            return false;
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
    for settings in &config.streams {
        let line = stream(settings, source).await;
        tell.line(&line);
    }
    true
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
    let hint = Some(error.hint.clone()).filter(|hint| !hint.is_empty());
    ProbeLine::bad(probe, error.message.clone(), hint, Exit::of_source(error.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_noted_and_stops_nothing() {
        assert_eq!(offset(60).hint, None);
        let line = offset(-300);
        assert!(line.ok && line.hint.is_some());
        assert_eq!(line.message, "Sierra's clock is 300 s behind this machine's");
    }
}
