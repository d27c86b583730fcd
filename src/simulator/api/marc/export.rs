//! Exports: `GET /bibs/marc` makes a file, `GET` fetches it, `DELETE` removes it; else files pile up.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::super::json::Object;
use super::super::super::kind::Kind;
use super::super::super::switches::{EmptyExport, Switches};
use super::super::super::world::{Bib, Item, Slot, Stamps, VarField, World, record_number_field, staff_number};
use super::super::answer::Answer;
use super::super::query::Query;
use super::super::refusal::Refusal;
use super::super::request::ApiRequest;
use super::super::tamper::Tampering;
use super::iso2709::Draft;

/// The files that exports have left on the server.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    files: BTreeMap<u64, Vec<u8>>,
    last: u64,
}

#[derive(Debug, Default)]
struct Count {
    input: usize,
    deleted: usize,
    output: usize,
    errors: usize,
}

impl Exports {
    /// How many files lie on the server.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Phase one.
    ///
    /// # Errors
    /// Bad parameters; an empty range, in the form that this server has for it; a poison record.
    pub(crate) fn make(
        &mut self,
        world: &World,
        switches: &Switches,
        request: &ApiRequest<'_>,
        tampering: &Tampering,
    ) -> Result<Answer, Refusal> {
        let query = Query::read(request, Kind::Bibs, switches, &["mapping"])?;
        let hidden = |bib: &Bib| world.suppresses(bib.code3);
        let (from, to) = query.id_bounds();
        let accepted = |(id, slot): &(u64, &Slot<Bib>)| query.accepts(*id, slot, switches, hidden);
        let bibs: Vec<_> = world.bibs.visible_range(from, to).filter(accepted).take(query.limit).collect();
        if tampering.poisoned_by(Kind::Bibs, bibs.iter().map(|(id, _)| *id), false).is_some() {
            return Err(Refusal::documented(135));
        }
        let items = Holdings::of(world, bibs.iter().map(|(id, _)| *id));
        let mut count = Count { input: bibs.len(), ..Count::default() };
        let mut file = Vec::new();
        for (id, slot) in bibs {
            match slot {
                Slot::Deleted(..) => count.deleted += 1,
                Slot::Live(_, bib) if bib.is_unexportable => {}
                Slot::Live(stamps, bib) => {
                    let (record, left_out) = record(id, stamps, bib, items.of_bib(id));
                    file.extend_from_slice(&record);
                    count.output += 1;
                    count.errors += usize::from(left_out > 0);
                }
            }
        }
        if count.output == 0 {
            match switches.empty_export {
                EmptyExport::ProcessFailed => return Err(Refusal::documented(135)),
                EmptyExport::NotFound => return Err(Refusal::documented(107)),
                EmptyExport::NoOutput => {}
            }
        }
        self.last += 1;
        self.files.insert(self.last, file);
        Ok(Answer::json(summary(&address(request, self.last), &count)).counting(count.output))
    }

    /// Phase two.
    ///
    /// # Errors
    /// 404 when there is no such file.
    pub(crate) fn fetch(&self, id: u64) -> Result<Answer, Refusal> {
        let file = self.files.get(&id).ok_or_else(|| Refusal::documented(107))?;
        Ok(Answer { content_type: "application/octet-stream", body: file.clone(), ..Answer::json(String::new()) })
    }

    /// Phase three.
    ///
    /// # Errors
    /// 404 when there is no such file.
    pub(crate) fn remove(&mut self, id: u64) -> Result<Answer, Refusal> {
        self.files.remove(&id).ok_or_else(|| Refusal::documented(107))?;
        Ok(Answer { status: 204, ..Answer::json(String::new()) })
    }

    /// The bulk removal.
    pub(crate) fn clear(&mut self) -> Answer {
        let count = std::mem::take(&mut self.files).len();
        Answer::json(format!(r#"{{"count":{count},"results":[]}}"#))
    }
}

/// Items by bib, for the bibs of one export.
struct Holdings<'a>(BTreeMap<u64, Vec<(u64, &'a Item)>>);

impl<'a> Holdings<'a> {
    fn of(world: &'a World, bibs: impl Iterator<Item = u64>) -> Self {
        let mut holdings: BTreeMap<u64, Vec<(u64, &Item)>> = bibs.map(|id| (id, Vec::new())).collect();
        for (id, slot) in world.items.visible_range(0, u64::MAX) {
            let Some(item) = slot.live() else { continue };
            for bib in &item.bib_ids {
                if let Some(items) = holdings.get_mut(bib) {
                    items.push((id, item));
                }
            }
        }
        Self(holdings)
    }

    fn of_bib(&self, id: u64) -> &[(u64, &'a Item)] {
        self.0.get(&id).map(Vec::as_slice).unwrap_or_default()
    }
}

/// One record: the stored fields, and those that an export table generates (`sierra-api.md` §4.3).
fn record(id: u64, stamps: &Stamps, bib: &Bib, items: &[(u64, &Item)]) -> (Vec<u8>, usize) {
    let fields = bib.description().fields_with(record_number_field(id));
    let leader = fields.iter().find(|field| field.field_tag == '_').and_then(VarField::text).unwrap_or_default();
    let mut draft = Draft::new(leader);
    fields.iter().for_each(|field| draft.push(field));
    let number = format!(".{}", staff_number('b', id));
    let dates = [('b', stamps.updated), ('c', stamps.created)];
    let generated = VarField::marc('v', "907", "  ").with('a', number);
    draft.push(&dates.into_iter().fold(generated, |field, (code, stamp)| field.with(code, short_date(stamp))));
    let location = bib.locations.first().map_or("", |location| location.code);
    draft.push(&VarField::marc('v', "998", "  ").with('a', location).with('e', bib.code3));
    for (id, item) in items {
        let field = VarField::marc('v', "945", "  ").with('g', item.copy.to_string()).with('i', item.barcode.as_str());
        let field = field.with('l', format!("{:<5}", item.location.code)).with('o', item.code2);
        let field = field.with('s', item.status.code).with('t', item.item_type.code);
        draft.push(&field.with('y', format!(".{}", staff_number('i', *id))));
    }
    draft.finish()
}

fn short_date(stamp: Timestamp) -> String {
    stamp.strftime("%m-%d-%y").to_string()
}

fn address(request: &ApiRequest<'_>, file: u64) -> String {
    let uri = request.http.uri();
    let host = uri.authority().map(ToString::to_string);
    let host = host.or_else(|| request.header(http::header::HOST).map(str::to_owned)).unwrap_or_default();
    format!("{}://{host}{}/files/{file}", uri.scheme_str().unwrap_or("http"), uri.path())
}

fn summary(file: &str, count: &Count) -> String {
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.string("file", file);
    object.display("inputRecords", count.input);
    if count.deleted > 0 {
        object.display("deletedRecords", count.deleted);
    }
    object.display("outputRecords", count.output);
    object.display("errors", count.errors);
    object.close();
    out
}
