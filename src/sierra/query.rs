//! Typed questions to Sierra's query parameters, and nothing else: windows, id ranges, fields, limits.
//!
//! Inside the program windows are half-open. Here, and only here, they become Sierra's closed ranges of whole seconds
//! with `Z` (BR-037, BR-038). `limit` always stands, `offset` never (BR-003, BR-031), field lists hold no spaces
//! (BR-040), and the update pass filters neither on `deleted` nor on `suppressed` (BR-039).

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::record::{RecordNumber, Stream};
use crate::sync::Window;
use crate::sync::ports::{CallClass, FieldSet, PageFilter, PageQuery};

/// Most entries one page may hold (sierra-api.md §2.2).
pub const MAX_LIMIT: u32 = 2000;

/// Most record numbers of an explicit list: 700 of eight digits stay under the 8 KiB that Apache and Tomcat allow a
/// request line by default.
pub const MAX_IDS: usize = 700;

/// What the engine needs of every record, whatever the configuration asks for (BR-015).
const ALWAYS: [&str; 6] = ["id", "updatedDate", "createdDate", "deletedDate", "deleted", "suppressed"];

/// The configured fields of each stream, completed with those that are always needed.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldLists(BTreeMap<Stream, String>);

impl FieldLists {
    /// Completes `configured`. Blank names are dropped, and every name is asked for once.
    pub(super) fn new<'a>(configured: impl IntoIterator<Item = (Stream, &'a [String])>) -> Self {
        Self(configured.into_iter().map(|(stream, fields)| (stream, complete(stream, fields))).collect())
    }

    fn list(&self, stream: Stream, set: FieldSet) -> String {
        let list: &[&str] = match (set, stream) {
            (FieldSet::Configured, _) => {
                return self.0.get(&stream).cloned().unwrap_or_else(|| complete(stream, &["default".to_owned()]));
            }
            (FieldSet::BesideMarc, _) => {
                let whole = self.list(stream, FieldSet::Configured);
                let names = whole.split(',').filter(|name| !matches!(*name, "varFields" | "marc"));
                return names.collect::<Vec<_>>().join(",");
            }
            (FieldSet::Identity, Stream::Items) => &["id", "updatedDate", "suppressed", "deleted", "bibIds"],
            (FieldSet::Identity, _) => &["id", "updatedDate", "suppressed", "deleted"],
            (FieldSet::Tombstones, _) => &["id", "deletedDate", "deleted"],
            (FieldSet::IdOnly, _) => &["id"],
        };
        list.join(",")
    }
}

fn complete(stream: Stream, configured: &[String]) -> String {
    let own: &[&str] = match stream {
        Stream::Bibs => &["locations"],
        Stream::Items => &["bibIds", "location"],
        Stream::Patrons => &[],
    };
    let mut names: Vec<String> = Vec::new();
    for name in configured.iter().map(String::as_str).chain(ALWAYS).chain(own.iter().copied()) {
        let name: String = name.chars().filter(|character| !character.is_whitespace()).collect();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(",")
}

/// The path and query of a page, without leading slash; `None` when the ranges leave no record to ask for.
///
/// # Errors
/// When the question cannot be put at all.
pub(super) fn page(query: &PageQuery, fields: &FieldLists) -> Result<Option<String>, QueryError> {
    let mut parameters = Parameters(String::new());
    parameters.add("limit", &query.limit.clamp(1, MAX_LIMIT).to_string());
    parameters.add("fields", &fields.list(query.stream, query.fields));
    match &query.filter {
        PageFilter::Updated(window) => parameters.add("updatedDate", &closed_window(*window)),
        PageFilter::Deleted { from, to } if from > to => return Err(QueryError::DaysReversed),
        PageFilter::Deleted { from, to } => {
            parameters.add("deletedDate", &closed_days(*from, *to));
            parameters.add("deleted", "true");
        }
        PageFilter::Live => parameters.add("deleted", "false"),
        PageFilter::Any => {}
        PageFilter::Ids(ids) => {
            if ids.is_empty() {
                return Err(QueryError::NoIds);
            }
            let asked: Vec<String> = ids.iter().filter(|id| in_range(query, **id)).map(ToString::to_string).collect();
            // A list longer than `limit` loses its last ids without a word (sierra-api.md §2.2).
            let most = MAX_IDS.min(query.limit.clamp(1, MAX_LIMIT) as usize);
            if asked.len() > most {
                return Err(QueryError::TooManyIds { count: asked.len(), most });
            }
            if asked.is_empty() {
                return Ok(None);
            }
            parameters.add("id", &asked.join(","));
            return Ok(Some(format!("{}?{}", query.stream, parameters.0)));
        }
    }
    match id_range(query.after, query.until) {
        IdRange::All => {}
        IdRange::Empty => return Ok(None),
        IdRange::Some(range) => parameters.add("id", &range),
    }
    Ok(Some(format!("{}?{}", query.stream, parameters.0)))
}

/// What a smallest question asks for. One record that spoils every answer it is in spoils at most two of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    /// Whatever comes first.
    Any,
    /// The first deleted record, or none.
    Deleted,
    /// The first record that is not deleted, or none.
    Live,
}

