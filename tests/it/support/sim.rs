//! `Sim`: the whole product without sockets and disks, stated fluently.
//!
//! ```text
//! let mut sim = Sim::seeded(seed).library(10_000).fault(Fault::MalformedJson.every(7)).start().await;
//! sim.run_for(hours(6)).await;
//! sim.crash_and_restart().await;
//! sim.assert_converged().await;
//! ```

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sierra_sync::clock::SimClock;
use sierra_sync::record::Stream;
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{LibrarySettings, Life, PlannedFault, Simulator};

use super::bends::Bends;
use super::rig::{Rig, minutes};
use super::sierra::{BIB_IGNORE, ITEM_IGNORE, SierraLibrary};

/// A simulation, running. The rig beneath it is at hand.
pub(crate) struct Sim {
    rig: Rig<SierraLibrary>,
}

/// Something that is done to the simulator before anything else happens.
type Preparation = Box<dyn FnOnce(&mut Simulator)>;

/// A simulation that is being described.
pub(crate) struct Plan {
    seed: u64,
    sizes: (usize, usize, usize),
    life: Life,
    faults: Vec<PlannedFault>,
    streams: Vec<Stream>,
    prepare: Vec<Preparation>,
    page_size: u32,
    bends: Bends,
}

impl Sim {
    /// A simulation in which everything follows from `seed`.
    pub(crate) fn seeded(seed: u64) -> Plan {
        println!("SIM_SEED={seed}");
        Self::seeded_quietly(seed)
    }

    /// The same, for whoever tells the seed only when something fails.
    pub(crate) fn seeded_quietly(seed: u64) -> Plan {
        Plan {
            seed,
            sizes: (300, 400, 60),
            life: Life::town().times(3.0),
            faults: Vec::new(),
            streams: Stream::ALL.to_vec(),
            prepare: Vec::new(),
            page_size: 100,
            bends: Bends::default(),
        }
    }

    /// The service for `time`. A store that fails ends it, as it ends a process.
    pub(crate) async fn run_for(&mut self, time: Duration) {
        let _ended = self.rig.run_for(time, None).await;
    }

    /// The process dies and starts again.
    pub(crate) async fn crash_and_restart(&mut self) {
        self.rig.crash();
        self.rig.engine().await.expect("a sound store");
    }

    /// Sierra stops changing and misbehaving; then every sink holds what Sierra holds.
    pub(crate) async fn assert_converged(&mut self) {
        self.rig.library.simulator.with(|simulator| {
            simulator.cancel_all_faults();
            simulator.world.live(Life::default());
        });
        self.rig.sinks.values().for_each(|(_, recorder)| recorder.behave());
        // Longer than settle and late commits, and than the breaker's longest pause.
        tokio::time::sleep(minutes(5)).await;
        self.rig.sync().await;
        self.rig.sync().await;
        self.assert_held(None);
    }

    /// Every sink holds what Sierra holds, and got every change; a sink that was `loaded` anew got others instead.
    pub(crate) fn assert_held(&self, loaded: Option<&str>) {
        self.rig.assert_converged();
        let context = format!("SIM_SEED={}", self.rig.seed);
        for (name, (_, recorder)) in self.rig.sinks.iter().filter(|(name, _)| Some(name.as_str()) != loaded) {
            recorder.assert_holds_all(&self.rig.watch.committed(name), &context);
        }
    }
}

impl Plan {
    /// A library of about so many records, bibs and items mostly.
    pub(crate) fn library(mut self, records: usize) -> Self {
        self.sizes = (records * 2 / 5, records / 2, records / 10);
        self
    }

    /// How lively it is.
    pub(crate) fn life(mut self, life: Life) -> Self {
        self.life = life;
        self
    }

    /// The streams that are followed.
    pub(crate) fn streams(mut self, streams: &[Stream]) -> Self {
        self.streams = streams.to_vec();
        self
    }

    /// Something that goes wrong from the start.
    pub(crate) fn fault(mut self, fault: impl Into<PlannedFault>) -> Self {
        self.faults.push(fault.into());
        self
    }

    /// Anything else about Sierra.
    pub(crate) fn sierra(mut self, prepare: impl FnOnce(&mut Simulator) + 'static) -> Self {
        self.prepare.push(Box::new(prepare));
        self
    }

    /// A mistake built in on purpose.
    pub(crate) fn bent(mut self, bends: Bends) -> Self {
        self.bends = bends;
        self
    }

    pub(crate) fn page_size(mut self, page_size: u32) -> Self {
        self.page_size = page_size;
        self
    }

    /// Opens library and engine.
    pub(crate) async fn start(self) -> Sim {
        let opened = "2026-01-05T10:00:00Z".parse().expect("a timestamp");
        let clock = Arc::new(SimClock::starting_at(opened));
        let (bibs, items, patrons) = self.sizes;
        let settings = LibrarySettings::opened_at(opened).sized(bibs, items, patrons);
        let mut simulator = Simulator::new(&settings, RootSeed::new(self.seed));
        simulator.latency.base_ms = 50;
        simulator.world.live(self.life);
        self.prepare.into_iter().for_each(|prepare| prepare(&mut simulator));
        for fault in self.faults {
            simulator.plan(fault);
        }
        let canaries = simulator.world.canaries();
        let library = SierraLibrary::new(simulator, Arc::clone(&clock), self.seed);
        let mut rig = Rig::new(self.seed, library, clock, &self.streams);
        rig.bends = self.bends;
        for stream in self.streams {
            let ignored: &[&str] = if stream == Stream::Items { &ITEM_IGNORE } else { &BIB_IGNORE };
            let settings = rig.settings(stream);
            settings.page_size = self.page_size;
            settings.hash_ignore = ignored.iter().map(|number| (*number).to_owned()).collect();
        }
        rig.plant(&canaries);
        rig.engine().await.expect("a sound store");
        Sim { rig }
    }
}

impl Deref for Sim {
    type Target = Rig<SierraLibrary>;

    fn deref(&self) -> &Self::Target {
        &self.rig
    }
}

impl DerefMut for Sim {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.rig
    }
}
