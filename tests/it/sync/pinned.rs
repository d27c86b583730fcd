//! What a page becomes, bit for bit: content hashes, events' JSON, MARCXML, losses and reasons of refusal.
//!
//! Sinks and stores hold what earlier versions made. However a page is read, the same page must come to the same: a
//! different hash makes every record of a library look changed once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use jiff::tz::TimeZone;
use sierra_sync::marc::MarcSettings;
use sierra_sync::privacy::{FieldRule, Keyring, Policy, PrivacySettings};
use sierra_sync::record::Stream;
use sierra_sync::sierra::decode_page;
use sierra_sync::sync::Payload;
use sierra_sync::sync::capture::map::{Mapped, Mapper, Refused};
use sierra_sync::sync::decide::Seen;

use crate::support::stream_settings;

#[test]
fn a_page_of_bibs_comes_to_the_same_between_versions() {
    insta::assert_snapshot!("pinned_bibs", digest(Stream::Bibs, BIBS));
}

#[test]
fn a_page_of_items_comes_to_the_same_between_versions() {
    insta::assert_snapshot!("pinned_items", digest(Stream::Items, ITEMS));
}

#[test]
fn a_page_of_patrons_comes_to_the_same_between_versions() {
    insta::assert_snapshot!("pinned_patrons", digest(Stream::Patrons, PATRONS));
}

/// One line an entry.
fn digest(stream: Stream, page: &str) -> String {
    let mapper = mapper(stream);
    let mut hasher = mapper.hasher();
    let decoded = decode_page(stream, page.as_bytes()).expect("a page");
    let mut lines = format!("{} surrogates replaced\n", decoded.replaced_surrogates);
    for entry in decoded.entries {
        match mapper.map(entry, &mut hasher) {
            Ok(mapped) => writeln!(lines, "{}", of_mapped(&mapped)).expect("written"),
            Err(refused) => writeln!(lines, "{}", of_refused(&refused)).expect("written"),
        }
    }
    lines
}

fn of_mapped(mapped: &Mapped) -> String {
    let seen = match mapped.seen {
        Seen::Live { hash, suppressed, .. } => format!("{hash} {}", if suppressed { "hidden" } else { "shown" }),
        Seen::Tombstone { deleted_on } => format!("deleted {deleted_on:?}"),
    };
    let (shown, whole) = match &mapped.payload {
        Payload::Bib { record, marcxml, losses, locations } => {
            let losses: Vec<String> = losses.iter().map(|loss| loss.kind.to_string()).collect();
            let whole = format!("{record} {marcxml} {losses:?} {locations:?}");
            (format!("{locations:?} {losses:?}"), whole)
        }
        Payload::Item { record, bib_ids, location } => {
            let shown = format!("{bib_ids:?} {location:?}");
            (shown.clone(), format!("{record} {shown}"))
        }
        Payload::Patron(masked) => (masked.get().get().to_owned(), masked.get().get().to_owned()),
        Payload::Nothing => (String::new(), String::new()),
    };
    let updated = mapped.updated.map(|at| at.to_string()).unwrap_or_default();
    format!("{} [{updated}] {seen} {} {shown}", mapped.id, print(&whole))
}

fn of_refused(refused: &Refused) -> String {
    let payload = refused.payload.as_deref().map_or_else(|| "nothing".to_owned(), print);
    format!("{} refused: {}; {payload} kept", refused.id, refused.reason)
}

/// A fingerprint that is short enough to read a snapshot.
fn print(text: &str) -> String {
    format!("{} bytes {}", text.len(), &blake3::hash(text.as_bytes()).to_hex()[..16])
}

fn mapper(stream: Stream) -> Mapper {
    let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let patron_fields = [
        ("id", FieldRule::Hmac),
        ("patronType", FieldRule::Pass),
        ("homeLibraryCode", FieldRule::Pass),
        ("names", FieldRule::Mask),
        ("barcodes", FieldRule::Hmac),
    ];
    let privacy = PrivacySettings {
        key_file: None,
        retention: std::time::Duration::from_secs(60),
        marc_drop: strings(&["909", "590$x"]),
        item_fixed_drop: strings(&["66", "67"]),
        item_var_keep: strings(&["v", "c"]),
        patron_fields: patron_fields
            .map(|(name, rule)| (name.to_owned(), rule))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
    };
    let policy = Policy::new(&privacy, Arc::new(Keyring::for_tests(7))).expect("a policy");
    let mut settings = stream_settings(stream);
    settings.hash_ignore = strings(&["84", "85", "98"]);
    Mapper::new(&settings, Arc::new(policy), MarcSettings::default(), TimeZone::UTC)
}

