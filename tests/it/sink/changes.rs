//! Changes of an invented library.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use sierra_sync::marc::{Loss, LossKind};
use sierra_sync::privacy::{FieldRule, Keyring, Masked, Policy, PrivacySettings};
use sierra_sync::record::{Fields, RawPatron, RecordNumber, Stream};
use sierra_sync::sync::{Change, ContentHash, DeleteReason, Op, Origin, Payload, Seq};

pub(crate) fn seq(value: u64) -> Seq {
    Seq::new(value).expect("below 2^53")
}

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("valid JSON")
}

/// A live bib; `title` tells its versions apart.
pub(crate) fn bib(at: u64, id: u64, title: &str) -> Change {
    let title_json = serde_json::to_string(title).expect("a string");
    let title_xml = title.replace('&', "&amp;").replace('<', "&lt;");
    Change {
        seq: seq(at),
        stream: Stream::Bibs,
        id: id.to_string(),
        op: Op::Upsert,
        updated: Some("2024-03-09T02:14:07Z".parse().expect("a time")),
        suppressed: false,
        captured: "2026-01-05T10:00:03Z".parse().expect("a time"),
        source: Origin::Incremental,
        payload: Payload::Bib {
            record: raw(&format!(r#"{{"id":"{id}","title":{title_json},"publishYear":1969.0}}"#)),
            marcxml: format!(
                "<record xmlns=\"http://www.loc.gov/MARC21/slim\"><leader>00000nam a2200000 a 4500</leader>\
                 <controlfield tag=\"001\">ex{id}</controlfield><datafield tag=\"245\" ind1=\"1\" ind2=\"0\">\
                 <subfield code=\"a\">{title_xml}</subfield></datafield></record>"
            ),
            losses: vec![Loss {
                kind: LossKind::TagRepaired,
                field: "017".to_owned(),
                detail: "was \"17\"".to_owned(),
            }],
            locations: vec!["main".to_owned()],
        },
        unlinked_bib_ids: Vec::new(),
        hash: hash(title),
        only_for: None,
    }
}

/// A live item that hangs from `bibs`.
pub(crate) fn item(at: u64, id: u64, bibs: &[u64], unlinked: &[u64]) -> Change {
    Change {
        stream: Stream::Items,
        payload: Payload::Item {
            record: raw(&format!(r#"{{"id":"{id}","copyNo":1}}"#)),
            bib_ids: numbers(bibs),
            location: Some("main".to_owned()),
        },
        unlinked_bib_ids: numbers(unlinked),
        ..bib(at, id, "item")
    }
}

/// A live patron, masked by the default policy.
pub(crate) fn patron(at: u64, number: u64) -> Change {
    let policy = policy();
    let number = RecordNumber::new(number);
    let fields = Fields::new(vec![
        ("id".to_owned(), raw(&number.to_string())),
        ("names".to_owned(), raw(r#"["EXAMPLE, PAT"]"#)),
        ("patronType".to_owned(), raw("15")),
    ]);
    let masked: Masked<Box<RawValue>> = policy.mask_patron(&RawPatron::new(number, None, false, fields));
    Change {
        stream: Stream::Patrons,
        id: policy.keyring().pseudonym(number).to_string(),
        payload: Payload::Patron(masked),
        ..bib(at, 1, "patron")
    }
}

/// A deletion that Sierra told.
pub(crate) fn deleted(at: u64, stream: Stream, id: u64, unlinked: &[u64]) -> Change {
    Change {
        stream,
        op: Op::Delete { reason: DeleteReason::Deleted, deleted_on: Some("2024-03-09".parse().expect("a day")) },
        updated: Some("2024-03-09T23:59:59Z".parse().expect("a time")),
        source: Origin::Deletes,
        payload: Payload::Nothing,
        unlinked_bib_ids: numbers(unlinked),
        ..bib(at, id, "deleted")
    }
}

pub(crate) fn policy() -> Policy {
    Policy::new(&default_privacy(), Arc::new(Keyring::for_tests(1))).expect("sound settings")
}

/// The settings of the sample file.
pub(crate) fn default_privacy() -> PrivacySettings {
    let pass = |name: &str| (name.to_owned(), FieldRule::Pass);
    let mut patron_fields: BTreeMap<String, FieldRule> =
        ["patronType", "homeLibraryCode", "expirationDate"].map(pass).into();
    patron_fields.insert("id".to_owned(), FieldRule::Hmac);
    PrivacySettings {
        key_file: None,
        retention: Duration::from_secs(30 * 86_400),
        marc_drop: Vec::new(),
        item_fixed_drop: vec!["66".to_owned(), "67".to_owned()],
        item_var_keep: vec!["v".to_owned(), "c".to_owned()],
        patron_fields,
    }
}

fn hash(text: &str) -> ContentHash {
    let mut half = [0; 16];
    half.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    ContentHash(half)
}

fn numbers(values: &[u64]) -> Vec<RecordNumber> {
    values.iter().copied().map(RecordNumber::new).collect()
}
