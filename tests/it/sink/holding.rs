//! What file sinks say of themselves: losses are told with names and amounts, and nothing else is.

use std::fs;
use std::path::Path;

use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{Held, Holding};
use sierra_sync::sync::{Change, Sink};

use super::changes::{bib, deleted, item};
use super::destination::{Destination, Kind};

/// Three rounds of deliveries: with a rotation after each, three finished files of bibs.
fn rounds() -> [Vec<Change>; 3] {
    [
        vec![bib(10, 1, "first"), bib(20, 2, "second"), item(25, 5, &[1], &[])],
        vec![bib(30, 1, "first, corrected"), deleted(40, Stream::Bibs, 2, &[])],
        vec![bib(50, 3, "third"), item(55, 5, &[3], &[1])],
    ]
}

async fn holding(sink: &mut Box<dyn Sink>, before: Option<&Held>) -> Holding {
    sink.holding(before).await.expect("it answers")
}

/// A destination after all rounds, and what it said of itself.
async fn full(kind: Kind, rotate_size: u64) -> (Destination, Held) {
    let destination = Destination::new(kind).rotating_at(rotate_size);
    let mut sink = destination.open();
    let mut before = None;
    for round in rounds() {
        sink.deliver(&round).await.expect("delivered");
        let now = holding(&mut sink, before.as_ref()).await;
        assert_eq!(now.missing, None, "{kind:?}");
        before = now.held;
        sink.settle().await.expect("settled");
    }
    sink.close().await.expect("closed");
    let held = before.expect("files can tell");
    let expected =
        if kind == Kind::Marcxml { vec![(Stream::Bibs, 5)] } else { vec![(Stream::Bibs, 5), (Stream::Items, 2)] };
    assert_eq!(held.changes.clone().into_iter().collect::<Vec<_>>(), expected);
    (destination, held)
}

/// What is missing, found by a new process and by one that has the files open.
async fn found_after(kind: Kind, rotate_size: u64, loss: impl Fn(&Path)) -> [String; 2] {
    let mut found = Vec::new();
    for is_open in [false, true] {
        let (destination, before) = full(kind, rotate_size).await;
        let mut sink = destination.open();
        if is_open {
            assert_eq!(holding(&mut sink, Some(&before)).await.missing, None);
        }
        loss(destination.path());
        let missing = holding(&mut sink, Some(&before)).await.missing;
        let text = missing.unwrap_or_else(|| panic!("{kind:?}, open: {is_open}: nothing is told"));
        let place = format!(" in {}", destination.path().display());
        assert!(text.contains(&place), "{text}");
        found.push(text.replace(&place, ""));
        // It is told as long as somebody compares with what was there before.
        assert!(holding(&mut sink, Some(&before)).await.missing.is_some());
        drop(sink);
        let mut next = destination.open();
        assert!(holding(&mut next, Some(&before)).await.missing.is_some(), "{kind:?}: and by the next process");
        // Whoever begins to count now is told nothing.
        let now = holding(&mut next, None).await.held.expect("files can tell");
        assert_eq!(holding(&mut next, Some(&now)).await.missing, None);
    }
    found.try_into().expect("two")
}