/// Whatever has been seen or is to be feared, an entry each.
const BIBS: &str = r#"{"total":20,"start":0,"entries":[
 {"id":"1000001","updatedDate":"2024-03-09T02:14:07Z","createdDate":"2011-06-01T10:00:00Z","deleted":false,
  "suppressed":false,"available":true,"lang":{"code":"eng","name":"English"},"title":"Field guide","price": 1.50,
  "locations":[{"code":"main ","name":"Main"},{"code":"annex"}],
  "fixedFields":{"84":{"label":"UPDATED","value":"2024-03-09T02:14:07Z"},"31":{"value":"-","label":"BCODE3"},
   "24":{"label":"LANG","value":"eng","display":"English"}},
  "varFields":[
   {"fieldTag":"o","marcTag":"001","ind1":" ","ind2":" ","content":"ex0001"},
   {"fieldTag":"y","marcTag":"008","ind1":" ","ind2":" ","content":"110601s1969    enk      b    001 0 eng d"},
   {"fieldTag":"t","marcTag":"245","ind1":"1","ind2":"0","subfields":[{"tag":"a","content":"Field \"guide\" <to> & co /"},{"tag":"c","content":"A. Doe"}]},
   {"fieldTag":"n","content":"a note beside the MARC"},
   {"fieldTag":"_","content":"00000nam  2200000 a 4500"}]},
 {"id":1000002,"varFields":[{"subfields":[{"content":"\u0041\u00e9\u6f22\ud83d\ude00 \b\f\n\r\t\/\\ |","tag":"\u0061"}],
   "ind2":"\u0030","ind1":"1","m\u0061rcTag":"2\u00345","fieldTag":"t"},{"marcTag":"500","content":"x\u001fy"}]},
 {"id":1000003,"title":"first","title":"second","t\u0069tle":"third","varFields":[{"marcTag":"245","content":"no"}],
  "varFields":[{"marcTag":"100","marcTag":"245","content":"old","content":"new","ind1":"1","ind1":null,
   "subfields":[{"tag":"a","content":"x"}],"subfields":[]}],"fixedFields":{"31":{"value":"a"},"31":{"value":"b"}}},
 {"id":1000004,"title":"a\ud83d","varFields":[{"marcTag":"245","content":"\ude00b \ud83d\ude00 \uD83Dx"}]},
 {"id":1000005,"updatedDate":null,"suppressed":null,"locations":null,"fixedFields":null,"varFields":[
   {"fieldTag":null,"marcTag":null,"ind1":null,"ind2":null,"content":null,"subfields":null},
   {"fieldTag":"t","marcTag":"245","subfields":[{"tag":null,"content":"x"},{"tag":"a","content":null},{}]},{}],
  "marc":null,"title":null},
 {"id":1000006},
 {"id":1000007,"varFields":null,"title":"no MARC"},
 {"id":1000008,"varFields":[]},
 {"id":1000009,"varFields":[{"marcTag":"909","subfields":[{"tag":"a","content":"dropped"}]},
   {"marcTag":"590","subfields":[{"tag":"a","content":"kept"},{"tag":"x","content":"dropped"}],"odd":{"deep":[1,{"x":"]}"}]}},
   {"fieldTag":"n","content":"note","extra":[["\"]"]],"subfields":[{"tag":"a","content":"sub","more":1}]}],
  "marc":{"leader":"00000nam a2200000 a 4500","fields":[{"001":"7"}]}},
 {"id":1000010,"suppressed":true,"varFields":[{"marcTag":"24"},{"marcTag":"x","content":"?"},{"marcTag":" 50","content":"y"}]},
 {"id":1000011,"deleted":true,"deletedDate":"2024-03-08"},
 {"id":1000012,"varFields":[{"marcTag":245}],"title":"bad"},
 {"id":1000013,"varFields":[{"subfields":[{"tag":"a"},{"content":[]}]}]},
 {"id":1000014,"varFields":[{"marcTag":"245","subfields":[null]}]},
 {"id":1000015,"varFields":[null]},
 {"id":1000016,"varFields":{"a":1}},
 "not an object",
 {"id":"x17"},
 {"id":1000018,"hold":{"patron":"x"},"links":["https://x.example/patrons/7"],"varFields":[{ "marcTag" : "245" , "content" : "spaced" } , { } ] , "n" : -1.0e+5 },
 {"id":1000019,"varFields":[{"marcTag":"245","ind1":"","ind2":"10","subfields":[{"tag":"","content":"x"},{"tag":"ab","content":"y"},{"tag":"漢","content":"漢字 a long text that fits into no small room at all"}]}]}
],"more":{"x":[1,2,3]}}"#;

const ITEMS: &str = r#"{"entries":[
 {"id":"3900123","updatedDate":"2024-03-09T02:14:07.9Z","bibIds":["2100417",2100999,"2100417",null,"1000001@other"],
  "location":{"code":"law  ","name":"Law"},"status":{"code":"-","display":"AVAILABLE"},"copyNo":1,"barcode":"31",
  "fixedFields":{"66":{"value":"p7"},"67":{"value":"p8"},"84":{"value":"x"},"79":{"label":"LOC","value":"law"}},
  "varFields":[{"fieldTag":"b","content":"31"},{"fieldTag":"v","content":"v.1 \"x\" \u00e9"},{"fieldTag":"m","content":"gone"},
   {"fieldTag":"c","marcTag":"050","subfields":[{"tag":"a","content":"QA"}]}]},
 {"id":3900124,"bibIds":["canary"]},
 {"id":3900125,"location":"main ","varFields":null,"suppressed":"true","holdCount":2,"requestedBy":"x"},
 {"id":3900126,"varFields":[{"fieldTag":7}]},
 {"id":3900127,"deletedDate":"2024-03-09T00:00:00Z"},
 {"id":3900128,"bibIds":[2,1],"fixedFields":{"98":{"value":1}},"callNumber":"a\ud800b"}
]}"#;

const PATRONS: &str = r#"{"entries":[
 {"id":1200345,"updatedDate":"2024-03-09T02:14:07Z","names":["DOE, JANE"],"barcodes":["2\u0031"],"patronType":3,
  "homeLibraryCode":"main ","emails":["x@example.org"],"fixedFields":{"47":{"value":3}},"varFields":[{"fieldTag":"n","content":"DOE"}]},
 {"id":1200346,"suppressed":"canary"},
 {"id":1200347,"varFields":[{"content":7}]},
 {"id":1200348,"patronType":1,"patronType":{"a" : [ 1 , 2 ]}},
 {"id":1200349,"deleted":true}
]}"#;
