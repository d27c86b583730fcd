//! One range of an explicit list, list by list from its position to its end.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use super::ranges::LIST;
use crate::record::RecordNumber;
use crate::sync::LedgerRow;
use crate::sync::capture::absorb::Arrival;
use crate::sync::capture::error::WalkError;
use crate::sync::capture::tally::Tally;
use crate::sync::capture::{Lane, Manner, Question, behind, number_of};

impl Lane {
    /// Walks the part of `list` that `row` covers. On an error everything before its position is committed.
    ///
    /// # Errors
    /// As `walk`.
    pub(super) async fn walk_list(
        &self,
        list: &[RecordNumber],
        question: &Question,
        row: &mut LedgerRow,
        tally: &mut Tally,
        cancel: &CancellationToken,
    ) -> Result<(), WalkError> {
        tally.windows += 1;
        let start = list.partition_point(|number| behind(row).is_some_and(|behind| *number <= behind));
        let end = list.partition_point(|number| question.until.is_none_or(|until| *number <= until));
        let each = usize::try_from(LIST.min(u64::from(self.settings.page_size))).unwrap_or(1).max(1);
        for part in list.get(start..end).unwrap_or_default().chunks(each) {
            let Some(last) = part.last().copied() else { continue };
            self.ready(cancel).await?;
            let manner = Manner { class: question.class, fresh_connection: false };
            let mut arrivals = self.read_by_list(part, manner, tally, cancel).await?;
            let missing = missing_of(part, &arrivals);
            if !missing.is_empty() {
                // Sierra leaves out live records now and then (sierra-api.md §7 item 19): asked again elsewhere.
                let manner = Manner { fresh_connection: true, ..manner };
                let again = self.read_by_list(&missing, manner, tally, cancel).await?;
                tally.not_found += u64::try_from(missing.len().saturating_sub(again.len())).unwrap_or(0);
                arrivals.extend(again);
                arrivals.sort_by_key(number_of);
            }
            tally.pages += 1;
            self.take_arrivals_in(arrivals, (last, Vec::new()), question, row, tally, cancel).await?;
        }
        Ok(())
    }
}

fn missing_of(asked: &[RecordNumber], arrivals: &[Arrival]) -> Vec<RecordNumber> {
    let came: BTreeSet<RecordNumber> = arrivals.iter().filter_map(number_of).collect();
    asked.iter().copied().filter(|number| !came.contains(number)).collect()
}
