//! A library that lives by itself, and scripts that drive one.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{Kind, LibrarySettings, Life, Night, Oddity, Progress, Scenario, World};

use super::client::{Client, opened, shared, small_library};

fn living(life: Life) -> World {
    let mut world = World::open(&LibrarySettings::opened_at(opened()).sized(80, 80, 20), RootSeed::new(5));
    world.live(life);
    world
}

fn after(hours: i64) -> Timestamp {
    opened() + SignedDuration::from_hours(hours)
}

/// What has happened by a moment does not depend on how often somebody looked.
#[test]
fn life_is_the_same_however_often_it_is_looked_at() {
    let (mut once, mut often) = (living(Life::town()), living(Life::town()));
    once.tick(after(30));
    for minute in (0..=30 * 60).step_by(9) {
        often.tick(opened() + SignedDuration::from_mins(minute));
    }
    for kind in Kind::ALL {
        assert_eq!(once.truth(kind), often.truth(kind));
    }
}

#[test]
fn a_town_changes_deletes_and_adds_and_a_still_library_does_not() {
    let mut still = living(Life::default());
    let before = still.truth(Kind::Bibs);
    still.tick(after(1_000));
    assert_eq!(still.truth(Kind::Bibs), before);

    let mut town = living(Life::town());
    town.tick(after(10));
    let later = town.truth(Kind::Bibs);
    assert!(later.live.keys().any(|id| !before.live.contains_key(id)), "acquisitions");
    assert!(later.deleted.len() > before.deleted.len(), "deletions");
    let changed = before.live.iter().filter(|(id, bib)| later.live.get(id).is_some_and(|later| later.marc != bib.marc));
    assert!(changed.count() > 30, "edits");
}

/// The demo compares its copy once the library stands still; a commit that shows later would be missing from it.
#[tokio::test(start_paused = true)]
async fn a_library_that_is_to_stand_still_shows_all_it_has_committed() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let bib = simulator.world(|world| world.visibly_after(SignedDuration::from_secs(25), World::create_bib));
    simulator.world(|world| world.live(Life { uses: 1.0, ..Life::default() }));
    assert_eq!(client.get(&format!("/bibs/{bib}")).await.0, 404);
    simulator.world(|world| world.live(Life::default()));
    assert_eq!(client.get(&format!("/bibs/{bib}")).await.0, 200);
}

/// BR-002: the nightly job stamps many records with one second, at the library's own hour.
#[test]
fn the_nightly_job_ties_stamps() {
    let night = Night { at: "02:30".parse().unwrap(), percent: 50 };
    let mut world = living(Life { night: Some(night), ..Life::default() });
    world.tick(after(16));
    let untouched = world.truth(Kind::Bibs);
    world.tick(after(17));
    let stamp: Timestamp = "2026-01-06T02:30:00Z".parse().unwrap();
    let tied = |world: &World| world.truth(Kind::Bibs).live.values().filter(|bib| bib.updated == stamp).count();
    assert!(untouched.live.values().all(|bib| bib.updated < stamp));
    assert!((20..60).contains(&tied(&world)), "{}", tied(&world));
    world.tick(after(41));
    assert!(world.truth(Kind::Bibs).live.values().any(|bib| bib.updated > stamp + SignedDuration::from_hours(20)));
}

#[tokio::test(start_paused = true)]
async fn life_goes_on_between_two_calls() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    simulator.world(|world| world.live(Life { bib_edits: 60.0, ..Life::default() }));
    let changed = format!("/bibs?updatedDate=[{:.0},]", opened());
    assert_eq!(client.get(&changed).await.0, 404);
    tokio::time::sleep(Duration::from_secs(1_800)).await;
    let count = client.entries(&changed).await.len();
    assert!((10..40).contains(&count), "{count}");
}

