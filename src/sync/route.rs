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
