//! Invented changes, states, rows and quarantine entries, and how to compare them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::value::RawValue;
use sierra_sync::marc::{Loss, LossKind};
use sierra_sync::privacy::{FieldRule, Keyring, Masked, Policy, PrivacySettings};
use sierra_sync::record::{Fields, RawPatron, RecordNumber, Stream};
use sierra_sync::sync::ports::{QuarantineEntry, QuarantineState, SinkPosition, Slice};
use sierra_sync::sync::remembered::RememberedState;
use sierra_sync::sync::{
    Change, ContentHash, DeleteReason, LedgerRow, Op, Origin, Pass, Payload, Remembered, RequestNumber, RowState, Seq,
    Span, Window,
};

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_600_000 + second).unwrap()
}

pub(crate) fn number(number: u64) -> RecordNumber {
    RecordNumber::new(number)
}

/// A bib with everything that a bib's change can carry.
pub(crate) fn bib(id: u64) -> Change {
    let marcxml = format!("<record><controlfield tag=\"001\">{id}</controlfield></record>").repeat(20);
    bib_holding(id, marcxml)
}

pub(crate) fn bib_holding(id: u64, marcxml: String) -> Change {
    Change {
        seq: Seq::ZERO,
        stream: Stream::Bibs,
        id: id.to_string(),
        op: Op::Upsert,
        updated: Some(at(-3600)),
        suppressed: true,
        captured: at(i64::try_from(id).unwrap()),
        source: Origin::Incremental,
        payload: Payload::Bib {
            record: json(&format!(r#"{{"id":"{id}","title":"Vom Wetter, 2.  Auflage"}}"#)),
            marcxml,
            losses: vec![Loss { kind: LossKind::LeaderMissing, field: "leader".into(), detail: "é".into() }],
            locations: vec!["main".into(), "stk".into()],
        },
        unlinked_bib_ids: Vec::new(),
        hash: ContentHash([9; 16]),
        only_for: None,
    }
}

pub(crate) fn item(id: u64, bibs: &[u64]) -> Change {
    Change {
        stream: Stream::Items,
        payload: Payload::Item {
            record: json(&format!(r#"{{"id":"{id}","barcode":"3900 0"}}"#)),
            bib_ids: bibs.iter().copied().map(number).collect(),
            location: Some("main".into()),
        },
        suppressed: false,
        unlinked_bib_ids: vec![number(7)],
        ..bib(id)
    }
}

/// A masked patron; `canary` passes the mask, so that tests can look for it on disk.
pub(crate) fn patron(pseudonym: &str, canary: &str) -> Change {
    Change {
        stream: Stream::Patrons,
        id: pseudonym.into(),
        payload: Payload::Patron(masked(canary)),
        unlinked_bib_ids: Vec::new(),
        ..bib(1)
    }
}

pub(crate) fn deleted(stream: Stream, id: u64) -> Change {
    Change {
        stream,
        op: Op::Delete { reason: DeleteReason::Deleted, deleted_on: Some(jiff::civil::date(2026, 1, 4)) },
        payload: Payload::Nothing,
        source: Origin::Deletes,
        suppressed: false,
        ..bib(id)
    }
}

/// Everything of a change, as text: two changes are equal when these are.
pub(crate) fn shown(change: &Change) -> String {
    format!("{change:?}")
}

pub(crate) fn slice(changes: Vec<Change>) -> Slice {
    Slice { changes, ..Slice::default() }
}

pub(crate) fn position(confirmed: Seq, streams: &[Stream]) -> SinkPosition {
    SinkPosition { confirmed, attached: true, streams: streams.to_vec(), ..SinkPosition::default() }
}

pub(crate) fn detached() -> SinkPosition {
    SinkPosition { streams: Stream::ALL.to_vec(), ..SinkPosition::default() }
}

pub(crate) fn positions(sinks: &[(&str, SinkPosition)]) -> BTreeMap<String, SinkPosition> {
    sinks.iter().map(|(name, position)| ((*name).to_owned(), position.clone())).collect()
}

pub(crate) fn live(updated: i64) -> Remembered {
    Remembered {
        state: RememberedState::Live {
            updated: Some(at(updated)),
            hash: ContentHash([3; 16]),
            suppressed: false,
            filtered: true,
        },
        sent: RequestNumber((5 << 40) + 12),
        answered: RequestNumber((5 << 40) + 13),
        sealed_id: Vec::new(),
    }
}

pub(crate) fn row(stream: Stream, id: u64) -> LedgerRow {
    LedgerRow {
        id,
        stream,
        pass: Pass::Update,
        span: Span::Time(Window::new(at(0), at(600)).unwrap()),
        state: RowState::Partial,
        position: Some(number(1_234_567)),
        attempts: 2,
        last_error: Some("read /bibs: 503 after 5 attempts".into()),
        opened: at(600),
        touched: at(601),
        resume_at: Some(at(900)),
        found_nothing: false,
    }
}

pub(crate) fn quarantined(stream: Stream, record: &str, fingerprint: &str) -> QuarantineEntry {
    QuarantineEntry {
        stream,
        record: record.into(),
        reason: "varFields is not a list".into(),
        fingerprint: fingerprint.into(),
        attempts: 1,
        last_status: Some(200),
        first_seen: at(10),
        last_seen: at(10),
        state: QuarantineState::Open,
        sink: None,
        payload: Some(r#"{"id":7,"varFields":"oops"}"#.into()),
    }
}

fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.into()).unwrap()
}

fn masked(canary: &str) -> Masked<Box<RawValue>> {
    let settings = PrivacySettings {
        key_file: None,
        retention: std::time::Duration::from_secs(1),
        marc_drop: Vec::new(),
        item_fixed_drop: Vec::new(),
        item_var_keep: Vec::new(),
        patron_fields: BTreeMap::from([("homeLibraryCode".to_owned(), FieldRule::Pass)]),
    };
    let policy = Policy::new(&settings, Arc::new(Keyring::for_tests(1))).unwrap();
    let fields = Fields::new(vec![("homeLibraryCode".into(), json(&format!("{canary:?}")))]);
    policy.mask_patron(&RawPatron::new(number(1_200_345), Some(at(0)), false, fields))
}
