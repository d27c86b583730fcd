//! Canaries: values planted wherever a person may stand, and looked for in everything that comes out.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sierra_sync::marc::{self, MarcSettings, marcxml};
use sierra_sync::privacy::{FieldRule, Keyring, Policy, PrivacySettings};
use sierra_sync::record::{Bib, Fields, Item, RawPatron, RecordNumber, Stream, Subfield, VarField};
use sierra_sync::sync::render::{bib_record, item_record};
use sierra_sync::sync::{ContentHash, ContentHasher};

use crate::sink::changes::default_privacy;

const CANARY: &str = "canary-5a3f";
/// The record number of the invented patron: a canary as well.
const NUMBER: u64 = 8_675_309;

fn policy(adjust: impl FnOnce(&mut PrivacySettings)) -> Policy {
    let mut settings = default_privacy();
    adjust(&mut settings);
    Policy::new(&settings, Arc::new(Keyring::for_tests(1))).expect("sound settings")
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("JSON")
}

fn fields(members: &Value) -> Fields {
    let members = members.as_object().expect("an object");
    Fields::new(members.iter().map(|(name, value)| (name.clone(), raw(value))).collect())
}

#[track_caller]
fn assert_clean(text: &str) {
    let text = text.to_lowercase();
    assert!(!text.contains("canary") && !text.contains(&NUMBER.to_string()), "{text}");
}

/// A patron with a canary in every field that can tell who it is (sierra-api.md §3.4), however deep.
fn patron() -> Value {
    json!({
        "id": NUMBER, "updatedDate": "2024-03-01T08:00:00Z", "createdDate": "2019-01-01T08:00:00Z",
        "deleted": false, "suppressed": false,
        "names": [format!("{CANARY}, PAT")], "barcodes": [CANARY], "expirationDate": "2026-12-31",
        "birthDate": CANARY, "emails": [CANARY], "patronType": 15,
        "patronCodes": {"pcode1": CANARY, "pcode3": 0}, "homeLibraryCode": "main ",
        "homeLibrary": {"code": "main ", "name": CANARY},
        "message": {"code": "-", "accountMessages": [CANARY]}, "blockInfo": {"code": CANARY, "until": CANARY},
        "autoBlockInfo": {"code": CANARY}, "addresses": [{"lines": [CANARY, CANARY], "type": "a"}],
        "phones": [{"number": CANARY, "type": "t"}], "uniqueIds": [CANARY], "moneyOwed": 8_675_309.0,
        "pMessage": CANARY, "langPref": CANARY, "pin": CANARY, "interests": CANARY,
        "fixedFields": {"44": {"label": "PCODE1", "value": CANARY}, "163": {"value": CANARY}},
        "varFields": [{"fieldTag": "n", "content": CANARY}, {"fieldTag": "u", "subfields": [{"tag": "a", "content": CANARY}]}],
        "checkouts": format!("https://catalog.example.edu/iii/sierra-api/v6/patrons/{NUMBER}/checkouts"),
        "Id": NUMBER, "id ": NUMBER, "patrontype": CANARY, "PatronType": CANARY, CANARY: 1
    })
}

fn raw_patron(members: &Value) -> RawPatron {
    RawPatron::new(RecordNumber::new(NUMBER), None, false, fields(members))
}

/// BR-124, PRV-1: under the default policy nothing that tells who a patron is comes out, in no form.
#[test]
fn nothing_of_a_patron_passes_the_default_policy() {
    let policy = policy(|_| {});
    let patron = raw_patron(&patron());
    let masked = policy.mask_patron(&patron);
    let pseudonym = policy.keyring().pseudonym(patron.id());
    assert_clean(masked.get().get());
    assert_clean(&format!("{masked:?} {patron:?} {policy:?} {pseudonym} {pseudonym:?}"));
    assert_clean(&String::from_utf8_lossy(&masked.seal(policy.keyring())));
    let members: Value = serde_json::from_str(masked.get().get()).expect("JSON");
    let expected = json!({
        "id": pseudonym.to_string(), "patronType": 15, "homeLibraryCode": "main ", "expirationDate": "2026-12-31"
    });
    assert_eq!(members, expected);
}

