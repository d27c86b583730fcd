//! What durability costs: the store beside the bare minimum that any durable queue pays, in the same run.
//!
//! `cargo bench --bench store` gives the ratios. With `STORE_SCALE=queue,million,cycles,states,ledger,large` (any of these) it
//! first fills larger stores and prints sizes, memory, write amplification and times to open, which say nothing in ratios.
//! `million` needs 3 GB of disk.
#![expect(clippy::print_stdout, reason = "a bench reports on standard output")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench that fails should say where and stop")]

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput};
use jiff::Timestamp;
use serde_json::value::RawValue;
use sierra_sync::clock::SystemClock;
use sierra_sync::privacy::Keyring;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::store::{SledStore, StoreSettings};
use sierra_sync::sync::ports::{SinkPosition, Slice, Store};
use sierra_sync::sync::remembered::RememberedState;
use sierra_sync::sync::{
    Change, ContentHash, LedgerRow, Op, Origin, Pass, Payload, Remembered, RememberedKey, RequestNumber, RowState, Seq,
    Span, Window,
};
use tempfile::TempDir;
use tokio::time::Instant;

/// Changes in one commit, as the engine makes them at most.
const BATCH: u64 = 200;

fn main() {
    let scales: [(&str, fn()); 6] = [
        ("queue", || long_queue(100_000)),
        ("million", || long_queue(1_000_000)),
        ("cycles", cycles),
        ("states", many_remembered_states),
        ("ledger", long_ledger),
        ("large", large_records),
    ];
    let wanted = std::env::var("STORE_SCALE").unwrap_or_default();
    for (name, scale) in scales {
        if wanted.contains(name) {
            scale();
        }
    }
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    enqueue_and_drain(&mut criterion);
    criterion.final_summary();
}

