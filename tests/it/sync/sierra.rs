//! The engine with the real client against the simulated Sierra: every layer but sockets and disks.

use sierra_sync::record::Stream;
use sierra_sync::simulator::Life;

use crate::support::{Sim, hours, seeds};

#[tokio::test(start_paused = true)]
async fn a_quiet_library_is_loaded_and_a_second_pass_emits_nothing() {
    let mut sim = Sim::seeded(1).library(1000).life(Life::default()).start().await;
    let first = sim.sync_well().await;
    assert_eq!(first.streams["bibs"].changed, 400);
    tokio::time::sleep(hours(1)).await;
    let second = sim.sync_well().await;
    assert_eq!(second.sinks["archive"].delivered, 0);
    assert_eq!(Stream::ALL.len(), second.streams.len());
    sim.assert_converged().await;
}

/// CUR-1, CUR-2, WIN-1, OUT-1, OUT-2, PRV-1 over a whole day of a town library.
#[tokio::test(start_paused = true)]
async fn the_service_follows_a_town_library_for_a_day() {
    for seed in seeds(3) {
        let mut sim = Sim::seeded(seed).start().await;
        sim.run_for(hours(24)).await;
        sim.assert_converged().await;
    }
}
