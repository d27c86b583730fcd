//! What a bib says: its fields, and what the API derives from them.
//!
//! An untouched description is a function of its seed, so it is invented when somebody first reads it: a library of
//! 100,000 bibs costs nothing until it is served. Its JSON is written once and copied into every page.

use std::sync::OnceLock;

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::VarField;
use crate::seed::RootSeed;
use crate::simulator::invention::{self, Subject, chance, invent_fields, pick};
use crate::simulator::site::{COUNTRIES, Code, LANGUAGES, LEVELS, MATERIALS};

/// A description that is invented on first use.
#[derive(Debug, Clone)]
pub(crate) struct LazyDescription {
    seed: RootSeed,
    number: u64,
    cell: OnceLock<Description>,
}

impl LazyDescription {
    /// The description number `number` of the library grown from `seed`.
    pub(crate) fn new(seed: RootSeed, number: u64) -> Self {
        Self { seed, number, cell: OnceLock::new() }
    }

    /// A description that somebody has written.
    pub(crate) fn written(description: Description) -> Self {
        Self { seed: RootSeed::new(0), number: 0, cell: OnceLock::from(description) }
    }

    /// The description itself.
    pub(crate) fn get(&self) -> &Description {
        self.cell.get_or_init(|| Description::invent(self.seed, self.number))
    }
}

/// The content of a bib.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    /// Language, fixed field 24.
    pub(crate) language: &'static Code,
    /// Country, fixed field 89.
    pub(crate) country: &'static Code,
    /// Material, fixed field 30.
    pub(crate) material: &'static Code,
    /// Bibliographic level, fixed field 29.
    pub(crate) level: &'static Code,
    /// Year of publication; some bibs have none.
    pub(crate) year: Option<i16>,
    /// What the API derives from the fields.
    pub(crate) derived: Derived,
    fields: Vec<VarField>,
    json: String,
    /// Where in `json` each field ends, with its rank.
    ends: Vec<(char, usize)>,
}

/// Values that the API derives from the fields of a bib.
#[derive(Debug, Clone, Default)]
pub(crate) struct Derived {
    /// `title`: subfields a, b, n and p of the 245, without the closing slash.
    pub(crate) title: String,
    /// `author`: the whole of the 100; empty when there is none, as recorded.
    pub(crate) author: String,
    /// `isbn`: the first valid one.
    pub(crate) isbn: Option<String>,
    /// `callNumber`: the class mark.
    pub(crate) call_number: Option<String>,
}

impl Description {
    fn invent(seed: RootSeed, number: u64) -> Self {
        let mut rng = seed.generator(&format!("simulator.description.{number}"));
        // Half of the books are in the first language; a language and a country of the same position go together.
        let home = if chance(&mut rng, 50) { 0 } else { rng.random_range(0..LANGUAGES.len()) };
        let language = LANGUAGES.get(home).unwrap_or(&LANGUAGES[0]);
        let country = COUNTRIES.get(home).unwrap_or(&COUNTRIES[0]);
        let material = if chance(&mut rng, 80) { &MATERIALS[0] } else { pick(&mut rng, &MATERIALS) };
        let level = if chance(&mut rng, 92) { &LEVELS[0] } else { pick(&mut rng, &LEVELS) };
        let year = rng.random_range(1801..2025);
        let fields = invent_fields(&mut rng, &Subject { language, country, year, number });
        let known_year = (!chance(&mut rng, 4)).then_some(year);
        Self::with_fields(language, country, material, level, known_year, fields)
    }

    fn with_fields(
        language: &'static Code,
        country: &'static Code,
        material: &'static Code,
        level: &'static Code,
        year: Option<i16>,
        fields: Vec<VarField>,
    ) -> Self {
        let mut json = String::with_capacity(8 * 1024);
        let mut ends = Vec::with_capacity(fields.len());
        for field in &fields {
            if !json.is_empty() {
                json.push(',');
            }
            field.push_json(&mut json);
            ends.push((field.rank(), json.len()));
        }
        json.shrink_to_fit();
        let derived = Derived::from(&fields);
        Self { language, country, material, level, year, derived, fields, json, ends }
    }

    /// The same description with other fields; they are put into stored order.
    pub(crate) fn rewritten(&self, mut fields: Vec<VarField>) -> Self {
        fields.sort_by_key(VarField::rank);
        Self::with_fields(self.language, self.country, self.material, self.level, self.year, fields)
    }

    /// The fields, in stored order.
    pub(crate) fn fields(&self) -> &[VarField] {
        &self.fields
    }

    /// Appends the array of fields; `own` of the record, of this rank, is slipped in where it belongs.
    pub(crate) fn push_json(&self, out: &mut String, rank: char, push_own: impl FnOnce(&mut String)) {
        let position = self.ends.partition_point(|(before, _)| *before <= rank);
        let split = position.checked_sub(1).and_then(|last| self.ends.get(last)).map_or(0, |(_, end)| *end);
        let (before, after) = self.json.split_at(split);
        out.push('[');
        out.push_str(before);
        if split > 0 {
            out.push(',');
        }
        push_own(out);
        if split == 0 && !after.is_empty() {
            out.push(',');
        }
        out.push_str(after);
        out.push(']');
    }

    /// The fields with `own` slipped in, in the order of [`Description::push_json`].
    pub(crate) fn fields_with(&self, own: VarField) -> Vec<VarField> {
        let mut fields = self.fields.clone();
        let position = self.ends.partition_point(|(rank, _)| *rank <= own.rank());
        fields.insert(position, own);
        fields
    }

    /// What a cataloguer changes in one sitting; never nothing.
    pub(crate) fn edited(&self, rng: &mut StdRng, revision: &str) -> Self {
        let mut fields = self.fields.clone();
        match rng.random_range(0..4) {
            0 => fields.retain(|field| !field.is("246")),
            1 => fields.push(invention::topic(rng)),
            2 => invention::reprint(rng, &mut fields),
            _ => {}
        }
        // The counted note guarantees that no edit leaves the record as it was.
        fields.retain(|field| !(field.is("590") && field.subfield('9').is_some()));
        let note = format!("Revised by cataloguing, revision {revision}.");
        fields.push(VarField::marc('n', "590", "  ").with('a', note).with('9', "sim"));
        self.rewritten(fields)
    }
}

impl Derived {
    fn from(fields: &[VarField]) -> Self {
        let title = text_of(fields, "245", &['a', 'b', 'n', 'p']);
        Self {
            title: title.trim_end_matches([' ', '/', ':', '.', ',']).to_owned(),
            author: text_of(fields, "100", &['a', 'q', 'd', '0']),
            isbn: fields
                .iter()
                .filter(|field| field.is("020"))
                .find_map(|field| field.subfield('a').map(str::to_owned)),
            call_number: Some(text_of(fields, "050", &['a', 'b'])).filter(|mark| !mark.is_empty()),
        }
    }
}

fn text_of(fields: &[VarField], tag: &str, codes: &[char]) -> String {
    let Some(field) = fields.iter().find(|field| field.is(tag)) else { return String::new() };
    let super::Content::Subfields(subfields) = &field.content else { return String::new() };
    let parts = subfields.iter().filter(|(code, _)| codes.contains(code)).map(|(_, text)| text.as_str());
    parts.collect::<Vec<_>>().join(" ")
}
