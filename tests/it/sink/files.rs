//! What is particular to files: rotation, the manifest, and what can stand in the way.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use sha2::{Digest, Sha256};
use sierra_sync::clock::{Clock, SimClock};
use sierra_sync::failure::Disposition;
use sierra_sync::record::Stream;
use sierra_sync::sink::FileSink;
use sierra_sync::sync::{Change, Sink};

use super::changes::{bib, deleted, item, patron, seq};
use super::destination::{Destination, Kind};

fn few() -> Vec<Change> {
    vec![bib(10, 1, "first"), bib(20, 2, "second"), deleted(30, Stream::Bibs, 9, &[]), item(40, 5, &[1], &[])]
}

/// The manifest lists exactly the files that are there, with true counts, lengths and checksums.
#[track_caller]
fn assert_manifest_is_true(destination: &Destination) {
    let manifest = destination.manifest();
    let mut listed: Vec<String> = Vec::new();
    for entry in manifest.get("files").and_then(|files| files.as_array()).expect("files") {
        let path = entry["path"].as_str().expect("a path");
        listed.push(path.to_owned());
        let content = fs::read(destination.path().join(path)).expect("the file is there");
        assert_eq!(entry["bytes"], content.len(), "{entry}");
        let checksum: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(entry["sha256"], checksum, "{entry}");
        let text = String::from_utf8(content).expect("UTF-8");
        let (upserts, deletes) = match path.rsplit_once('.').expect("an extension").1 {
            "xml" => (text.matches("<record>").count(), 0),
            "txt" => (0, text.lines().count()),
            _ => (text.matches(r#""op":"upsert""#).count(), text.matches(r#""op":"delete""#).count()),
        };
        assert_eq!((&entry["upserts"], &entry["deletes"]), (&upserts.into(), &deletes.into()), "{entry}");
        assert!(entry["first_seq"].as_u64() <= entry["last_seq"].as_u64(), "{entry}");
    }
    let mut there: Vec<String> = ["bibs", "items", "patrons"]
        .iter()
        .flat_map(|stream| [".ndjson", ".xml", ".deletes.txt"].map(|extension| destination.numbered(stream, extension)))
        .flatten()
        .map(|(_, path)| path.strip_prefix(destination.path()).expect("below").to_string_lossy().into_owned())
        .collect();
    there.sort();
    listed.sort();
    assert_eq!(listed, there);
}

#[tokio::test]
async fn the_manifest_tells_the_truth_after_every_settle_and_close() {
    for kind in Kind::FILES {
        for rotate_size in [1, 700, 1 << 30] {
            let destination = Destination::new(kind).rotating_at(rotate_size);
            let mut sink = destination.open();
            for (index, change) in few().iter().enumerate() {
                sink.deliver(std::slice::from_ref(change)).await.expect("delivered");
                sink.settle().await.expect("settled");
                assert_manifest_is_true(&destination);
                if index == 1 {
                    drop(sink);
                    sink = destination.open();
                }
            }
            sink.close().await.expect("closed");
            assert_manifest_is_true(&destination);
            let highest = if kind == Kind::Marcxml { 30 } else { 40 };
            let told = destination.manifest()["highest_seq"].as_object().expect("by stream").clone();
            assert_eq!(told.values().filter_map(serde_json::Value::as_u64).max(), Some(highest));
        }
    }
}

#[tokio::test]
async fn a_marcxml_file_is_seen_whole_or_not_at_all() {
    let destination = Destination::new(Kind::Marcxml);
    let mut sink = destination.open();
    sink.deliver(&few()).await.expect("delivered");
    sink.settle().await.expect("settled");
    assert_eq!(destination.numbered("bibs", ".xml"), [], "not ripe yet");
    sink.close().await.expect("closed");
    let published: Vec<u64> = destination.numbered("bibs", ".xml").iter().map(|(first, _)| *first).collect();
    assert_eq!(published, [10]);
    let parts: Vec<_> = fs::read_dir(destination.path().join("bibs"))
        .expect("there")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    assert!(parts.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{parts:?}");
    assert_eq!(fs::read_to_string(destination.path().join("bibs/10.deletes.txt")).expect("there"), "9\n");
    assert!(!destination.path().join("items").exists(), "marcxml takes bibs only");
    insta::assert_snapshot!(fs::read_to_string(destination.path().join("bibs/10.xml")).expect("there"));
}

#[tokio::test(start_paused = true)]
async fn files_are_finished_when_they_are_old_and_a_clock_that_steps_back_finishes_nothing() {
    for kind in Kind::FILES {
        let destination = Destination::new(kind);
        let clock = Arc::new(SimClock::starting_at("2026-01-05T10:00:00Z".parse().expect("a time")));
        let mut sink = FileSink::new("archive", &destination.settings, clock.clone());
        let extension = if kind == Kind::Marcxml { ".xml" } else { ".ndjson" };
        let finished = || match kind {
            Kind::Marcxml => destination.numbered("bibs", extension).len(),
            _ => {
                let manifest = destination.manifest();
                let files = manifest["files"].as_array().expect("files").clone();
                files.iter().filter(|entry| entry["complete"] == true).count()
            }
        };
        sink.deliver(&[bib(10, 1, "first")]).await.expect("delivered");
        clock.step(SignedDuration::from_hours(-1000));
        sink.settle().await.expect("settled");
        assert_eq!(finished(), 0, "{kind:?}");
        clock.step(SignedDuration::from_hours(1000));
        tokio::time::advance(Duration::from_secs(86_399)).await;
        sink.settle().await.expect("settled");
        assert_eq!(finished(), 0, "{kind:?}");
        tokio::time::advance(Duration::from_secs(2)).await;
        sink.settle().await.expect("settled");
        assert_eq!(finished(), 1, "{kind:?} at {}", clock.now());
        sink.deliver(&[bib(20, 2, "second")]).await.expect("delivered");
        tokio::time::advance(Duration::from_secs(90_000)).await;
        sink.deliver(&[bib(30, 3, "third")]).await.expect("delivered");
        sink.close().await.expect("closed");
        let firsts: Vec<u64> = destination.numbered("bibs", extension).iter().map(|(first, _)| *first).collect();
        assert_eq!(firsts, [10, 20, 30], "an old file is not filled up: {kind:?}");
        assert_manifest_is_true(&destination);
    }
}

#[tokio::test]
async fn files_can_be_read_by_the_group_and_by_nobody_else() {
    for kind in Kind::FILES {
        let destination = Destination::new(kind);
        let mut sink = destination.open();
        sink.deliver(&few()).await.expect("delivered");
        sink.close().await.expect("closed");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(destination.path()) & 0o027, 0);
        let entries = fs::read_dir(destination.path().join("bibs")).expect("there");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.push(destination.path().join("manifest.json"));
        for path in paths {
            assert_eq!(mode(&path) & !0o640, 0, "{}", path.display());
        }
    }
}

/// BR-017: the size is measured as it is encoded, the culprit is named, and its neighbours arrive.
#[tokio::test]
async fn a_change_that_is_too_large_is_named_and_its_neighbours_can_go_on() {
    for kind in Kind::FILES {
        let destination = Destination::new(kind);
        let clock = Arc::new(SimClock::starting_at("2026-01-05T10:00:00Z".parse().expect("a time")));
        let mut sink = FileSink::new("archive", &destination.settings, clock).with_limit(4000);
        // 900 characters, more than 4000 bytes once they are escaped.
        let batch = [bib(10, 1, "first"), bib(20, 2, &"<\"&\u{1f600}".repeat(450)), bib(30, 3, "third")];
        let error = sink.deliver(&batch).await.expect_err("too large");
        assert_eq!((error.disposition, error.culprit), (Disposition::Quarantine, Some(seq(20))));
        assert!(error.message.contains("bytes as it is encoded") && !error.message.contains('\u{1f600}'), "{error}");
        sink.deliver(&[batch[0].clone(), batch[2].clone()]).await.expect("delivered");
        sink.close().await.expect("closed");
        assert_eq!(destination.held(), destination.expected(&[batch[0].clone(), batch[2].clone()]), "{kind:?}");
    }
}

#[tokio::test]
async fn a_path_that_is_a_file_or_leads_through_one_is_refused_with_advice() {
    for kind in Kind::FILES {
        for below in ["", "/deeper/still"] {
            let mut destination = Destination::new(kind);
            fs::create_dir_all(destination.path().parent().expect("a directory")).expect("made");
            fs::write(destination.path(), "somebody's notes").expect("written");
            destination.settings.path = format!("{}{below}", destination.path().display()).into();
            let error = destination.open().deliver(&few()).await.expect_err("not a directory");
            assert_eq!(error.disposition, Disposition::Halt);
            assert!(error.message.contains("not a directory") && error.hint.contains("path"), "{error:?}");
        }
    }
}

/// BR-078: what stands in the way is an error that leaves nothing half written, and deliveries resume by themselves.
#[tokio::test]
async fn deliveries_resume_when_what_stood_in_the_way_is_gone() {
    for (kind, name) in [(Kind::Ndjson, "bibs/10.ndjson"), (Kind::Marcxml, "bibs/10.deletes.txt.part")] {
        let destination = Destination::new(kind);
        let in_the_way = destination.path().join(name);
        fs::create_dir_all(in_the_way.join("x")).expect("made");
        let mut sink = destination.open();
        sink.deliver(&few()).await.expect_err("something stands in the way");
        assert_eq!(destination.numbered("bibs", ".xml"), []);
        fs::remove_dir_all(&in_the_way).expect("gone");
        sink.deliver(&few()).await.expect("delivered");
        sink.close().await.expect("closed");
        assert_eq!(destination.held(), destination.expected(&few()), "{kind:?}");
        assert_eq!(destination.count(), destination.taken(&few()).count(), "{kind:?}");
    }
}

#[tokio::test]
async fn two_sinks_cannot_write_to_one_directory() {
    let destination = Destination::new(Kind::Ndjson);
    let (mut first, mut second) = (destination.open(), destination.open());
    first.deliver(&few()).await.expect("delivered");
    let error = second.deliver(&few()).await.expect_err("held");
    assert!(matches!(error.disposition, Disposition::RetryLater { .. }), "{error:?}");
    assert!(error.message.contains("another"), "{error}");
    first.close().await.expect("closed");
    second.deliver(&few()).await.expect("free now");
    assert_eq!(destination.count(), few().len());
}

#[tokio::test]
async fn a_directory_with_files_of_another_format_or_version_is_refused() {
    let mut destination = Destination::new(Kind::Ndjson);
    let mut sink = destination.open();
    sink.deliver(&few()).await.expect("delivered");
    sink.close().await.expect("closed");
    destination.kind = Kind::Marcxml;
    destination.settings.format = sierra_sync::sink::FileFormat::Marcxml;
    let error = destination.open().deliver(&few()).await.expect_err("ndjson is there");
    assert!(error.disposition == Disposition::Halt && error.message.contains("ndjson"), "{error:?}");
    fs::write(destination.path().join("manifest.json"), r#"{"schema":2,"what":"ever"}"#).expect("written");
    let error = destination.open().highest_seq().await.expect_err("newer");
    assert!(error.disposition == Disposition::Halt && error.hint.contains("update"), "{error:?}");
}

/// PRV-1: what reaches the disk for patrons is masked, in content and in names.
#[tokio::test]
async fn patrons_reach_files_under_their_pseudonyms_only() {
    let destination = Destination::new(Kind::Ndjson);
    let mut sink = destination.open();
    sink.deliver(&[patron(10, 1_200_345)]).await.expect("delivered");
    sink.close().await.expect("closed");
    let text = destination.lines().concat() + &destination.manifest().to_string();
    assert!(text.contains("patronType") && !text.contains("1200345") && !text.contains("EXAMPLE"), "{text}");
}

/// A call that is dropped half-way must not leave a second writer behind, nor a sink that cannot go on.
#[tokio::test]
async fn a_delivery_that_was_given_up_does_not_harm_the_next() {
    for kind in Kind::FILES {
        let destination = Destination::new(kind);
        let mut sink = destination.open();
        let batch = few();
        for _ in 0..20 {
            let delivery = sink.deliver(&batch);
            tokio::select! {
                biased;
                _ = delivery => {}
                () = tokio::task::yield_now() => {}
            }
        }
        sink.deliver(&batch).await.expect("delivered");
        sink.close().await.expect("closed");
        assert_eq!(destination.held(), destination.expected(&batch));
        assert_eq!(destination.count(), destination.taken(&batch).count(), "{kind:?}");
    }
}
