//! Damaged, foreign and future files: an error that says so, or a store that reads; never a panic, never a gap.

use std::fs;
use std::path::Path;

use rand::RngExt;
use sierra_sync::seed::RootSeed;
use sierra_sync::sync::ports::{Store, StoreErrorKind};

use super::changes::{bib, slice};
use super::child;
use super::raw::{self, CANARY};

/// A closed store with something in every tree.
fn filled() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    raw::fill(&child::open(&directory.path().join("state")).unwrap());
    directory
}

/// Opens what is in `state` and reads all of it: the answers, or the first error.
fn read(state: &Path) -> Result<Vec<String>, sierra_sync::sync::StoreError> {
    raw::read_everything(&child::open(state)?).into_iter().collect()
}

#[test]
fn a_damaged_value_is_reported_by_tree_and_kind_of_key_and_shown_to_nobody() {
    let original = filled();
    let trees = raw::open(&original.path().join("state")).tree_names();
    let ours: Vec<_> = trees.iter().filter(|name| !name.starts_with(b"__sled")).collect();
    assert_eq!(ours.len(), 12);
    for name in ours {
        let shown = String::from_utf8_lossy(name).into_owned();
        let copy = tempfile::tempdir().unwrap();
        raw::copy(original.path(), copy.path());
        let state = copy.path().join("state");
        {
            let tree = raw::open(&state).open_tree(name).unwrap();
            let (key, value) = tree.last().unwrap().unwrap_or_else(|| panic!("{shown} is empty"));
            let mut value = value.to_vec();
            *value.last_mut().unwrap() ^= 1;
            tree.insert(key, value).unwrap();
        }
        let error = read(&state).expect_err(&shown);
        assert_eq!(error.kind, StoreErrorKind::Corrupt, "{shown}: {error}");
        let text = format!("{error} {:?}", error.source);
        assert!(text.contains(&format!("the {shown} tree, keyed by ")), "{text}");
        assert!(!text.contains(CANARY) && !text.contains("0f0f"), "{text}");
    }
}

#[test]
fn a_missing_value_is_damage_and_not_an_empty_answer() {
    let original = filled();
    for (tree, key) in [("meta", "head"), ("meta", "format"), ("payloads", ""), ("quarantine", "")] {
        let copy = tempfile::tempdir().unwrap();
        raw::copy(original.path(), copy.path());
        let state = copy.path().join("state");
        {
            let tree = raw::open(&state).open_tree(tree).unwrap();
            let first = tree.first().unwrap().unwrap().0;
            tree.remove(if key.is_empty() { &first[..] } else { key.as_bytes() }).unwrap().unwrap();
        }
        // The quarantine is counted from its index, so that only closing the entry meets the hole.
        let error = match (tree, child::open(&state)) {
            ("quarantine", Ok(store)) => {
                let mut closing = slice(vec![bib(5)]);
                closing.closes = vec![(sierra_sync::record::Stream::Bibs, "5".into())];
                store.commit(closing).unwrap_err()
            }
            (_, opened) => opened
                .and_then(|store| raw::read_everything(&store).into_iter().collect::<Result<Vec<_>, _>>())
                .unwrap_err(),
        };
        assert_eq!(error.kind, StoreErrorKind::Corrupt, "{tree} {key}: {error}");
        assert!(error.message.contains(&format!("the {tree} tree")) && error.message.contains("missing"), "{error}");
    }
}

#[test]
fn a_newer_format_is_refused_and_left_as_it_is() {
    let original = filled();
    let future = [
        ("meta", Some("format"), raw::wrap(1, &[2, 0])),
        ("meta", Some("head"), raw::wrap(2, b"whatever comes then")),
        ("ledger", None, raw::wrap(2, b"whatever comes then")),
    ];
    for (tree, key, value) in future {
        let copy = tempfile::tempdir().unwrap();
        raw::copy(original.path(), copy.path());
        let state = copy.path().join("state");
        {
            let tree = raw::open(&state).open_tree(tree).unwrap();
            let key = key.map_or_else(|| tree.first().unwrap().unwrap().0, |key| key.as_bytes().into());
            tree.insert(&key, value.clone()).unwrap();
        }
        let error = read(&state).expect_err(tree);
        assert_eq!(error.kind, StoreErrorKind::NewerFormat, "{tree} {key:?}: {error}");
        assert!(error.message.contains("update sierra-sync"), "{error}");
        let kept = raw::open(&state).open_tree(tree).unwrap().iter().values().any(|kept| kept.unwrap() == value);
        assert!(kept, "{tree} {key:?} was overwritten");
    }
}

