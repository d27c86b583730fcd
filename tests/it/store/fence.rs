//! The fence, seen from the system's side: what the process asked the kernel for, and in which order.

use std::collections::BTreeSet;

use super::child;
use crate::support::strace;

/// Every acknowledgement is written after an `fsync` of sled's file that follows the last write to it. What was written
/// and not synced when a process says "acknowledged" could be taken back by a power failure.
///
/// The recording layer is the kernel: `strace` logs the calls of a child that commits and says so on its output. Where
/// it cannot be used this is skipped, visibly.
#[test]
fn every_acknowledgement_follows_the_sync_of_the_database_s_file() {
    let directory = tempfile::tempdir().unwrap();
    let (state, log) = (directory.path().join("state"), directory.path().join("trace"));
    if !strace::works() {
        println!("skipped: strace is not here, or may not trace");
        return;
    }
    let calls = "trace=openat,close,write,pwrite64,fsync,fdatasync,sync_file_range";
    let shell = format!("exec strace -f -y -e {calls} -e signal=none -s 64 -o {}", log.display());
    let mut running = child::start_traced(&state, &shell);
    let acknowledged = running.lines.iter().filter(|line| line.starts_with("acknowledged ")).take(40).count();
    running.kill();
    assert_eq!(acknowledged, 40);

    let text = std::fs::read_to_string(&log).unwrap();
    let database = format!("<{}>", state.join("db/db").display());
    let mut unsynced = 0_u64;
    let (mut syncs, mut told, mut blobs) = (0_u64, 0_u64, BTreeSet::new());
    for line in text.lines() {
        let call = line.split_once(' ').map_or(line, |(_, call)| call).trim_start();
        if (call.starts_with("pwrite64(") || call.starts_with("write(")) && call.contains(&database) {
            unsynced += 1;
        } else if call.starts_with("fsync(") && call.contains(&database) {
            assert!(!call.contains("= -1"), "{line}");
            (unsynced, syncs) = (0, syncs + 1);
        } else if call.starts_with("write(1<") && (call.contains("acknowledged ") || call.contains("confirmed ")) {
            assert_eq!(unsynced, 0, "acknowledged before the last {unsynced} writes were synced: {line}");
            told += 1;
        } else if call.starts_with("openat(") && call.contains("/blobs/") {
            blobs.insert(call.to_owned());
        }
    }
    println!("{told} acknowledgements, {syncs} syncs");
    assert!(told >= 40 && syncs >= told, "{told} acknowledgements, {syncs} syncs");
    assert!(blobs.is_empty(), "{blobs:?}");
}
