//! What others can see of the state: nothing of patrons in the files, and no file at all.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sierra_sync::record::Stream;
use sierra_sync::sync::LedgerRow;
use sierra_sync::sync::ports::{QuarantineEntry, Slice, Store};

use super::changes::{patron, quarantined, row, slice};
use super::child;

fn files_below(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

/// PRV-1: payloads, positions, errors and times of patrons are sealed; a canary in each is found nowhere on disk.
#[test]
fn nothing_patron_derived_lies_open_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let store = child::open(&state).unwrap();
    let people = Slice {
        rows: vec![LedgerRow { last_error: Some("canary-in-error".into()), ..row(Stream::Patrons, 1) }],
        quarantined: vec![QuarantineEntry {
            payload: Some("canary-in-quarantine".into()),
            ..quarantined(Stream::Patrons, "0f0f", "cause")
        }],
        ..slice(vec![patron("0f0f", "canary-in-payload")])
    };
    store.commit(people).unwrap();
    // The same in a stream that is public, to see that this test would find it.
    let bibs = Slice {
        rows: vec![LedgerRow { last_error: Some("canary-of-a-bib".into()), ..row(Stream::Bibs, 1) }],
        ..Slice::default()
    };
    store.commit(bibs).unwrap();
    drop(store);
    let written: Vec<u8> = files_below(&state).iter().flat_map(|path| fs::read(path).unwrap()).collect();
    let found = |text: &[u8]| written.windows(text.len()).any(|window| window == text);
    assert!(found(b"canary-of-a-bib"));
    assert!(!found(b"canary-in-payload") && !found(b"canary-in-error") && !found(b"canary-in-quarantine"));
}

/// BR-126: directories 0700, files 0600, also those that sled makes.
#[test]
fn directories_are_0700_and_files_0600() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for opening in ["made", "opened again"] {
        let store = child::open(&state).unwrap();
        store.commit(slice(vec![patron("0f0f", "north")])).unwrap();
        assert_eq!((mode(&state), mode(&state.join("db"))), (0o700, 0o700), "{opening}");
        for file in files_below(&state) {
            assert_eq!(mode(&file), 0o600, "{} of a store {opening}", file.display());
        }
    }
}
