//! What a page must hold to be believed: record numbers that rise, inside the range that was asked for.
//!
//! A page that does not move past the position would be asked for again for ever; one that reaches outside its range
//! was not the answer to our question. Both are failures, never pages.

use crate::record::{Entry, RecordNumber};
use crate::sync::ports::{BadEntry, FieldSet, PageFilter, PageQuery};

use super::query;

/// A page that keeps the rules.
#[derive(Debug)]
pub(super) struct Checked {
    /// In ascending order of record number; bad entries without a number stand between their neighbours.
    pub(super) entries: Vec<Result<Entry, BadEntry>>,
    /// The greatest record number, wherever it stood (BR-134); that which was asked from if none can be read.
    pub(super) last_id: RecordNumber,
    /// Whether Sierra sent the entries in another order, or one of them twice: reported, since paging by id leans on
    /// that order.
    pub(super) was_out_of_order: bool,
}

/// How a page breaks the rules. No number is named: patrons' are private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PageViolation {
    /// Numbers up to the position came again: the filter on `id` was not obeyed.
    #[error("the page holds record numbers at or before the position: asking on would loop")]
    NotRising,
    /// Numbers beyond the end of the range.
    #[error("the page holds record numbers beyond the range that was asked for")]
    BeyondRange,
    /// Numbers that the explicit list does not hold.
    #[error("the page holds records that were not asked for")]
    NotAsked,
    /// Live records where tombstones were asked for.
    #[error("the page holds live records although deleted ones were asked for")]
    NotDeleted,
    /// No position can be taken from the page.
    #[error("no entry of the page has a readable record number")]
    NoNumbers,
    /// Entries without a readable number on a page that does not rise: nothing says where they belong.
    #[error("the page does not rise and holds entries without a readable record number")]
    NoPlace,
}

/// Checks the entries of the answer to `query`; there is at least one.
pub(super) fn check(query: &PageQuery, mut entries: Vec<Result<Entry, BadEntry>>) -> Result<Checked, PageViolation> {
    for entry in &entries {
        check_entry(query, entry)?;
    }
    name_the_only_one(query, &mut entries);
    let last_id = entries.iter().filter_map(number).max().or_else(|| where_it_began(query));
    let last_id = last_id.ok_or(PageViolation::NoNumbers)?;
    let mut previous = None;
    let was_out_of_order =
        entries.iter().filter_map(number).any(|id| previous.replace(id).is_some_and(|last| last >= id));
    if was_out_of_order && entries.iter().any(|entry| number(entry).is_none()) {
        return Err(PageViolation::NoPlace);
    }
    if was_out_of_order {
        // Stable: of two with one number the first stays first.
        entries.sort_by_key(number);
    }
    Ok(Checked { entries, last_id, was_out_of_order })
}

fn check_entry(query: &PageQuery, entry: &Result<Entry, BadEntry>) -> Result<(), PageViolation> {
    // An answer to `deleted=true` carries three fields: read as a live record it would wipe a good one out.
    let is_live = matches!(entry, Ok(Entry::Live(_)));
    if is_live && (matches!(query.filter, PageFilter::Deleted { .. }) || query.fields == FieldSet::Tombstones) {
        return Err(PageViolation::NotDeleted);
    }
    let Some(id) = number(entry) else { return Ok(()) };
    if query.after.is_some_and(|after| id <= after) {
        return Err(PageViolation::NotRising);
    }
    if !query::in_range(query, id) {
        return Err(PageViolation::BeyondRange);
    }
    match &query.filter {
        PageFilter::Ids(asked) if !asked.contains(&id) => Err(PageViolation::NotAsked),
        _ => Ok(()),
    }
}

/// An entry without a readable number is the record that was asked for, if it can be no other.
fn name_the_only_one(query: &PageQuery, entries: &mut [Result<Entry, BadEntry>]) {
    let mut missing = match &query.filter {
        PageFilter::Ids(asked) => {
            let came: Vec<RecordNumber> = entries.iter().filter_map(number).collect();
            asked.iter().copied().filter(|id| query::in_range(query, *id) && !came.contains(id)).collect()
        }
        _ => match (query.after.map_or(RecordNumber::new(1), RecordNumber::next), query.until) {
            (first, Some(last)) if first == last && entries.len() == 1 => vec![first],
            _ => return,
        },
    };
    let mut nameless = entries.iter_mut().filter_map(|entry| match entry {
        Err(bad) if bad.id.is_none() => Some(bad),
        _ => None,
    });
    if let (Some(bad), None, Some(id), true) = (nameless.next(), nameless.next(), missing.pop(), missing.is_empty()) {
        bad.id = Some(id);
    }
}

/// Where a page stands of which no number can be read; `None` for a question that is after numbers alone.
fn where_it_began(query: &PageQuery) -> Option<RecordNumber> {
    match &query.filter {
        _ if query.fields == FieldSet::IdOnly => None,
        PageFilter::Ids(asked) => asked.last().copied(),
        _ => Some(query.after.unwrap_or(RecordNumber::new(0))),
    }
}

