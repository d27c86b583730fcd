//! `quarantine replay`: what was set aside is read once more, and offered once more to the sink that refused it.
//!
//! Reading goes through a backfill by list, with all that guards one: paced calls, nothing newer is overwritten, a good
//! version closes the entry. An entry that still stands was tried in vain; after three replays it is parked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::cli::exit::{Exit, Refused};
use crate::ops::control::Reply;
use crate::record::{RecordNumber, Stream};
use crate::sync::Seq;
use crate::sync::backfill::{BackfillOrder, Numbers, Selection, Via};
use crate::sync::engine::EngineError;
use crate::sync::ports::{QuarantineEntry, QuarantineState, Slice};
use crate::sync::report::summary::ErrorReport;

use super::assembly::Assembly;
use super::quarantine;
use super::queue::off_runtime;

/// Tries of an entry: the one that set it aside, and three replays (design: §9).
const TRIES: u32 = 4;
/// How long a service is given to deliver what was read.
const DELIVERED_WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// The entry's name.
    pub id: String,
    /// The stream.
    pub stream: Stream,
    /// The record's public id.
    pub record: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How often it was tried by now.
    pub attempts: u32,
    /// Why it still stands, or could not be read.
    pub reason: Option<String>,
}

/// What came of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is good now; the entry is closed.
    Healed,
    /// It is still refused, for the same reason or another one.
    Refused,
    /// It was refused for the third time and is not replayed any more.
    Parked,
    /// It was read and waits for its sink.
    Waits,
    /// Sierra could not be asked, or did not know the record: nothing was tried.
    NotRead,
}

/// Replays `entries` and says what became of each: one by one in `reply`, and all of them at the end.
pub(super) async fn replay(
    assembly: &Assembly,
    serving: bool,
    entries: Vec<QuarantineEntry>,
    reply: &Reply,
) -> anyhow::Result<(Vec<Replayed>, Exit)> {
    let mut groups: BTreeMap<(Stream, Option<String>), Group> = BTreeMap::new();
    // All or none: one that cannot be replayed is told before anything is asked.
    for entry in entries {
        let number = replayable(&entry)?;
        groups.entry((entry.stream, entry.sink.clone())).or_default().push((number, entry));
    }
    let (mut all, mut exits) = (Vec::new(), Vec::new());
    for ((stream, sink), group) in groups {
        let read = read_again(assembly, serving, stream, sink.as_deref(), &group).await?;
        let standing = quarantine::entries(&assembly.store).await?;
        for (_, entry) in group {
            let replayed = what_became_of(assembly, entry, &standing, &read).await?;
            exits.push(match replayed.outcome {
                Outcome::Healed => Exit::Ok,
                Outcome::Refused | Outcome::Parked => Exit::Incomplete,
                Outcome::Waits | Outcome::NotRead => read.exit,
            });
            reply.data(serde_json::to_string(&replayed)?).await;
            all.push(replayed);
        }
    }
    Ok((all, Exit::gravest(exits)))
}

/// What came of all of them, in a few words.
pub(super) fn told(all: &[Replayed]) -> String {
    let words = [
        (Outcome::Healed, "good now"),
        (Outcome::Refused, "still refused"),
        (Outcome::Parked, "refused and parked"),
        (Outcome::Waits, "read and waiting for the sink"),
        (Outcome::NotRead, "not read"),
    ];
    let count = |outcome| all.iter().filter(|replayed| replayed.outcome == outcome).count();
    let parts = words.into_iter().map(|(outcome, words)| (count(outcome), words)).filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, words)| format!("{count} {words}")).collect();
    if parts.is_empty() { "nothing was set aside that can be replayed".to_owned() } else { parts.join(", ") }
}

/// Whether `entry` can be replayed.
pub(super) fn is_open(entry: &QuarantineEntry) -> bool {
    replayable(entry).is_ok()
}

/// The number to ask for, or why the entry is not replayed.
fn replayable(entry: &QuarantineEntry) -> Result<RecordNumber, Refused> {
    let (id, record) = (entry.key().id(), &entry.record);
    if entry.stream == Stream::Patrons {
        return Err(Refused(format!(
            "{id} is of a patron, whose number the quarantine does not know: `sierra-sync backfill patrons --force` reads \
             all of them again"
        )));
    }
    if entry.state == QuarantineState::Parked || entry.attempts >= TRIES {
        return Err(Refused(format!(
            "{id} ({} {record}) was tried {} times and is parked: it is tried again when Sierra changes the record, or by \
             `sierra-sync backfill {} --ids {record}..{record} --force`",
            entry.stream, entry.attempts, entry.stream
        )));
    }
    let number = record.parse().map(RecordNumber::new);
    number.map_err(|_| Refused(format!("{id} has no record number ({record}), so Sierra cannot be asked for it again")))
}

/// Entries of one stream that one sink refused, or capture, each with the number to ask for.
type Group = Vec<(RecordNumber, QuarantineEntry)>;

/// What reading a group came to.
struct ReadAgain {
    /// Records were read: what still stands was tried.
    is_read: bool,
    /// The sink has taken or refused what was read.
    is_delivered: bool,
    error: Option<ErrorReport>,
    exit: Exit,
}