/// BR-123: what is remembered of a patron cannot be tried out without the key, and tells of what passes only.
#[test]
fn the_content_hash_of_a_patron_is_keyed_and_covers_what_passes() {
    let hash = |keys: u64, adjust: &dyn Fn(&mut Value)| {
        let mut settings = default_privacy();
        settings.patron_fields = [("patronType", FieldRule::Pass), ("updatedDate", FieldRule::Pass)]
            .map(|(name, rule)| (name.to_owned(), rule))
            .into();
        let policy = Policy::new(&settings, Arc::new(Keyring::for_tests(keys))).expect("sound settings");
        let mut patron = patron();
        adjust(&mut patron);
        let masked = policy.mask_patron(&raw_patron(&patron));
        ContentHasher::new::<&str>(&[]).patron(&masked, false, policy.keyring())
    };
    let base = hash(1, &|_| {});
    assert_eq!(hash(1, &|patron| patron["names"] = json!(["OTHER"])), base);
    assert_eq!(hash(1, &|patron| patron["updatedDate"] = json!("2025-01-01T00:00:00Z")), base);
    assert_ne!(hash(1, &|patron| patron["patronType"] = json!(16)), base);
    assert_ne!(hash(2, &|_| {}), base, "the same masked record under another key");
}

#[test]
fn marks_and_hashes_show_nothing_either() {
    let policy = policy(|settings| {
        for (index, name) in patron().as_object().expect("an object").keys().enumerate() {
            let rule = if index % 2 == 0 { FieldRule::Mask } else { FieldRule::Hmac };
            if !name.contains("canary") {
                settings.patron_fields.insert(name.clone(), rule);
            }
        }
    });
    assert_clean(policy.mask_patron(&raw_patron(&patron())).get().get());
}

proptest! {
    /// Whatever the shape of a patron, what is not named does not come out.
    #[test]
    fn a_canary_anywhere_in_a_patron_is_never_seen(
        members in prop::collection::vec(("[a-zA-Z]{1,12}", planted()), 0..12)
    ) {
        let mut patron = patron();
        let object = patron.as_object_mut().expect("an object");
        let passing = default_privacy().patron_fields;
        object.extend(members.into_iter().filter(|(name, _)| !passing.contains_key(name)));
        let masked = policy(|_| {}).mask_patron(&raw_patron(&patron));
        prop_assert!(!masked.get().get().contains("canary"));
        prop_assert!(!masked.get().get().contains("8675309"));
    }

    /// BR-124: a member of an item that names a patron, or a URL that leads to one, goes wherever it stands.
    #[test]
    fn a_patron_link_anywhere_in_an_item_is_never_seen(link in linked(), name in "[a-z]{3,9}") {
        let mut item = item(json!({"id": "3900123", "location": {"code": "main"}, "status": {"code": "-"}}));
        item.fields.set(&name, raw(&link));
        item.fields.set("status", raw(&json!({"code": "-", "display": "AVAILABLE", "more": link})));
        policy(|_| {}).mask_item(&mut item);
        let record = item_record(&item);
        prop_assert!(!record.get().contains("8675309"), "{}", record.get());
        let location = r#""location":{"code":"main"}"#;
        prop_assert!(record.get().contains(location), "{}", record.get());
    }
}

/// Any JSON with a canary in it.
fn planted() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(CANARY)), Just(json!(NUMBER)), Just(json!({ CANARY: true }))];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Value::from),
            ("[a-z]{1,6}", inner).prop_map(|(name, value)| json!({ name: value })),
        ]
    })
}