#[tokio::test]
async fn a_finished_file_that_is_gone_is_named_with_what_was_in_it() {
    let found = found_after(Kind::Ndjson, 1, |path| fs::remove_file(path.join("bibs/10.ndjson")).expect("there")).await;
    for text in found {
        assert!(text.starts_with("2 of 5 changes of bibs: bibs/10.ndjson is gone (2 changes, "), "{text}");
    }
    let found = found_after(Kind::Marcxml, 1, |path| fs::remove_file(path.join("bibs/30.xml")).expect("there")).await;
    for text in found {
        assert!(text.starts_with("1 of 5 changes of bibs: bibs/30.xml is gone (1 changes, "), "{text}");
    }
    let list = |path: &Path| fs::remove_file(path.join("bibs/30.deletes.txt")).expect("there");
    let text = &found_after(Kind::Marcxml, 1, list).await[0];
    assert!(text.starts_with("1 of 5 changes of bibs: bibs/30.deletes.txt is gone (1 changes, 2 bytes)"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_shorter_is_named_with_what_is_missing() {
    let cut = |name: &'static str| {
        move |path: &Path| {
            let file = fs::OpenOptions::new().write(true).open(path.join(name)).expect("there");
            file.set_len(file.metadata().expect("there").len() - 40).expect("cut");
        }
    };
    for (kind, rotate_size, name) in [
        (Kind::Ndjson, 1, "bibs/10.ndjson"),
        (Kind::Ndjson, 1 << 30, "bibs/10.ndjson"),
        (Kind::Marcxml, 1, "bibs/10.xml"),
    ] {
        for text in found_after(kind, rotate_size, cut(name)).await {
            let expected = format!("1 of 5 changes of bibs: {name} is 40 bytes shorter than it was");
            assert_eq!(text, expected, "{kind:?} {rotate_size}");
        }
    }
}

#[tokio::test]
async fn a_directory_that_is_gone_or_emptied_is_told_although_its_manifest_went_too() {
    for kind in Kind::FILES {
        for rotate_size in [1, 1 << 30] {
            let expected = if kind == Kind::Marcxml {
                "5 of 5 changes of bibs"
            } else {
                "5 of 5 changes of bibs and 2 of 2 changes of items"
            };
            let [closed, _] = found_after(kind, rotate_size, |path| fs::remove_dir_all(path).expect("there")).await;
            assert_eq!(closed, expected, "{kind:?}");
            let bibs = |path: &Path| fs::remove_dir_all(path.join("bibs")).expect("there");
            let [closed, open] = found_after(kind, rotate_size, bibs).await;
            for text in [closed, open] {
                assert!(text.starts_with("5 of 5 changes of bibs: bibs/10."), "{kind:?}: {text}");
            }
        }
    }
}

/// What a reader cannot parse any more is lost, also when every record is still there; and new changes do not make up
/// for lost ones.
#[tokio::test]
async fn a_loss_that_the_count_does_not_show_is_told() {
    let cut = |path: &Path| {
        let file = fs::OpenOptions::new().write(true).open(path.join("bibs/10.xml")).expect("there");
        file.set_len(file.metadata().expect("there").len() - 5).expect("cut");
    };
    for text in found_after(Kind::Marcxml, 1, cut).await {
        assert_eq!(text, "changes: bibs/10.xml is 5 bytes shorter than it was");
    }
    for kind in Kind::FILES {
        for rotate_size in [1, 1 << 30] {
            let destination = Destination::new(kind).rotating_at(rotate_size);
            let mut sink = destination.open();
            let [first, second, _] = rounds();
            sink.deliver(&first).await.expect("delivered");
            let before = holding(&mut sink, None).await.held.expect("files can tell");
            let grows = kind == Kind::Marcxml && rotate_size > 1;
            let name = match kind {
                Kind::Marcxml if grows => "bibs/10.xml.part",
                Kind::Marcxml => "bibs/10.xml",
                _ => "bibs/10.ndjson",
            };
            fs::remove_file(destination.path().join(name)).expect("there");
            sink.deliver(&second).await.expect("delivered");
            sink.deliver(&[bib(60, 8, "more"), bib(70, 9, "and more")]).await.expect("delivered");
            sink.settle().await.expect("settled");
            // By this process or, if it was killed before anybody asked, by the next.
            drop(sink);
            let missing = holding(&mut destination.open(), Some(&before)).await.missing;
            let is_named =
                missing.as_ref().is_some_and(|missing| missing.contains(&format!("{name} is gone (2 changes, ")));
            assert!(is_named, "{kind:?} {rotate_size}: {missing:?}");
        }
    }
}

/// Somebody puts the file back before anybody asked.
#[tokio::test]
async fn a_file_that_is_there_again_is_not_missing() {
    for kind in Kind::FILES {
        let (destination, before) = full(kind, 1).await;
        let name = if kind == Kind::Marcxml { "bibs/10.xml" } else { "bibs/10.ndjson" };
        let (path, aside) = (destination.path().join(name), destination.path().join("aside"));
        fs::rename(&path, &aside).expect("there");
        destination.open().highest_seq().await.expect("it is looked at");
        assert_eq!(destination.manifest()["lost"][0]["path"], name);
        fs::rename(&aside, &path).expect("there");
        let mut sink = destination.open();
        assert_eq!(holding(&mut sink, Some(&before)).await.missing, None, "{kind:?}");
        sink.close().await.expect("closed");
        assert_eq!(destination.manifest()["lost"], serde_json::json!([]));
    }
}

#[tokio::test]
async fn an_older_copy_is_told() {
    for kind in Kind::FILES {
        let destination = Destination::new(kind);
        let mut sink = destination.open();
        let [first, second, _] = rounds();
        sink.deliver(&first).await.expect("delivered");
        sink.close().await.expect("closed");
        let older = destination.copy();
        sink.deliver(&second).await.expect("delivered");
        let before = holding(&mut sink, None).await.held.expect("files can tell");
        sink.close().await.expect("closed");
        let missing = holding(&mut older.open(), Some(&before)).await.missing.expect("it is told");
        assert!(missing.starts_with("2 of 4 changes of bibs in "), "{missing}");
    }
}

/// A reader that is done with a file says so by a mark, and then nothing is missing: not now, not later, and not when
/// the manifest is lost.
#[tokio::test]
async fn files_that_a_reader_marked_as_taken_are_not_missing() {
    for kind in Kind::FILES {
        let (destination, before) = full(kind, 1).await;
        let names: &[&str] = if kind == Kind::Marcxml { &["10.xml", "30.deletes.txt"] } else { &["10.ndjson"] };
        let changes = if kind == Kind::Marcxml { 3 } else { 2 };
        for name in names {
            let path = destination.path().join("bibs").join(name);
            fs::write(destination.path().join(format!("bibs/{name}.taken")), "").expect("marked");
            assert_eq!(holding(&mut destination.open(), Some(&before)).await.missing, None);
            fs::remove_file(path).expect("there");
        }
        let mut sink = destination.open();
        let now = holding(&mut sink, Some(&before)).await;
        assert_eq!(
            (&now.missing, now.held.as_ref().map(|held| &held.changes)),
            (&None, Some(&before.changes)),
            "{kind:?}"
        );
        sink.close().await.expect("closed");
        for name in names {
            assert!(!destination.path().join(format!("bibs/{name}.taken")).exists(), "the mark is noted and gone");
        }
        assert_eq!(destination.manifest()["taken"]["bibs"], changes);
        fs::remove_file(destination.path().join("manifest.json")).expect("there");
        let held = now.held.expect("files can tell");
        let mut sink = destination.open();
        assert_eq!(holding(&mut sink, Some(&held)).await, Holding { held: Some(held), missing: None }, "{kind:?}");
    }
}

#[tokio::test]
async fn standard_output_cannot_tell() {
    let destination = Destination::new(Kind::Stdout);
    let mut sink = destination.open();
    sink.deliver(&rounds()[0]).await.expect("delivered");
    assert_eq!(holding(&mut sink, None).await, Holding::default());
}
