//! The list endpoints: select, cut to a page, write.

use jiff::Timestamp;

use super::super::json::{push_array, push_display};
use super::super::kind::Kind;
use super::super::switches::{Nothing, Switches, Total};
use super::super::world::{Bib, Item, Patron, Shelf, Slot, World};
use super::answer::Answer;
use super::query::{Filtered, Query, Shape};
use super::refusal::Refusal;
use super::request::ApiRequest;
use super::serve::{FieldList, Form, Served, push_entry};
use super::tamper::Tampering;

/// Bytes to expect of an entry with varFields; a wrong guess costs a reallocation and nothing else.
const ENTRY_SIZE_GUESS: usize = 7_000;

/// Answers a list request.
///
/// # Errors
/// Sierra's refusals; "nothing found" is one of them on many servers.
pub(crate) fn list(
    world: &World,
    switches: &Switches,
    request: &ApiRequest<'_>,
    kind: Kind,
    tampering: &Tampering,
) -> Result<Answer, Refusal> {
    let query = Query::read(request, kind, switches, &[])?;
    match kind {
        Kind::Bibs => page(world, &world.bibs, switches, &query, tampering),
        Kind::Items => page(world, &world.items, switches, &query, tampering),
        Kind::Patrons => page(world, &world.patrons, switches, &query, tampering),
    }
}

/// Answers a request for one record.
///
/// # Errors
/// 404 with code 107 when there is no such record; 400 for a bad `fields`.
pub(crate) fn one(
    world: &World,
    switches: &Switches,
    request: &ApiRequest<'_>,
    kind: Kind,
    id: u64,
) -> Result<Answer, Refusal> {
    if let Some((name, _)) = request.parameters.iter().find(|(name, _)| name != "fields") {
        return Err(Refusal::documented(106).saying(format!("Parameter not recognized : {name}")));
    }
    let fields = match request.parameter("fields") {
        None => FieldList::default_of(kind),
        Some(names) => FieldList::parse(kind, names).map_err(|unknown| {
            Refusal::documented(108).saying(format!("Invalid parameter : {unknown} is not a valid field"))
        })?,
    };
    let form = Form { world, switches, fields: &fields };
    fn write<R: Served + Clone>(shelf: &Shelf<R>, id: u64, form: &Form<'_>) -> Result<Answer, Refusal> {
        let slot = shelf.visible(id).ok_or_else(|| Refusal::documented(107))?;
        let mut out = String::new();
        push_entry(id, slot, form, &mut out);
        Ok(Answer::json(out).counting(1))
    }
    match kind {
        Kind::Bibs => write(&world.bibs, id, &form),
        Kind::Items => write(&world.items, id, &form),
        Kind::Patrons => write(&world.patrons, id, &form),
    }
}

fn page<R: Served + Filtered + Clone>(
    world: &World,
    shelf: &Shelf<R>,
    switches: &Switches,
    query: &Query,
    tampering: &Tampering,
) -> Result<Answer, Refusal> {
    let (from, to) = if tampering.ignores_position { (0, u64::MAX) } else { query.id_bounds() };
    let accepted =
        |(id, slot): &(u64, &Slot<R>)| query.accepts(*id, slot, switches, |record| record.is_suppressed(world));
    let mut matches = shelf.visible_range(from, to).filter(accepted).skip(query.offset);
    let mut entries: Vec<(u64, &Slot<R>)> = matches.by_ref().take(query.limit).collect();
    let rest = if switches.total == Total::AllMatches { matches.count() } else { 0 };
    tampering.rearrange(&mut entries);
    let only_ids = query.fields.is_numbers_only();
    if let Some(refusal) = tampering.poisoned_by(R::KIND, entries.iter().map(|(id, _)| *id), only_ids) {
        return Err(refusal);
    }
    if entries.is_empty() {
        return nothing(query, switches);
    }
    let form = Form { world, switches, fields: &query.fields };
    let guess = if query.fields.has("varFields") || query.fields.has("marc") { ENTRY_SIZE_GUESS } else { 500 };
    let mut out = String::with_capacity(entries.len() * guess + 100);
    out.push('{');
    match switches.total {
        Total::PerPage => push_display(&mut out, format_args!("\"total\":{},", entries.len())),
        Total::AllMatches => push_display(&mut out, format_args!("\"total\":{},", query.offset + entries.len() + rest)),
        Total::Absent => {}
    }
    if switches.start {
        push_display(&mut out, format_args!("\"start\":{},", query.offset));
    }
    out.push_str("\"entries\":");
    let count = entries.len();
    push_array(&mut out, entries, |out, (id, slot)| {
        if only_ids || !tampering.push_instead(R::KIND, id, slot, out) {
            push_entry(id, slot, &form, out);
        }
    });
    out.push('}');
    let slow = if query.fields.has("isRequestable") && R::KIND == Kind::Bibs { count } else { 0 };
    Ok(Answer::json(out).counting(count).costing(slow))
}

fn nothing(query: &Query, switches: &Switches) -> Result<Answer, Refusal> {
    let form = match query.shape() {
        Shape::Deletes => switches.empty_deletes,
        Shape::OfBibs => switches.empty_bib_ids,
        Shape::Range => switches.empty_range,
    };
    match form {
        Nothing::NotFound => Err(Refusal::documented(107)),
        Nothing::EmptyPage if switches.start => Ok(Answer::json(r#"{"start":0,"entries":[]}"#.into())),
        Nothing::EmptyPage => Ok(Answer::json(r#"{"entries":[]}"#.into())),
    }
}

impl Filtered for Bib {
    fn is_at(&self, passes: impl Fn(&str) -> bool) -> bool {
        self.locations.iter().any(|location| passes(location.code))
    }
}

impl Filtered for Item {
    fn is_at(&self, passes: impl Fn(&str) -> bool) -> bool {
        passes(self.location.code)
    }

    fn bib_ids(&self) -> &[u64] {
        &self.bib_ids
    }

    fn has_status(&self, status: &str) -> bool {
        self.status.code == status
    }

    fn due(&self) -> Option<Timestamp> {
        self.circulation.loan.map(|loan| loan.due)
    }
}

impl Filtered for Patron {
    const HAS_AGENCIES: bool = true;

    fn is_at(&self, passes: impl Fn(&str) -> bool) -> bool {
        passes(self.home.code)
    }
}