/// Any JSON with a link to the patron in it.
fn linked() -> impl Strategy<Value = Value> {
    let link = prop_oneof![
        Just(json!({ "patron": NUMBER })),
        Just(json!({ "patronId": NUMBER.to_string() })),
        Just(json!({ "lastPatron": {"id": NUMBER} })),
        Just(json!({ "checkedOutTo": NUMBER })),
        Just(json!({ "holds": [{"id": NUMBER}] })),
        Just(json!(format!("https://catalog.example.edu/iii/sierra-api/v6/patrons/{NUMBER}"))),
        Just(json!(format!("https://catalog.example.edu/iii/sierra-api/v6/patrons/holds/{NUMBER}"))),
        Just(json!(format!("/v6/patrons/checkouts/{NUMBER}"))),
    ];
    link.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Value::from),
            ("[a-z]{2,6}", inner).prop_map(|(name, value)| json!({ name: value, "kept": 1 })),
        ]
    })
}

fn var_field(field_tag: &str, marc_tag: Option<&str>, subfields: &[(&str, &str)]) -> VarField {
    let subfield = |(tag, content): &(&str, &str)| Subfield { tag: (*tag).into(), content: (*content).to_owned() };
    VarField {
        field_tag: field_tag.into(),
        marc_tag: marc_tag.map(Into::into),
        content: subfields.is_empty().then(|| CANARY.to_owned()),
        subfields: subfields.iter().map(subfield).collect(),
        ..VarField::default()
    }
}

fn item(members: Value) -> Item {
    Item {
        id: RecordNumber::new(3_900_123),
        updated: None,
        suppressed: false,
        location: Some("main".to_owned()),
        bib_ids: vec![RecordNumber::new(2_100_417)],
        var_fields: Vec::new(),
        fields: fields(&members),
    }
}

/// An item as Sierra sends it, with patrons wherever sites have been seen to have them.
fn item_with_patrons() -> Item {
    let fixed = json!({
        "61": {"label": "I TYPE", "value": "0", "display": "Book"},
        "66": {"label": "LESER-NR.", "value": NUMBER}, "67": {"value": NUMBER},
        "88": {"label": "STATUS", "value": "-"}
    });
    let mut item = item(json!({
        "id": "3900123", "barcode": "30000000000017", "callNumber": "598 DOE", "holdCount": 1,
        "status": {"code": "-", "display": "ON HOLDSHELF", "duedate": "2024-04-01T09:00:00Z", "patron": CANARY},
        "fixedFields": fixed,
        "varFields": [
            {"fieldTag": "v", "content": "v.1"},
            {"fieldTag": "x", "content": CANARY},
            {"fieldTag": "m", "content": CANARY},
            {"fieldTag": "r", "subfields": [{"tag": "a", "content": CANARY}]},
            {"content": CANARY}, CANARY
        ],
        "holds": [{"patron": CANARY}], "checkout": CANARY, "currentPatron": NUMBER
    }));
    item.var_fields = vec![var_field("x", None, &[]), var_field("v", None, &[("a", "v.1")])];
    item
}

/// BR-124: the default item profile. BR-036: fixed fields are known by number, whatever their label or without one.
#[test]
fn an_item_keeps_what_is_its_own_and_loses_every_patron() {
    let mut item = item_with_patrons();
    policy(|_| {}).mask_item(&mut item);
    assert_clean(&format!("{item:?} {}", item_record(&item).get()));
    let record: Value = serde_json::from_str(item_record(&item).get()).expect("JSON");
    assert_eq!(
        record,
        json!({
            "id": "3900123", "barcode": "30000000000017", "callNumber": "598 DOE", "holdCount": 1,
            "status": {"code": "-", "display": "ON HOLDSHELF", "duedate": "2024-04-01T09:00:00Z"},
            "fixedFields": {
                "61": {"label": "I TYPE", "value": "0", "display": "Book"}, "88": {"label": "STATUS", "value": "-"}
            },
            "varFields": [{"fieldTag": "v", "content": "v.1"}]
        })
    );
    assert_eq!(item.var_fields.len(), 1);
}

