//! The library itself: what commands do, what shows when, and what the truth says.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{Endpoint, Kind, LibrarySettings, World};

use super::client::{Client, id, library, opened, small_library};

#[test]
fn one_seed_is_one_library() {
    let settings = LibrarySettings::opened_at(opened()).sized(40, 40, 5);
    let library = |seed| World::open(&settings, RootSeed::new(seed));
    for kind in Kind::ALL {
        assert_eq!(library(3).truth(kind), library(3).truth(kind));
        assert_ne!(library(3).truth(kind), library(4).truth(kind));
    }
}

#[test]
fn the_default_library_has_what_real_ones_have() {
    let world = World::open(&LibrarySettings::opened_at(opened()), RootSeed::new(7));
    let counts = Kind::ALL.map(|kind| world.ids(kind).len());
    assert_eq!(counts, [2_000, 3_000, 200]);
    assert!(Kind::ALL.iter().all(|kind| world.deleted(*kind).len() > 5));
}

#[test]
fn a_stock_has_history_links_and_scripts() {
    let world = World::open(&LibrarySettings::opened_at(opened()).sized(300, 300, 0), RootSeed::new(7));
    let (bibs, items) = (world.truth(Kind::Bibs), world.truth(Kind::Items));
    assert!(bibs.live.values().any(|bib| bib.suppressed));
    assert!(items.live.values().any(|item| item.links.len() > 1));
    let text: String = bibs.live.values().map(|bib| bib.json.as_str()).collect();
    for sample in ["ř", "Γ", "ערפל", "霧", "\"880\"", "\"fieldTag\":\"x\""] {
        assert!(text.contains(sample), "{sample}");
    }
    let mut stamps: Vec<_> = bibs.live.values().map(|bib| bib.updated).collect();
    stamps.sort();
    assert!(stamps.windows(2).filter(|pair| pair[0] == pair[1]).count() > 15, "batch jobs tie stamps");
    assert!(stamps.last().unwrap() < &opened());
}

#[test]
fn an_edit_changes_content_stamp_and_revision() {
    let mut world = World::open(&LibrarySettings::opened_at(opened()).sized(10, 10, 4), RootSeed::new(1));
    for kind in Kind::ALL {
        let id = world.ids(kind)[1];
        let before = world.true_record(kind, id).unwrap();
        world.edit(kind, id).unwrap();
        let after = world.true_record(kind, id).unwrap();
        assert_eq!(after.updated, opened());
        let content = if kind == Kind::Patrons { "patronType" } else { "varFields" };
        assert_ne!(before.value()[content], after.value()[content]);
        assert_ne!(before.value()["fixedFields"]["85"], after.value()["fixedFields"]["85"]);
    }
}

/// `sierra-api.md` §7 item 11, BR-069: edits that move no date, and loads that move it back.
#[test]
fn silent_and_back_dated_changes_escape_every_window() {
    let mut world = World::open(&LibrarySettings::opened_at(opened()).sized(10, 0, 0), RootSeed::new(1));
    let bib = world.ids(Kind::Bibs)[0];
    let before = world.true_record(Kind::Bibs, bib).unwrap();
    world.silently(|world| world.edit_bib(bib)).unwrap();
    let once = world.true_record(Kind::Bibs, bib).unwrap();
    world.silently(|world| world.edit_bib(bib)).unwrap();
    let twice = world.true_record(Kind::Bibs, bib).unwrap();
    assert_eq!((before.updated, once.updated), (once.updated, twice.updated));
    assert!(before.marc != once.marc && once.marc != twice.marc);

    let last_month = "2025-12-01T08:00:00Z".parse().unwrap();
    let loaded = world.dated(last_month, World::create_bib);
    assert_eq!(world.true_record(Kind::Bibs, loaded).unwrap().updated, last_month);
}

/// BR-003: the library changes between one page and the next, and nobody else gets in between.
#[tokio::test(start_paused = true)]
async fn the_library_can_change_exactly_between_two_calls() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let bibs = simulator.world(|world| world.ids(Kind::Bibs));
    let last = *bibs.last().unwrap();
    simulator.with(|simulator| {
        simulator.after_call(Endpoint::Bibs, 2, move |world| world.delete(Kind::Bibs, last).unwrap());
    });
    let is_deleted = async || client.entries(&format!("/bibs?id={last}")).await[0]["deleted"] == true;
    assert!(!is_deleted().await);
    client.entries("/items").await;
    assert!(!is_deleted().await);
    assert!(is_deleted().await);
}

/// BR-072: what is stamped now and seen 150 s later.
#[tokio::test(start_paused = true)]
async fn late_commits_are_stamped_before_they_show() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let late = SignedDuration::from_secs(150);
    let (edited, deleted) = simulator.world(|world| (world.ids(Kind::Bibs)[0], world.ids(Kind::Bibs)[1]));
    let created = simulator.world(|world| {
        world.visibly_after(late, |world| {
            world.edit_bib(edited).unwrap();
            world.delete(Kind::Bibs, deleted).unwrap();
            world.create_bib()
        })
    });
    let changed = format!("&updatedDate=[{:.0},]", opened());
    let seen = async || client.sweep("bibs", &changed).await.iter().map(id).collect::<Vec<_>>();
    assert!(seen().await.is_empty());
    assert_eq!(client.get(&format!("/bibs/{deleted}")).await.1["deleted"], false);
    tokio::time::sleep(Duration::from_secs(149)).await;
    assert!(seen().await.is_empty());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(seen().await, [edited, created]);
    assert_eq!(client.get(&format!("/bibs/{deleted}")).await.1["deleted"], true);
}

