//! What one sink is told of a change: its streams, its locations, and what it makes of suppressed records.
//!
//! The decision looks at the change alone. Whether the sink ever had the record is not known here, so what a sink may
//! hold and should not is deleted, again and again if need be: sinks pass over deletes of what they do not have. Only
//! a first load is exempt: it reads each record once, into sinks that had nothing (BR-051).

use super::settings::{RouteSettings, SuppressedAs};
use super::{Change, DeleteReason, Op, Origin, Payload};

/// The change as the sink of `route` should get it; `None` when it is not told at all.
///
/// A live record that the sink should not have becomes a delete with the same seq and hash, so that a redelivery
/// repeats its key exactly (A11).
#[must_use]
pub fn route(change: Change, route: &RouteSettings) -> Option<Change> {
    if !route.streams.contains(&change.stream) || change.only_for.as_ref().is_some_and(|only| *only != route.name) {
        return None;
    }
    match refusal(&change, route) {
        None => Some(change),
        Some(_) if change.source == Origin::Load => None,
        Some(reason) => Some(deleted(change, reason)),
    }
}

/// Whether one of `patterns` names `location`: the whole code, or its beginning where the pattern ends in `*`. Padding
/// does not count. No patterns at all name every location.
#[must_use]
pub fn names_location(patterns: &[String], location: &str) -> bool {
    let location = location.trim();
    patterns.is_empty()
        || patterns.iter().any(|pattern| {
            let pattern = pattern.trim();
            pattern.strip_suffix('*').map_or(location == pattern, |beginning| location.starts_with(beginning))
        })
}

/// Why the sink should not have the record, if so. What is outside the set is `filtered`, suppressed or not.
fn refusal(change: &Change, route: &RouteSettings) -> Option<DeleteReason> {
    if change.op != Op::Upsert {
        return None;
    }
    let is_inside = match &change.payload {
        _ if route.locations.is_empty() => true,
        Payload::Bib { locations, .. } => locations.iter().any(|code| names_location(&route.locations, code)),
        Payload::Item { location, .. } => location.iter().any(|code| names_location(&route.locations, code)),
        Payload::Patron(_) | Payload::Nothing => true,
    };
    if !is_inside {
        return Some(DeleteReason::Filtered);
    }
    (change.suppressed && route.suppressed == SuppressedAs::Delete).then_some(DeleteReason::Suppressed)
}

