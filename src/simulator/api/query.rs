//! The parameters of the list endpoints (`sierra-api.md` §2.2, §2.6), checked as Sierra checks them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;

use super::super::kind::Kind;
use super::super::switches::{OverLimit, Switches};
use super::super::world::{Slot, Stamps};
use super::refusal::Refusal;
use super::request::ApiRequest;
use super::serve::FieldList;

/// Entries of a page when no `limit` is sent, even for longer lists of ids.
const DEFAULT_LIMIT: usize = 50;

/// The ceiling of `limit`.
const LARGEST_LIMIT: usize = 2_000;

/// A range, closed at both ends; an open end is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span<T> {
    pub(crate) from: Option<T>,
    pub(crate) to: Option<T>,
}

impl<T: PartialOrd + Copy> Span<T> {
    fn contains(&self, value: T) -> bool {
        self.from.is_none_or(|from| value >= from) && self.to.is_none_or(|to| value <= to)
    }

    fn parse(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Self> {
        let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
            let only = read(text)?;
            return Some(Self { from: Some(only), to: Some(only) });
        };
        let (from, to) = inner.split_once(',')?;
        let end = |text: &str| if text.is_empty() { Some(None) } else { read(text).map(Some) };
        Some(Self { from: end(from)?, to: end(to)? })
    }
}

/// Which record numbers are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ids {
    /// These alone.
    List(BTreeSet<u64>),
    /// All in a range.
    Range(Span<u64>),
}

/// A list query.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    pub(crate) ids: Ids,
    pub(crate) fields: FieldList,
    created: Option<Span<Timestamp>>,
    updated: Option<Span<Timestamp>>,
    deleted_on: Option<Span<Date>>,
    deleted: Option<bool>,
    suppressed: Option<bool>,
    locations: Vec<String>,
    bib_ids: Option<BTreeSet<u64>>,
    status: Option<String>,
    /// `duedate`: present and empty means any due date.
    due: Option<Option<Span<Timestamp>>>,
    agencies: bool,
}

/// The shape of a query, on which the form of "nothing" depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Asks for tombstones.
    Deletes,
    /// Asks for the items of bibs.
    OfBibs,
    /// Anything else.
    Range,
}

impl Query {
    /// Reads the parameters of the list endpoint of `kind`; `further` names are let pass unread.
    ///
    /// # Errors
    /// 400 with code 106 for a name that the endpoint does not know, 101 for a value it cannot read, 108 for a field
    /// it does not have.
    pub(crate) fn read(
        request: &ApiRequest<'_>,
        kind: Kind,
        switches: &Switches,
        further: &[&str],
    ) -> Result<Self, Refusal> {
        for (name, _) in &request.parameters {
            if !knows(kind, name) && !further.contains(&name.as_str()) {
                return Err(Refusal::documented(106).saying(format!("Parameter not recognized : {name}")));
            }
        }
        let read = Reader { request };
        let fields = match request.parameter("fields") {
            None => FieldList::default_of(kind),
            Some(names) => FieldList::parse(kind, names).map_err(|unknown| {
                Refusal::documented(108).saying(format!("Invalid parameter : {unknown} is not a valid field"))
            })?,
        };
        let deleted = read.value("deleted", boolean)?;
        if fields.is_every() && deleted == Some(true) {
            return Err(Refusal::documented(103));
        }
        let limit = read.value("limit", |text| text.parse().ok().filter(|limit| *limit > 0))?.unwrap_or(DEFAULT_LIMIT);
        if limit > LARGEST_LIMIT && switches.over_limit == OverLimit::Refuse {
            return Err(Refusal::documented(101).saying("Invalid parameter : limit must not exceed 2000"));
        }
        Ok(Self {
            limit: limit.min(LARGEST_LIMIT),
            offset: read.value("offset", |text| text.parse().ok())?.unwrap_or(0),
            ids: read.value("id", ids)?.unwrap_or(Ids::Range(Span { from: None, to: None })),
            fields,
            created: read.value("createdDate", |text| Span::parse(text, stamp))?,
            updated: read.value("updatedDate", |text| Span::parse(text, stamp))?,
            deleted_on: read
                .value("deletedDate", |text| Span::parse(text, |day| day.parse().ok().filter(|_| day.len() == 10)))?,
            deleted,
            suppressed: read.value("suppressed", boolean)?,
            locations: read
                .value("locations", |text| Some(text.split(',').map(str::to_owned).collect()))?
                .unwrap_or_default(),
            bib_ids: read.value("bibIds", number_list)?,
            status: request.parameter("status").map(|status| status.trim().to_owned()),
            due: read.value("duedate", |text| {
                if text.is_empty() { Some(None) } else { Span::parse(text, stamp).map(Some) }
            })?,
            agencies: request.parameter("agencyCodes").is_some(),
        })
    }

    /// Numbers that can be in the answer.
    pub(crate) fn id_bounds(&self) -> (u64, u64) {
        match &self.ids {
            Ids::List(list) => (list.first().copied().unwrap_or(1), list.last().copied().unwrap_or(0)),
            Ids::Range(span) => (span.from.unwrap_or(0), span.to.unwrap_or(u64::MAX)),
        }
    }

    /// The shape, which decides how "nothing" is said.
    pub(crate) fn shape(&self) -> Shape {
        if self.deleted == Some(true) || self.deleted_on.is_some() {
            Shape::Deletes
        } else if self.bib_ids.is_some() {
            Shape::OfBibs
        } else {
            Shape::Range
        }
    }

