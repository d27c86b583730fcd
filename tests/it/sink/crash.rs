//! Crashes of the file sink at every step of its writing: what was confirmed is there once, and the rest comes again.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::Path;

use proptest::prelude::*;
use sierra_sync::record::Stream;
use sierra_sync::sync::{Change, Seq, Sink};

use super::changes::{bib, deleted, item};
use super::destination::{Destination, Kind};

/// What was confirmed before the crash, and the batch that was being written.
fn batches() -> (Vec<Change>, Vec<Change>, Vec<Change>) {
    (
        vec![bib(10, 1, "first"), bib(20, 2, "second"), deleted(30, Stream::Bibs, 2, &[]), item(35, 7, &[1], &[])],
        vec![
            bib(40, 3, "third"),
            bib(50, 1, "first, corrected &\n on two lines"),
            deleted(60, Stream::Bibs, 4, &[]),
            item(65, 7, &[3], &[1]),
        ],
        vec![bib(70, 2, "second, back again"), deleted(80, Stream::Bibs, 3, &[])],
    )
}

/// The files that one batch makes longer, in the order in which the sink writes them.
fn written_files(kind: Kind, first: u64) -> Vec<String> {
    match kind {
        Kind::Marcxml => ["xml.part", "deletes.txt.part", "journal.part"]
            .map(|extension| format!("bibs/{first}.{extension}"))
            .to_vec(),
        _ => vec![format!("bibs/{first}.ndjson"), "items/35.ndjson".to_owned()],
    }
}

/// Opens what a crash left, delivers what was not confirmed and what follows, and looks at it with a reader's eyes.
async fn goes_on(crashed: &Destination, confirmed: &[Change], again: &[Change], context: &str) {
    let mut sink = crashed.open();
    let highest = sink.highest_seq().await.expect("told").unwrap_or(Seq::ZERO);
    let at_least = crashed.taken(confirmed).map(|change| change.seq).max().unwrap_or(Seq::ZERO);
    assert!(highest >= at_least, "confirmed changes are held: {context}");
    sink.deliver(again).await.expect("delivered again");
    let (_, _, following) = batches();
    sink.deliver(&following).await.expect("delivered");
    sink.close().await.expect("closed");
    let all: Vec<Change> = [confirmed, again, &following].concat();
    assert_eq!(crashed.held(), crashed.expected(&all), "{context}");
    assert_eq!(crashed.count(), crashed.taken(&all).count(), "nothing twice: {context}");
}

/// `destination` as it was in `before`, with the first `steps` files of `files` as they are in `after`, and the next
/// one with `bytes` of what was added, followed by zeros if `is_zeroed` (a length that was durable before its bytes).
fn crashed_at(
    before: &Destination,
    after: &Destination,
    files: &[String],
    step: usize,
    bytes: u64,
    is_zeroed: bool,
) -> Destination {
    let crashed = before.copy();
    // A journal is begun, header and all, before anything it speaks of.
    if let Some(journal) = files.iter().find(|name| name.contains("journal") && !before.path().join(name).exists()) {
        let whole = fs::read_to_string(after.path().join(journal)).expect("written");
        let header = whole.split_inclusive('\n').next().expect("a header");
        fs::create_dir_all(crashed.path().join("bibs")).expect("made");
        fs::write(crashed.path().join(journal), header).expect("written");
    }
    for (index, name) in files.iter().enumerate().take(step + 1) {
        let (from, to) = (after.path().join(name), crashed.path().join(name));
        let whole = fs::read(&from).expect("written");
        let length = fs::metadata(&to).map_or(0, |metadata| metadata.len());
        let wanted =
            if index < step { whole.len() } else { usize::try_from(length + bytes).expect("small").min(whole.len()) };
        let mut content = whole;
        let whole_length = content.len();
        content.truncate(wanted);
        if index == step && is_zeroed {
            content.resize(whole_length, 0);
        }
        fs::create_dir_all(to.parent().expect("a directory")).expect("made");
        fs::write(&to, content).expect("written");
    }
    crashed
}

