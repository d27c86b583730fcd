//! Invents the variable-length fields of a bib: some thirty MARC fields, local notes and a leader.

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::content::{local, notes, others, subjects};
use super::person::{Person, invent_person};
use super::title::{Title, invent_title};
use super::words::{PLACES, PUBLISHERS, SERIES};
use super::{chance, pick};
use crate::simulator::site::Code;
use crate::simulator::world::VarField;

/// What the fields are to describe.
pub(crate) struct Subject {
    /// The language of the text.
    pub(crate) language: &'static Code,
    /// The country of publication.
    pub(crate) country: &'static Code,
    /// The year of publication.
    pub(crate) year: i16,
    /// A number that no other description has; it becomes the control number and the ISBN.
    pub(crate) number: u64,
}

/// The fields of one bib, in stored order: by field tag, the leader last (`sierra-api.md` §3.1).
pub(crate) fn invent_fields(rng: &mut StdRng, subject: &Subject) -> Vec<VarField> {
    let mut fields = Vec::with_capacity(40);
    let author = invent_person(rng, subject.language.code);
    let title = invent_title(rng, subject.language.code);
    let has_author = chance(rng, 85);
    numbers(&mut fields, rng, subject);
    title_fields(&mut fields, rng, &title, &author, has_author);
    if has_author {
        author_fields(&mut fields, &author, &title);
    }
    imprint(&mut fields, rng, subject);
    extent(&mut fields, rng, subject);
    subjects(&mut fields, rng);
    notes(&mut fields, rng);
    others(&mut fields, rng, subject.number);
    local(&mut fields, rng);
    // Some real bibs have no leader; clients must make one up.
    if !chance(rng, 2) {
        fields.push(VarField::plain('_', "00000nam  2200000 a 4500"));
    }
    fields.sort_by_key(VarField::rank);
    fields
}

fn numbers(fields: &mut Vec<VarField>, rng: &mut StdRng, subject: &Subject) {
    let number = subject.number;
    fields.push(VarField::control('o', "001", format!("ex{number:08}")));
    fields.push(VarField::control('y', "003", "XxSim"));
    let mut two_digits = |from: u32, to: u32| format!("{:02}", rng.random_range(from..=to));
    let day = [two_digits(4, 25), two_digits(1, 12), two_digits(1, 28)].concat();
    let time = [two_digits(6, 21), two_digits(0, 59), two_digits(0, 59)].concat();
    fields.push(VarField::control('y', "005", format!("20{day}{time}.0")));
    fields.push(VarField::control('y', "008", fixed_008(subject)));
    fields.push(VarField::marc('l', "010", "  ").with('a', format!("   {:08}", 90_000_000 + number)));
    let bound = VarField::marc('i', "020", "  ").with('a', isbn(number)).with('q', "(hardback)").with('c', "£24.50");
    fields.push(bound);
    if chance(rng, 40) {
        fields.push(VarField::marc('i', "020", "  ").with('z', isbn(number + 500_000)).with('q', "(pbk.)"));
    }
    fields.push(VarField::marc('o', "035", "  ").with('a', format!("(XxSim){number}")));
    if chance(rng, 50) {
        let union = format!("(OCoLC)ocn{:09}", 800_000_000 + number);
        fields.push(VarField::marc('o', "035", "  ").with('a', union).with('z', format!("(OCoLC){number}")));
    }
    let source = VarField::marc('y', "040", "  ").with('a', "XxSim").with('b', "eng").with('e', "rda");
    fields.push(source.with('c', "XxSim").with('d', "XxSim"));
    if chance(rng, 25) {
        fields.push(VarField::marc('y', "041", "1 ").with('a', subject.language.code).with('h', "eng"));
    }
    let letter = letter(number);
    let mark = VarField::marc('c', "050", " 4").with('a', format!("QX{}", 100 + number % 900));
    fields.push(mark.with('b', format!(".{letter}{} {}", number % 97, subject.year)));
}

fn title_fields(fields: &mut Vec<VarField>, rng: &mut StdRng, title: &Title, author: &Person, has_author: bool) {
    let added = if has_author { '1' } else { '0' };
    let mut field = VarField::marc('t', "245", &format!("{added}{}", title.skip));
    if title.original.is_some() {
        field = field.with('6', "880-01");
    }
    field = match &title.rest {
        Some(rest) => field.with('a', format!("{} :", title.proper)).with('b', format!("{rest} /")),
        None => field.with('a', format!("{} /", title.proper)),
    };
    fields.push(field.with('c', format!("{}.", author.spoken)));
    if let Some((script, original)) = title.original {
        let field = VarField::marc('t', "880", &format!("{added}0")).with('6', format!("245-01/{script}"));
        fields.push(field.with('a', format!("{original} /")).with('c', author.original.unwrap_or(original)));
    }
    if chance(rng, 30) {
        fields.push(VarField::marc('u', "246", "30").with('a', title.rest.as_ref().unwrap_or(&title.proper)));
    }
}

