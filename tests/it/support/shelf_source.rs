//! The shelf behind the engine's `Source` port, with a script that may interfere with every call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use rand::rngs::StdRng;
use serde_json::value::RawValue;
use sierra_sync::clock::SimClock;
use sierra_sync::privacy::Keyring;
use sierra_sync::record::{
    Bib, Entry, Fields, Item, Live, RawPatron, RecordNumber, Stream, Subfield, Tombstone, VarField,
};
use sierra_sync::sync::ports::{
    Answer, BadEntry, FieldSet, Page, PageFilter, PageQuery, Pulse, SourceError, SourceErrorKind, Traffic,
};
use sierra_sync::sync::{RequestNumber, Source};

use super::library::{Holding, Library};
use super::shelf::{Shelf, Tombstones, Version};

/// What the script makes of a call.
pub(crate) enum Act {
    /// Nothing unusual.
    Serve,
    /// It fails.
    Fail(SourceErrorKind),
    /// It always fails like this, with a status and Sierra's code.
    FailWith(u16, i64),
    /// "Nothing", though there may be something.
    Nothing,
    /// Another question is answered instead, without a word.
    Instead(PageFilter),
    /// The page after this number instead of the one asked for.
    PageAfter(u64),
    /// The answer takes this long.
    Slowly(Duration),
    /// Only these many entries come, without a word.
    AtMost(usize),
    /// The records are listed by another key than their number, and the first of them come.
    ByAnotherKey,
    /// The right records, in no order.
    Mixed,
    /// The last record of the page is this one instead, whatever its number.
    EndingWith(u64),
    /// Every entry comes twice.
    Twice,
}

type Script = Box<dyn FnMut(u64, &PageQuery, &mut Shelf) -> Act + Send>;
type PulseScript = Box<dyn FnMut(&mut Shelf) -> Option<SourceErrorKind> + Send>;

/// A library on a shelf. Clones share it.
#[derive(Clone)]
pub(crate) struct ShelfSource {
    streams: Vec<Stream>,
    shared: Arc<Shared>,
}

struct Shared {
    shelf: Mutex<Shelf>,
    script: Mutex<Option<Script>>,
    pulse_script: Mutex<Option<PulseScript>>,
    journal: Mutex<Vec<(Timestamp, PageQuery)>>,
    pulses: AtomicU64,
    /// Whether `Date` is left out.
    without_date: Mutex<bool>,
}

/// One opening's view: its requests are numbered after those of earlier openings.
struct Opening {
    library: ShelfSource,
    requests: AtomicU64,
}

impl ShelfSource {
    pub(crate) fn new(clock: Arc<SimClock>, streams: &[Stream]) -> Self {
        let shared = Shared {
            shelf: Mutex::new(Shelf::new(clock)),
            script: Mutex::new(None),
            pulse_script: Mutex::new(None),
            journal: Mutex::new(Vec::new()),
            pulses: AtomicU64::new(0),
            without_date: Mutex::new(false),
        };
        Self { streams: streams.to_vec(), shared: Arc::new(shared) }
    }

    /// Looks at the shelf or changes it.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Shelf) -> T) -> T {
        work(&mut self.shared.shelf.lock().unwrap())
    }

    /// From now on `script` sees every page call, numbered from 1 since it was set, before it is served.
    pub(crate) fn script(&self, mut script: impl FnMut(u64, &PageQuery, &mut Shelf) -> Act + Send + 'static) {
        let mut calls = 0;
        let numbered = move |_: u64, query: &PageQuery, shelf: &mut Shelf| {
            calls += 1;
            script(calls, query, shelf)
        };
        *self.shared.script.lock().unwrap() = Some(Box::new(numbered));
    }

    /// From now on `script` sees every sign of life that is asked for.
    pub(crate) fn script_pulse(&self, script: impl FnMut(&mut Shelf) -> Option<SourceErrorKind> + Send + 'static) {
        *self.shared.pulse_script.lock().unwrap() = Some(Box::new(script));
    }

    /// Takes the scripts away.
    pub(crate) fn behave(&self) {
        *self.shared.script.lock().unwrap() = None;
        *self.shared.pulse_script.lock().unwrap() = None;
    }

    pub(crate) fn omit_date(&self, omit: bool) {
        *self.shared.without_date.lock().unwrap() = omit;
    }

    /// Takes what was asked so far.
    pub(crate) fn asked(&self) -> Vec<(Timestamp, PageQuery)> {
        std::mem::take(&mut self.shared.journal.lock().unwrap())
    }
}

