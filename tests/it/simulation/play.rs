//! Plays a case to its end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand::RngExt;
use sierra_sync::record::Stream;
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{Kind, Life, Night, Nothing, Simulator};
use sierra_sync::sync::Store;
use sierra_sync::sync::backfill::BackfillOrder;
use sierra_sync::sync::report::status::SinkState;
use sierra_sync::sync::settings::{Repeat, WhenFull};
use sierra_sync::sync::sweep::ReconcileOrder;

use super::case::{Act, Case, How};
use super::trouble::{SecondSink, stumble};
use crate::support::{Bends, Sim, hours, minutes};

/// Everything that happened, in order, and where the sinks then stand; or what did not hold.
pub(super) fn play(case: &Case, bends: &Bends) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let story = || runtime.block_on(story(case, bends));
    catch_unwind(AssertUnwindSafe(story)).map_err(|panic| words(panic.as_ref()))
}

async fn story(case: &Case, bends: &Bends) -> String {
    let mut sim = started(case, bends).await;
    let archive = RootSeed::new(case.seed).generator("archive stumbles");
    let mut archive = archive;
    sim.sink("archive").script(move |_| stumble(&mut archive));
    let second = RootSeed::new(case.seed).generator("second sink");
    sim.sink("second").script(case.second.script(second));
    for (number, act) in case.acts.iter().enumerate() {
        if number == 1 && case.second == SecondSink::Emptied {
            sim.sink("second").empty();
        }
        if number > 0 && case.has_drift {
            a_quiet_day(&mut sim, case).await;
        }
        acted(&mut sim, act).await;
        sim.assert_sound();
        sim.assert_nothing_alive_is_buried();
        trace(&sim, number);
    }
    ended(&mut sim, case).await;
    format!("{:?} {:?} {}", sim.watch.events(), sim.store.sink_positions(), sim.now())
}

fn life(case: &Case) -> Life {
    let night = case.has_night.then(|| Night { at: "10:40".parse().expect("a time"), percent: 60 });
    let mut life = Life { night, ..Life::town().times(case.pace) };
    life.late_seconds = case.late_seconds;
    life.bib_deletions *= case.deletions;
    if case.has_drift {
        life.silent_edits = 20.0 * case.pace;
        life.back_dated_loads = 6.0 * case.pace;
    }
    life
}

async fn started(case: &Case, bends: &Bends) -> Sim {
    let (seed, latency_ms) = (case.seed, case.latency_ms);
    let mut plan = Sim::seeded_quietly(seed)
        .library(case.records)
        .page_size(case.page_size)
        .life(life(case))
        .bent(bends.clone())
        .sierra(move |simulator| {
            simulator.latency.base_ms = latency_ms;
            quirks(simulator, seed);
        });
    for (_, fault) in &case.faults {
        plan = plan.fault(fault.clone());
    }
    let mut sim = plan.start().await;
    sim.add_sink("second");
    if case.has_drift {
        for stream in Stream::ALL {
            let settings = sim.settings(stream);
            (settings.late_sweep, settings.reconcile) = (Some(Repeat::Daily), Some(Repeat::Daily));
        }
    }
    if case.second == SecondSink::Detached {
        sim.limits.outbox_max_bytes = 60_000;
        sim.sinks.get_mut("archive").expect("it is there").0.when_full = WhenFull::Hold;
    }
    sim.forget_engine();
    sim
}

fn quirks(simulator: &mut Simulator, seed: u64) {
    let mut chance = RootSeed::new(seed).generator("quirks");
    simulator.switches.tombstones_in_updates = chance.random();
    simulator.switches.stale_tombstone_stamps = chance.random();
    for nothing in [&mut simulator.switches.empty_range, &mut simulator.switches.empty_deletes] {
        *nothing = if chance.random() { Nothing::NotFound } else { Nothing::EmptyPage };
    }
}

