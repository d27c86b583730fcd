//! The invented records themselves.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use serde_json::{Value, json};
use sierra_sync::marc::{Field, Indicator, Leader, Record, SubfieldCode, Tag, marc_json};
use sierra_sync::seed::RootSeed;

/// Pieces of text as catalogues have them: several scripts, combining marks, and what each form must escape.
const WORDS: [&str; 48] = [
    "library",
    "of",
    "the",
    "invented",
    "history",
    "birds",
    "harbour",
    "&",
    "and",
    "river",
    "\"quoted\"",
    "it's",
    "<draft>",
    "a\\b",
    "Straße",
    "Übersicht",
    "français",
    "naïve",
    "Łódź",
    "cafe\u{301}",
    "n\u{303}andu\u{301}",
    "Ünï",
    "Москва",
    "история",
    "Ἀθῆναι",
    "ירושלים",
    "מִבְחָן",
    "القاهرة",
    "كتاب",
    "東京",
    "図書館",
    "历史",
    "한국어",
    "ไทย",
    "हिन्दी",
    "🦉",
    "𝔐",
    "ﬁ",
    "—",
    "“so”",
    "1 : 25,000",
    "[S.l.]",
    "p. ;",
    "23 cm.",
    "v.",
    "ISBN",
    "100%",
    "x > y",
];

/// Tags with the share of records that have them, in percent, and the most occurrences.
const DATA_TAGS: [(&str, u32, u32); 26] = [
    ("010", 60, 1),
    ("020", 70, 4),
    ("022", 10, 1),
    ("035", 90, 3),
    ("040", 100, 1),
    ("041", 15, 1),
    ("050", 60, 1),
    ("082", 50, 1),
    ("100", 70, 1),
    ("245", 100, 1),
    ("246", 30, 3),
    ("250", 20, 1),
    ("264", 95, 2),
    ("300", 100, 1),
    ("336", 90, 1),
    ("337", 90, 1),
    ("490", 25, 1),
    ("500", 80, 6),
    ("504", 60, 1),
    ("505", 40, 2),
    ("520", 60, 3),
    ("650", 95, 10),
    ("700", 60, 6),
    ("856", 40, 3),
    ("880", 30, 6),
    ("9XX", 5, 1),
];

/// Invented records, numbered from 1000000; the same seed makes the same ones.
pub(crate) fn records(count: u64, seed: RootSeed) -> impl Iterator<Item = Record> {
    let mut random = seed.generator("marc corpus");
    (0..count).map(move |number| record(1_000_000 + number, &mut random))
}

fn record(number: u64, random: &mut StdRng) -> Record {
    const FITS: &str = "what is invented here is valid";
    let leader = pick(
        &[
            "00000cam  2200000 a 4500",
            "00000nam a2200000 i 4500",
            "00000cas  2200000 a 4500",
            "00000cem a22000007i 4500",
        ],
        random,
    );
    let mut record = Record::new(Leader::read(leader).0);
    let mut control = |tag: &str, value: &str| {
        record.push_control(Tag::new(tag).expect(FITS), value).expect(FITS);
    };
    control("001", &format!("ocm{number:08}"));
    control("003", "OCoLC");
    control("005", "20240309021407.0");
    control("008", "110601s1969    enk           000 0 eng  ");
    for (tag, share, most) in DATA_TAGS {
        if random.random_range(0..100) >= share {
            continue;
        }
        for _ in 0..random.random_range(1..=most) {
            let subfields: Vec<(SubfieldCode, String)> = (0..random.random_range(1..=4))
                .map(|position: u8| {
                    let code = if random.random_range(0..20) == 0 { b'0' + position } else { b'a' + position };
                    (SubfieldCode::new(code).expect(FITS), text(tag, random))
                })
                .collect();
            let indicators = [0, 1].map(|_| Indicator::new(pick(b"    012347", random)).expect(FITS));
            let subfields = subfields.iter().map(|(code, text)| (*code, text.as_str()));
            record.push_data(Tag::new(tag).expect(FITS), indicators, subfields).expect(FITS);
        }
    }
    record
}