async fn read_again(
    assembly: &Assembly,
    serving: bool,
    stream: Stream,
    sink: Option<&str>,
    group: &Group,
) -> anyhow::Result<ReadAgain> {
    let numbers: BTreeSet<RecordNumber> = group.iter().map(|(number, _)| *number).collect();
    let numbers: Vec<RecordNumber> = numbers.into_iter().collect();
    let order = BackfillOrder {
        stream,
        selection: Selection { numbers: Numbers::List(Arc::from(numbers)), ..Selection::default() },
        via: Via::List,
        sink: sink.map(str::to_owned),
        // What a sink refused is remembered as emitted: it must be emitted again.
        force: sink.is_some(),
        wait_for_quota: false,
        meaning: None,
    };
    let cancel = CancellationToken::new();
    let engine = &assembly.engine;
    let ran =
        if serving { engine.backfill_beside(&order, &cancel).await } else { engine.backfill(&order, &cancel).await };
    let summary = ran.map_err(|error| match error {
        EngineError::Store(error) => anyhow::Error::new(error),
        error => Refused(error.to_string()).into(),
    })?;
    let of_stream = summary.streams.get(stream.name());
    let is_delivered = match sink {
        Some(sink) => is_delivered(assembly, serving, sink).await?,
        None => true,
    };
    let trouble = if is_delivered { Exit::Incomplete } else { Exit::Unavailable };
    Ok(ReadAgain {
        is_read: of_stream.is_some_and(|stream| stream.fetched > 0 && stream.gaps.is_empty()),
        is_delivered,
        error: of_stream.and_then(|stream| stream.error.clone()),
        exit: Exit::of_code(summary.exit).filter(|exit| *exit != Exit::Ok).unwrap_or(trouble),
    })
}

/// Whether `sink` has dealt with everything that is in the queue now. A service is given a while to do so.
async fn is_delivered(assembly: &Assembly, serving: bool, sink: &str) -> anyhow::Result<bool> {
    let store = Arc::clone(&assembly.store);
    let last = off_runtime(move || store.last_seq()).await?;
    let deadline = Instant::now() + if serving { DELIVERED_WITHIN } else { Duration::ZERO };
    loop {
        let store = Arc::clone(&assembly.store);
        let places = off_runtime(move || store.sink_positions()).await?;
        let confirmed = places
            .get(sink)
            .filter(|place| place.attached)
            .map_or(Seq::ZERO, |place| if place.pending == 0 { last } else { place.confirmed });
        if confirmed >= last || Instant::now() >= deadline {
            return Ok(confirmed >= last);
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Looks at what stands of `entry` now, counts the try, and parks it after the last one.
async fn what_became_of(
    assembly: &Assembly,
    entry: QuarantineEntry,
    standing: &[QuarantineEntry],
    read: &ReadAgain,
) -> anyhow::Result<Replayed> {
    let is_same = |other: &&QuarantineEntry| {
        other.stream == entry.stream && other.record == entry.record && other.sink == entry.sink
    };
    let again = standing.iter().filter(is_same).max_by_key(|other| other.last_seen).cloned();
    let replayed = |outcome, attempts, reason: Option<String>| Replayed {
        id: entry.key().id(),
        stream: entry.stream,
        record: entry.record.clone(),
        outcome,
        attempts,
        reason,
    };
    let not_read = read.error.as_ref().map(|error| error.message.clone());
    let Some(again) = again else {
        let outcome = if read.is_delivered { Outcome::Healed } else { Outcome::Waits };
        return Ok(replayed(outcome, entry.attempts, None));
    };
    if !read.is_read {
        return Ok(replayed(Outcome::NotRead, entry.attempts, not_read.or(Some(again.reason))));
    }
    // An entry that a sink refused was closed when its record was emitted, and made anew when it was refused again.
    let attempts = again.attempts.max(entry.attempts.saturating_add(1));
    let state = if attempts >= TRIES { QuarantineState::Parked } else { QuarantineState::Open };
    let counted = QuarantineEntry {
        attempts: attempts.saturating_sub(again.attempts),
        first_seen: entry.first_seen,
        state,
        ..again.clone()
    };
    if counted.attempts > 0 || state != again.state || counted.first_seen != again.first_seen {
        let store = Arc::clone(&assembly.store);
        off_runtime(move || store.commit(Slice { quarantined: vec![counted], ..Slice::default() })).await?;
    }
    let outcome = if state == QuarantineState::Parked { Outcome::Parked } else { Outcome::Refused };
    Ok(replayed(outcome, attempts, Some(again.reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_all_is_told_in_a_few_words() {
        let replayed = |outcome| Replayed {
            id: "0a1b".to_owned(),
            stream: Stream::Bibs,
            record: "1024364".to_owned(),
            outcome,
            attempts: 2,
            reason: None,
        };
        assert_eq!(told(&[]), "nothing was set aside that can be replayed");
        let all = [Outcome::Healed, Outcome::Parked, Outcome::Healed, Outcome::NotRead].map(replayed);
        assert_eq!(told(&all), "2 good now, 1 refused and parked, 1 not read");
    }
}
