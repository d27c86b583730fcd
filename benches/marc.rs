//! How fast records are made, written and read, one core, in memory. `scripts/marc/speed.sh` measures whole processes.

#[path = "../examples/marc_corpus/corpus.rs"]
mod corpus;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use sierra_sync::marc::convert::SierraReader;
use sierra_sync::marc::{
    Format, MarcSettings, OnIllegal, ReadRecord, Record, Writer, from_sierra, iso2709, marc_json, marcxml,
};
use sierra_sync::record::{RecordNumber, Subfield, VarField};
use sierra_sync::seed::RootSeed;

/// The one that the program has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const COUNT: u64 = 2000;
const SEED: u64 = 7;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let records: Vec<Record> = corpus::records(COUNT, RootSeed::new(SEED)).collect();
    from_sierra_json(&mut criterion);
    from_var_fields(&mut criterion, &records);
    writers(&mut criterion, &records);
    readers(&mut criterion, &records);
    criterion.final_summary();
}

/// A page of Sierra's JSON to MARCXML, decoding included.
fn from_sierra_json(criterion: &mut Criterion) {
    let page = corpus::pages(COUNT, RootSeed::new(SEED)).next().expect("there is one page").expect("it is JSON");
    let page = serde_json::to_vec(&page).expect("it is JSON");
    let mut group = criterion.benchmark_group("sierra");
    group.throughput(Throughput::Elements(COUNT)).sample_size(20);
    group.bench_function("json page to marcxml", |bencher| {
        bencher.iter_batched_ref(
            Vec::new,
            |target| {
                drain(SierraReader::new(&page[..], MarcSettings::default()), |record| append_marcxml(target, record))
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// Decoded varFields to a record, and on to MARCXML.
fn from_var_fields(criterion: &mut Criterion, records: &[Record]) {
    let bibs: Vec<Vec<VarField>> = records.iter().map(var_fields).collect();
    let settings = MarcSettings::default();
    let convert =
        |fields: &[VarField]| from_sierra(RecordNumber::new(1), fields, &settings).expect("nothing to set aside");
    let mut group = criterion.benchmark_group("sierra");
    group.throughput(Throughput::Elements(COUNT)).sample_size(20);
    group.bench_function("varFields to record", |bencher| {
        bencher.iter(|| bibs.iter().for_each(|fields| drop(black_box(convert(fields)))));
    });
    group.bench_function("varFields to marcxml string", |bencher| {
        bencher.iter(|| bibs.iter().for_each(|fields| drop(black_box(marcxml::to_string(&convert(fields).0)))));
    });
    group.finish();
}

fn writers(criterion: &mut Criterion, records: &[Record]) {
    let mut group = criterion.benchmark_group("write");
    group.throughput(Throughput::Elements(COUNT)).sample_size(20);
    for format in Format::ALL {
        let mut target = Vec::new();
        group.bench_function(format.name(), |bencher| {
            bencher.iter(|| {
                target.clear();
                for record in records {
                    format.append(&mut target, record).expect("the corpus fits every form");
                }
                black_box(target.len())
            });
        });
    }
    group.finish();
}

fn readers(criterion: &mut Criterion, records: &[Record]) {
    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::Elements(COUNT)).sample_size(20);
    for format in Format::ALL {
        let mut writer = Writer::new(Vec::new(), format);
        records.iter().try_for_each(|record| writer.write(record)).expect("the corpus fits every form");
        let file = writer.finish().expect("memory does not fail");
        group.bench_function(format.name(), |bencher| {
            bencher.iter(|| match format {
                Format::Iso2709 => drain(iso2709::Reader::new(&file[..], OnIllegal::Drop), |_| {}),
                Format::MarcXml => drain(marcxml::Reader::new(&file[..], OnIllegal::Drop), |_| {}),
                Format::MarcJson => drain(marc_json::Reader::new(&file[..], OnIllegal::Drop), |_| {}),
            });
        });
    }
    group.finish();
}

fn drain(mut reader: impl ReadRecord, mut take: impl FnMut(&Record)) {
    let mut record = Record::default();
    while reader.read_into(&mut record).expect("the corpus is sound") {
        take(black_box(&record));
    }
}

fn append_marcxml(target: &mut Vec<u8>, record: &Record) {
    Format::MarcXml.append(target, record).expect("MARCXML holds anything");
}

fn var_fields(record: &Record) -> Vec<VarField> {
    use sierra_sync::marc::Field;

    let field = |field: Field<'_>| match field {
        Field::Control { tag, value } => {
            VarField { marc_tag: Some(tag.to_string().into()), content: Some(value.to_owned()), ..VarField::default() }
        }
        Field::Data { tag, indicators: [first, second], subfields } => VarField {
            field_tag: "n".into(),
            marc_tag: Some(tag.to_string().into()),
            ind1: Some(first.to_string().into()),
            ind2: Some(second.to_string().into()),
            content: None,
            subfields: subfields
                .iter()
                .map(|subfield| Subfield { tag: subfield.code.to_string().into(), content: subfield.value.to_owned() })
                .collect(),
        },
    };
    record.fields().map(field).collect()
}
