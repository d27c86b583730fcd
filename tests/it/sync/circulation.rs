//! Circulation: what moves stamps and counters alone is no change; what readers see of it is.

use sierra_sync::record::Stream;
use sierra_sync::simulator::{Kind, Life, World};

use crate::support::{Sim, minutes};

/// A quiet library whose items alone are followed.
async fn loaded() -> (Sim, Vec<u64>, u64) {
    let mut sim = Sim::seeded(1).library(60).life(Life::default()).streams(&[Stream::Items]).start().await;
    sim.sync_well().await;
    sim.sink("archive").delivered();
    let items = sim.library.simulator.world(|world| world.truth(Kind::Items).live.into_keys().collect());
    let patron = sim.library.simulator.world(|world| world.random_live(Kind::Patrons)).expect("there are some");
    (sim, items, patron)
}

/// What a pass makes of `happening`: told, and read without anything to tell. Then the process is another.
async fn pass(sim: &mut Sim, happening: impl FnOnce(&mut World)) -> (u64, u64) {
    sim.library.simulator.world(happening);
    // Longer than the overlap: what happened before is not read again.
    tokio::time::sleep(minutes(12)).await;
    let summary = sim.sync_well().await;
    let items = &summary.streams["items"];
    assert_eq!(items.changed, summary.sinks["archive"].delivered);
    sim.restart().await;
    (items.changed, items.unchanged)
}

/// Stamps and counters of every item move again and again, and nothing is told; a loan, its new due date, its end and a
/// status are told once each.
#[tokio::test(start_paused = true)]
async fn counters_that_move_tell_nothing_and_a_loan_does() {
    let (mut sim, items, patron) = loaded().await;
    let all = items.len() as u64;
    let use_all = |world: &mut World| items.iter().for_each(|id| world.use_internally(*id).expect("it lives"));
    for _ in 0..5 {
        assert_eq!(pass(&mut sim, use_all).await, (0, all));
    }
    let lent = items[3];
    let loan = |days: u16| move |world: &mut World| world.check_out(lent, patron, days).expect("it lives");
    assert_eq!(pass(&mut sim, loan(21)).await, (1, 0));
    assert_eq!(pass(&mut sim, use_all).await, (0, all));
    assert_eq!(pass(&mut sim, loan(28)).await, (1, 0), "another due date");
    assert_eq!(pass(&mut sim, |world| world.check_in(lent).expect("it lives")).await, (1, 0));
    assert_eq!(pass(&mut sim, |world| world.set_status(items[5], 'm').expect("it lives")).await, (1, 0));
    let both = |world: &mut World| {
        use_all(world);
        world.set_status(items[5], '-').expect("it lives");
    };
    assert_eq!(pass(&mut sim, both).await, (1, all - 1), "told among counters that move");
    sim.assert_held(None);
}
