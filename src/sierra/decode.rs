//! Wire to record: the one place where Sierra's oddities are normalised (rule A6).
//!
//! Ids come as numbers or strings, codes come padded, keys are omitted or null. All of that is accepted here and
//! nowhere else. One entry that cannot be read does not spoil its page (BR-020): it becomes a [`BadEntry`] that says
//! where and why, in its place among the others.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde_json::value::RawValue;

use super::envelope::{self, InvalidBody, Opened};
use super::fields::{self, FieldError};
use super::wire::{RawObject, WireEntry};
use crate::record::{Bib, Entry, Fields, Item, Live, RawPatron, RecordNumber, Stream, Tombstone, VarField, surrogate};
use crate::sync::ports::BadEntry;
use crate::sync::window::whole_second;

/// The entries of a page, decoded one by one.
#[derive(Debug)]
pub struct DecodedPage {
    /// In the order of the page; may be empty.
    pub entries: Vec<Result<Entry, BadEntry>>,
    /// How many lone surrogate escapes were replaced by U+FFFD so that the page could be read.
    pub replaced_surrogates: usize,
}

/// Decodes the body of a successful list answer, or a page saved to a file.
///
/// # Errors
/// When the body is not a page at all: empty, not JSON, cut short, without a list of entries, or an error dressed as
/// a success (A5).
pub fn decode_page(stream: Stream, body: &[u8]) -> Result<DecodedPage, InvalidBody> {
    let text = envelope::text(body)?;
    let (text, replaced_surrogates) = surrogate::replace_unpaired(text);
    let entries = match envelope::open_page(&text)? {
        Opened::Entries(entries) => entries.into_iter().map(|entry| decode(stream, entry)).collect(),
        Opened::Nothing => Vec::new(),
    };
    Ok(DecodedPage { entries, replaced_surrogates })
}

/// Decodes a bare record, as `/bibs/{id}` answers it or as an event carries it.
///
/// # Errors
/// When the text is not a JSON object or a field that matters has an unexpected type.
pub fn decode_entry(stream: Stream, json: &str) -> Result<Entry, BadEntry> {
    let (json, _) = surrogate::replace_unpaired(json);
    match serde_json::from_str::<RawObject<'_>>(&json) {
        Ok(object) => decode(stream, WireEntry::Object(object)),
        Err(_) => decode(stream, WireEntry::NotAnObject),
    }
}

/// Decodes one entry of a page.
fn decode(stream: Stream, entry: WireEntry<'_>) -> Result<Entry, BadEntry> {
    let WireEntry::Object(object) = entry else {
        return Err(BadEntry { id: None, reason: FieldError::new("entry", "an object").to_string(), payload: None });
    };
    let known = Known::of(&object);
    known.read(stream, &object).map_err(|error| BadEntry {
        id: known.id().ok(),
        reason: error.to_string(),
        payload: shareable(stream, &object),
    })
}

/// What of a bad entry may be set aside. The privacy policy works on decoded records, so here everything stays out
/// that it might have masked: all of a patron, an item's fields but these (fixed fields 66 and 67 name patrons,
/// BR-124), and a bib's MARC. The reason names the place; the record itself can be looked up in Sierra.
fn shareable(stream: Stream, object: &RawObject<'_>) -> Option<Box<RawValue>> {
    const ITEM_KEYS: [&str; 12] = [
        "id",
        "updatedDate",
        "createdDate",
        "deletedDate",
        "deleted",
        "suppressed",
        "bibIds",
        "location",
        "status",
        "callNumber",
        "itemType",
        "copyNo",
    ];
    let may_stay = |key: &str| match stream {
        Stream::Bibs => !matches!(key, "varFields" | "marc"),
        Stream::Items => ITEM_KEYS.contains(&key),
        Stream::Patrons => false,
    };
    if stream == Stream::Patrons {
        return None;
    }
    let members = object.iter().filter(|(key, _)| may_stay(key));
    let fields = Fields::new(members.map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
    serde_json::value::to_raw_value(&fields).ok()
}

/// The raw values of the keys that are read, absent where the key is omitted or null.
#[derive(Default)]
struct Known<'a> {
    id: Option<&'a RawValue>,
    updated: Option<&'a RawValue>,
    deleted: Option<&'a RawValue>,
    deleted_on: Option<&'a RawValue>,
    suppressed: Option<&'a RawValue>,
    location: Option<&'a RawValue>,
    locations: Option<&'a RawValue>,
    bib_ids: Option<&'a RawValue>,
    fixed_fields: Option<&'a RawValue>,
    var_fields: Option<&'a RawValue>,
    marc: Option<&'a RawValue>,
    too_deep: Option<FieldError>,
}