impl Sample {
    /// In the order in which they are asked: each only when the one before was answered as a spoiled page is.
    pub(super) const ALL: [Self; 3] = [Self::Any, Self::Deleted, Self::Live];

    pub(super) fn is_last(self) -> bool {
        self == Self::Live
    }
}

/// The smallest question to a list endpoint: does it answer at all?
pub(super) fn probe(stream: Stream, sample: Sample) -> String {
    let mut parameters = Parameters(String::new());
    parameters.add("limit", "1");
    parameters.add("fields", "id");
    match sample {
        Sample::Any => {}
        Sample::Deleted => parameters.add("deleted", "true"),
        Sample::Live => parameters.add("deleted", "false"),
    }
    format!("{stream}?{}", parameters.0)
}

/// The question of [`probe`], to read its answer by.
pub(super) fn probe_query(stream: Stream) -> PageQuery {
    PageQuery {
        stream,
        filter: PageFilter::Any,
        after: None,
        until: None,
        limit: 1,
        fields: FieldSet::IdOnly,
        fresh_connection: true,
        class: CallClass::Incremental,
    }
}

/// Why a question cannot be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueryError {
    /// An explicit list of no ids would ask for everything.
    #[error("the list of record numbers is empty")]
    NoIds,
    /// Sierra would drop the last ones without a word, or refuse the request line.
    #[error("{count} record numbers are more than the {most} that fit one question")]
    TooManyIds {
        /// How many there are.
        count: usize,
        /// How many fit.
        most: usize,
    },
    /// The first day lies after the last one.
    #[error("the first day of deletions lies after the last one")]
    DaysReversed,
}

/// Whether `id` lies inside the query's id range.
pub(super) fn in_range(query: &PageQuery, id: RecordNumber) -> bool {
    query.after.is_none_or(|after| id > after) && query.until.is_none_or(|until| id <= until)
}

enum IdRange {
    All,
    Some(String),
    Empty,
}

/// Sierra's id ranges are inclusive at both ends (sierra-api.md §2.6).
fn id_range(after: Option<RecordNumber>, until: Option<RecordNumber>) -> IdRange {
    match (after, until) {
        (None, None) => IdRange::All,
        (Some(after), None) => IdRange::Some(format!("[{},]", after.next())),
        (None, Some(until)) => IdRange::Some(format!("[,{until}]")),
        (Some(after), Some(until)) if after >= until => IdRange::Empty,
        (Some(after), Some(until)) => IdRange::Some(format!("[{},{until}]", after.next())),
    }
}

/// `[start, end)` as the closed range from the first to the last whole second inside.
fn closed_window(window: Window) -> String {
    format!("[{},{}]", seconds(window.start()), seconds(window.last_second()))
}