/// Enqueue and drain, each beside an append of the same plain bytes with `fdatasync`.
fn enqueue_and_drain(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("outbox");
    group.throughput(Throughput::Elements(BATCH)).measurement_time(Duration::from_secs(8));

    let directory = tempfile::tempdir().unwrap();
    let mut file = File::create(directory.path().join("log")).unwrap();
    let mut next = 0;
    group.bench_function("append and fdatasync", |bencher| {
        bencher.iter_batched(
            || changes(&mut next),
            |changes| {
                let page: Vec<u8> = changes.iter().flat_map(plain_bytes).collect();
                file.write_all(&page).unwrap();
                file.sync_data().unwrap();
            },
            BatchSize::PerIteration,
        );
    });

    // Drained after each commit, outside the measured time, so that every commit meets the same store.
    let (_directory, store) = open_fresh();
    group.bench_function("enqueue", |bencher| {
        bencher.iter_batched(
            || {
                drain(&store);
                slice(&mut next)
            },
            |slice| store.commit(slice).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("drain", |bencher| {
        bencher.iter_batched(|| store.commit(slice(&mut next)).unwrap(), |_| drain(&store), BatchSize::PerIteration);
    });
    group.finish();
}

/// What waits for a sink that is away, and what is left of it once it is back.
fn long_queue(queued: u64) {
    let (directory, store) = open_fresh();
    let (mut next, mut plain, phase, written) = (0, 0, Phase::begin(), Written::begin());
    while next < queued {
        let slice = slice(&mut next);
        plain += slice.changes.iter().map(|change| plain_bytes(change).len()).sum::<usize>();
        store.commit(slice).unwrap();
    }
    phase.end(&format!("{queued} bibs made and queued"));
    written.end(plain);
    report(directory.path(), &store, queued);
    let (store, directory) = reopen(store, directory);
    let phase = Phase::begin();
    while drain(&store) > 0 {}
    phase.end("drained");
    report(directory.path(), &store, queued);
    drop(reopen(store, directory));
}

/// Edits of a catalogue of 50,000 bibs, a million in all, through a queue that holds a thousand of them at a time: what
/// years of ordinary work leave on the disk.
fn cycles() {
    let cycled = 1_000_000;
    let (directory, store) = open_fresh();
    let (mut next, mut plain, phase, written) = (0, 0, Phase::begin(), Written::begin());
    while next < cycled {
        for _ in 0..5 {
            let first = next;
            let mut slice = slice(&mut next);
            slice.remembered = (first..next).map(|id| (key(id % 50_000), state(id))).collect();
            plain += slice.changes.iter().map(|change| plain_bytes(change).len()).sum::<usize>();
            store.commit(slice).unwrap();
        }
        while drain(&store) > 0 {}
        if next.is_multiple_of(200_000) {
            println!("  {next} cycles: {} MB on disk", store.size_on_disk().unwrap() / 1_000_000);
        }
    }
    phase.end(&format!("{cycled} bibs made, queued and drained"));
    written.end(plain);
    report(directory.path(), &store, cycled);
    drop(reopen(store, directory));
}

/// A large catalogue, seen five times.
fn many_remembered_states() {
    let remembered = 1_000_000;
    let (directory, store) = open_fresh();
    let phase = Phase::begin();
    for round in 0..5 {
        for start in (0..remembered).step_by(200) {
            let states = (start..start + 200).map(|id| (key(id), state(round * remembered + id)));
            store.commit(Slice { remembered: states.collect(), ..Slice::default() }).unwrap();
        }
    }
    phase.end(&format!("{remembered} states written five times"));
    report(directory.path(), &store, remembered);
    drop(reopen(store, directory));
}

/// A ledger that nobody ever merged: five minutes a row, that is almost five years.
fn long_ledger() {
    let rows = 500_000;
    let (directory, store) = open_fresh();
    for start in (0..rows).step_by(200) {
        store.commit(Slice { rows: (start..start + 200).map(row).collect(), ..Slice::default() }).unwrap();
    }
    let (store, directory) = reopen(store, directory);
    for heat in ["cold", "warm"] {
        let phase = Phase::begin();
        assert_eq!(store.ledger(Stream::Bibs).unwrap().len(), usize::try_from(rows).unwrap());
        phase.end(&format!("{rows} ledger rows listed {heat}"));
    }
    report(directory.path(), &store, rows);
}

/// Pages of 2,000 bibs of 60 kB, in slices as the engine commits them: how long one keeps the others waiting.
fn large_records() {
    let (pages, in_a_page, in_a_slice) = (5, 2_000, (2 << 20) / 60_000);
    let (directory, store) = open_fresh();
    let (mut longest, phase, written, mut plain) = (Duration::ZERO, Phase::begin(), Written::begin(), 0);
    for start in (0..pages * in_a_page).step_by(in_a_slice) {
        let ids = start..(start + in_a_slice as u64).min(pages * in_a_page);
        let changes: Vec<Change> = ids.clone().map(|id| bib_of(id, 60_000)).collect();
        plain += changes.iter().map(|change| plain_bytes(change).len()).sum::<usize>();
        let remembered = ids.map(|id| (key(id), state(id))).collect();
        let began = Instant::now();
        store.commit(Slice { changes, remembered, rows: vec![row(1)], ..Slice::default() }).unwrap();
        longest = longest.max(began.elapsed());
    }
    phase.end(&format!("{} large bibs made and queued, {longest:.2?} the longest commit", pages * in_a_page));
    written.end(plain);
    report(directory.path(), &store, pages * in_a_page);
}

fn reopen(store: SledStore, directory: TempDir) -> (SledStore, TempDir) {
    drop(store);
    let phase = Phase::begin();
    let store = open(directory.path());
    let usage = store.outbox_usage().unwrap();
    store.outbox_after(Seq::ZERO, 1, usize::MAX).unwrap();
    phase.end(&format!("reopened and first change read with {} queued", usage.entries));
    (store, directory)
}

/// Time by the clock, and processor time: the latter says more on a machine that others use too.
struct Phase(Instant, u64);

impl Phase {
    fn begin() -> Self {
        Self(Instant::now(), cpu_ticks())
    }

    fn end(self, what: &str) {
        let seconds = self.0.elapsed().as_secs_f64();
        let cpu = Duration::from_millis(10 * (cpu_ticks() - self.1)).as_secs_f64();
        println!("{what}: {seconds:.2} s, {cpu:.2} s of processor time");
    }
}

/// What this process has had written to the disk.
struct Written(u64);

impl Written {
    fn begin() -> Self {
        Self(written_bytes())
    }

    /// Beside `plain` bytes, which an append would have written.
    fn end(self, plain: usize) {
        let written = written_bytes() - self.0;
        let ratio = written as f64 / plain as f64;
        println!(
            "  {} MB written for {} MB of plain bytes: {ratio:.2} of an append",
            written / 1_000_000,
            plain / 1_000_000
        );
    }
}

/// `write_bytes` of `/proc/self/io`: bytes sent to the block layer (proc(5)).
fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.unwrap().parse().unwrap()
}

/// What a queue of plain bytes would append of a change.
fn plain_bytes(change: &Change) -> Vec<u8> {
    let Payload::Bib { record, marcxml, .. } = &change.payload else { return Vec::new() };
    [record.get().as_bytes(), marcxml.as_bytes()].concat()
}

/// User and system time of this process in hundredths of a second (proc(5): fields 14 and 15 of `stat`).
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn report(directory: &Path, store: &SledStore, records: u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let memory = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
    let memory: Vec<_> = memory.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let size = store.size_on_disk().unwrap();
    let blobs = std::fs::read_dir(directory.join("state/db/blobs")).unwrap().count();
    let usage = store.outbox_usage().unwrap();
    println!(
        "  {} MB on disk, {} bytes a record, {} MB of it counted; {blobs} blobs; {}",
        size / 1_000_000,
        size / records,
        usage.bytes / 1_000_000,
        memory.join(", ")
    );
}

fn open_fresh() -> (TempDir, SledStore) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = open(directory.path());
    let archive = SinkPosition { attached: true, streams: Stream::ALL.to_vec(), ..SinkPosition::default() };
    store.set_sink_positions(&BTreeMap::from([("archive".to_owned(), archive)])).unwrap();
    (directory, store)
}

fn open(directory: &Path) -> SledStore {
    let settings = StoreSettings {
        path: directory.join("state"),
        outbox_max_size: u64::MAX,
        min_free: 0,
        retention: Duration::from_secs(1),
    };
    SledStore::open(&settings, Arc::new(Keyring::for_tests(1)), Arc::new(SystemClock)).unwrap()
}

fn drain(store: &SledStore) -> usize {
    let mut archive = store.sink_positions().unwrap()["archive"].clone();
    let changes = black_box(store.outbox_after(archive.confirmed, 500, 4 << 20).unwrap());
    if let Some(last) = changes.last() {
        archive.confirmed = last.seq;
        store.set_sink_positions(&BTreeMap::from([("archive".to_owned(), archive)])).unwrap();
    }
    changes.len()
}

fn slice(next: &mut u64) -> Slice {
    let first = *next;
    Slice {
        changes: changes(next),
        remembered: (first..*next).map(|id| (key(id), state(id))).collect(),
        rows: vec![row(1)],
        ..Slice::default()
    }
}

fn changes(next: &mut u64) -> Vec<Change> {
    let first = *next;
    *next += BATCH;
    (first..*next).map(bib).collect()
}

/// A bib of about 7.8 KB of MARCXML and 1 KB of Sierra's fields, with text that compresses as a catalogue does.
fn bib(id: u64) -> Change {
    bib_of(id, 7_700)
}

fn bib_of(id: u64, bytes: usize) -> Change {
    let words = ["weather", "Wien", "history", "essays", "Schiffahrt", "étude", "river", "1998", "press", "music"];
    let mut state = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        format!("{} {:x} ", words[usize::try_from(state % 10).unwrap()], state % 65_536)
    };
    let mut marcxml = String::from("<record xmlns=\"http://www.loc.gov/MARC21/slim\"><leader>00000nam</leader>");
    while marcxml.len() < bytes {
        let text: String = (0..4).map(|_| word()).collect();
        marcxml.push_str("<datafield tag=\"650\" ind1=\" \" ind2=\"0\"><subfield code=\"a\">");
        marcxml.push_str(&text);
        marcxml.push_str("</subfield></datafield>");
    }
    marcxml.push_str("</record>");
    let fields: String = (0..40).map(|_| word()).collect();
    let record = format!(r#"{{"id":"{id}","deleted":false,"suppressed":false,"title":"{fields}"}}"#);
    let captured = Timestamp::from_second(1_767_600_000).unwrap();
    Change {
        seq: Seq::ZERO,
        stream: Stream::Bibs,
        id: id.to_string(),
        op: Op::Upsert,
        updated: Some(captured),
        suppressed: false,
        captured,
        source: Origin::Load,
        payload: Payload::Bib {
            record: RawValue::from_string(record).unwrap(),
            marcxml,
            losses: Vec::new(),
            locations: vec!["main".into()],
        },
        unlinked_bib_ids: Vec::new(),
        hash: hash(id),
        only_for: None,
    }
}

fn key(id: u64) -> RememberedKey {
    RememberedKey::Bib(RecordNumber::new(1_000_000 + id))
}

fn state(version: u64) -> Remembered {
    Remembered {
        state: RememberedState::Live {
            updated: Some(
                Timestamp::from_second(1_700_000_000 + i64::try_from(version % 60_000_000).unwrap()).unwrap(),
            ),
            hash: hash(version),
            suppressed: false,
            filtered: false,
        },
        sent: RequestNumber((3 << 40) + version),
        answered: RequestNumber((3 << 40) + version + 2),
        sealed_id: Vec::new(),
    }
}

fn hash(of: u64) -> ContentHash {
    ContentHash(*blake3::hash(&of.to_le_bytes()).as_bytes().first_chunk().unwrap())
}

fn row(id: u64) -> LedgerRow {
    let at = |second: i64| Timestamp::from_second(1_767_600_000 + second).unwrap();
    LedgerRow {
        id,
        stream: Stream::Bibs,
        pass: Pass::Update,
        span: Span::Time(Window::new(at(0), at(300)).unwrap()),
        state: RowState::Done,
        position: Some(RecordNumber::new(1_000_000 + id)),
        attempts: 0,
        last_error: None,
        opened: at(300),
        touched: at(301),
        resume_at: None,
        found_nothing: false,
    }
}
