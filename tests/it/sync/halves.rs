//! What happens to a record in two halves, with every end of a process between them: the same is told as if nothing had
//! come between, and once.

use std::collections::BTreeSet;
use std::time::Duration;

use sierra_sync::record::Stream;

use crate::support::{Rig, Shelf, ShelfSource, Tombstones, minutes, struck_at_every_write};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;
/// The record that it happens to.
const ID: u64 = 1004;

/// Of two edits in one second the second shows behind the windows that hold its stamp: only their overlap sees it.
const SAME_SECOND: &str = "edited twice in one second";

/// Something in two halves.
struct Story {
    name: &'static str,
    first: fn(&mut Shelf),
    second: fn(&mut Shelf),
    /// What sinks are told of the record.
    told: &'static [&'static str],
    /// How many bibs each change says that it lost.
    unlinked: &'static [usize],
}

/// BR-010, BR-014, BR-015, BR-016, and what else has been lost between two runs.
const STORIES: [Story; 13] = [
    Story {
        name: "edited, deleted on the same day",
        first: |shelf| shelf.edit(BIBS, ID),
        second: |shelf| shelf.delete(BIBS, ID),
        told: &["upsert", "delete"],
        unlinked: &[],
    },
    Story {
        name: "deleted, live again on the same day",
        first: |shelf| shelf.delete(BIBS, ID),
        second: |shelf| shelf.change(BIBS, ID, |version| version.title = "back".into()),
        told: &["delete", "upsert"],
        unlinked: &[],
    },
    Story {
        name: "edited and deleted, live again as it was",
        first: |shelf| {
            shelf.edit(BIBS, ID);
            shelf.delete(BIBS, ID);
        },
        second: |shelf| shelf.change(BIBS, ID, |version| version.title = format!("title {ID}")),
        told: &["delete", "upsert"],
        unlinked: &[],
    },
    Story {
        name: "deleted, and listed as such once more",
        first: |shelf| shelf.delete(BIBS, ID),
        second: |_| {},
        told: &["delete"],
        unlinked: &[],
    },
    Story {
        name: SAME_SECOND,
        first: |shelf| shelf.edit(BIBS, ID),
        second: |shelf| shelf.change_silently(BIBS, ID, |version| version.title = "in the same second".into()),
        told: &["upsert", "upsert"],
        unlinked: &[],
    },
    Story {
        name: "bumped, bumped",
        first: |shelf| shelf.bump(BIBS, ID),
        second: |shelf| shelf.bump(BIBS, ID),
        told: &[],
        unlinked: &[],
    },
    Story {
        name: "suppressed, shown",
        first: |shelf| shelf.change(BIBS, ID, |version| version.suppressed = true),
        second: |shelf| shelf.change(BIBS, ID, |version| version.suppressed = false),
        told: &["upsert", "upsert"],
        unlinked: &[],
    },
    Story {
        name: "suppressed, deleted",
        first: |shelf| shelf.change(ITEMS, ID, |version| version.suppressed = true),
        second: |shelf| shelf.delete(ITEMS, ID),
        told: &["upsert", "delete"],
        unlinked: &[1],
    },
    Story {
        name: "out of the locations, back",
        first: |shelf| shelf.change(BIBS, ID, |version| version.location = "annex".into()),
        second: |shelf| shelf.change(BIBS, ID, |version| version.location = "main".into()),
        told: &["delete", "upsert"],
        unlinked: &[],
    },
    Story {
        name: "out of the locations, deleted",
        first: |shelf| shelf.change(ITEMS, ID, |version| version.location = "annex".into()),
        second: |shelf| shelf.delete(ITEMS, ID),
        told: &["delete"],
        unlinked: &[1],
    },
    Story {
        name: "moved to another bib, and back",
        first: |shelf| shelf.change(ITEMS, ID, |version| version.bib_ids = vec![2000]),
        second: |shelf| shelf.change(ITEMS, ID, |version| version.bib_ids = vec![1001]),
        told: &["upsert", "upsert"],
        unlinked: &[1, 1],
    },
    Story {
        name: "linked to 120 bibs, deleted",
        first: |shelf| shelf.change(ITEMS, ID, |version| version.bib_ids = (5000..5120).collect()),
        second: |shelf| shelf.delete(ITEMS, ID),
        told: &["upsert", "delete"],
        unlinked: &[1, 120],
    },
    Story {
        name: "linked to 120 bibs, to one of them",
        first: |shelf| shelf.change(ITEMS, ID, |version| version.bib_ids = (5000..5120).collect()),
        second: |shelf| shelf.change(ITEMS, ID, |version| version.bib_ids = vec![5007]),
        told: &["upsert", "upsert"],
        unlinked: &[1, 119],
    },
];

/// How this Sierra shows deletions.
#[derive(Debug, Clone, Copy)]
struct Manner {
    in_updates: bool,
    tombstones: Tombstones,
}