/// Whole seconds with `Z`, whatever this machine's zone is; `Window` has cut fractions off already.
fn seconds(at: Timestamp) -> String {
    TimeZone::UTC.to_datetime(at).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn closed_days(from: Date, to: Date) -> String {
    format!("[{},{}]", from.strftime("%Y-%m-%d"), to.strftime("%Y-%m-%d"))
}

/// A query string under construction.
struct Parameters(String);

impl Parameters {
    /// Adds a parameter. Commas and colons stay readable; brackets are encoded, since strict servers refuse them bare
    /// and Sierra takes both (sierra-api.md §2.6).
    fn add(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b',' | b':') {
                self.0.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _written = write!(self.0, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query(stream: Stream, filter: PageFilter, fields: FieldSet) -> PageQuery {
        PageQuery {
            stream,
            filter,
            after: None,
            until: None,
            limit: 2000,
            fields,
            fresh_connection: false,
            class: CallClass::Incremental,
        }
    }

    fn window(start: &str, end: &str) -> Window {
        Window::new(start.parse().expect("a start"), end.parse().expect("an end")).expect("a window")
    }

    fn lists() -> FieldLists {
        let bibs = ["default", "fixedFields", " varFields", "id"].map(str::to_owned);
        FieldLists::new([(Stream::Bibs, bibs.as_slice())])
    }

    fn sent(query: &PageQuery) -> String {
        page(query, &lists()).expect("a question").expect("not empty")
    }

    /// BR-037, BR-038: both ends of a window on the wire. The end is exclusive inside and inclusive outside.
    #[test]
    fn a_half_open_window_becomes_a_closed_range_of_whole_seconds() {
        let window = window("2024-03-09T02:14:07.9Z", "2024-03-09T02:16:00.2Z");
        let mut query = query(Stream::Bibs, PageFilter::Updated(window), FieldSet::IdOnly);
        query.after = Some(RecordNumber::new(2_100_417));
        assert_eq!(
            sent(&query),
            "bibs?limit=2000&fields=id&updatedDate=%5B2024-03-09T02:14:07Z,2024-03-09T02:15:59Z%5D&id=%5B2100418,%5D"
        );
    }

    #[test]
    fn id_ranges_are_closed_at_both_ends() {
        let with = |after: Option<u64>, until: Option<u64>| {
            let mut query = query(Stream::Items, PageFilter::Live, FieldSet::IdOnly);
            (query.after, query.until) = (after.map(RecordNumber::new), until.map(RecordNumber::new));
            page(&query, &lists()).expect("a question")
        };
        assert_eq!(with(None, None).as_deref(), Some("items?limit=2000&fields=id&deleted=false"));
        assert_eq!(with(Some(7), Some(9)).as_deref(), Some("items?limit=2000&fields=id&deleted=false&id=%5B8,9%5D"));
        assert_eq!(with(None, Some(9)).as_deref(), Some("items?limit=2000&fields=id&deleted=false&id=%5B,9%5D"));
        // Nothing lies between them, and `[10,9]` is a question nobody should answer.
        assert_eq!(with(Some(9), Some(9)), None);
    }

    /// BR-039: deletions are asked for by `deleted=true`, which brings nothing else.
    #[test]
    fn the_delete_pass_asks_for_days_and_three_fields() {
        let (from, to) = ("2024-03-08".parse().expect("a day"), "2024-03-10".parse().expect("a day"));
        let days = query(Stream::Items, PageFilter::Deleted { from, to }, FieldSet::Tombstones);
        assert_eq!(
            sent(&days),
            "items?limit=2000&fields=id,deletedDate,deleted&deletedDate=%5B2024-03-08,2024-03-10%5D&deleted=true"
        );
        let reversed = query(Stream::Items, PageFilter::Deleted { from: to, to: from }, FieldSet::Tombstones);
        assert_eq!(page(&reversed, &lists()), Err(QueryError::DaysReversed));
    }

    /// BR-040, BR-015: no spaces, no name twice, and what the engine needs is always there.
    #[test]
    fn configured_fields_are_completed() {
        let fields = |stream, set| lists().list(stream, set);
        assert_eq!(
            fields(Stream::Bibs, FieldSet::Configured),
            "default,fixedFields,varFields,id,updatedDate,createdDate,deletedDate,deleted,suppressed,locations"
        );
        assert_eq!(
            fields(Stream::Items, FieldSet::Configured),
            "default,id,updatedDate,createdDate,deletedDate,deleted,suppressed,bibIds,location"
        );
        assert_eq!(
            fields(Stream::Patrons, FieldSet::Configured),
            "default,id,updatedDate,createdDate,deletedDate,deleted,suppressed"
        );
        assert_eq!(
            fields(Stream::Bibs, FieldSet::BesideMarc),
            "default,fixedFields,id,updatedDate,createdDate,deletedDate,deleted,suppressed,locations"
        );
        assert_eq!(fields(Stream::Items, FieldSet::Identity), "id,updatedDate,suppressed,deleted,bibIds");
        assert_eq!(fields(Stream::Bibs, FieldSet::Identity), "id,updatedDate,suppressed,deleted");
    }

    /// sierra-api.md §2.2: a list longer than `limit` is cut without a word.
    #[test]
    fn explicit_lists_fit_their_page_or_are_refused() {
        let ids = |count: u64| PageFilter::Ids((1..=count).map(RecordNumber::new).collect());
        let mut three = query(Stream::Bibs, ids(3), FieldSet::IdOnly);
        assert_eq!(sent(&three), "bibs?limit=2000&fields=id&id=1,2,3");
        three.after = Some(RecordNumber::new(2));
        assert_eq!(sent(&three), "bibs?limit=2000&fields=id&id=3");
        three.after = Some(RecordNumber::new(3));
        assert_eq!(page(&three, &lists()), Ok(None));
        three.after = None;
        three.limit = 2;
        assert_eq!(page(&three, &lists()), Err(QueryError::TooManyIds { count: 3, most: 2 }));
        let many = query(Stream::Bibs, ids(701), FieldSet::IdOnly);
        assert_eq!(page(&many, &lists()), Err(QueryError::TooManyIds { count: 701, most: 700 }));
        let none = query(Stream::Bibs, PageFilter::Ids(Vec::new()), FieldSet::IdOnly);
        assert_eq!(page(&none, &lists()), Err(QueryError::NoIds));
    }

    #[test]
    fn limits_are_kept_within_what_sierra_takes() {
        let limited = |limit| sent(&PageQuery { limit, ..query(Stream::Bibs, PageFilter::Any, FieldSet::IdOnly) });
        assert_eq!(limited(0), "bibs?limit=1&fields=id");
        assert_eq!(limited(5000), "bibs?limit=2000&fields=id");
        assert_eq!(probe(Stream::Patrons, Sample::Any), "patrons?limit=1&fields=id");
        assert_eq!(probe(Stream::Bibs, Sample::Deleted), "bibs?limit=1&fields=id&deleted=true");
        assert_eq!(probe(Stream::Bibs, Sample::Live), "bibs?limit=1&fields=id&deleted=false");
    }

    proptest! {
        /// BR-003, BR-038, BR-039: whatever the window and range, stamps are seconds with `Z`, the last one before the
        /// window's end, and neither `offset` nor a filter on suppression or deletion is sent.
        #[test]
        fn any_window_is_sent_in_whole_seconds(
            start in 0_i64..4_000_000_000, length in 1_i64..10_000_000, nanoseconds in 0_i32..1_000_000_000,
            after in proptest::option::of(0_u64..100_000_000),
        ) {
            let at = |seconds: i64| Timestamp::new(seconds, nanoseconds).expect("a timestamp");
            let window = Window::new(at(start), at(start + length)).expect("a window");
            let mut query = query(Stream::Bibs, PageFilter::Updated(window), FieldSet::Configured);
            query.after = after.map(RecordNumber::new);
            let sent = sent(&query);
            let range = sent.split("updatedDate=%5B").nth(1).and_then(|rest| rest.split("%5D").next()).expect("a range");
            let (first, last) = range.split_once(',').expect("two ends");
            let read = |text: &str| text.parse::<Timestamp>().expect("a stamp").as_second();
            prop_assert!(first.len() == 20 && last.len() == 20 && first.ends_with('Z') && last.ends_with('Z'));
            prop_assert_eq!((read(first), read(last)), (start, start + length - 1));
            prop_assert!(!sent.contains("offset") && !sent.contains("deleted=") && !sent.contains("suppressed="));
            prop_assert!(!sent.contains(' ') && sent.starts_with("bibs?limit="));
        }
    }
}