/// A checkout changes only what is dropped or ignored: it says nothing, so it must not look like a change.
#[test]
fn another_patron_on_an_item_does_not_change_its_content() {
    let hash = |item: Item| -> ContentHash { ContentHasher::new(&["84"]).item(&item) };
    let mut with = item_with_patrons();
    policy(|_| {}).mask_item(&mut with);
    let mut without = item_with_patrons();
    without.fields.set(
        "fixedFields",
        raw(&json!({
            "88": {"label": "STATUS", "value": "-"}, "61": {"label": "I TYPE", "value": "0", "display": "Book"}
        })),
    );
    without.fields.remove("currentPatron");
    policy(|_| {}).mask_item(&mut without);
    assert_eq!(hash(with), hash(without));
}

#[test]
fn fields_of_an_item_that_cannot_be_read_go() {
    for odd in [json!([CANARY]), json!(CANARY), json!({"66": CANARY}), json!({"066": CANARY})] {
        let mut item = item(json!({"id": "1"}));
        item.fields.set("fixedFields", raw(&odd));
        item.fields.set("varFields", raw(&json!({"x": CANARY})));
        policy(|_| {}).mask_item(&mut item);
        assert_clean(item_record(&item).get());
    }
}

fn bib_with_local_fields() -> Bib {
    let var_fields = vec![
        var_field("t", Some("245"), &[("a", "Field guide")]),
        var_field("n", Some("590"), &[("a", "a note"), ("x", CANARY)]),
        var_field("n", Some("590"), &[("x", CANARY)]),
        var_field("y", Some("909"), &[("a", CANARY)]),
        var_field("y", Some("951"), &[]),
        var_field("y", Some(" 909"), &[("a", CANARY)]),
    ];
    let members = json!({
        "id": "2100417", "title": "Field guide", "patrons": [CANARY],
        "varFields": [
            {"fieldTag": "t", "marcTag": "245", "subfields": [{"tag": "a", "content": "Field guide"}]},
            {"fieldTag": "n", "marcTag": "590", "ind1": " ", "subfields": [{"tag": "x", "content": CANARY}, {"tag": "a", "content": "a note"}]},
            {"fieldTag": "n", "marcTag": "590", "content": format!("|anote|x{CANARY}")},
            {"fieldTag": "y", "marcTag": "909", "content": CANARY},
            {"fieldTag": "y", "marcTag": "955", "subfields": CANARY},
            {"fieldTag": "y", "marcTag": 909, "content": CANARY}
        ],
        "marc": {
            "leader": "00000nam a2200000 a 4500",
            "fields": [
                {"001": "ex1"}, {"909": {"ind1": " ", "ind2": " ", "subfields": [{"a": CANARY}]}},
                {"590": {"ind1": " ", "ind2": " ", "subfields": [{"a": "a note"}, {"x": CANARY}]}}
            ]
        }
    });
    let fields = fields(&members);
    Bib {
        id: RecordNumber::new(2_100_417),
        updated: None,
        suppressed: false,
        locations: Vec::new(),
        var_fields: Some(var_fields),
        marc: fields.get("marc").map(ToOwned::to_owned),
        fields,
    }
}

/// A12: what the library names in `marc_drop` is in no form of the bib that goes out or is kept.
#[test]
fn dropped_marc_fields_are_in_no_form_of_a_bib() {
    let policy = policy(|settings| settings.marc_drop = ["909", "95x", "590$x"].map(str::to_owned).to_vec());
    let mut bib = bib_with_local_fields();
    policy.mask_bib(&mut bib);
    let var_fields = bib.var_fields.as_deref().expect("varFields came");
    let (record, losses) = marc::from_sierra(bib.id, var_fields, &MarcSettings::default()).expect("maps");
    let xml = marcxml::to_string(&record);
    assert_clean(&format!("{xml} {losses:?} {bib:?} {}", bib_record(&bib).get()));
    assert!(xml.contains("a note") && xml.contains("Field guide"));
    let marc: Value = serde_json::from_str(bib.marc.as_ref().expect("marc came").get()).expect("JSON");
    assert_eq!(
        marc["fields"],
        json!([{"001": "ex1"}, {"590": {"ind1": " ", "ind2": " ", "subfields": [{"a": "a note"}]}}])
    );
}