async fn loaded(story: &Story, manner: Manner) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[BIBS, ITEMS]);
    rig.library.with(|shelf| {
        (shelf.tombstones_in_updates, shelf.tombstones) = (manner.in_updates, manner.tombstones);
        shelf.stock(BIBS, 5);
        shelf.stock(ITEMS, 5);
    });
    for stream in [BIBS, ITEMS] {
        let settings = rig.settings(stream);
        settings.locations = vec!["main".into()];
        if story.name != SAME_SECOND {
            // No window makes good what another one lost.
            settings.overlap = Duration::ZERO;
        }
    }
    rig.sync_well().await;
    rig.sink("archive").delivered();
    tokio::time::sleep(minutes(20)).await;
    rig
}

/// What was told of the record since this was last asked, copies counted once.
fn told(rig: &Rig<ShelfSource>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let delivered = rig.sink("archive").delivered().into_iter().map(|(key, _)| key);
    let new = delivered.filter(|key| seen.insert(key.clone()));
    new.map(|key| {
        let parts: Vec<&str> = key.split('/').collect();
        assert_eq!(parts[1], ID.to_string(), "nothing else happened: {key}");
        parts[2].to_owned()
    })
    .collect()
}

/// Passes until nothing new can come, of which the last tells nothing.
async fn settled(rig: &mut Rig<ShelfSource>, context: &str) {
    for _ in 0..2 {
        tokio::time::sleep(minutes(2)).await;
        rig.sync_well().await;
    }
    tokio::time::sleep(minutes(6)).await;
    assert_eq!(rig.sync_well().await.sinks["archive"].delivered, 0, "{context}");
    // What left the locations is there, and of no concern: it has no part in the comparison.
    let outside = |rig: &Rig<ShelfSource>| {
        rig.library.with(|shelf| {
            let rows = [BIBS, ITEMS].map(|stream| shelf.truth(stream).any(|(_, version)| version.location != "main"));
            rows.contains(&true)
        })
    };
    assert!(!outside(rig), "{context}");
    rig.assert_converged();
    rig.sink("archive").assert_holds_all(&rig.watch.committed("archive"), context);
}

/// Nothing, a clean restart, and a crash between the halves, at every kind of Sierra.
#[tokio::test(start_paused = true)]
async fn a_restart_between_two_halves_changes_nothing_of_what_is_told() {
    for story in &STORIES {
        for in_updates in [false, true] {
            for tombstones in [Tombstones::Dated, Tombstones::Undated, Tombstones::Stale] {
                for between in ["nothing", "restart", "crash"] {
                    let manner = Manner { in_updates, tombstones };
                    let context = format!("{}, {between}, {manner:?}", story.name);
                    let mut rig = loaded(story, manner).await;
                    rig.sink("archive").unlinked();
                    rig.library.with(story.first);
                    tokio::time::sleep(minutes(2)).await;
                    rig.sync_well().await;
                    match between {
                        "restart" => rig.restart().await,
                        "crash" => rig.crash(),
                        _ => {}
                    }
                    rig.library.with(story.second);
                    settled(&mut rig, &context).await;
                    assert_eq!(told(&rig), story.told, "{context}");
                    let unlinked = rig.sink("archive").unlinked();
                    let unlinked: Vec<usize> = unlinked.iter().map(|(_, bibs)| bibs.len()).collect();
                    assert_eq!(unlinked, story.unlinked, "{context}");
                }
            }
        }
    }
}

/// CUR-1, CUR-2, OUT-1, OUT-2: the process dies at every write of the pass between the halves, in every way. If the next
/// one runs before the second half, both are told as ever.
#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_between_two_halves_loses_neither() {
    for story in &STORIES {
        for (in_updates, tombstones, is_made_up_for) in [
            (false, Tombstones::Dated, false),
            (false, Tombstones::Dated, true),
            (true, Tombstones::Stale, false),
            (true, Tombstones::Stale, true),
        ] {
            if in_updates && !story.told.contains(&"delete") {
                continue;
            }
            let manner = Manner { in_updates, tombstones };
            let ready = async || {
                let rig = loaded(story, manner).await;
                rig.library.with(story.first);
                tokio::time::sleep(minutes(2)).await;
                rig
            };
            let goes_on = async |rig: &mut Rig<ShelfSource>, context: &str| {
                if is_made_up_for {
                    rig.sync_well().await;
                }
                rig.library.with(story.second);
                settled(rig, context).await;
                let told = told(rig);
                if is_made_up_for {
                    assert_eq!(told, story.told, "{context}");
                } else {
                    // Both halves may have become one, or nothing at all.
                    assert!(told.len() <= story.told.len(), "{context}: {told:?}");
                    assert!(told.len() < 2 || told == story.told, "{context}: {told:?}");
                }
            };
            let act = async |rig: &mut Rig<ShelfSource>| rig.try_sync().await.map(drop);
            struck_at_every_write(&format!("{}, {manner:?}", story.name), 6, ready, act, goes_on).await;
        }
    }
}
