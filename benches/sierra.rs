//! How fast a page of Sierra's becomes what is captured, on one core.
//!
//! `cargo bench --bench sierra`. The page is invented, in the shape of a real one with every varField and fixedField:
//! about 36 varFields and 9 kB of JSON a bib, a fifth of the subfields with a JSON escape.
//!
//! Times of one machine say nothing on another, so after the benches the way of a page is told as a ratio as well:
//! how many times faster it is than reading the same page into a `serde_json::Value`, in turns, in this process.

#![expect(missing_docs, reason = "criterion's macro writes a function without documentation")]

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group};
use jiff::tz::TimeZone;
use sierra_sync::marc::{MarcSettings, from_sierra, marcxml};
use sierra_sync::privacy::{Keyring, Policy, PrivacySettings};
use sierra_sync::record::{Entry, Live, Stream};
use sierra_sync::sierra::decode_page;
use sierra_sync::sync::ContentHasher;
use sierra_sync::sync::capture::map::Mapper;
use sierra_sync::sync::settings::{Cadence, StreamSettings};

/// The one that the program has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BIBS: u64 = 2000;
const HASH_IGNORE: [&str; 3] = ["84", "85", "98"];

fn benches(criterion: &mut Criterion) {
    let page = page();
    let mapper = mapper();
    let mut group = criterion.benchmark_group("sierra");
    group.throughput(Throughput::Elements(BIBS));
    group.sample_size(20);
    group.bench_function("decode_page", |bencher| {
        bencher.iter(|| decode_page(Stream::Bibs, black_box(page.as_bytes())).expect("a page"));
    });
    group.bench_function("decoded, hashed, marcxml", |bencher| {
        bencher.iter(|| to_marcxml(black_box(page.as_bytes())));
    });
    group.bench_function("captured", |bencher| {
        bencher.iter(|| captured(&mapper, black_box(page.as_bytes())));
    });
    group.finish();
}

/// A page to records, their content hashes and their MARCXML.
fn to_marcxml(page: &[u8]) {
    let settings = MarcSettings::default();
    let mut hasher = ContentHasher::new(&HASH_IGNORE);
    for entry in decode_page(Stream::Bibs, page).expect("a page").entries {
        let Ok(Entry::Live(Live::Bib(bib))) = entry else { panic!("not a live bib") };
        let fields = bib.var_fields.as_deref().unwrap_or_default();
        let (record, losses) = from_sierra(bib.id, fields, &settings).expect("maps");
        black_box((hasher.bib(&bib, &record), marcxml::to_string(&record), losses));
    }
}

/// All that happens to a page before the store: links to people taken out and the event's JSON written as well.
fn captured(mapper: &Mapper, page: &[u8]) {
    let mut hasher = mapper.hasher();
    for entry in decode_page(Stream::Bibs, page).expect("a page").entries {
        black_box(mapper.map(entry, &mut hasher).expect("maps"));
    }
}

fn mapper() -> Mapper {
    let privacy = PrivacySettings {
        key_file: None,
        retention: Duration::ZERO,
        marc_drop: Vec::new(),
        item_fixed_drop: Vec::new(),
        item_var_keep: Vec::new(),
        patron_fields: std::collections::BTreeMap::new(),
    };
    let policy = Policy::new(&privacy, Arc::new(Keyring::for_tests(7))).expect("a policy");
    let stream = StreamSettings {
        stream: Stream::Bibs,
        cadence: Cadence::Every(Duration::from_secs(60)),
        deleted_interval: Duration::from_secs(60),
        overlap: Duration::ZERO,
        settle: Duration::ZERO,
        deleted_overlap_days: 0,
        late_sweep: None,
        reconcile: None,
        page_size: 2000,
        concurrency: 1,
        fields: Vec::new(),
        locations: Vec::new(),
        hash_ignore: HASH_IGNORE.map(str::to_owned).to_vec(),
        emit_unchanged: false,
    };
    Mapper::new(&stream, Arc::new(policy), MarcSettings::default(), TimeZone::UTC)
}

/// The ways of a page beside a plain reading of it, in turns.
#[expect(clippy::print_stdout, reason = "a bench tells what it measured")]
fn ratios() {
    const ROUNDS: usize = 15;
    let page = page();
    let mapper = mapper();
    let ways: [(&str, &dyn Fn()); 4] = [
        ("serde_json::Value", &|| drop(serde_json::from_slice::<serde_json::Value>(page.as_bytes()).expect("JSON"))),
        ("decode_page", &|| drop(decode_page(Stream::Bibs, page.as_bytes()).expect("a page"))),
        ("decoded, hashed, marcxml", &|| to_marcxml(page.as_bytes())),
        ("captured", &|| captured(&mapper, page.as_bytes())),
    ];
    let mut rates: Vec<Vec<f64>> = ways.iter().map(|_| Vec::with_capacity(ROUNDS)).collect();
    for _ in 0..ROUNDS {
        for (rates, (_, way)) in rates.iter_mut().zip(ways) {
            rates.push(rate(way));
        }
    }
    let medians: Vec<f64> = rates
        .iter_mut()
        .map(|rates| {
            rates.sort_by(f64::total_cmp);
            rates.get(ROUNDS / 2).copied().unwrap_or_default()
        })
        .collect();
    let plain = medians.first().copied().unwrap_or_default();
    println!("\none page of {BIBS} bibs, {} bytes, median of {ROUNDS} rounds in turns, by processor time:", page.len());
    for ((name, _), median) in ways.iter().zip(&medians) {
        println!("{name:26} {median:8.0} bibs/s  {:5.2} x serde_json::Value", median / plain);
    }
}

/// By the time that this thread had a processor: others may be at work on the machine.
fn rate(way: &dyn Fn()) -> f64 {
    let before = processor_seconds();
    way();
    BIBS as f64 / (processor_seconds() - before)
}

fn processor_seconds() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let nanoseconds: u64 = statistics.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    nanoseconds as f64 / 1e9
}

fn main() {
    group();
    Criterion::default().configure_from_args().final_summary();
    // `cargo test --benches` runs each bench once and measures nothing.
    if std::env::args().any(|argument| argument == "--bench") {
        ratios();
    }
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

criterion_group!(group, benches);
