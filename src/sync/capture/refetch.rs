//! Records that are asked for by explicit list: bibs that came without MARC, before they are given up (BR-048), and
//! whatever a backfill must hear of.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;

use super::absorb::Arrival;
use super::error::WalkError;
use super::lane::Lane;
use super::tally::Tally;
use super::unread;
use crate::record::{Entry, Live, RecordNumber};
use crate::sync::RequestNumber;
use crate::sync::ports::{
    Answer, BadEntry, CallClass, FieldSet, PageFilter, PageQuery, SourceError, SourceErrorKind, Traffic,
};

/// Numbers in one list: longer ones have been refused (sierra-api.md §2.2).
const LIST: usize = 50;
/// Numbers in the lists of backfills, which are halved when they are refused: one Sierra has answered 251 (§2.2).
const LONG_LIST: usize = 200;

/// How a list is asked for.
#[derive(Debug, Clone, Copy)]
pub(in crate::sync) struct Manner {
    /// The quota class.
    pub(in crate::sync) class: CallClass,
    /// Whether over a connection of its own.
    pub(in crate::sync) fresh_connection: bool,
}

impl Lane {
    /// Replaces every bib among `arrivals` that has no varFields by what Sierra says when asked for it alone.
    pub(super) async fn ask_for_missing_marc(
        &self,
        arrivals: &mut [Arrival],
        class: CallClass,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        let missing: Vec<RecordNumber> = arrivals.iter().filter_map(without_marc).collect();
        for numbers in missing.chunks(LIST) {
            let mut found = self.found_by_list(numbers, class, tally, cancel).await?;
            for arrival in arrivals.iter_mut().filter(|arrival| without_marc(arrival).is_some()) {
                let number = arrival.entry.as_ref().ok().map(Entry::id);
                let again = number.and_then(|number| found.remove(&number));
                if let Some(again) = again.filter(|again| !is_older(again, arrival)) {
                    *arrival = again;
                }
            }
        }
        Ok(())
    }

    /// What a list brings of `numbers`; nothing if Sierra refuses it for good.
    async fn found_by_list(
        &self,
        numbers: &[RecordNumber],
        class: CallClass,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<BTreeMap<RecordNumber, Arrival>, WalkError> {
        let arrivals = self.ask_by_list(numbers, Manner { class, fresh_connection: false }, tally, cancel).await?;
        let decoded = arrivals.unwrap_or_default().into_iter();
        Ok(decoded.filter_map(|arrival| Some((arrival.entry.as_ref().ok()?.id(), arrival))).collect())
    }

    /// Asks for exactly `numbers`, dead or alive, in as many lists as it takes. What does not come back is missing in
    /// the answer, which is in order. A record that cannot be read even alone stands there as a bad entry.
    ///
    /// # Errors
    /// When a list is not answered, or Sierra refuses one number alone for good.
    pub(in crate::sync) async fn read_by_list(
        &self,
        numbers: &[RecordNumber],
        manner: Manner,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<Vec<Arrival>, WalkError> {
        let mut arrivals = Vec::with_capacity(numbers.len());
        let most = LONG_LIST.min(usize::try_from(self.settings.page_size).unwrap_or(LONG_LIST)).max(1);
        let mut pieces: Vec<&[RecordNumber]> = numbers.chunks(most).rev().collect();
        while let Some(piece) = pieces.pop() {
            match (self.ask_by_list(piece, manner, tally, cancel).await?, piece) {
                (Ok(came), _) => arrivals.extend(came),
                (Err(refused), [number]) if refused.kind == SourceErrorKind::Narrow => {
                    let reason = "Sierra does not answer when it is asked for it alone".to_owned();
                    let never = RequestNumber::default();
                    let entry = Err(BadEntry { id: Some(*number), reason, payload: None });
                    arrivals.push(Arrival { entry, sent: never, answered: never });
                }
                (Err(refused), [_] | []) => return Err(refused.into()),
                // Too long for this Sierra, or one of them spoils it.
                (Err(_), _) => {
                    let (left, right) = piece.split_at(piece.len() / 2);
                    pieces.extend([right, left]);
                }
            }
        }
        Ok(arrivals)
    }

    /// Asks for one list; the inner error is Sierra's refusal of it.
    async fn ask_by_list(
        &self,
        numbers: &[RecordNumber],
        manner: Manner,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<Result<Vec<Arrival>, SourceError>, WalkError> {
        let query = PageQuery {
            stream: self.stream(),
            filter: PageFilter::Ids(numbers.to_vec()),
            after: None,
            until: None,
            limit: u32::try_from(numbers.len()).unwrap_or(u32::MAX),
            fields: FieldSet::Configured,
            fresh_connection: manner.fresh_connection,
            class: manner.class,
        };
        match self.ask(&query, cancel).await {
            Ok(Answer::Nothing { traffic, .. }) => {
                tally.traffic += traffic;
                Ok(Ok(Vec::new()))
            }
            Ok(Answer::Page(page)) if unread::has_any(&page.entries) => {
                tally.traffic += page.traffic;
                Ok(Err(without_numbers(page.traffic)))
            }
            Ok(Answer::Page(page)) => {
                tally.traffic += page.traffic;
                let (sent, answered) = (page.sent, page.answered);
                Ok(Ok(page.entries.into_iter().map(|entry| Arrival { entry, sent, answered }).collect()))
            }
            Err(WalkError::Source(error)) if is_refusal(error.kind) => {
                tally.traffic += error.traffic;
                Ok(Err(error))
            }
            Err(WalkError::Source(error)) => {
                tally.traffic += error.traffic;
                Err(error.into())
            }
            Err(error) => Err(error),
        }
    }
}

fn without_marc(arrival: &Arrival) -> Option<RecordNumber> {
    match &arrival.entry {
        Ok(Entry::Live(Live::Bib(bib))) if bib.var_fields.is_none() => Some(bib.id),
        _ => None,
    }
}

/// Whether the answer to the list shows an earlier version than the page did: a back-end that lags behind another.
/// Taken for the newer one it would hide that there is something to wait for.
fn is_older(again: &Arrival, arrival: &Arrival) -> bool {
    let stamp = |arrival: &Arrival| match &arrival.entry {
        Ok(Entry::Live(live)) => live.updated(),
        _ => None,
    };
    matches!((stamp(again), stamp(arrival)), (Some(again), Some(first)) if again < first)
}

/// Which of a list cannot be read shows when they are asked for apart: to the caller it is a list that was refused.
fn without_numbers(traffic: Traffic) -> SourceError {
    SourceError {
        kind: SourceErrorKind::Narrow,
        message: "an entry came whose record number cannot be read".to_owned(),
        endpoint: "list",
        status_code: None,
        code: None,
        correlation_id: String::new(),
        hint: "nothing to do: the records are asked for one by one".to_owned(),
        traffic,
    }
}

fn is_refusal(kind: SourceErrorKind) -> bool {
    matches!(kind, SourceErrorKind::Narrow | SourceErrorKind::Permanent)
}