    /// Whether a slot answers the query; all conditions must hold.
    pub(crate) fn accepts<R: Filtered>(
        &self,
        id: u64,
        slot: &Slot<R>,
        switches: &Switches,
        hidden: impl Fn(&R) -> bool,
    ) -> bool {
        if let Ids::List(list) = &self.ids
            && !list.contains(&id)
        {
            return false;
        }
        match slot {
            Slot::Live(stamps, record) => {
                self.deleted != Some(true)
                    && self.deleted_on.is_none()
                    && self.accepts_stamps(stamps)
                    && self.suppressed.is_none_or(|wanted| wanted == hidden(record))
                    && self.accepts_record(record)
            }
            Slot::Deleted(stamps, day) => self.accepts_tombstone(stamps, *day, switches),
        }
    }

    fn accepts_tombstone(&self, stamps: &Stamps, day: Date, switches: &Switches) -> bool {
        let names_its_state = self.deleted == Some(true) || self.deleted_on.is_some();
        // A tombstone has lost everything that these conditions look at.
        let is_beyond = self.suppressed == Some(true)
            || !self.locations.is_empty()
            || self.bib_ids.is_some()
            || self.status.is_some()
            || self.due.is_some();
        // Newer servers answer a query by `updatedDate` with live records alone (`sierra-api.md` §7 item 7).
        let is_withheld = self.updated.is_some() && !switches.tombstones_in_updates && !names_its_state;
        self.deleted != Some(false)
            && !is_beyond
            && !is_withheld
            && self.accepts_stamps(stamps)
            && self.deleted_on.is_none_or(|span| span.contains(day))
    }

    fn accepts_stamps(&self, stamps: &Stamps) -> bool {
        self.updated.is_none_or(|span| span.contains(stamps.updated))
            && self.created.is_none_or(|span| span.contains(stamps.created))
    }

    fn accepts_record<R: Filtered>(&self, record: &R) -> bool {
        let at_location = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => record.is_at(|code| code.starts_with(start)),
            None => record.is_at(|code| code == pattern.trim_end()),
        };
        (self.locations.is_empty() || self.locations.iter().any(at_location))
            && self.bib_ids.as_ref().is_none_or(|bibs| record.bib_ids().iter().any(|bib| bibs.contains(bib)))
            && self.status.as_ref().is_none_or(|status| record.has_status(status))
            && self.due.is_none_or(|due| record.due().is_some_and(|day| due.is_none_or(|span| span.contains(day))))
            && (!self.agencies || R::HAS_AGENCIES)
    }
}

/// What conditions look at in a record.
pub(crate) trait Filtered {
    /// Whether `agencyCodes` can select it.
    const HAS_AGENCIES: bool = false;

    /// Whether any of its locations passes.
    fn is_at(&self, passes: impl Fn(&str) -> bool) -> bool;

    /// The bibs it hangs from.
    fn bib_ids(&self) -> &[u64] {
        &[]
    }

    /// Whether it has this status.
    fn has_status(&self, _: &str) -> bool {
        false
    }

    /// When it is due back.
    fn due(&self) -> Option<Timestamp> {
        None
    }
}

fn knows(kind: Kind, parameter: &str) -> bool {
    match parameter {
        "limit" | "offset" | "id" | "fields" | "createdDate" | "updatedDate" | "deletedDate" | "deleted"
        | "suppressed" => true,
        "locations" => kind != Kind::Patrons,
        "bibIds" | "status" | "duedate" => kind == Kind::Items,
        "agencyCodes" => kind == Kind::Patrons,
        _ => false,
    }
}

struct Reader<'a> {
    request: &'a ApiRequest<'a>,
}

impl Reader<'_> {
    fn value<T>(&self, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Refusal> {
        let Some(text) = self.request.parameter(name) else { return Ok(None) };
        let refused = || Refusal::documented(101).saying(format!("Invalid parameter : {name} cannot be {text}"));
        read(text).map(Some).ok_or_else(refused)
    }
}

fn boolean(text: &str) -> Option<bool> {
    text.parse().ok()
}

/// `YYYY-MM-DDTHH:MM:SS` and then `Z` or `+00:00`: nothing finer, no other zone (`sierra-api.md` §2.6).
fn stamp(text: &str) -> Option<Timestamp> {
    let seconds = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"))?;
    if seconds.len() != 19 || !seconds.contains('T') {
        return None;
    }
    format!("{seconds}Z").parse().ok()
}

fn ids(text: &str) -> Option<Ids> {
    if text.starts_with('[') {
        return Span::parse(text, |number| number.parse().ok()).map(Ids::Range);
    }
    number_list(text).map(Ids::List)
}

fn number_list(text: &str) -> Option<BTreeSet<u64>> {
    text.split(',').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_seconds_with_a_zone_are_read() {
        assert!(stamp("2024-03-09T02:14:07Z").is_some());
        assert!(stamp("2024-03-09T02:14:07+00:00").is_some());
        for refused in [
            "2024-03-09T02:14:07",
            "2024-03-09",
            "2024-03-09T02:14:07.5Z",
            "2024-03-09T02:14:07 00:00",
            "2024-03-09T02:14:07+02:00",
        ] {
            assert!(stamp(refused).is_none(), "{refused}");
        }
    }

    #[test]
    fn ranges_are_closed_and_may_be_open_at_either_end() {
        let span = |text: &str| Span::parse(text, |number| number.parse::<u64>().ok()).unwrap();
        assert!(span("[3,5]").contains(3) && span("[3,5]").contains(5) && !span("[3,5]").contains(6));
        assert!(span("[3,]").contains(99) && span("[,3]").contains(0));
        assert!(span("7").contains(7) && !span("7").contains(8));
        assert!(Span::parse("[3]", |number| number.parse::<u64>().ok()).is_none());
    }
}