fn number(entry: &Result<Entry, BadEntry>) -> Option<RecordNumber> {
    match entry {
        Ok(entry) => Some(entry.id()),
        Err(bad) => bad.id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Stream, Tombstone};
    use crate::sierra::decode_entry;
    use crate::sync::ports::CallClass;

    fn query(filter: PageFilter, after: Option<u64>, until: Option<u64>) -> PageQuery {
        PageQuery {
            stream: Stream::Bibs,
            filter,
            after: after.map(RecordNumber::new),
            until: until.map(RecordNumber::new),
            limit: 50,
            fields: FieldSet::Configured,
            fresh_connection: false,
            class: CallClass::Incremental,
        }
    }

    fn live(ids: &[u64]) -> Vec<Result<Entry, BadEntry>> {
        ids.iter().map(|id| decode_entry(Stream::Bibs, &format!(r#"{{"id":{id}}}"#))).collect()
    }

    fn bad(id: Option<u64>) -> Result<Entry, BadEntry> {
        Err(BadEntry { id: id.map(RecordNumber::new), reason: "odd".into(), payload: None })
    }

    fn numbers(checked: &Checked) -> Vec<Option<u64>> {
        checked.entries.iter().map(|entry| number(entry).map(RecordNumber::value)).collect()
    }

    #[test]
    fn a_rising_page_is_taken_as_it_is() {
        let mut entries = live(&[3, 7]);
        entries.insert(1, bad(None));
        entries.push(bad(Some(9)));
        let checked = check(&query(PageFilter::Any, Some(2), Some(9)), entries).expect("kept");
        assert_eq!(numbers(&checked), [Some(3), None, Some(7), Some(9)]);
        assert_eq!((checked.last_id.value(), checked.was_out_of_order), (9, false));
    }

    /// BR-134: the last entry is not assumed to be the greatest.
    #[test]
    fn a_page_out_of_order_is_sorted_and_reported() {
        let checked = check(&query(PageFilter::Any, None, None), live(&[5, 9, 7])).expect("kept");
        assert_eq!(numbers(&checked), [Some(5), Some(7), Some(9)]);
        assert_eq!((checked.last_id.value(), checked.was_out_of_order), (9, true));
        assert!(check(&query(PageFilter::Any, None, None), live(&[5, 5])).expect("kept").was_out_of_order);
    }

    #[test]
    fn what_does_not_answer_the_question_is_no_page() {
        let violation = |query: PageQuery, entries| check(&query, entries).map(|_| ()).expect_err("a violation");
        let any = |after, until| query(PageFilter::Any, after, until);
        assert_eq!(violation(any(Some(7), None), live(&[7, 8])), PageViolation::NotRising);
        assert_eq!(violation(any(Some(7), None), vec![bad(Some(3))]), PageViolation::NotRising);
        assert_eq!(violation(any(None, Some(7)), live(&[7, 8])), PageViolation::BeyondRange);
        let numbers_alone = PageQuery { fields: FieldSet::IdOnly, ..any(None, None) };
        assert_eq!(violation(numbers_alone, vec![bad(None)]), PageViolation::NoNumbers);
        let mut odd = live(&[5, 9, 7]);
        odd.insert(1, bad(None));
        assert_eq!(violation(any(None, None), odd), PageViolation::NoPlace);
        let ids = PageFilter::Ids(vec![RecordNumber::new(1), RecordNumber::new(3)]);
        assert_eq!(violation(query(ids.clone(), None, None), live(&[1, 2])), PageViolation::NotAsked);
        assert!(check(&query(ids, None, None), live(&[3])).is_ok());
    }

    /// What stands there is what was asked for, if it can be nothing else.
    #[test]
    fn an_entry_without_a_number_is_the_only_record_that_was_asked_for() {
        let ids = PageFilter::Ids([1, 3].map(RecordNumber::new).to_vec());
        for (query, entries, expected) in [
            (query(ids.clone(), None, None), vec![Ok(()), Err(())], vec![Some(1), Some(3)]),
            (query(ids, None, None), vec![Err(()), Err(())], vec![None, None]),
            (query(PageFilter::Any, Some(6), Some(7)), vec![Err(())], vec![Some(7)]),
            (query(PageFilter::Any, Some(6), Some(8)), vec![Err(())], vec![None]),
        ] {
            let entries = entries.into_iter().map(|entry| match entry {
                Ok(()) => live(&[1]).remove(0),
                Err(()) => bad(None),
            });
            let checked = check(&query, entries.collect()).expect("kept");
            assert_eq!(numbers(&checked), expected, "{query:?}");
        }
        let checked = check(&query(PageFilter::Any, Some(6), None), vec![bad(None)]).expect("kept");
        assert_eq!((checked.last_id.value(), numbers(&checked)), (6, vec![None]));
    }

    #[test]
    fn live_records_never_answer_a_question_for_deleted_ones() {
        let day = "2024-03-09".parse().expect("a day");
        let deleted = query(PageFilter::Deleted { from: day, to: day }, None, None);
        let stone = Tombstone { id: RecordNumber::new(1), deleted_on: Some(day), updated: None };
        assert!(check(&deleted, vec![Ok(Entry::Tombstone(stone))]).is_ok());
        assert_eq!(check(&deleted, live(&[1])).map(|_| ()).err(), Some(PageViolation::NotDeleted));
    }
}