fn deleted(mut change: Change, reason: DeleteReason) -> Change {
    // The sink's copy hung from the bibs of some earlier version: every bib known of is named.
    if let Payload::Item { bib_ids, .. } = &change.payload {
        change.unlinked_bib_ids.extend_from_slice(bib_ids);
        change.unlinked_bib_ids.sort_unstable();
        change.unlinked_bib_ids.dedup();
    }
    change.op = Op::Delete { reason, deleted_on: None };
    change.suppressed = false;
    change.payload = Payload::Nothing;
    change
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::super::settings::WhenFull;
    use super::super::{ContentHash, Seq};
    use super::*;
    use crate::record::{RecordNumber, Stream};

    fn route_settings(suppressed: SuppressedAs, locations: &[&str]) -> RouteSettings {
        RouteSettings {
            name: "archive".to_owned(),
            streams: vec![Stream::Bibs, Stream::Items],
            suppressed,
            locations: locations.iter().map(|code| (*code).to_owned()).collect(),
            paused: false,
            when_full: WhenFull::Detach,
        }
    }

    fn item(location: Option<&str>) -> Change {
        Change {
            seq: Seq::ZERO.next(),
            stream: Stream::Items,
            id: "7".to_owned(),
            op: Op::Upsert,
            updated: None,
            suppressed: false,
            captured: "2026-01-05T10:00:03Z".parse().expect("a time"),
            source: Origin::Incremental,
            payload: Payload::Item {
                record: RawValue::from_string("{}".to_owned()).expect("JSON"),
                bib_ids: vec![RecordNumber::new(3), RecordNumber::new(1)],
                location: location.map(str::to_owned),
            },
            unlinked_bib_ids: vec![RecordNumber::new(2), RecordNumber::new(1)],
            hash: ContentHash([7; 16]),
            only_for: None,
        }
    }

    fn reason(change: Option<Change>) -> Option<&'static str> {
        Some(match change?.op {
            Op::Upsert => "upsert",
            Op::Delete { reason: DeleteReason::Suppressed, .. } => "suppressed",
            Op::Delete { reason: DeleteReason::Filtered, .. } => "filtered",
            Op::Delete { .. } => "deleted",
        })
    }

    #[test]
    fn a_sink_gets_its_streams_and_what_is_meant_for_it() {
        let settings = route_settings(SuppressedAs::Flag, &[]);
        let for_sink = |only: Option<&str>, stream| {
            let change = Change { only_for: only.map(str::to_owned), stream, ..item(None) };
            route(change, &settings).is_some()
        };
        assert!(for_sink(None, Stream::Items) && for_sink(Some("archive"), Stream::Items));
        assert!(!for_sink(Some("other"), Stream::Items) && !for_sink(None, Stream::Patrons));
    }

    #[test]
    fn suppressed_records_are_flagged_or_deleted_as_the_sink_asks() {
        let suppressed = || Change { suppressed: true, ..item(Some("main")) };
        assert_eq!(reason(route(suppressed(), &route_settings(SuppressedAs::Flag, &[]))), Some("upsert"));
        let settings = route_settings(SuppressedAs::Delete, &[]);
        assert_eq!(reason(route(item(Some("main")), &settings)), Some("upsert"));
        let deleted = route(suppressed(), &settings).expect("told");
        assert_eq!(deleted.key(), format!("items/7/delete/{}/1", "07".repeat(16)));
        assert!(!deleted.suppressed && matches!(deleted.payload, Payload::Nothing));
        let numbers: Vec<u64> = deleted.unlinked_bib_ids.iter().map(|number| number.value()).collect();
        assert_eq!(numbers, [1, 2, 3], "every bib that the sink's copy may hang from");
    }

    #[test]
    fn records_outside_the_sinks_locations_are_deletes_and_deletes_pass() {
        let settings = route_settings(SuppressedAs::Flag, &["main*", "law"]);
        for (location, expected) in [
            (Some("main"), "upsert"),
            (Some("mainr "), "upsert"),
            (Some("law  "), "upsert"),
            (Some("lawx"), "filtered"),
            (Some("mai"), "filtered"),
            (None, "filtered"),
        ] {
            assert_eq!(reason(route(item(location), &settings)), Some(expected), "{location:?}");
        }
        let op = Op::Delete { reason: DeleteReason::Deleted, deleted_on: None };
        let gone = Change { op, payload: Payload::Nothing, ..item(None) };
        assert_eq!(reason(route(gone, &settings)), Some("deleted"));
        let hidden_and_outside = Change { suppressed: true, ..item(Some("law-x")) };
        let both = route_settings(SuppressedAs::Delete, &["law"]);
        assert_eq!(reason(route(hidden_and_outside, &both)), Some("filtered"));
    }

    #[test]
    fn a_bib_is_inside_when_one_of_its_locations_is() {
        let settings = route_settings(SuppressedAs::Flag, &["law"]);
        let bib = |codes: &[&str]| {
            let payload = Payload::Bib {
                record: RawValue::from_string("{}".to_owned()).expect("JSON"),
                marcxml: String::new(),
                losses: Vec::new(),
                locations: codes.iter().map(|code| (*code).to_owned()).collect(),
            };
            reason(route(Change { stream: Stream::Bibs, payload, ..item(None) }, &settings))
        };
        assert_eq!(bib(&["main", "law"]), Some("upsert"));
        assert_eq!(bib(&["main"]), Some("filtered"));
        assert_eq!(bib(&[]), Some("filtered"));
    }

    /// BR-051: a first load does not flood a sink with deletes of what it never had.
    #[test]
    fn a_first_load_tells_nothing_of_records_that_the_sink_should_not_have() {
        let settings = route_settings(SuppressedAs::Delete, &["law"]);
        let loaded = |location| Change { source: Origin::Load, ..item(Some(location)) };
        assert_eq!(reason(route(loaded("main"), &settings)), None);
        assert_eq!(reason(route(Change { suppressed: true, ..loaded("law") }, &settings)), None);
        assert_eq!(reason(route(loaded("law"), &settings)), Some("upsert"));
        let reloaded = Change { source: Origin::Backfill, ..item(Some("main")) };
        assert_eq!(reason(route(reloaded, &settings)), Some("filtered"));
    }
}