/// BR-117 at the sink: a kill at every step of writing a batch, the first one or a later one.
#[tokio::test]
async fn nothing_confirmed_is_lost_or_doubled_when_a_batch_is_cut_off_anywhere() {
    let (first, second, _) = batches();
    for kind in Kind::FILES {
        for (confirmed, unconfirmed) in [(&[][..], &first[..]), (&first[..], &second[..])] {
            let before = Destination::new(kind);
            before.open().deliver(confirmed).await.expect("delivered");
            let after = before.copy();
            after.open().deliver(unconfirmed).await.expect("delivered");
            let files = written_files(kind, 10);
            for (step, name) in files.iter().enumerate() {
                let old = fs::metadata(before.path().join(name)).map_or(0, |metadata| metadata.len());
                let new = fs::metadata(after.path().join(name)).expect("written").len();
                let points = (0..new - old).step_by(31).chain([1, new - old - 1, new - old]);
                for bytes in points {
                    for is_zeroed in [false, true] {
                        let crashed = crashed_at(&before, &after, &files, step, bytes, is_zeroed);
                        let context = format!("{kind:?}: {name} + {bytes}, zeros: {is_zeroed}");
                        goes_on(&crashed, confirmed, unconfirmed, &context).await;
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn a_journal_that_was_cut_off_at_its_beginning_is_begun_again() {
    let (first, _, _) = batches();
    let header = "sierra-sync-journal 1 2026-01-05T10:00:03Z\n";
    for length in 0..=header.len() {
        let destination = Destination::new(Kind::Marcxml);
        fs::create_dir_all(destination.path().join("bibs")).expect("made");
        fs::write(destination.path().join("bibs/10.journal.part"), &header[..length]).expect("written");
        goes_on(&destination, &[], &first, &format!("{length} bytes of the header")).await;
    }
}

/// Publication renames two files, writes the manifest and removes the journal: a kill between any two of these.
#[tokio::test]
async fn a_publication_that_was_cut_off_is_completed() {
    let (first, _, _) = batches();
    let before = Destination::new(Kind::Marcxml);
    before.open().deliver(&first).await.expect("delivered");
    let after = before.copy();
    after.open().close().await.expect("closed");
    let rename = |to: &Path, name: &str| {
        fs::remove_file(to.join(format!("bibs/{name}.part"))).expect("there");
        fs::copy(after.path().join("bibs").join(name), to.join("bibs").join(name)).expect("copied");
    };
    let end = b"</collection>\n";
    for bytes in 0..=end.len() {
        let crashed = before.copy();
        let mut text = fs::read(crashed.path().join("bibs/10.xml.part")).expect("there");
        text.extend_from_slice(&end[..bytes]);
        fs::write(crashed.path().join("bibs/10.xml.part"), text).expect("written");
        goes_on(&crashed, &first, &[bib(40, 3, "third")], &format!("{bytes} bytes of the end")).await;
    }
    let ready = before.copy();
    for (name, addition) in [("10.xml.part", &end[..]), ("10.journal.part", b"publishing\n")] {
        let path = ready.path().join("bibs").join(name);
        let text = [&fs::read(&path).expect("there"), addition].concat();
        fs::write(path, text).expect("written");
    }
    goes_on(&ready.copy(), &first, &[bib(40, 3, "third")], "noted in the journal").await;
    for step in 1..=3 {
        let crashed = ready.copy();
        rename(crashed.path(), "10.xml");
        if step > 1 {
            rename(crashed.path(), "10.deletes.txt");
        }
        if step > 2 {
            fs::copy(after.path().join("manifest.json"), crashed.path().join("manifest.json")).expect("copied");
        }
        goes_on(&crashed, &first, &[bib(40, 3, "third")], &format!("step {step} of publishing")).await;
        assert!(crashed.numbered("bibs", ".journal.part").is_empty());
        let listed = crashed.manifest();
        let entry = &listed["files"][0];
        assert_eq!((&entry["path"], &entry["upserts"]), (&"bibs/10.xml".into(), &2.into()), "{listed}");
    }
}

#[tokio::test]
async fn the_journal_notes_a_publication_before_anything_gets_its_name() {
    let (first, _, _) = batches();
    let destination = Destination::new(Kind::Marcxml);
    let mut sink = destination.open();
    sink.deliver(&first).await.expect("delivered");
    fs::create_dir(destination.path().join("bibs/10.xml")).expect("in the way");
    sink.close().await.expect_err("something stands in the way");
    let journal = fs::read_to_string(destination.path().join("bibs/10.journal.part")).expect("there");
    assert!(journal.ends_with("\npublishing\n"), "{journal}");
    fs::remove_dir(destination.path().join("bibs/10.xml")).expect("gone");
    sink.close().await.expect("closed");
    assert_eq!(destination.held(), destination.expected(&first));
}

/// A reader may take a published file before the publication is over; its list must not be lost with it.
#[tokio::test]
async fn a_publication_whose_files_were_taken_at_once_is_completed_for_the_others() {
    let (first, _, _) = batches();
    let destination = Destination::new(Kind::Marcxml);
    destination.open().deliver(&first).await.expect("delivered");
    fs::remove_file(destination.path().join("bibs/10.xml.part")).expect("there");
    let journal = destination.path().join("bibs/10.journal.part");
    let text = fs::read_to_string(&journal).expect("there") + "publishing\n";
    fs::write(journal, text).expect("written");
    let mut sink = destination.open();
    assert_eq!(sink.highest_seq().await.expect("told").map(Seq::value), Some(30));
    sink.deliver(&[bib(40, 3, "third")]).await.expect("delivered");
    sink.close().await.expect("closed");
    assert_eq!(fs::read_to_string(destination.path().join("bibs/10.deletes.txt")).expect("published"), "2\n");
    assert_eq!(destination.held(), destination.expected(&[bib(40, 3, "third")]));
}

/// A reader who takes the growing file, or a disk that loses what it had confirmed, is noticed and not written over.
#[tokio::test]
async fn a_file_that_changed_behind_the_sink_is_looked_at_anew() {
    let (first, second, _) = batches();
    for kind in Kind::FILES {
        let name = &written_files(kind, 10)[0];
        for change in ["taken", "cut", "lengthened"] {
            let destination = Destination::new(kind);
            let mut sink = destination.open();
            sink.deliver(&first).await.expect("delivered");
            let path = destination.path().join(name);
            match change {
                "taken" => fs::remove_file(&path).expect("there"),
                "cut" => OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(3)).expect("cut"),
                _ => {
                    let mut text = fs::read(&path).expect("there");
                    text.extend_from_slice(b"garbage");
                    fs::write(&path, text).expect("written");
                }
            }
            sink.deliver(&second).await.expect("delivered");
            sink.close().await.expect("closed");
            let held = destination.held();
            let expected = destination.expected(&second);
            assert!(expected.iter().all(|(key, value)| held.get(key) == Some(value)), "{kind:?}, {change}: {held:?}");
        }
    }
}

/// A disk that loses what it had confirmed is beyond a sink's powers; but what is sent again is taken again.
#[tokio::test]
async fn what_a_disk_lost_is_taken_again() {
    let (first, second, _) = batches();
    for kind in Kind::FILES {
        for share in 0..10 {
            let destination = Destination::new(kind);
            let mut sink = destination.open();
            sink.deliver(&first).await.expect("delivered");
            sink.deliver(&second).await.expect("delivered");
            sink.settle().await.expect("settled");
            drop(sink);
            let path = destination.path().join(&written_files(kind, 10)[0]);
            let length = fs::metadata(&path).expect("there").len();
            OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(length * share / 10)).expect("cut");
            let mut sink = destination.open();
            sink.deliver(&first).await.expect("delivered again");
            sink.deliver(&second).await.expect("delivered again");
            sink.close().await.expect("closed");
            let all = [&first[..], &second[..]].concat();
            assert_eq!(destination.held(), destination.expected(&all), "{kind:?}, {share} of 10");
        }
    }
}

/// Without its journal nothing tells what of a growing collection was confirmed: what is whole is published, and
/// what comes again is read later.
#[tokio::test]
async fn a_growing_collection_without_its_journal_is_not_thrown_away() {
    let (first, _, _) = batches();
    let destination = Destination::new(Kind::Marcxml);
    destination.open().deliver(&first).await.expect("delivered");
    fs::remove_file(destination.path().join("bibs/10.journal.part")).expect("there");
    let part = destination.path().join("bibs/10.xml.part");
    let mut text = fs::read(&part).expect("there");
    text.extend_from_slice(b"<record><leader>00000");
    fs::write(&part, text).expect("written");
    let mut sink = destination.open();
    sink.deliver(&[bib(40, 3, "third")]).await.expect("delivered");
    sink.close().await.expect("closed");
    let all = [&first[..], &[bib(40, 3, "third")]].concat();
    assert_eq!(destination.held(), destination.expected(&all));
}

#[tokio::test]
async fn a_lost_or_damaged_manifest_is_found_again_from_the_files() {
    let (first, second, _) = batches();
    for kind in Kind::FILES {
        for content in [None, Some(&b"{\"schema\":1,"[..])] {
            let destination = Destination::new(kind);
            let mut sink = destination.open();
            sink.deliver(&first).await.expect("delivered");
            sink.close().await.expect("closed");
            let path = destination.path().join("manifest.json");
            let before = destination.manifest();
            match content {
                None => fs::remove_file(&path).expect("there"),
                Some(content) => fs::write(&path, content).expect("written"),
            }
            let mut sink = destination.open();
            sink.deliver(&second).await.expect("delivered");
            sink.close().await.expect("closed");
            let all = [&first[..], &second[..]].concat();
            assert_eq!(destination.held(), destination.expected(&all), "{kind:?}");
            let after = destination.manifest();
            if kind == Kind::Marcxml {
                for known in ["path", "bytes", "sha256", "upserts", "deletes", "first_seq"] {
                    assert_eq!(after["files"][0][known], before["files"][0][known], "{known}");
                }
            }
        }
    }
}

/// One step in the life of a sink.
#[derive(Debug, Clone)]
enum Step {
    Deliver(usize),
    Settle,
    Close,
    /// The process dies while the next `batch` is written: a share of what was added is on the disk.
    Crash {
        batch: usize,
        share: f64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1..6_usize).prop_map(Step::Deliver),
        1 => Just(Step::Settle),
        1 => Just(Step::Close),
        2 => (1..6_usize, 0.0..1.0).prop_map(|(batch, share)| Step::Crash { batch, share }),
    ];
    prop::collection::vec(step, 1..12)
}

/// An endless library of few records, so that they are edited, deleted and come back often.
fn story(length: usize) -> Vec<Change> {
    let change = |index: usize| {
        let (at, id) = (index as u64 * 3 + 1, (index as u64 * 7) % 5);
        match index % 4 {
            1 => deleted(at, Stream::Bibs, id, &[]),
            3 => item(at, id, &[id], &[]),
            _ => bib(at, id, &format!("title {index}")),
        }
    };
    (0..length).map(change).collect()
}

/// The sizes of all files that grow, by name.
fn sizes(destination: &Destination) -> BTreeMap<std::path::PathBuf, u64> {
    let mut sizes = BTreeMap::new();
    for stream in ["bibs", "items"] {
        for extension in [".ndjson", ".xml.part", ".deletes.txt.part", ".journal.part"] {
            for (_, path) in destination.numbered(stream, extension) {
                let length = fs::metadata(&path).expect("there").len();
                sizes.insert(path, length);
            }
        }
    }
    sizes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Any life of a file sink, with crashes in it, ends with what the changes say and holds nothing twice.
    #[test]
    fn any_life_with_crashes_ends_with_what_the_changes_say(
        steps in steps(), rotate_size in prop_oneof![Just(1_u64), Just(1500), Just(1 << 30)], is_xml in any::<bool>()
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let kind = if is_xml { Kind::Marcxml } else { Kind::Ndjson };
        let story = story(80);
        let destination = Destination::new(kind).rotating_at(rotate_size);
        let mut done = 0;
        runtime.block_on(async {
            let mut sink: Box<dyn Sink> = destination.open();
            let mut held = None;
            for step in steps {
                // What was confirmed is never said to be missing, whatever else a crash took.
                let holding = sink.holding(held.as_ref()).await.expect("told");
                assert_eq!(holding.missing, None);
                held = holding.held;
                match step {
                    Step::Deliver(count) => {
                        sink.deliver(&story[done..done + count]).await.expect("delivered");
                        done += count;
                    }
                    Step::Settle => sink.settle().await.expect("settled"),
                    Step::Close => sink.close().await.expect("closed"),
                    Step::Crash { batch, share } => {
                        let before = sizes(&destination);
                        sink.deliver(&story[done..done + batch]).await.expect("delivered");
                        drop(sink);
                        // The file that is written first is cut; those after it were not written yet. A publication
                        // within the batch is a crash after it.
                        let grown: Vec<_> = sizes(&destination)
                            .into_iter()
                            .filter(|(path, length)| *length > before.get(path).copied().unwrap_or(0))
                            .collect();
                        let published = before.keys().any(|path| !path.exists());
                        for (path, length) in grown.iter().filter(|_| !published && rotate_size > 1500) {
                            let old = before.get(path).copied().unwrap_or(0);
                            let kept = old + ((length - old) as f64 * share) as u64;
                            let is_journal = path.to_string_lossy().contains("journal");
                            let kept = if is_journal || path.to_string_lossy().contains("items") { old } else { kept };
                            OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(kept)).expect("cut");
                        }
                        sink = destination.open();
                        sink.deliver(&story[done..done + batch]).await.expect("delivered again");
                        done += batch;
                    }
                }
            }
            sink.close().await.expect("closed");
        });
        prop_assert_eq!(destination.held(), destination.expected(&story[..done]));
        prop_assert_eq!(destination.count(), destination.taken(&story[..done]).count());
    }
}
