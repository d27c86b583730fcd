//! Wire to record: the one place where Sierra's oddities are normalised (rule A6).
//!
//! Ids come as numbers or strings, codes come padded, keys are omitted or null. All of that is accepted here and
//! nowhere else. One entry that cannot be read does not spoil its page (BR-020): it becomes a [`BadEntry`] that says
//! where and why, in its place among the others.

use serde_json::value::RawValue;

use super::envelope::{self, InvalidBody, Opened};
use super::fields::FieldError;
use super::known::Known;
use super::wire::{RawObject, WireEntry};
use crate::record::{Entry, Fields, Stream, surrogate};
use crate::sync::ports::BadEntry;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Bib, Item, Live, RecordNumber, Subfield, VarField};

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
