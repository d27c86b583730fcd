//! How fast a page is decoded: bytes of a 2,000-bib answer to records, on one core.
//!
//! `cargo bench --bench sierra`. The page is invented, in the shape of a real one with every varField and fixedField:
//! about 36 varFields and 9 kB of JSON a bib, a fifth of the subfields with a JSON escape.

#![expect(missing_docs, reason = "criterion's macro writes a function without documentation")]

use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sierra_sync::record::Stream;
use sierra_sync::sierra::decode_page;

const BIBS: u64 = 2000;

fn decode(criterion: &mut Criterion) {
    let page = page();
    let mut group = criterion.benchmark_group("sierra");
    group.throughput(Throughput::Elements(BIBS));
    group.sample_size(20);
    group.bench_function("decode_page", |bencher| {
        bencher.iter(|| {
            let decoded = decode_page(Stream::Bibs, black_box(page.as_bytes())).expect("a page");
            assert_eq!(decoded.entries.len() as u64, BIBS);
            decoded
        });
    });
    group.finish();
}

fn page() -> String {
    let bibs: Vec<String> = (0..BIBS).map(bib).collect();
    format!(r#"{{"total":{BIBS},"start":0,"entries":[{}]}}"#, bibs.join(","))
}

fn bib(number: u64) -> String {
    let mut fields = vec![
        format!(r#"{{"fieldTag":"o","marcTag":"001","ind1":" ","ind2":" ","content":"ocn{number:09}"}}"#),
        r#"{"fieldTag":"y","marcTag":"008","ind1":" ","ind2":" ","content":"110601s1969    enk      b    001 0 eng d"}"#
            .to_owned(),
    ];
    let groups = ["a", "t", "p", "r", "n", "d"];
    for (field, tag) in groups.iter().cycle().take(33).enumerate() {
        let mut subfields = String::new();
        for (place, code) in ["a", "b", "c", "x"].iter().take(1 + field % 3).enumerate() {
            let separator = if place == 0 { "" } else { "," };
            let text = if (place + field) % 5 == 0 {
                r#"A \"field guide\" to the invented birds of the north /"#
            } else {
                "being an account of their habits, songs and nests with plates"
            };
            write!(subfields, r#"{separator}{{"tag":"{code}","content":"{text}"}}"#).expect("written");
        }
        let marc = 100 + field * 25;
        fields.push(format!(
            r#"{{"fieldTag":"{tag}","marcTag":"{marc}","ind1":"1","ind2":" ","subfields":[{subfields}]}}"#
        ));
    }
    fields.push(r#"{"fieldTag":"_","content":"00000nam  2200000 a 4500"}"#.to_owned());
    let fixed: Vec<String> = (24..44)
        .map(|code| format!(r#""{code}":{{"label":"FIXED {code}","value":"-","display":"a display text"}}"#))
        .collect();
    format!(
        r#"{{"id":"{}","updatedDate":"2024-03-09T02:14:07Z","createdDate":"2011-06-01T10:00:00Z","deleted":false,"suppressed":false,"available":true,"lang":{{"code":"eng","name":"English"}},"title":"Field guide to invented birds","author":"Doe, Example, 1900-","materialType":{{"code":"a","value":"Book"}},"bibLevel":{{"code":"m","value":"MONOGRAPH"}},"publishYear":1969,"catalogDate":"2011-06-01","country":{{"code":"enk","name":"England"}},"locations":[{{"code":"main","name":"Main Library"}}],"fixedFields":{{{}}},"varFields":[{}]}}"#,
        1_000_000 + number,
        fixed.join(","),
        fields.join(",")
    )
}

criterion_group!(benches, decode);
criterion_main!(benches);