#[test]
fn a_database_of_something_else_is_not_taken_for_an_empty_store() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    raw::open(&state).open_tree("meta").unwrap().insert("theirs", "x").unwrap();
    assert_eq!(child::open(&state).unwrap_err().kind, StoreErrorKind::Corrupt);
}

/// A database that was restored alone, or lost its tail in a way that sled does not mind, opens well and is wrong.
#[test]
fn a_database_that_lacks_acknowledged_commits_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (state, backup) = (directory.path().join("state"), directory.path().join("backup"));
    raw::fill(&child::open(&state).unwrap());
    raw::copy(&state.join("db"), &backup);
    child::open(&state).unwrap().commit(slice(vec![bib(9)])).unwrap();
    let acknowledged = fs::read(state.join("db/acknowledged")).unwrap();
    fs::remove_dir_all(state.join("db")).unwrap();
    raw::copy(&backup, &state.join("db"));
    fs::write(state.join("db/acknowledged"), acknowledged).unwrap();
    let error = child::open(&state).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Corrupt);
    assert!(error.message.contains("its last 2 acknowledged commits are gone"), "{error}");

    // Without the note there is nothing to tell by: the highest seq that a sink reports is the other witness.
    fs::remove_file(state.join("db/acknowledged")).unwrap();
    child::open(&state).unwrap();
}

/// BR-117: a torn tail, flipped bits, zeroed pages, an empty file. Whatever sled makes of it, the store either says
/// that it is damaged or reads back whole: never a panic, and never quietly less than was acknowledged.
#[test]
fn damaged_files_are_reported_or_read_back_whole() {
    let original = filled();
    let whole = read(&original.path().join("state")).unwrap();
    let seed = RootSeed::new(23);
    println!("seed {}", seed.value());
    let mut random = seed.generator("damage");
    let (mut reported, mut read_back) = (0, 0);
    for round in 0..60 {
        let copy = tempfile::tempdir().unwrap();
        raw::copy(original.path(), copy.path());
        let state = copy.path().join("state");
        let victims: Vec<_> = fs::read_dir(state.join("db")).unwrap().map(|entry| entry.unwrap().path()).collect();
        let victims: Vec<_> = victims.into_iter().filter(|path| path.is_file()).collect();
        let db = state.join("db/db");
        let victim = if round % 4 == 3 { &victims[random.random_range(0..victims.len())] } else { &db };
        let mut bytes = fs::read(victim).unwrap();
        // Most of a young database is unwritten: damage there proves nothing.
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let place = random.random_range(0..used.max(1));
        let damage = match round % 3 {
            0 => {
                bytes[place] ^= 1 << random.random_range(0..8);
                "a flipped bit"
            }
            1 => {
                bytes.truncate(if round == 1 { 0 } else { place });
                "a cut"
            }
            _ => {
                let end = (place + 4096).min(bytes.len());
                bytes[place..end].fill(0);
                "a zeroed page"
            }
        };
        fs::write(victim, bytes).unwrap();
        let name = victim.file_name().unwrap().to_string_lossy().into_owned();
        match read(&state) {
            Ok(answers) => {
                assert_eq!(answers, whole, "{damage} at {place} of {name} went unnoticed");
                read_back += 1;
            }
            Err(error) => {
                assert!(matches!(error.kind, StoreErrorKind::Corrupt | StoreErrorKind::Io), "{error}");
                assert!(!error.to_string().contains(CANARY), "{error}");
                reported += 1;
            }
        }
    }
    println!("{reported} reported, {read_back} read back whole");
    assert!(reported > 20 && read_back > 0, "{reported} reported, {read_back} read back whole");
}