#[test]
fn dropped_fields_go_from_marc_records_of_the_second_source_too() {
    let policy = policy(|settings| settings.marc_drop = ["909", "590$x"].map(str::to_owned).to_vec());
    let var_fields = bib_with_local_fields().var_fields.expect("varFields came");
    let (mut record, _) =
        marc::from_sierra(RecordNumber::new(1), &var_fields[..4], &MarcSettings::default()).expect("maps");
    policy.mask_marc(&mut record);
    let xml = marcxml::to_string(&record);
    assert_clean(&xml);
    assert!(xml.contains("a note"));
}

#[test]
fn sierras_own_marc_is_masked_in_both_its_shapes_and_goes_in_any_other() {
    let policy = policy(|settings| settings.marc_drop = ["909", "95x", "590$x"].map(str::to_owned).to_vec());
    let masked = |marc: Value| {
        let mut bib = bib_with_local_fields();
        bib.fields.set("marc", raw(&marc));
        bib.marc = Some(raw(&marc));
        policy.mask_bib(&mut bib);
        assert_clean(&format!("{bib:?}"));
        bib.marc.map(|marc| serde_json::from_str::<Value>(marc.get()).expect("JSON"))
    };
    let own = json!({
        "leader": "x", "controlfield": [{"tag": "001", "data": "ex1"}],
        "datafield": [
            {"tag": "909", "ind": "  ", "subfield": [{"code": "a", "data": CANARY}]},
            {"tag": "590", "ind": "  ", "subfield": [{"code": "x", "data": CANARY}, {"code": "a", "data": "a note"}]},
            {"ind": "  ", "subfield": [{"code": "x", "data": CANARY}]}
        ],
        "extra": CANARY
    });
    assert_eq!(
        masked(own),
        Some(json!({
            "leader": "x", "controlfield": [{"tag": "001", "data": "ex1"}],
            "datafield": [{"tag": "590", "ind": "  ", "subfield": [{"code": "a", "data": "a note"}]}]
        }))
    );
    assert_eq!(masked(json!([CANARY])), None);
    assert_eq!(masked(json!(CANARY)), None);
    assert_eq!(masked(json!({"fields": CANARY})), None);
}

/// What cannot be decoded goes to the quarantine, and people must not go with it.
#[test]
fn undecodable_entries_are_masked_before_they_are_kept() {
    let policy = policy(|settings| settings.marc_drop = vec!["909".to_owned()]);
    let item = json!({
        "id": "x", "bibIds": "not a list", "fixedFields": {"66": {"value": NUMBER}, "61": {"value": "0"}},
        "varFields": [{"fieldTag": "x", "content": CANARY}], "patron": CANARY
    });
    let kept = policy.mask_undecoded(Stream::Items, &raw(&item)).expect("an object");
    assert_clean(kept.get());
    assert!(kept.get().contains("not a list") && kept.get().contains(r#""61""#));
    let bib = json!({"id": [], "varFields": [{"fieldTag": "y", "marcTag": "909", "content": CANARY}]});
    assert_clean(policy.mask_undecoded(Stream::Bibs, &raw(&bib)).expect("an object").get());
    assert!(policy.mask_undecoded(Stream::Patrons, &raw(&patron())).is_none());
    for odd in [json!(CANARY), json!([{"66": CANARY}]), json!(NUMBER), json!(null)] {
        assert!(policy.mask_undecoded(Stream::Items, &raw(&odd)).is_none(), "{odd}");
    }
}