/// BR-012: a delete at half past midnight local time belongs to the local day.
#[tokio::test(start_paused = true)]
async fn deleted_dates_are_local_days() {
    let mut settings = LibrarySettings::opened_at("2026-06-30T23:30:00Z".parse().unwrap()).sized(5, 0, 0);
    settings.zone = TimeZone::get("Europe/London").unwrap();
    let simulator = library(settings);
    let client = Client::of(&simulator).await;
    let bib = simulator.world(|world| world.ids(Kind::Bibs)[0]);
    simulator.world(|world| world.delete(Kind::Bibs, bib)).unwrap();
    assert_eq!(client.get(&format!("/bibs/{bib}")).await.1["deletedDate"], "2026-07-01");
    assert_eq!(client.entries("/bibs?deletedDate=2026-07-01").await.len(), 1);
}

/// BR-049: a library that keeps no tombstones.
#[tokio::test(start_paused = true)]
async fn purged_records_leave_nothing_but_the_truth() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let bib = simulator.world(|world| world.ids(Kind::Bibs)[0]);
    simulator.world(|world| {
        world.keep_tombstones(false);
        world.delete(Kind::Bibs, bib).unwrap();
    });
    assert_eq!(client.get(&format!("/bibs/{bib}")).await.0, 404);
    assert!(client.entries("/bibs?deletedDate=[2026-01-05,]").await.is_empty());
    assert!(simulator.world(|world| world.deleted(Kind::Bibs)).contains_key(&bib));
}

/// BR-014, BR-016: items move, hang from many bibs, and stamp themselves alone.
#[test]
fn moving_an_item_stamps_the_item_and_not_its_bibs() {
    let mut world = World::open(&LibrarySettings::opened_at(opened()).sized(150, 5, 0), RootSeed::new(1));
    let bibs = world.ids(Kind::Bibs);
    let stamps: Vec<_> = world.truth(Kind::Bibs).live.values().map(|bib| bib.updated).collect();
    let item = world.ids(Kind::Items)[0];
    world.link_item(item, &bibs[..120]).unwrap();
    assert_eq!(world.true_record(Kind::Items, item).unwrap().links, bibs[..120]);
    world.link_item(item, &bibs[..1]).unwrap();
    world.move_item(item, bibs[0], bibs[1]).unwrap();
    assert_eq!(world.true_record(Kind::Items, item).unwrap().links, bibs[1..2]);
    world.unlink_item(item, bibs[1]).unwrap();
    assert!(world.true_record(Kind::Items, item).unwrap().links.is_empty());
    let after: Vec<_> = world.truth(Kind::Bibs).live.values().map(|bib| bib.updated).collect();
    assert_eq!(stamps, after);
}

/// BR-124: the patron behind a loan stands in fixed fields 66 and 67, and among the canaries.
#[test]
fn loans_name_patrons_and_canaries_know_them() {
    let mut world = World::open(&LibrarySettings::opened_at(opened()).sized(5, 5, 5), RootSeed::new(1));
    let (item, patron) = (world.ids(Kind::Items)[0], world.ids(Kind::Patrons)[0]);
    world.check_out(item, patron, 14).unwrap();
    let lent = world.true_record(Kind::Items, item).unwrap().value();
    assert_eq!(lent["fixedFields"]["66"]["value"], patron.to_string());
    assert_eq!(lent["status"]["duedate"], "2026-01-19T10:00:00Z");
    world.check_in(item).unwrap();
    let returned = world.true_record(Kind::Items, item).unwrap().value();
    assert!(returned["fixedFields"].get("66").is_none() && returned["status"].get("duedate").is_none());
    assert_eq!(returned["fixedFields"]["67"]["value"], patron.to_string());

    let canaries = world.canaries();
    assert!(canaries.contains(&patron.to_string()));
    let person = world.true_record(Kind::Patrons, patron).unwrap().value();
    for value in
        [&person["names"][0], &person["emails"][0], &person["barcodes"][0], &person["addresses"][0]["lines"][1]]
    {
        assert!(canaries.iter().any(|canary| canary == value.as_str().unwrap()), "{value}");
    }
    let bibs = world.truth(Kind::Bibs);
    let leaks = |canary: &String| bibs.live.values().any(|bib| bib.json.contains(canary.as_str()));
    assert!(!canaries.iter().any(leaks));
}

/// BR-010: a number that comes to life again.
#[test]
fn a_deleted_number_can_be_revived() {
    let mut world = World::open(&LibrarySettings::opened_at(opened()).sized(5, 5, 5), RootSeed::new(1));
    for kind in Kind::ALL {
        for keep in [true, false] {
            let id = world.ids(kind)[0];
            assert!(world.revive(kind, id).is_err());
            world.keep_tombstones(keep);
            world.delete(kind, id).unwrap();
            assert!(world.true_record(kind, id).is_none() && world.deleted(kind).contains_key(&id));
            world.revive(kind, id).unwrap();
            assert_eq!(world.true_record(kind, id).unwrap().updated, opened());
            assert!(!world.deleted(kind).contains_key(&id));
        }
    }
}

/// A Sierra restored from backup knows nothing of what came after.
#[test]
fn a_clone_is_a_backup() {
    let mut world = World::open(&LibrarySettings::opened_at(opened()).sized(5, 0, 0), RootSeed::new(1));
    let backup = world.clone();
    let bib = world.ids(Kind::Bibs)[0];
    world.delete(Kind::Bibs, bib).unwrap();
    world.create_bib();
    assert_ne!(world.truth(Kind::Bibs), backup.truth(Kind::Bibs));
    world = backup;
    assert!(world.true_record(Kind::Bibs, bib).is_some());
    assert!(world.delete(Kind::Bibs, 99).is_err());
}
