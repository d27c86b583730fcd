//! One range by way of Sierra's export of MARC.
//!
//! A list without varFields tells everything but the MARC, an export tells the MARC, and together they are compared
//! with what is remembered. Where both agree in content, the record is what a list of whole records would bring, and
//! that was neither rendered by Sierra nor sent. Whatever does not agree is read by explicit list, which has the last
//! word: an export cuts long records, leaves out bibs without MARC type and all fields that are not MARC, and adds
//! fields of its own (sierra-api.md §4.1, §4.3). So what is emitted never depends on the way it was read.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::record::{Entry, Live, RecordNumber, VarField};
use crate::sync::capture::absorb::Arrival;
use crate::sync::capture::ending::{Ending, Next};
use crate::sync::capture::error::WalkError;
use crate::sync::capture::tally::Tally;
use crate::sync::capture::{Lane, Manner, Question, behind, is_only_later, number_of, put_in_order};
use crate::sync::decide::Seen;
use crate::sync::ports::{Answer, FieldSet, MarcQuery, SourceErrorKind};
use crate::sync::remembered::RememberedState;
use crate::sync::{LedgerRow, RememberedKey, RequestNumber, StoreError};

/// The MARC of bibs by number, with the moment at which it was read.
type Exports = BTreeMap<RecordNumber, (Vec<VarField>, RequestNumber)>;

impl Lane {
    /// Walks `row` to its end. On an error everything before its position is committed.
    ///
    /// # Errors
    /// As `walk`.
    pub(super) async fn walk_export(
        &self,
        question: &Question,
        row: &mut LedgerRow,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        tally.windows += 1;
        let listing = Question { fields: FieldSet::BesideMarc, ..question.clone() };
        let limit = self.settings.page_size;
        let mut ending = Ending::new(question.rigour, row.position.is_some());
        let mut fresh_connection = false;
        loop {
            self.ready(cancel).await?;
            let next = match self.ask(&listing.page(row, limit, fresh_connection), cancel).await {
                Ok(Answer::Nothing { traffic, .. }) => {
                    tally.traffic += traffic;
                    ending.on_nothing()
                }
                Ok(Answer::Page(page)) => {
                    tally.traffic += page.traffic;
                    tally.pages += 1;
                    let next = ending.on_page(page.entries.len(), limit, is_only_later(&page, row));
                    if row.position.is_some_and(|position| page.last_id <= position) {
                        return Err(WalkError::Looped);
                    }
                    let (sent, answered, last_id) = (page.sent, page.answered, page.last_id);
                    let listed =
                        page.entries.into_iter().map(|entry| Arrival { entry, sent, answered }).collect::<Vec<_>>();
                    let mut arrivals = self.with_marc(listed, question, tally, cancel).await?;
                    if let Some(scrutiny) = &question.scrutiny {
                        let stretch = (behind(row), Some(last_id));
                        self.add_known(scrutiny, stretch, &mut arrivals, question.class, tally, cancel).await?;
                    }
                    self.take_list_in(arrivals, last_id, question, row, tally, cancel).await?;
                    next
                }
                // A page that cannot be had as a whole is taken apart, which only the lists can do.
                Err(WalkError::Source(failed)) if failed.kind == SourceErrorKind::Narrow => {
                    tally.traffic += failed.traffic;
                    return self.walk_asking(question, row, tally, cancel).await;
                }
                Err(WalkError::Source(failed)) => {
                    tally.traffic += failed.traffic;
                    return Err(failed.into());
                }
                Err(error) => return Err(error),
            };
            match next {
                Next::End => return self.take_rest_in(question, row, tally, cancel).await,
                Next::Page => fresh_connection = false,
                Next::Again { after } => {
                    self.pause(after, cancel).await?;
                    fresh_connection = true;
                }
            }
        }
    }

