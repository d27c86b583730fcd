//! A simulated library served over loopback.

use std::sync::Arc;

use jiff::SignedDuration;
use sierra_sync::clock::{Clock, SystemClock};
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{
    Call, Endpoint, FaultId, Kind, LibrarySettings, PlannedFault, Server, SharedSimulator, Simulator, World,
};
use tokio::runtime::{Builder, Runtime};

use super::run::patiently;

/// One seed for every library, so that they look alike.
const SEED: u64 = 5;
/// Edits are stamped so far back that the second they fall into is over when they are looked for.
const OVER: SignedDuration = SignedDuration::from_secs(2);

/// A library on a port of its own. It lives on the system's clock, as the binary does.
pub(crate) struct Library {
    simulator: SharedSimulator,
    // Before the runtime that it runs on.
    server: Server,
    runtime: Runtime,
}

impl Library {
    /// Opens a library of so many live records.
    pub(crate) fn sized(bibs: usize, items: usize, patrons: usize) -> Self {
        Self::of(World::open(
            &LibrarySettings::opened_at(SystemClock.now()).sized(bibs, items, patrons),
            RootSeed::new(SEED),
        ))
    }

    /// Serves a library that exists.
    pub(crate) fn of(world: World) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let simulator = SharedSimulator::new(Simulator::of(world, RootSeed::new(SEED)), Arc::new(SystemClock));
        let server = runtime.block_on(Server::start(simulator.clone(), ([127, 0, 0, 1], 0).into()));
        Self { simulator, server: server.expect("a free port"), runtime }
    }

    /// What a configuration calls the base URL.
    pub(crate) fn base_url(&self) -> String {
        self.server.base_url()
    }

    /// Takes the server off its port: nobody answers there any more.
    pub(crate) fn close(self) -> World {
        self.runtime.block_on(self.server.stop());
        self.simulator.world(|world| world.clone())
    }

    /// Looks at the simulator or changes it.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Simulator) -> T) -> T {
        self.simulator.with(act)
    }

    /// Changes the library as staff would, a moment ago.
    pub(crate) fn edits<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        self.simulator.world(|world| {
            let moment_ago = world.now() - OVER;
            world.dated(moment_ago, act)
        })
    }

    /// The numbers of all live records.
    pub(crate) fn ids(&self, kind: Kind) -> Vec<u64> {
        self.simulator.world(|world| world.ids(kind))
    }

    /// Plans a fault from now on.
    pub(crate) fn plan(&self, fault: impl Into<PlannedFault>) -> FaultId {
        self.simulator.plan(fault)
    }

    /// Waits for a later second than the one in which something last happened: a pass looks no further than the second
    /// it runs in, and a second one within it opens no window.
    pub(crate) fn pass_a_second(&self) {
        let last = self.with(|simulator| simulator.world.now());
        patiently("the next second", || (SystemClock.now() - last >= SignedDuration::from_secs(1)).then_some(()));
    }

    /// Nothing goes wrong any more, from the next second on.
    pub(crate) fn recover(&self) {
        self.with(|simulator| simulator.cancel_all_faults());
        self.pass_a_second();
    }

    /// Every call since the journal was cleared.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.with(|simulator| simulator.journal.calls().cloned().collect())
    }

    /// How many calls an endpoint had since the journal was cleared.
    pub(crate) fn count(&self, endpoint: Endpoint) -> u64 {
        self.with(|simulator| simulator.journal.count(endpoint))
    }

    /// Forgets the calls so far.
    pub(crate) fn clear_journal(&self) {
        self.with(|simulator| simulator.journal.clear());
    }
}
