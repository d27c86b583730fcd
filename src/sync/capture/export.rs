//! The MARC of one page by way of Sierra's export.
//!
//! A list without varFields tells everything but the MARC, an export tells the MARC, and together they are compared
//! with what is remembered. Where both agree in content and in `updatedDate`, the record is what a list of whole records
//! would bring, and that was neither rendered by Sierra nor sent. Whatever does not agree is read by explicit list, which
//! has the last word: an export cuts long records, leaves out bibs without MARC type and all fields that are not MARC,
//! and takes 907, 945 and 998 for fields of its own (sierra-api.md §4.1, §4.3). So what is emitted does not depend on the
//! way it was read, but for one thing that no export can show: an edit of such a field that left `updatedDate` alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::absorb::Arrival;
use super::error::WalkError;
use super::lane::Lane;
use super::refetch::Manner;
use super::scrutiny::{number_of, put_in_order};
use super::tally::Tally;
use crate::record::{Entry, Live, RecordNumber, VarField};
use crate::sync::decide::Seen;
use crate::sync::ports::{CallClass, MarcQuery, SourceErrorKind};
use crate::sync::remembered::RememberedState;
use crate::sync::{RememberedKey, RequestNumber, StoreError};

/// After so many refusals the rest of a page is left to the lists. One record that cannot be exported costs about two
/// for each halving, 22 in a page of 2,000.
const MOST_REFUSALS: u32 = 40;

/// The MARC of bibs by number, with the moment at which it was read.
type Exports = BTreeMap<RecordNumber, (Vec<VarField>, RequestNumber)>;

impl Lane {
    /// Completes what a list without varFields brought. With `false`, when Sierra exported nothing of it, however small
    /// the piece that was asked for: there is no use in asking for more.
    pub(super) async fn with_marc(
        &self,
        listed: Vec<Arrival>,
        class: CallClass,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(Vec<Arrival>, bool), WalkError> {
        let alive = |arrival: &Arrival| match &arrival.entry {
            Ok(Entry::Live(live)) => Some(live.id()),
            _ => None,
        };
        let numbers: Vec<RecordNumber> = listed.iter().filter_map(alive).collect();
        let (exports, is_refused) = self.exports(&numbers, class, tally, cancel).await?;
        let (mut arrivals, doubtful) = self.agreeing(listed, exports).await?;
        if !doubtful.is_empty() {
            let manner = Manner { class, fresh_connection: false };
            let found = self.read_by_list(&doubtful, manner, tally, cancel).await?;
            tally.not_found += u64::try_from(doubtful.len().saturating_sub(found.len())).unwrap_or(0);
            arrivals.extend(found);
            put_in_order(&mut arrivals);
        }
        Ok((arrivals, !is_refused))
    }

    /// Exports `numbers`, which are in order; a range that cannot be exported in one piece is halved (code 135), and
    /// one record that cannot be exported at all is left to the lists. Also whether every export was refused, to the
    /// last that is tried.
    async fn exports(
        &self,
        numbers: &[RecordNumber],
        class: CallClass,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(Exports, bool), WalkError> {
        let mut exports = Exports::new();
        let (mut refusals, mut is_good) = (0, false);
        let mut pieces = vec![numbers];
        while let Some(piece) = pieces.pop() {
            let (Some(from), Some(to)) = (piece.first().copied(), piece.last().copied()) else { continue };
            if cancel.is_cancelled() {
                return Err(WalkError::Cancelled);
            }
            match self.source.marc(&MarcQuery { from, to, class }).await {
                Ok(export) => {
                    tally.traffic += export.traffic;
                    is_good = true;
                    let answered = export.answered;
                    exports.extend(export.records.into_iter().map(|(number, fields)| (number, (fields, answered))));
                }
                Err(failed) if failed.kind == SourceErrorKind::Narrow => {
                    tally.traffic += failed.traffic;
                    refusals += 1;
                    if refusals >= MOST_REFUSALS {
                        break;
                    }
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
        Ok((exports, refusals >= MOST_REFUSALS && !is_good))
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
                    let seen = exports.remove(&number).and_then(|(fields, answered)| {
                        bib.var_fields = Some(fields);
                        arrival.answered = arrival.answered.max(answered);
                        Some(mapper.map(Ok(Entry::Live(Live::Bib(bib.clone()))), &mut hasher).ok()?.seen)
                    });
                    match (known.map(|known| known.state), seen) {
                        (
                            Some(RememberedState::Live { updated: stamp, hash: stored, .. }),
                            Some(Seen::Live { updated, hash, .. }),
                        ) if (stamp, stored) == (updated, hash) => arrivals.push(arrival),
                        _ => doubtful.push(number),
                    }
                }
                Ok((arrivals, doubtful))
            })
            .await
    }
}