    /// Completes what a list without varFields brought.
    async fn with_marc(
        &self,
        listed: Vec<Arrival>,
        question: &Question,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<Vec<Arrival>, WalkError> {
        let alive = |arrival: &Arrival| match &arrival.entry {
            Ok(Entry::Live(live)) => Some(live.id()),
            _ => None,
        };
        let numbers: Vec<RecordNumber> = listed.iter().filter_map(alive).collect();
        let exports = self.exports(&numbers, question, tally, cancel).await?;
        let (mut arrivals, doubtful) = self.agreeing(listed, exports).await?;
        if !doubtful.is_empty() {
            let manner = Manner { class: question.class, fresh_connection: false };
            let found = self.read_by_list(&doubtful, manner, tally, cancel).await?;
            tally.not_found += u64::try_from(doubtful.len().saturating_sub(found.len())).unwrap_or(0);
            arrivals.extend(found);
            put_in_order(&mut arrivals);
        }
        Ok(arrivals)
    }

    /// Exports `numbers`, which are in order; a range that cannot be exported in one piece is halved (code 135), and
    /// one record that cannot be exported at all is left to the lists.
    async fn exports(
        &self,
        numbers: &[RecordNumber],
        question: &Question,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<Exports, WalkError> {
        let mut exports = Exports::new();
        let mut pieces = vec![numbers];
        while let Some(piece) = pieces.pop() {
            let (Some(from), Some(to)) = (piece.first().copied(), piece.last().copied()) else { continue };
            if cancel.is_cancelled() {
                return Err(WalkError::Cancelled);
            }
            match self.source.marc(&MarcQuery { from, to, class: question.class }).await {
                Ok(export) => {
                    tally.traffic += export.traffic;
                    let answered = export.answered;
                    exports.extend(export.records.into_iter().map(|(number, fields)| (number, (fields, answered))));
                }
                Err(failed) if failed.kind == SourceErrorKind::Narrow => {
                    tally.traffic += failed.traffic;
                    if piece.len() > 1 {
                        let (left, right) = piece.split_at(piece.len() / 2);
                        pieces.extend([right, left]);
                    }
                }
                Err(failed) => {
                    tally.traffic += failed.traffic;
                    return Err(failed.into());
                }
            }
        }
        Ok(exports)
    }

    /// Those of `listed` that are, with their MARC, what is remembered; and the numbers of the others.
    async fn agreeing(
        &self,
        listed: Vec<Arrival>,
        mut exports: Exports,
    ) -> Result<(Vec<Arrival>, Vec<RecordNumber>), StoreError> {
        let mapper = Arc::clone(&self.mapper);
        self.store
            .call(move |store| {
                let keys: Vec<RememberedKey> =
                    listed.iter().filter_map(number_of).map(|number| mapper.key(number)).collect();
                let mut remembered = store.remembered(&keys)?.into_iter();
                let mut hasher = mapper.hasher();
                let (mut arrivals, mut doubtful) = (Vec::with_capacity(listed.len()), Vec::new());
                for mut arrival in listed {
                    let known = number_of(&arrival).and_then(|_| remembered.next().flatten());
                    let Ok(Entry::Live(Live::Bib(bib))) = &mut arrival.entry else {
                        arrivals.push(arrival);
                        continue;
                    };
                    let number = bib.id;
                    let hash = exports.remove(&number).and_then(|(fields, answered)| {
                        bib.var_fields = Some(fields);
                        arrival.answered = arrival.answered.max(answered);
                        let mapped = mapper.map(Ok(Entry::Live(Live::Bib(bib.clone()))), &mut hasher).ok()?;
                        match mapped.seen {
                            Seen::Live { hash, .. } => Some(hash),
                            Seen::Tombstone { .. } => None,
                        }
                    });
                    match known.map(|known| known.state) {
                        Some(RememberedState::Live { hash: stored, .. }) if Some(stored) == hash => {
                            arrivals.push(arrival);
                        }
                        _ => doubtful.push(number),
                    }
                }
                Ok((arrivals, doubtful))
            })
            .await
    }
}
