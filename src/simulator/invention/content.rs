//! Invents what a book is about, who else had a hand in it, and what cataloguers noted.

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::person::invent_person;
use super::words::{GENRES, LOCAL_NOTES, NOTES, PLACES, PUBLISHERS, SENTENCES, SUBJECTS};
use super::{chance, pick};
use crate::simulator::world::{Content, VarField};

/// One more topical subject.
pub(crate) fn topic(rng: &mut StdRng) -> VarField {
    let field = VarField::marc('d', "650", " 0").with('a', *pick(rng, &SUBJECTS));
    field.with('z', format!("{}.", pick(rng, &PLACES)))
}

/// Changes the place of publication, as when a reprint is described.
pub(crate) fn reprint(rng: &mut StdRng, fields: &mut [VarField]) {
    let Some(imprint) = fields.iter_mut().find(|field| field.is("264")) else { return };
    if let Content::Subfields(subfields) = &mut imprint.content
        && let Some((_, place)) = subfields.iter_mut().find(|(code, _)| *code == 'a')
    {
        *place = format!("{} :", pick(rng, &PLACES));
    }
}

pub(super) fn subjects(fields: &mut Vec<VarField>, rng: &mut StdRng) {
    for _ in 0..rng.random_range(2..7) {
        let mut field = VarField::marc('d', "650", " 0").with('a', *pick(rng, &SUBJECTS));
        if chance(rng, 60) {
            field = field.with('z', *pick(rng, &PLACES));
        }
        field = field.with('x', *pick(rng, &["History", "Folklore", "Social aspects", "Early works to 1800"]));
        if chance(rng, 50) {
            field = field.with('y', format!("{}th century.", rng.random_range(16..21)));
        }
        fields.push(field);
    }
    if chance(rng, 30) {
        let person = invent_person(rng, "eng");
        let heading = format!("{},", person.heading);
        fields.push(VarField::marc('d', "600", "10").with('a', heading).with('v', "Diaries."));
    }
    for _ in 0..rng.random_range(1..3) {
        let field = VarField::marc('d', "655", " 7").with('a', *pick(rng, &GENRES)).with('2', "lcgft");
        fields.push(field.with('0', format!("(DLC)gf{:010}", rng.random_range(1..99_999))));
    }
}

pub(super) fn notes(fields: &mut Vec<VarField>, rng: &mut StdRng) {
    for _ in 0..rng.random_range(1..5) {
        fields.push(VarField::marc('n', "500", "  ").with('a', *pick(rng, &NOTES)));
    }
    let (from, to) = (rng.random_range(200..400), rng.random_range(400..500));
    let bibliography = format!("Includes bibliographical references (pages {from}-{to}) and index.");
    fields.push(VarField::marc('n', "504", "  ").with('a', bibliography));
    if chance(rng, 55) {
        let count = rng.random_range(4..15);
        let chapter = |number: i32| format!("{number}. {}", pick(rng, &SENTENCES).trim_end_matches('.'));
        let chapters: Vec<String> = (1..=count).map(chapter).collect();
        fields.push(VarField::marc('n', "505", "0 ").with('a', format!("{}.", chapters.join(" -- "))));
    }
    if chance(rng, 70) {
        let count = rng.random_range(2..7);
        let summary: Vec<&str> = (0..count).map(|_| *pick(rng, &SENTENCES)).collect();
        fields.push(VarField::marc('n', "520", "  ").with('a', summary.join(" ")));
    }
    if chance(rng, 10) {
        let languages = "Parallel text; summaries in English, Čeština and Ελληνικά.";
        fields.push(VarField::marc('n', "546", "  ").with('a', languages));
    }
}

pub(super) fn others(fields: &mut Vec<VarField>, rng: &mut StdRng, number: u64) {
    for _ in 0..rng.random_range(0..4) {
        let person = invent_person(rng, "eng");
        let mut field = VarField::marc('b', "700", "1 ").with('a', format!("{},", person.heading));
        if let Some(dates) = person.dates {
            field = field.with('d', format!("{dates},"));
        }
        fields.push(field.with('e', *pick(rng, &["editor.", "translator.", "illustrator."])));
    }
    if chance(rng, 25) {
        let body = format!("{}.", pick(rng, &PUBLISHERS));
        fields.push(VarField::marc('b', "710", "2 ").with('a', body).with('e', "issuing body."));
    }
    if chance(rng, 20) {
        let address = format!("https://books.example.org/read?id={number}&page=1");
        let field = VarField::marc('y', "856", "41").with('3', "Online edition").with('u', address);
        fields.push(field.with('z', "Readers of the library only"));
    }
}

pub(super) fn local(fields: &mut Vec<VarField>, rng: &mut StdRng) {
    if chance(rng, 60) {
        fields.push(VarField::marc('v', "909", "  ").with('a', *pick(rng, &LOCAL_NOTES)).with('b', "staff"));
    }
    if chance(rng, 40) {
        fields.push(VarField::plain('x', *pick(rng, &LOCAL_NOTES)));
    }
}