impl Library for ShelfSource {
    type Record = Version;

    fn source(&self, boot: u64) -> Arc<dyn Source> {
        Arc::new(Opening { library: self.clone(), requests: AtomicU64::new(boot << 40) })
    }

    fn truth(&self, stream: Stream) -> BTreeMap<String, Version> {
        let keyring = Keyring::for_tests(super::rig::KEY);
        let public = |id: u64| match stream {
            Stream::Patrons => keyring.pseudonym(RecordNumber::new(id)).to_string(),
            _ => id.to_string(),
        };
        self.with(|shelf| shelf.truth(stream).map(|(id, version)| (public(id), version.clone())).collect())
    }

    fn agrees(&self, _: Stream, truth: &Version, held: &Holding) -> bool {
        let mut bib_ids = truth.bib_ids.clone();
        bib_ids.sort_unstable();
        (&held.title, held.suppressed, &held.bib_ids) == (&truth.title, truth.suppressed, &bib_ids)
    }

    fn live(&self, generator: &mut StdRng) {
        self.with(|shelf| shelf.live(&self.streams, generator));
    }

    fn assert_sound(&self, _: &str) {}
}

impl Opening {
    fn number(&self) -> RequestNumber {
        RequestNumber(self.requests.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn date(&self) -> Option<Timestamp> {
        let omitted = *self.library.shared.without_date.lock().unwrap();
        (!omitted).then(|| self.library.with(|shelf| shelf.server_now()))
    }

    async fn ask_pulse(&self) -> Result<Pulse, SourceError> {
        self.library.shared.pulses.fetch_add(1, Ordering::SeqCst);
        let failed = match self.library.shared.pulse_script.lock().unwrap().as_mut() {
            Some(script) => self.library.with(|shelf| script(shelf)),
            None => None,
        };
        tokio::time::sleep(Duration::from_millis(40)).await;
        match failed {
            Some(kind) => Err(failure(kind)),
            None => Ok(Pulse { date: self.date(), traffic: one_call() }),
        }
    }

    async fn ask_page(&self, query: &PageQuery) -> Result<Answer, SourceError> {
        let now = self.library.with(|shelf| shelf.now());
        self.library.shared.journal.lock().unwrap().push((now, query.clone()));
        let sent = self.number();
        let act = match self.library.shared.script.lock().unwrap().as_mut() {
            Some(script) => self.library.with(|shelf| script(0, query, shelf)),
            None => Act::Serve,
        };
        let half = Duration::from_millis(60);
        tokio::time::sleep(half).await;
        let mut query = query.clone();
        let (mut most, mut limit, mut is_mixed, mut stray, mut is_twice) = (usize::MAX, None, false, None, false);
        match act {
            Act::Serve => {}
            Act::Fail(kind) => return Err(failure(kind)),
            Act::FailWith(status, code) => {
                let (status_code, code) = (Some(status), Some(code));
                return Err(SourceError { status_code, code, ..failure(SourceErrorKind::Narrow) });
            }
            Act::Nothing => query.filter = PageFilter::Ids(Vec::new()),
            Act::Instead(filter) => query.filter = filter,
            Act::PageAfter(id) => query.after = Some(RecordNumber::new(id)),
            Act::Slowly(time) => tokio::time::sleep(time).await,
            Act::AtMost(entries) => most = entries,
            Act::Mixed => is_mixed = true,
            Act::EndingWith(id) => stray = Some(id),
            Act::Twice => is_twice = true,
            Act::ByAnotherKey => limit = Some(std::mem::replace(&mut query.limit, u32::MAX)),
        }
        let mut entries = self.library.with(|shelf| entries(shelf, &query));
        if let Some(limit) = limit {
            entries.sort_by_key(|(id, _)| id.reverse_bits());
            entries.truncate(usize::try_from(limit).unwrap());
        }
        if is_mixed {
            entries.reverse();
        }
        if let Some(id) = stray {
            let filter = PageFilter::Ids(vec![RecordNumber::new(id)]);
            let alone = PageQuery { filter, after: None, until: None, ..query.clone() };
            entries.pop();
            entries.extend(self.library.with(|shelf| self::entries(shelf, &alone)));
        }
        if is_twice {
            entries.extend(self.library.with(|shelf| self::entries(shelf, &query)));
            entries.sort_by_key(|(id, _)| *id);
        }
        let was_out_of_order = !entries.is_sorted_by_key(|(id, _)| *id);
        entries.sort_by_key(|(id, _)| *id);
        entries.truncate(most);
        tokio::time::sleep(half).await;
        let (answered, date, traffic) = (self.number(), self.date(), one_call());
        Ok(match entries.last() {
            None => Answer::Nothing { sent, answered, date, traffic },
            Some((last, _)) => {
                let named = |(id, entry): &Found| !matches!(entry, Err(bad) if bad.id.is_none()) && *id <= *last;
                let last_named =
                    entries.iter().filter(|found| named(found)).map(|(id, _)| RecordNumber::new(*id)).max();
                let last_id = last_named.or(query.after).unwrap_or(RecordNumber::new(0));
                let entries = entries.into_iter().map(|(_, entry)| entry).collect();
                Answer::Page(Page { entries, last_id, was_out_of_order, sent, answered, date, traffic })
            }
        })
    }
}

impl Source for Opening {
    fn pulse(&self) -> BoxFuture<'_, Result<Pulse, SourceError>> {
        Box::pin(self.ask_pulse())
    }

    fn page<'a>(&'a self, query: &'a PageQuery) -> BoxFuture<'a, Result<Answer, SourceError>> {
        Box::pin(self.ask_page(query))
    }
}

/// The numbers that would be listed in answer to `query`.
pub(crate) fn would_list(shelf: &Shelf, query: &PageQuery) -> Vec<u64> {
    entries(shelf, query).into_iter().map(|(id, _)| id).collect()
}

/// A failed call.
fn failure(kind: SourceErrorKind) -> SourceError {
    SourceError {
        kind,
        message: format!("failed as planned: {kind:?}"),
        endpoint: "shelf",
        status_code: None,
        code: None,
        correlation_id: "planned".into(),
        hint: "none".into(),
        traffic: one_call(),
    }
}

fn one_call() -> Traffic {
    Traffic { calls: 1, ..Traffic::default() }
}

type Found = (u64, Result<Entry, BadEntry>);

fn entries(shelf: &Shelf, query: &PageQuery) -> Vec<Found> {
    let wanted = |id: u64, version: &Version| match &query.filter {
        PageFilter::Updated(window) => {
            let is_listed = version.deleted_on.is_none() || shelf.tombstones_in_updates;
            is_listed && window.start() <= version.updated && version.updated <= window.last_second()
        }
        PageFilter::Deleted { from, to } => version.deleted_on.is_some_and(|day| *from <= day && day <= *to),
        PageFilter::Live => version.deleted_on.is_none(),
        PageFilter::Any => true,
        PageFilter::Ids(ids) => ids.contains(&RecordNumber::new(id)),
    };
    let after = query.after.map_or(0, RecordNumber::value);
    let until = query.until.map_or(u64::MAX, RecordNumber::value);
    let listed =
        shelf.visible(query.stream).filter(|(id, version)| after < *id && *id <= until && wanted(*id, version));
    let by_list = matches!(query.filter, PageFilter::Ids(_));
    let limit = usize::try_from(query.limit).unwrap();
    listed.take(limit).map(|(id, version)| (id, entry(query, by_list, id, version, shelf.tombstones))).collect()
}

fn entry(
    query: &PageQuery,
    by_list: bool,
    id: u64,
    version: &Version,
    tombstones: Tombstones,
) -> Result<Entry, BadEntry> {
    let number = RecordNumber::new(id);
    if version.is_nameless && query.fields != FieldSet::IdOnly {
        // Where one record alone is asked for, its number is known.
        let alone = query.after.map_or(1, |after| after.value() + 1) == id && query.until == Some(number);
        let id = (alone || matches!(&query.filter, PageFilter::Ids(ids) if ids.len() == 1)).then_some(number);
        return Err(BadEntry { id, reason: "id: expected a record number".into(), payload: None });
    }
    if version.is_garbled && query.fields == FieldSet::Configured {
        let payload = (query.stream != Stream::Patrons).then(|| raw(&format!(r#"{{"id":"{id}","bibIds":5}}"#)));
        return Err(BadEntry { id: Some(number), reason: "bibIds: expected an array".into(), payload });
    }
    if let Some(day) = version.deleted_on {
        let deleted_on = (tombstones != Tombstones::Undated).then_some(day);
        let updated = (tombstones == Tombstones::Stale).then_some(version.updated);
        return Ok(Entry::Tombstone(Tombstone { id: number, deleted_on, updated }));
    }
    let hidden = &version.hidden;
    let common = [
        ("id", format!("\"{id}\"")),
        ("updatedDate", format!("\"{}\"", version.updated)),
        ("deleted", "false".into()),
        ("suppressed", version.suppressed.to_string()),
    ];
    let mut members: Vec<(String, Box<RawValue>)> = common
        .iter()
        .filter(|(name, _)| !hidden.contains(name))
        .map(|(name, value)| ((*name).to_owned(), raw(value)))
        .collect();
    let mut add = |name: &str, value: String| members.push((name.to_owned(), raw(&value)));
    let (updated, suppressed) = (Some(version.updated), version.suppressed);
    Ok(Entry::Live(match query.stream {
        Stream::Bibs => {
            add("title", format!("{:?}", version.title));
            if !hidden.contains(&"locations") {
                add("locations", format!(r#"[{{"code":"{}"}}]"#, version.location));
            }
            let has_marc = version.without_marc.is_none() || (version.without_marc == Some(false) && by_list);
            let var_fields = (has_marc && query.fields == FieldSet::Configured).then(|| marc_of(version));
            Live::Bib(Box::new(Bib {
                id: number,
                updated,
                suppressed,
                locations: vec![version.location.clone()],
                var_fields,
                marc: None,
                fields: Fields::new(members),
            }))
        }
        Stream::Items => {
            add("callNumber", format!("{:?}", version.title));
            add("location", format!(r#"{{"code":"{}"}}"#, version.location));
            if !hidden.contains(&"bibIds") {
                add("bibIds", format!("{:?}", version.bib_ids));
            }
            Live::Item(Box::new(Item {
                id: number,
                updated,
                suppressed,
                location: Some(version.location.clone()),
                bib_ids: version.bib_ids.iter().copied().map(RecordNumber::new).collect(),
                var_fields: Vec::new(),
                fields: Fields::new(members),
            }))
        }
        Stream::Patrons => {
            add("names", format!("[{:?}]", format!("CANARY, {id}")));
            add("homeLibraryCode", format!("{:?}", version.title));
            Live::Patron(Box::new(RawPatron::new(number, updated, suppressed, Fields::new(members))))
        }
    }))
}

fn marc_of(version: &Version) -> Vec<VarField> {
    let leader =
        VarField { field_tag: "_".into(), content: Some("00000nam  2200000 a 4500".into()), ..VarField::default() };
    let title = VarField {
        field_tag: "t".into(),
        marc_tag: Some("245".into()),
        ind1: Some("1".into()),
        ind2: Some("0".into()),
        subfields: vec![Subfield { tag: "a".into(), content: version.title.clone() }],
        ..VarField::default()
    };
    vec![title, leader]
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("valid JSON")
}