/// Nothing happens for so long that sweeps are due; from then on deletions leave no trace, every other day.
async fn a_quiet_day(sim: &mut Sim, case: &Case) {
    sim.library.simulator.world(|world| world.live(Life::default()));
    tokio::time::sleep(hours(25)).await;
    sim.library.simulator.world(|world| {
        world.keep_tombstones(case.seed.is_multiple_of(2));
        world.live(life(case));
    });
}

/// Ends with the stroke, or without one; then the process starts again.
async fn acted(sim: &mut Sim, act: &Act) {
    if let Some((step, spared)) = act.dies {
        sim.store.fail_at(step, spared);
    }
    match act.how {
        How::Service => sim.run_for(act.lasts).await,
        How::Passes => {
            for _ in 0..3 {
                if sim.try_sync().await.is_err() {
                    break;
                }
                tokio::time::sleep(act.lasts / 3).await;
            }
        }
        How::Sweeps { deep } => {
            for stream in Stream::ALL {
                if sim.try_reconcile(&whatever_is_missing(stream, deep)).await.is_err() {
                    break;
                }
            }
        }
    }
    sim.crash();
}

fn whatever_is_missing(stream: Stream, deep: bool) -> ReconcileOrder {
    ReconcileOrder { deep, max_missing: 100, ..ReconcileOrder::scheduled(stream, true) }
}

/// What no window shows is found. What was begun before is gone on with first, and may not conclude.
async fn reconciled(sim: &mut Sim) {
    for stream in Stream::ALL {
        let order = whatever_is_missing(stream, true);
        let first = sim.reconcile(&order).await;
        let last = if first.found.stopped.is_some() { sim.reconcile(&order).await } else { first };
        assert_eq!((last.found.stopped, last.exit), (None, 0), "seed {}: {stream}", sim.seed);
    }
    sim.assert_nothing_alive_is_buried();
}

/// Sierra and the sinks behave again, a sink that lost its place is loaded, and everything must agree.
async fn ended(sim: &mut Sim, case: &Case) {
    sim.library.simulator.with(|simulator| {
        simulator.cancel_all_faults();
        simulator.world.live(Life::default());
        for kind in [Kind::Bibs, Kind::Items, Kind::Patrons] {
            // From a sweep that brings nothing nothing is concluded: no kind may have died out.
            if simulator.world.random_live(kind).is_none() {
                simulator.world.create(kind);
            }
        }
    });
    sim.sinks.values().for_each(|(_, recorder)| recorder.behave());
    sim.limits.outbox_max_bytes = 2 << 30;
    sim.crash();
    // Longer than settle and late commits, the breaker's longest pause and Sierra's own refusals.
    tokio::time::sleep(minutes(20)).await;
    sim.sync().await;
    if case.has_drift {
        reconciled(sim).await;
    }
    let summary = sim.sync().await;
    trace(sim, 9);
    let lost = summary.sinks["second"].state == SinkState::NeedsReload;
    assert!(!lost || case.second.loses_its_place(), "seed {}: {summary:#?}", case.seed);
    if lost {
        for stream in Stream::ALL {
            let loaded = sim.backfill(&BackfillOrder::reload(stream, "second", false)).await;
            assert_eq!(loaded.exit, 0, "seed {}: {loaded:#?}", case.seed);
        }
    }
    let last = sim.sync().await;
    assert_eq!(last.exit, 0, "seed {}: {last:#?}", case.seed);
    sim.assert_held(case.second.loses_its_place().then_some("second"));
}

/// With `SIM_TRACE` set, what happened.
fn trace(sim: &Sim, act: usize) {
    if std::env::var_os("SIM_TRACE").is_some() {
        println!("act {act} ends at {}", sim.now());
        sim.watch.events().iter().for_each(|event| println!("    {event:?}"));
        println!("    {:?}", sim.store.sink_positions());
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_owned(),
        (None, None) => "a panic without words".to_owned(),
    }
}
