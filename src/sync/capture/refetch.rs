//! Bibs that came without MARC are asked for once more, by explicit list, before they are given up (BR-048).

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;

use super::absorb::Arrival;
use super::error::WalkError;
use super::lane::Lane;
use super::tally::Tally;
use crate::record::{Entry, Live, RecordNumber, Stream};
use crate::sync::ports::{Answer, CallClass, FieldSet, PageFilter, PageQuery, SourceErrorKind};

/// Numbers in one list: longer ones have been refused (sierra-api.md §2.2).
const LIST: usize = 50;

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
            let mut found = self.ask_by_list(numbers, class, tally, cancel).await?;
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

    /// Asks for exactly `numbers`, dead or alive. What does not come back is missing in the answer; so is everything
    /// if Sierra refuses the list for good.
    async fn ask_by_list(
        &self,
        numbers: &[RecordNumber],
        class: CallClass,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<BTreeMap<RecordNumber, Arrival>, WalkError> {
        let query = PageQuery {
            stream: Stream::Bibs,
            filter: PageFilter::Ids(numbers.to_vec()),
            after: None,
            until: None,
            limit: u32::try_from(numbers.len()).unwrap_or(u32::MAX),
            fields: FieldSet::Configured,
            fresh_connection: false,
            class,
        };
        match self.ask(&query, cancel).await {
            Ok(Answer::Nothing { traffic, .. }) => {
                tally.traffic += traffic;
                Ok(BTreeMap::new())
            }
            Ok(Answer::Page(page)) => {
                tally.traffic += page.traffic;
                let (sent, answered) = (page.sent, page.answered);
                let decoded = page.entries.into_iter().filter_map(Result::ok);
                Ok(decoded.map(|entry| (entry.id(), Arrival { entry: Ok(entry), sent, answered })).collect())
            }
            Err(WalkError::Source(error)) if is_refusal(error.kind) => {
                tally.traffic += error.traffic;
                Ok(BTreeMap::new())
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

fn is_refusal(kind: SourceErrorKind) -> bool {
    matches!(kind, SourceErrorKind::Narrow | SourceErrorKind::Permanent)
}