impl<'a> Known<'a> {
    fn of(object: &RawObject<'a>) -> Self {
        let mut known = Self::default();
        for (key, raw) in object.iter() {
            let value = if raw.get() == "null" { None } else { Some(raw) };
            match key {
                "id" => known.id = value,
                "updatedDate" => known.updated = value,
                "deleted" => known.deleted = value,
                "deletedDate" => known.deleted_on = value,
                "suppressed" => known.suppressed = value,
                "location" => known.location = value,
                "locations" => known.locations = value,
                "bibIds" => known.bib_ids = value,
                // Decoding bounds the depth of these two itself.
                "fixedFields" => known.fixed_fields = value,
                "varFields" => known.var_fields = value,
                "marc" => known.marc = value,
                _ => {}
            }
            if !matches!(key, "fixedFields" | "varFields") && fields::is_too_deep(raw) {
                known.too_deep.get_or_insert_with(|| FieldError::too_deep(key));
            }
        }
        known
    }

    fn read(&self, stream: Stream, object: &RawObject<'_>) -> Result<Entry, FieldError> {
        let id = self.id()?;
        if let Some(error) = &self.too_deep {
            return Err(error.clone());
        }
        let updated = self.updated.map(|raw| instant("updatedDate", raw)).transpose()?.flatten();
        if self.is_tombstone()? {
            let deleted_on = self.deleted_on.and_then(day);
            return Ok(Entry::Tombstone(Tombstone { id, deleted_on, updated }));
        }
        let suppressed = self.suppressed.map_or(Ok(false), |raw| flag("suppressed", raw))?;
        Ok(Entry::Live(match stream {
            Stream::Bibs => Live::Bib(Box::new(Bib {
                id,
                updated,
                suppressed,
                locations: self.locations()?,
                var_fields: self.var_fields()?,
                marc: self.marc.map(ToOwned::to_owned),
                fields: kept(object),
            })),
            Stream::Items => Live::Item(Box::new(Item {
                id,
                updated,
                suppressed,
                location: self.location.map(|raw| code("location", raw)).transpose()?.flatten(),
                bib_ids: self.bib_ids()?,
                var_fields: self.var_fields()?.unwrap_or_default(),
                fields: kept(object),
            })),
            Stream::Patrons => {
                // Not kept apart, but what masking will read must be bounded as in the other streams.
                self.var_fields()?;
                Live::Patron(Box::new(RawPatron::new(id, updated, suppressed, kept(object))))
            }
        }))
    }

    fn id(&self) -> Result<RecordNumber, FieldError> {
        let expected = || FieldError::new("id", "a record number");
        let number: RecordNumber = serde_json::from_str(self.id.ok_or_else(expected)?.get()).map_err(|_| expected())?;
        // No record has the number 0, and no position can lie before it.
        if number.value() == 0 { Err(expected()) } else { Ok(number) }
    }

    /// `deleted` decides; where it is missing (`fields=id,deletedDate`) the date does.
    fn is_tombstone(&self) -> Result<bool, FieldError> {
        match self.deleted {
            Some(raw) => flag("deleted", raw),
            None => Ok(self.deleted_on.is_some()),
        }
    }

