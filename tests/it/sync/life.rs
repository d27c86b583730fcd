//! Random life, random faults, random crashes: whatever happens, what the sinks hold ends equal to what the library
//! holds, and the invariants hold on the way.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use sierra_sync::record::Stream;
use sierra_sync::seed::RootSeed;
use sierra_sync::store::Step;
use sierra_sync::sync::ports::SourceErrorKind;

use crate::support::{Act, Rig, ShelfSource, Trouble, hours, minutes, seeds};

/// CUR-1, CUR-2, WIN-1, OUT-1, OUT-2, PRV-1: a library that lives, with the service running.
#[tokio::test(start_paused = true)]
async fn the_service_converges_with_a_library_that_lives() {
    for seed in seeds(30) {
        let mut rig = stocked(seed);
        rig.run_for(hours(2), Some(minutes(1))).await.expect("a sound store");
        settle_down(&mut rig).await;
    }
}

/// The same with calls that fail, answers that lie, sinks that stumble.
#[tokio::test(start_paused = true)]
async fn the_service_converges_through_faults_of_sierra_and_of_sinks() {
    for seed in seeds(30) {
        let mut rig = stocked(seed);
        misbehave(&rig, seed);
        rig.run_for(hours(3), Some(minutes(1))).await.expect("a sound store");
        settle_down(&mut rig).await;
    }
}

/// The same with a process that dies at random steps of the store and starts again (BR-066, BR-113, BR-117, BR-118).
#[tokio::test(start_paused = true)]
async fn the_service_converges_through_crashes_at_random_steps() {
    for seed in seeds(30) {
        let mut rig = stocked(seed);
        misbehave(&rig, seed);
        let mut chance = RootSeed::new(seed).generator("crashes");
        for _ in 0..6 {
            let step = Step::OF_A_WRITE[chance.random_range(0..3)];
            rig.store.fail_at(step, chance.random_range(0..40));
            // Ends with the strike, or without one.
            let _ended = rig.run_for(minutes(40), Some(minutes(1))).await;
            rig.crash();
        }
        settle_down(&mut rig).await;
    }
}

/// The same with cron in place of the service, and time in which nobody looks.
#[tokio::test(start_paused = true)]
async fn single_passes_converge_as_the_service_does() {
    for seed in seeds(30) {
        let mut rig = stocked(seed);
        let mut chance = RootSeed::new(seed).generator("cron");
        for _ in 0..6 {
            rig.sync().await;
            rig.idle_for(minutes(chance.random_range(1..300)), chance.random_range(0..40)).await;
            if chance.random_range(0..4) == 0 {
                rig.crash();
            }
        }
        settle_down(&mut rig).await;
    }
}

fn stocked(seed: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(seed, &Stream::ALL);
    let mut chance = RootSeed::new(seed).generator("stock");
    rig.library.with(|shelf| {
        for stream in Stream::ALL {
            shelf.stock(stream, chance.random_range(0..260));
        }
        shelf.tombstones_in_updates = chance.random();
        shelf.commit_lag = jiff::SignedDuration::from_secs(chance.random_range(0..25));
        shelf.server_offset = jiff::SignedDuration::from_secs(chance.random_range(-4000..4000));
    });
    for stream in Stream::ALL {
        rig.settings(stream).page_size = chance.random_range(7..120);
    }
    rig.add_sink("second");
    rig.plant(&["CANARY".into()]);
    rig
}

/// Plans faults by the seed, each kind often enough to matter and seldom enough to get through.
fn misbehave(rig: &Rig<ShelfSource>, seed: u64) {
    let mut chance = RootSeed::new(seed).generator("faults");
    let mut act = move || -> Act {
        match chance.random_range(0..60_u32) {
            0..3 => Act::Fail(SourceErrorKind::Exhausted),
            3 => Act::Fail(SourceErrorKind::CircuitOpen),
            4 => Act::Fail(SourceErrorKind::Suspended),
            5 => Act::Fail(SourceErrorKind::Narrow),
            6 => Act::Slowly(Duration::from_secs(chance.random_range(1..200))),
            7 => Act::AtMost(1),
            8 => Act::PageAfter(0),
            _ => Act::Serve,
        }
    };
    rig.library.script(move |_, _, _| act());
    let mut chance = RootSeed::new(seed).generator("pulse faults");
    rig.library.script_pulse(move |_| (chance.random_range(0..12) == 0).then_some(SourceErrorKind::Exhausted));
    for (name, (_, recorder)) in &rig.sinks {
        let chance = RootSeed::new(seed).generator(&format!("sink faults {name}"));
        recorder.script(stumble(chance));
    }
}

fn stumble(mut chance: StdRng) -> impl FnMut(&[sierra_sync::sync::Change]) -> Option<Trouble> + Send {
    move |_| match chance.random_range(0..12_u32) {
        0 => Some(Trouble::Busy),
        1 => Some(Trouble::LostAcknowledgement),
        2 if chance.next_u32().is_multiple_of(4) => Some(Trouble::Broken),
        _ => None,
    }
}

/// Sierra stops changing and everybody behaves: then everything must agree.
async fn settle_down(rig: &mut Rig<ShelfSource>) {
    rig.library.behave();
    rig.sinks.values().for_each(|(_, recorder)| recorder.behave());
    tokio::time::sleep(minutes(3)).await;
    rig.sync().await;
    rig.sync_well().await;
    rig.assert_converged();
    let context = format!("seed {}", rig.seed);
    for (name, (_, recorder)) in &rig.sinks {
        recorder.assert_holds_all(&rig.watch.committed(name), &context);
    }
}