/// BR-017, BR-022, BR-023, BR-048, BR-082, BR-083, BR-085, BR-087, BR-088: each oddity can be served.
#[tokio::test(start_paused = true)]
async fn every_oddity_is_served_as_valid_json() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    for oddity in Oddity::ALL {
        let bib = simulator.world(|world| {
            let bib = world.create_bib();
            world.plant(bib, oddity).unwrap();
            bib
        });
        let (status, entry) = client.get(&format!("/bibs/{bib}?fields=varFields,marc")).await;
        let truth = simulator.world(|world| world.true_record(Kind::Bibs, bib)).unwrap();
        assert_eq!((status, &entry["varFields"]), (200, &truth.value()["varFields"]), "{oddity:?}");
        let length = entry["varFields"].to_string().len();
        match oddity {
            Oddity::NoFields => assert_eq!(truth.marc.len(), 1, "the record number alone"),
            Oddity::LongRecord => assert!(length > 100_000),
            Oddity::HugeRecord => assert!(length > 1_300_000),
            _ => assert!(length > 1_000),
        }
    }
}

/// Drives a script with a client that keeps asking for changes; returns the sentences.
async fn played(scenario: &str, asks: usize) -> Vec<String> {
    let mut plan = Scenario::find(scenario).unwrap();
    (plan.library.bibs, plan.library.items) = (Some(300), Some(300));
    let (simulator, mut script) = plan.start(RootSeed::new(3), opened()).unwrap();
    let simulator = shared(simulator);
    let mut client = Client::of(&simulator).await;
    let mut told = Vec::new();
    for _ in 0..asks {
        while let Progress::Done { say, .. } = simulator.with(|simulator| script.step(simulator)) {
            told.push(say);
        }
        for kind in ["bibs", "items"] {
            let answer = client.try_get(&format!("/{kind}?updatedDate=[{:.0},]&limit=2000", opened())).await;
            if answer.is_ok_and(|answer| answer.status() == 401) {
                client = Client::of(&simulator).await;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(simulator.with(|simulator| script.step(simulator)), Progress::Finished);
    told
}

#[tokio::test(start_paused = true)]
async fn the_demo_plays_to_its_end_with_a_client_that_keeps_asking() {
    let told = played("demo", 40).await;
    assert_eq!(told.len(), 9);
    assert!(told[2].contains("401") && told[3].contains("429") && told[6].contains("503"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_script_waits_for_a_client_that_does_not_come() {
    let (mut simulator, mut script) = Scenario::find("demo").unwrap().start(RootSeed::new(3), opened()).unwrap();
    assert!(matches!(script.step(&mut simulator), Progress::Done { step: 1, of: 9, .. }));
    for hour in 1..50 {
        simulator.advance(after(hour));
        assert!(matches!(script.step(&mut simulator), Progress::Waiting { step: 2, .. }));
    }
}

/// A scenario of one's own: triggers by calls and by time.
#[tokio::test(start_paused = true)]
async fn steps_wait_for_calls_and_for_time() {
    let text = r#"
        about = "two steps"
        [library]
        bibs = 20
        items = 0
        patrons = 0
        [[step]]
        say = "after two calls"
        when = { calls = { at = "bibs", count = 2 } }
        do = [{ create = { kind = "bibs", count = 1 } }]
        [[step]]
        say = "ten seconds later"
        when = { after = "10s" }
        do = [{ load_back_dated = { count = 2, days = 30 } }]
    "#;
    let (simulator, mut script) = Scenario::parse("test", text).unwrap().start(RootSeed::new(3), opened()).unwrap();
    let simulator = shared(simulator);
    let client = Client::of(&simulator).await;
    let mut step = || simulator.with(|simulator| script.step(simulator));
    let bibs = || simulator.world(|world| world.ids(Kind::Bibs).len());
    assert_eq!(step(), Progress::Waiting { until: "for 2 more calls".into(), step: 1, of: 2 });
    client.get("/bibs").await;
    client.get("/bibs").await;
    assert!(matches!(step(), Progress::Done { .. }));
    assert_eq!(bibs(), 21);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(step(), Progress::Waiting { until: "6s more".into(), step: 2, of: 2 });
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(matches!(step(), Progress::Done { .. }));
    assert_eq!(bibs(), 23);
    assert_eq!(step(), Progress::Finished);
}