fn author_fields(fields: &mut Vec<VarField>, author: &Person, title: &Title) {
    let original = author.original.zip(title.original);
    let mut field = VarField::marc('a', "100", "1 ");
    if original.is_some() {
        field = field.with('6', "880-02");
    }
    field = field.with('a', format!("{},", author.heading));
    if let Some(dates) = &author.dates {
        field = field.with('d', format!("{dates},"));
    }
    fields.push(field.with('e', "author."));
    if let Some((name, (script, _))) = original {
        fields.push(VarField::marc('a', "880", "1 ").with('6', format!("100-02/{script}")).with('a', name));
    }
}

fn imprint(fields: &mut Vec<VarField>, rng: &mut StdRng, subject: &Subject) {
    let field = VarField::marc('p', "264", " 1").with('a', format!("{} :", pick(rng, &PLACES)));
    let field = field.with('b', format!("{},", pick(rng, &PUBLISHERS)));
    fields.push(field.with('c', format!("{}.", subject.year)));
    if chance(rng, 40) {
        fields.push(VarField::marc('p', "264", " 4").with('c', format!("©{}", subject.year)));
    }
}

fn extent(fields: &mut Vec<VarField>, rng: &mut StdRng, subject: &Subject) {
    let field = VarField::marc('r', "300", "  ").with('a', format!("xii, {} pages :", rng.random_range(48..900)));
    let pictures = pick(rng, &["illustrations ;", "maps ;", "illustrations (some colour) ;", "music, portraits ;"]);
    fields.push(field.with('b', *pictures).with('c', format!("{} cm", rng.random_range(17..43))));
    fields.push(VarField::marc('r', "336", "  ").with('a', "text").with('b', "txt").with('2', "rdacontent"));
    fields.push(VarField::marc('r', "337", "  ").with('a', "unmediated").with('b', "n").with('2', "rdamedia"));
    fields.push(VarField::marc('r', "338", "  ").with('a', "volume").with('b', "nc").with('2', "rdacarrier"));
    if chance(rng, 20) {
        let edition = format!("{}. edition, revised.", rng.random_range(2..10));
        fields.push(VarField::marc('e', "250", "  ").with('a', edition));
    }
    if chance(rng, 45) {
        let (series, volume) = (format!("{} ;", pick(rng, &SERIES)), rng.random_range(1..120));
        fields.push(VarField::marc('s', "490", "1 ").with('a', series.as_str()).with('v', volume.to_string()));
        let traced = VarField::marc('s', "830", " 0").with('a', series).with('v', format!("{volume}."));
        fields.push(traced.with('w', format!("(XxSim){}", subject.number % 997)));
    }
}

/// Forty characters: date entered, date type and year, place, form, language.
fn fixed_008(subject: &Subject) -> String {
    let Subject { year, country, language, .. } = subject;
    format!("190101s{year:04}    {:<3}a     b    001 0 {:<3} d", country.code, language.code)
}

/// A well-formed ISBN-13 under a prefix that no real agency has.
fn isbn(number: u64) -> String {
    let body = format!("979999{:06}", number % 1_000_000);
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = body.bytes().zip(weights).map(|(digit, weight)| u32::from(digit - b'0') * weight).sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

fn letter(number: u64) -> char {
    char::from(b'A' + u8::try_from(number % 26).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::RootSeed;
    use crate::simulator::site::{COUNTRIES, LANGUAGES};

    #[test]
    fn descriptions_are_rich_and_in_stored_order() {
        let mut rng = RootSeed::new(1).generator("test");
        for number in 0..200 {
            let (language, country) = (pick(&mut rng, &LANGUAGES), pick(&mut rng, &COUNTRIES));
            let subject = Subject { language, country, year: 1990, number };
            let fields = invent_fields(&mut rng, &subject);
            assert!((20..60).contains(&fields.len()), "{}", fields.len());
            assert!(fields.is_sorted_by_key(VarField::rank));
            assert_eq!(fields.iter().filter(|field| field.is("245")).count(), 1);
            assert_eq!(fixed_008(&subject).len(), 40);
        }
    }

    #[test]
    fn an_original_script_is_linked_from_both_sides() {
        let mut rng = RootSeed::new(2).generator("test");
        let language = LANGUAGES.iter().find(|code| code.code == "heb").unwrap();
        let subject = Subject { language, country: &COUNTRIES[0], year: 2001, number: 9 };
        let fields = invent_fields(&mut rng, &subject);
        let title = fields.iter().find(|field| field.is("245")).unwrap();
        assert_eq!(title.subfield('6'), Some("880-01"));
        let original = fields.iter().find(|field| field.is("880") && field.field_tag == 't').unwrap();
        assert_eq!(original.subfield('6'), Some("245-01/(2/r"));
    }
}