fn text(tag: &str, random: &mut StdRng) -> String {
    let words = match tag {
        "505" | "520" => random.random_range(10..60),
        _ => random.random_range(1..12),
    };
    // Most of any catalogue is plain; the rest is where converters break.
    let plain = random.random_range(0..100) < 70;
    let words: Vec<&str> = (0..words)
        .map(|_| if plain { pick(WORDS.get(..7).unwrap_or_default(), random) } else { pick(&WORDS, random) })
        .collect();
    words.join(" ")
}

fn pick<T: Copy>(choices: &[T], random: &mut impl Rng) -> T {
    choices.get(random.random_range(0..choices.len())).copied().expect("the index is within the choices")
}

/// The same records as pages of 2,000 bibs as Sierra answers them: fields in fieldTag order, the leader last, fields
/// that are not MARC among them, and every fiftieth bib with Sierra's own `marc`.
pub(crate) fn pages(count: u64, seed: RootSeed) -> impl Iterator<Item = serde_json::Result<Value>> {
    const PAGE: usize = 2000;
    let mut records = records(count, seed).enumerate();
    std::iter::from_fn(move || {
        let entries: serde_json::Result<Vec<Value>> =
            records.by_ref().take(PAGE).map(|(number, record)| entry(1_000_000 + number, &record)).collect();
        match entries {
            Ok(entries) if entries.is_empty() => None,
            Ok(entries) => Some(Ok(json!({"total": entries.len(), "start": 0, "entries": entries}))),
            Err(error) => Some(Err(error)),
        }
    })
}

fn entry(number: usize, record: &Record) -> serde_json::Result<Value> {
    let mut fields: Vec<(char, Value)> = record.fields().map(|field| (group(field.tag()), var_field(&field))).collect();
    fields.push(('n', json!({"fieldTag": "n", "content": "a local note without a MARC tag"})));
    fields.sort_by_key(|(group, _)| *group);
    let mut fields: Vec<Value> = fields.into_iter().map(|(_, field)| field).collect();
    fields.push(json!({"fieldTag": "_", "content": record.leader().without_lengths().as_str()}));
    let mut entry = json!({
        "id": number.to_string(), "updatedDate": "2024-03-09T02:14:07Z", "deleted": false, "suppressed": false,
        "locations": [{"code": "main ", "name": "Main"}],
        "fixedFields": {"31": {"label": "BCODE3", "value": "-"}, "85": {"label": "REVISIONS", "value": "3"}},
        "varFields": fields,
    });
    if number.is_multiple_of(50)
        && let Some(entry) = entry.as_object_mut()
    {
        entry.insert("marc".to_owned(), serde_json::from_str(&marc_json::to_string(record))?);
    }
    Ok(entry)
}

fn var_field(field: &Field<'_>) -> Value {
    let group = group(field.tag()).to_string();
    match field {
        Field::Control { tag, value } => {
            json!({"fieldTag": group, "marcTag": tag.as_str(), "ind1": " ", "ind2": " ", "content": value})
        }
        Field::Data { tag, indicators: [first, second], subfields } => {
            let subfields: Vec<Value> = subfields
                .iter()
                .map(|subfield| json!({"tag": subfield.code.to_string(), "content": subfield.value}))
                .collect();
            json!({"fieldTag": group, "marcTag": tag.as_str(), "ind1": first.to_string(), "ind2": second.to_string(), "subfields": subfields})
        }
    }
}

fn group(tag: Tag) -> char {
    match tag.as_bytes() {
        [b'0', b'0', _] => 'y',
        [b'1', ..] => 'a',
        [b'2', b'4', _] => 't',
        [b'6', ..] => 'd',
        [b'7', ..] => 'b',
        [b'0', ..] => 'l',
        [b'2', ..] | [b'3', ..] => 'p',
        _ => 'n',
    }
}