    fn locations(&self) -> Result<Vec<String>, FieldError> {
        let mut codes = Vec::new();
        for (index, raw) in list("locations", self.locations)?.into_iter().enumerate() {
            codes.extend(code(&format!("locations[{index}]"), raw)?);
        }
        Ok(codes)
    }

    /// The bibs that an item hangs from, each once, in Sierra's order.
    fn bib_ids(&self) -> Result<Vec<RecordNumber>, FieldError> {
        let mut ids: Vec<RecordNumber> = Vec::new();
        for (index, raw) in list("bibIds", self.bib_ids)?.into_iter().enumerate() {
            if raw.get() == "null" || is_foreign(raw) {
                continue;
            }
            let id = serde_json::from_str(raw.get())
                .map_err(|_| FieldError::new(&format!("bibIds[{index}]"), "a record number"))?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// The variable fields. The fixed ones are only looked at, and stay among the raw fields as they came.
    fn var_fields(&self) -> Result<Option<Vec<VarField>>, FieldError> {
        self.fixed_fields.map_or(Ok(()), fields::check_fixed)?;
        self.var_fields.map(fields::variable).transpose()
    }
}

/// Every key with its value, as it came.
fn kept(object: &RawObject<'_>) -> Fields {
    Fields::new(object.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// A record of another library in a consortium (`1234567@site`): it can be named in a link and never appears in a
/// list (sierra-api.md §7 item 16), so there is no record of ours to link to. It stays visible under `bibIds`.
fn is_foreign(raw: &RawValue) -> bool {
    raw.get().contains('@')
}

fn list<'a>(path: &str, raw: Option<&'a RawValue>) -> Result<Vec<&'a RawValue>, FieldError> {
    raw.map_or_else(
        || Ok(Vec::new()),
        |raw| serde_json::from_str(raw.get()).map_err(|_| FieldError::new(path, "a list")),
    )
}

fn flag(path: &str, raw: &RawValue) -> Result<bool, FieldError> {
    match raw.get() {
        "true" | "\"true\"" => Ok(true),
        "false" | "\"false\"" => Ok(false),
        _ => Err(FieldError::new(path, "true or false")),
    }
}

/// A trimmed code: of `{"code":…}`, or a bare text. Blank and null are no code.
fn code(path: &str, raw: &RawValue) -> Result<Option<String>, FieldError> {
    if raw.get() == "null" {
        return Ok(None);
    }
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return Ok(trimmed(&text));
    }
    let object: RawObject<'_> =
        serde_json::from_str(raw.get()).map_err(|_| FieldError::new(path, "an object with a code"))?;
    let Some((_, value)) = object.iter().filter(|(key, _)| *key == "code").last() else { return Ok(None) };
    let text: Option<String> =
        serde_json::from_str(value.get()).map_err(|_| FieldError::new(&format!("{path}.code"), "text"))?;
    Ok(text.as_deref().and_then(trimmed))
}

fn trimmed(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() { None } else { Some(text.to_owned()) }
}

/// A date and time in whole seconds. Sierra writes `Z`; a stamp without a zone is taken for UTC, as all of Sierra's
/// stamps are (sierra-api.md §7 item 13). Blank is absent (BR-021).
fn instant(path: &str, raw: &RawValue) -> Result<Option<Timestamp>, FieldError> {
    let expected = || FieldError::new(path, "a date and time");
    let text: &str = serde_json::from_str(raw.get()).map_err(|_| expected())?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let at = text
        .parse::<Timestamp>()
        .or_else(|_| text.parse::<DateTime>().and_then(|local| TimeZone::UTC.to_timestamp(local)));
    at.map(|at| Some(whole_second(at))).map_err(|_| expected())
}

/// The day of a deletion, as written. A day that cannot be read is unknown: the deletion itself is certain, and
/// setting it aside would keep a dead record alive.
fn day(raw: &RawValue) -> Option<Date> {
    let text: &str = serde_json::from_str(raw.get()).ok()?;
    text.trim().get(..10)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Subfield;

    fn page(stream: Stream, entries: &str) -> Vec<Result<Entry, BadEntry>> {
        decode_page(stream, format!(r#"{{"total":1,"entries":[{entries}]}}"#).as_bytes()).expect("a page").entries
    }

    fn bib(json: &str) -> Bib {
        match decode_entry(Stream::Bibs, json) {
            Ok(Entry::Live(Live::Bib(bib))) => *bib,
            other => panic!("no bib: {other:?}"),
        }
    }

    fn item(json: &str) -> Item {
        match decode_entry(Stream::Items, json) {
            Ok(Entry::Live(Live::Item(item))) => *item,
            other => panic!("no item: {other:?}"),
        }
    }

    fn reason(stream: Stream, json: &str) -> String {
        decode_entry(stream, json).expect_err("a bad entry").reason
    }

    #[test]
    fn a_full_bib_is_read_and_every_key_is_kept_as_it_came() {
        let json = r#"{"id":"2100417","updatedDate":"2024-03-09T02:14:07Z","deleted":false,"suppressed":true,
            "lang":{"code":"eng ","name":"English"},"price": 1.50,
            "locations":[{"code":"main ","name":"Main"},{"code":""},null,"annex"],
            "fixedFields":{"31":{"label":"BCODE3","value":"-"}},
            "varFields":[
              {"fieldTag":"o","marcTag":"001","ind1":" ","ind2":" ","content":"ex0001"},
              {"fieldTag":"t","marcTag":"245","ind1":"1","ind2":"0","subfields":[{"tag":"a","content":"Field \"guide\""}]},
              {"fieldTag":"_","content":"00000nam  2200000 a 4500"}],
            "marc":{"leader":"x"}}"#;
        let bib = bib(json);
        assert_eq!((bib.id, bib.suppressed), (RecordNumber::new(2_100_417), true));
        assert_eq!(bib.updated, "2024-03-09T02:14:07Z".parse().ok());
        assert_eq!(bib.locations, ["main", "annex"]);
        assert_eq!(bib.fields.get("fixedFields").expect("kept").get(), r#"{"31":{"label":"BCODE3","value":"-"}}"#);
        let fields = bib.var_fields.expect("var fields");
        assert_eq!(fields[0].content.as_deref(), Some("ex0001"));
        assert_eq!(fields[1].subfields, [Subfield { tag: "a".into(), content: "Field \"guide\"".into() }]);
        assert_eq!((fields[2].field_tag.as_str(), fields[2].marc_tag.as_deref()), ("_", None));
        assert_eq!(bib.marc.expect("marc").get(), r#"{"leader":"x"}"#);
        // Raw: padding, decimals and unknown keys are what Sierra sent.
        assert_eq!(bib.fields.get("price").expect("kept").get(), "1.50");
        assert_eq!(bib.fields.get("lang").expect("kept").get(), r#"{"code":"eng ","name":"English"}"#);
        assert_eq!(bib.fields.iter().map(|(key, _)| key).last(), Some("marc"));
    }

    /// A6, BR-021: blank, placeholder, null and omitted values are no reason to lose a record.
    #[test]
    fn omitted_null_and_blank_values_are_tolerated() {
        let bare = bib(r#"{"id":7}"#);
        assert_eq!((bare.updated, bare.suppressed, bare.var_fields.is_none()), (None, false, true));
        let nulls = bib(
            r#"{"id":" 7 ","updatedDate":null,"deleted":null,"suppressed":null,"locations":null,"fixedFields":null,
                "varFields":null,"marc":null,"title":"","lang":{"code":"   "},"materialType":{"code":"-"}}"#,
        );
        assert!(nulls.var_fields.is_none() && nulls.marc.is_none() && nulls.locations.is_empty());
        assert_eq!(bib(r#"{"id":7,"updatedDate":" "}"#).updated, None);
        assert!(bib(r#"{"id":7,"varFields":[]}"#).var_fields.expect("an empty list is a list").is_empty());
        let null_field =
            bib(r#"{"id":7,"varFields":[{"fieldTag":null,"marcTag":null,"content":null,"subfields":null}]}"#);
        assert_eq!(null_field.var_fields.expect("var fields"), [VarField::default()]);
    }

    /// A6, BR-041: an item without `status`, `suppressed`, `location`.
    #[test]
    fn an_items_links_and_location_are_normalised() {
        let item = item(
            r#"{"id":3900123,"bibIds":["2100417",2100999,"2100417",null,"1000001@other"],
                "location":{"code":"law  ","name":"Law"},"copyNo":1}"#,
        );
        assert_eq!(item.bib_ids, [RecordNumber::new(2_100_417), RecordNumber::new(2_100_999)]);
        assert_eq!(item.location.as_deref(), Some("law"));
        assert_eq!(self::item(r#"{"id":1,"location":{"name":"x"}}"#).location, None);
        assert_eq!(self::item(r#"{"id":1,"location":"main "}"#).location.as_deref(), Some("main"));
    }

    /// A6: numbers, stamps and flags of a deletion come in many forms and leave in one.
    #[test]
    fn tombstones_are_recognised_in_every_form() {
        let stone = |json: &str| match decode_entry(Stream::Items, json) {
            Ok(Entry::Tombstone(stone)) => stone,
            other => panic!("no tombstone: {other:?}"),
        };
        let plain = stone(r#"{"id":"3900124","deletedDate":"2024-03-09","deleted":true,"bibIds":[]}"#);
        assert_eq!((plain.id, plain.deleted_on), (RecordNumber::new(3_900_124), "2024-03-09".parse().ok()));
        // sierra-api.md §3.5: v6 holdings keep a stale updatedDate.
        let stale = stone(r#"{"id":1,"deleted":true,"deletedDate":"2024-03-09","updatedDate":"2009-01-01T00:00:00Z"}"#);
        assert!(stale.updated.is_some());
        assert_eq!(stone(r#"{"id":1,"deletedDate":"2024-03-09T00:00:00Z"}"#).deleted_on, "2024-03-09".parse().ok());
        // The deletion is certain even where its day is not.
        for odd in [r#"{"id":1,"deleted":true,"deletedDate":"soon"}"#, r#"{"id":1,"deleted":true,"deletedDate":7}"#] {
            assert_eq!(stone(odd).deleted_on, None);
        }
        assert_eq!(stone(r#"{"id":1,"deleted":true,"status":null,"varFields":null}"#).deleted_on, None);
        assert!(matches!(
            decode_entry(Stream::Bibs, r#"{"id":1,"deleted":false,"deletedDate":null}"#),
            Ok(Entry::Live(_))
        ));
    }

    /// B10, BR-020: the page goes on, the place is named, and no value is shown.
    #[test]
    fn one_bad_entry_is_set_aside_in_its_place() {
        let entries = page(Stream::Items, r#"{"id":1},{"id":2,"bibIds":["canary"]},{"id":3},5"#);
        assert_eq!(entries.iter().filter(|entry| entry.is_ok()).count(), 2);
        let bad = entries[1].as_ref().expect_err("bad");
        assert_eq!((bad.id, bad.reason.as_str()), (Some(RecordNumber::new(2)), "bibIds[0]: expected a record number"));
        assert_eq!(bad.payload.as_ref().expect("payload").get(), r#"{"id":2,"bibIds":["canary"]}"#);
        let shapeless = entries[3].as_ref().expect_err("bad");
        assert_eq!((shapeless.id, shapeless.reason.as_str()), (None, "entry: expected an object"));
    }

    #[test]
    fn the_place_of_every_unexpected_type_is_named() {
        let table = [
            (r#"{}"#, "id: expected a record number"),
            (r#"{"id":null}"#, "id: expected a record number"),
            (r#"{"id":"b12"}"#, "id: expected a record number"),
            (r#"{"id":-1}"#, "id: expected a record number"),
            (r#"{"id":0}"#, "id: expected a record number"),
            (r#"{"id":"0"}"#, "id: expected a record number"),
            (r#"{"id":1,"updatedDate":"yesterday"}"#, "updatedDate: expected a date and time"),
            (r#"{"id":1,"updatedDate":17}"#, "updatedDate: expected a date and time"),
            (r#"{"id":1,"deleted":"maybe"}"#, "deleted: expected true or false"),
            (r#"{"id":1,"suppressed":1}"#, "suppressed: expected true or false"),
            (r#"{"id":1,"locations":{}}"#, "locations: expected a list"),
            (r#"{"id":1,"locations":[{"code":7}]}"#, "locations[0].code: expected text"),
            (r#"{"id":1,"locations":["a",7]}"#, "locations[1]: expected an object with a code"),
            (r#"{"id":1,"fixedFields":[]}"#, "fixedFields: expected an object"),
            (r#"{"id":1,"varFields":"x"}"#, "varFields: expected a list"),
            (r#"{"id":1,"varFields":[{},7]}"#, "varFields[1]: expected an object"),
            (r#"{"id":1,"varFields":[{"marcTag":[]}]}"#, "varFields[0].marcTag: expected text"),
            (r#"{"id":1,"varFields":[{"subfields":{}}]}"#, "varFields[0].subfields: expected a list"),
            (r#"{"id":1,"varFields":[{"subfields":[7]}]}"#, "varFields[0].subfields[0]: expected an object"),
            (
                r#"{"id":1,"varFields":[{},{"subfields":[{"tag":"a"},{"content":[]}]}]}"#,
                "varFields[1].subfields[1].content: expected text",
            ),
        ];
        for (json, expected) in table {
            assert_eq!(reason(Stream::Bibs, json), expected, "{json}");
        }
        assert_eq!(reason(Stream::Items, r#"{"id":1,"location":7}"#), "location: expected an object with a code");
    }

    /// BR-020: what a record is about and hangs from is never guessed: a text in place of one of its own lists sets it
    /// aside, in every stream that reads the list. (Within varFields BR-023 holds: see `fields`.)
    #[test]
    fn a_text_for_a_list_of_the_records_own_sets_it_aside() {
        let of_bibs = [(r#""locations":"main""#, "locations"), (r#""varFields":"x""#, "varFields")];
        let of_items = [(r#""bibIds":"123""#, "bibIds"), (r#""varFields":"x""#, "varFields")];
        let of_patrons = [(r#""varFields":"x""#, "varFields")];
        let tables = [(Stream::Bibs, &of_bibs[..]), (Stream::Items, &of_items), (Stream::Patrons, &of_patrons)];
        for (stream, table) in tables {
            for (member, key) in table {
                let told = reason(stream, &format!(r#"{{"id":1,{member}}}"#));
                assert_eq!(told, format!("{key}: expected a list"), "{stream}");
            }
        }
        // What a stream does not read is handed on as it came.
        assert_eq!(item(r#"{"id":1,"locations":"main"}"#).fields.get("locations").expect("kept").get(), r#""main""#);
        assert!(bib(r#"{"id":1,"bibIds":"123"}"#).fields.get("bibIds").is_some());
    }

    /// D5 in spirit: depth is bounded wherever a raw value is kept, and nothing recurses on the way.
    #[test]
    fn an_entry_that_nests_too_deeply_is_set_aside() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let table = [
            (format!(r#"{{"id":1,"title":{deep}}}"#), "title: "),
            (format!(r#"{{"id":1,"fixedFields":{{"31":{deep}}}}}"#), "fixedFields.31: "),
            (format!(r#"{{"id":1,"varFields":[{{"odd":{deep}}}]}}"#), "varFields[0].odd: "),
            (format!(r#"{{"id":1,"varFields":[{{"subfields":[{{"x":{deep}}}]}}]}}"#), "varFields[0].subfields[0].x: "),
            (format!(r#"{{"id":{deep}}}"#), "id: "),
        ];
        for stream in [Stream::Bibs, Stream::Patrons] {
            for (json, place) in &table {
                assert!(reason(stream, json).starts_with(place), "{place} {}", reason(stream, json));
            }
        }
        assert_eq!(page(Stream::Bibs, &format!(r#"{{"id":1,"x":{deep}}},{{"id":2}}"#)).len(), 2);
        let bearable = format!("{}{}", "[".repeat(64), "]".repeat(64));
        assert!(decode_entry(Stream::Bibs, &format!(r#"{{"id":1,"x":{bearable},"y":"[[[\"[["}}"#)).is_ok());
    }

    #[test]
    fn a_lone_surrogate_costs_one_character_and_not_the_page() {
        let body = br#"{"entries":[{"id":1,"title":"a\ud83d"},{"id":2,"varFields":[{"content":"\ude00b"}]},{"id":3}]}"#;
        let page = decode_page(Stream::Bibs, body).expect("a page");
        assert_eq!((page.entries.len(), page.replaced_surrogates), (3, 2));
        assert!(page.entries.iter().all(Result::is_ok));
        let second = page.entries[1].as_ref().expect("good");
        let Entry::Live(Live::Bib(bib)) = second else { panic!("no bib") };
        assert_eq!(bib.var_fields.as_ref().expect("var fields")[0].content.as_deref(), Some("\u{fffd}b"));
        let mut readable = bib.fields.iter().map(|(_, raw)| serde_json::from_str::<serde_json::Value>(raw.get()));
        assert!(readable.all(|value| value.is_ok()));
    }

    #[test]
    fn stamps_are_cut_to_whole_seconds_and_zones_are_respected() {
        let updated =
            |stamp: &str| bib(&format!(r#"{{"id":1,"updatedDate":"{stamp}"}}"#)).updated.map(|at| at.to_string());
        for stamp in
            ["2024-03-09T02:14:07Z", "2024-03-09T02:14:07.999Z", "2024-03-09T02:14:07", "2024-03-09T04:14:07+02:00"]
        {
            assert_eq!(updated(stamp).as_deref(), Some("2024-03-09T02:14:07Z"), "{stamp}");
        }
    }

    /// BR-124, A12: the policy cannot mask what cannot be decoded, so what it might have masked stays out.
    #[test]
    fn the_payload_of_a_bad_entry_holds_nothing_that_privacy_might_have_dropped() {
        let payload = |stream: Stream, json: &str| {
            decode_entry(stream, json).expect_err("bad").payload.map(|raw| raw.get().to_owned()).unwrap_or_default()
        };
        let item = r#"{"id":1,"bibIds":7,"barcode":"3","fixedFields":{"67":{"value":"canary"}},"varFields":["canary"],
            "patron":"canary","callNumber":"QA1"}"#;
        assert_eq!(payload(Stream::Items, item), r#"{"id":1,"bibIds":7,"callNumber":"QA1"}"#);
        let bib = r#"{"id":1,"title":"T","varFields":[{"marcTag":"909","content":["canary"]}],"marc":"canary"}"#;
        assert_eq!(payload(Stream::Bibs, bib), r#"{"id":1,"title":"T"}"#);
    }

    /// PRV-1: whatever is wrong with a patron, nothing of it is kept or named.
    #[test]
    fn a_bad_patron_entry_carries_no_payload() {
        let bad = decode_entry(Stream::Patrons, r#"{"id":1,"suppressed":"canary"}"#).expect_err("bad");
        assert!(bad.payload.is_none() && !bad.reason.contains("canary"));
        let patron = decode_entry(Stream::Patrons, r#"{"id":1200345,"names":["CANARY"]}"#).expect("good");
        assert!(!format!("{patron:?}").contains("CANARY"));
    }
}
