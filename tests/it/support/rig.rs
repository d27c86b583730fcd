//! The rig: library, store, engine and sinks under one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use rand::RngExt;
use rand::rngs::StdRng;
use sierra_sync::clock::{Clock, SharedClock, SimClock};
use sierra_sync::marc::MarcSettings;
use sierra_sync::privacy::{FieldRule, Keyring, Policy, PrivacySettings};
use sierra_sync::record::Stream;
use sierra_sync::seed::RootSeed;
use sierra_sync::store::MemoryStore;
use sierra_sync::sync::backfill::BackfillOrder;
use sierra_sync::sync::engine::ReconcileOutcome;
use sierra_sync::sync::meaning::Meanings;
use sierra_sync::sync::observer::SharedObserver;
use sierra_sync::sync::positions::Limits;
use sierra_sync::sync::report::PassSummary;
use sierra_sync::sync::settings::{Cadence, RouteSettings, StreamSettings, SuppressedAs, WhenFull};
use sierra_sync::sync::sweep::ReconcileOrder;
use sierra_sync::sync::{Engine, EngineError, EngineParts, Sink, Store, StoreError, SyncOptions};
use tokio_util::sync::CancellationToken;

use super::bends::Bends;
use super::library::Library;
use super::recorder::Recorder;
use super::shelf_source::ShelfSource;
use super::watch::Watch;

/// The seed of the keyring.
pub(crate) const KEY: u64 = 7;

/// The seeds that a simulation test runs with: `SIM_SEED` alone if it is set, else `count` of them.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SIM_SEED") {
        Ok(text) => vec![text.parse().expect("SIM_SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}

pub(crate) fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

pub(crate) fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

/// Everything of one simulated installation.
pub(crate) struct Rig<L> {
    pub(crate) seed: u64,
    pub(crate) library: L,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) sinks: BTreeMap<String, (RouteSettings, Recorder)>,
    pub(crate) streams: Vec<StreamSettings>,
    pub(crate) limits: Limits,
    pub(crate) zone: TimeZone,
    pub(crate) meanings: Meanings,
    pub(crate) bends: Bends,
    engine: Option<Arc<Engine>>,
    chance: StdRng,
}

impl Rig<ShelfSource> {
    /// A rig over an empty shelf that follows `streams`, with one sink called `archive`.
    pub(crate) fn on_shelf(seed: u64, streams: &[Stream]) -> Self {
        let clock = Arc::new(SimClock::starting_at("2026-01-05T10:00:00Z".parse().expect("a timestamp")));
        let library = ShelfSource::new(Arc::clone(&clock), streams);
        Self::new(seed, library, clock, streams)
    }
}

impl<L: Library> Rig<L> {
    pub(crate) fn new(seed: u64, library: L, clock: Arc<SimClock>, streams: &[Stream]) -> Self {
        let shared: SharedClock = clock.clone();
        let store = Arc::new(MemoryStore::new(shared));
        let mut rig = Self {
            seed,
            library,
            clock,
            store,
            watch: Arc::default(),
            sinks: BTreeMap::new(),
            streams: streams.iter().copied().map(stream_settings).collect(),
            limits: Limits {
                place: "/state".to_owned(),
                outbox_max_bytes: 2 << 30,
                min_free_bytes: 0,
                retention: hours(30 * 24),
            },
            zone: TimeZone::UTC,
            meanings: Meanings::new(),
            bends: Bends::default(),
            engine: None,
            chance: RootSeed::new(seed).generator("rig"),
        };
        rig.add_sink("archive");
        rig
    }

    /// PRV-1: none of `canaries` may ever reach a sink.
    pub(crate) fn plant(&self, canaries: &[String]) {
        self.sinks.values().for_each(|(_, recorder)| recorder.plant(canaries));
    }

    /// Adds a sink that takes every stream.
    pub(crate) fn add_sink(&mut self, name: &str) -> &mut RouteSettings {
        let route = RouteSettings {
            name: name.into(),
            streams: self.streams.iter().map(|settings| settings.stream).collect(),
            suppressed: SuppressedAs::Flag,
            locations: Vec::new(),
            paused: false,
            when_full: WhenFull::Detach,
        };
        &mut self.sinks.entry(name.into()).or_insert((route, Recorder::default())).0
    }

    pub(crate) fn sink(&self, name: &str) -> &Recorder {
        &self.sinks[name].1
    }

    pub(crate) fn settings(&mut self, stream: Stream) -> &mut StreamSettings {
        self.streams.iter_mut().find(|settings| settings.stream == stream).expect("the stream is followed")
    }

    /// The engine, opened if need be.
    pub(crate) async fn engine(&mut self) -> Result<Arc<Engine>, StoreError> {
        match self.try_open().await {
            Ok(engine) => Ok(engine),
            Err(EngineError::Store(error)) => Err(error),
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    /// The engine, opened if need be, or why it cannot be.
    pub(crate) async fn try_open(&mut self) -> Result<Arc<Engine>, EngineError> {
        if let Some(engine) = &self.engine {
            return Ok(Arc::clone(engine));
        }
        self.watch.look_at(&self.store);
        let sinks = self.sinks.values().map(|(route, recorder)| {
            let sink: Box<dyn Sink> = Box::new(recorder.clone());
            (route.clone(), sink)
        });
        let observer: SharedObserver = self.watch.clone();
        let parts = EngineParts {
            source: self.bends.source(self.library.source(self.store.boot_number())),
            store: self.bends.store(self.store.clone()),
            sinks: sinks.collect(),
            streams: self.streams.clone(),
            meanings: self.meanings.clone(),
            policy: Arc::new(policy()),
            marc: MarcSettings::default(),
            zone: self.zone.clone(),
            limits: self.limits.clone(),
            clock: self.clock.clone(),
            seed: RootSeed::new(self.seed),
            observer,
        };
        let engine = Arc::new(Engine::open(parts).await?);
        self.engine = Some(Arc::clone(&engine));
        Ok(engine)
    }

    /// One `sync`; a failing store is handed on.
    pub(crate) async fn try_sync(&mut self) -> Result<PassSummary, StoreError> {
        let engine = self.engine().await?;
        let summary = engine.sync_once(&SyncOptions::default(), &CancellationToken::new()).await?;
        for (stream, of_stream) in &summary.streams {
            let sum = of_stream.changed
                + of_stream.unchanged
                + of_stream.stale
                + of_stream.deleted
                + of_stream.deleted_unseen
                + of_stream.quarantined;
            assert_eq!(of_stream.fetched, sum, "seed {}: {stream} adds up", self.seed);
        }
        Ok(summary)
    }

    /// One backfill; a failing store is handed on.
    pub(crate) async fn try_backfill(&mut self, order: &BackfillOrder) -> Result<PassSummary, StoreError> {
        let engine = self.engine().await?;
        match engine.backfill(order, &CancellationToken::new()).await {
            Ok(summary) => Ok(summary),
            Err(EngineError::Store(error)) => Err(error),
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    /// One backfill with a sound store; its counts add up.
    pub(crate) async fn backfill(&mut self, order: &BackfillOrder) -> PassSummary {
        let summary = self.try_backfill(order).await;
        self.assert_sound();
        let summary = summary.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let of = &summary.streams[order.stream.name()];
        let sum = of.changed + of.unchanged + of.stale + of.deleted + of.deleted_unseen + of.quarantined;
        assert_eq!(of.fetched, sum, "seed {}: {of:?}", self.seed);
        summary
    }

    /// One reconciliation; a failing store is handed on.
    pub(crate) async fn try_reconcile(&mut self, order: &ReconcileOrder) -> Result<ReconcileOutcome, StoreError> {
        let engine = self.engine().await?;
        match engine.reconcile(order, &CancellationToken::new()).await {
            Ok(outcome) => Ok(outcome),
            Err(EngineError::Store(error)) => Err(error),
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    /// One reconciliation with a sound store.
    pub(crate) async fn reconcile(&mut self, order: &ReconcileOrder) -> ReconcileOutcome {
        let outcome = self.try_reconcile(order).await;
        self.assert_sound();
        outcome.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed))
    }

    /// One `sync` with a sound store.
    pub(crate) async fn sync(&mut self) -> PassSummary {
        let summary = self.try_sync().await;
        self.assert_sound();
        summary.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed))
    }

    /// One `sync` that must end with exit code 0.
    pub(crate) async fn sync_well(&mut self) -> PassSummary {
        let summary = self.sync().await;
        assert_eq!(summary.exit, 0, "seed {}: {summary:#?}", self.seed);
        summary
    }

    /// The service for `time`, while something happens in the library every `pace` on average. Ends early, with the
    /// error, when the store fails.
    pub(crate) async fn run_for(&mut self, time: Duration, pace: Option<Duration>) -> Result<(), StoreError> {
        let engine = self.engine().await?;
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let mut service = tokio::spawn(async move { engine.follow(&token).await });
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end && !service.is_finished() {
            let left = end - tokio::time::Instant::now();
            let next = pace.map_or(left, |pace| pace.mul_f64(self.chance.random_range(0.1..1.9))).min(left);
            tokio::select! {
                biased;
                ended = &mut service => {
                    self.assert_sound();
                    return ended.expect("the service does not panic");
                }
                () = tokio::time::sleep(next) => {}
            }
            if pace.is_some() {
                self.library.live(&mut self.chance);
            }
        }
        cancel.cancel();
        let ended = service.await.expect("the service does not panic");
        self.assert_sound();
        ended
    }

    /// Lets time pass and things happen, with no service running.
    pub(crate) async fn idle_for(&mut self, time: Duration, events: u32) {
        for _ in 0..events {
            tokio::time::sleep(time / events.max(1)).await;
            self.library.live(&mut self.chance);
        }
        if events == 0 {
            tokio::time::sleep(time).await;
        }
    }

    /// The process dies; what was fenced survives, and so do the destinations.
    pub(crate) fn crash(&mut self) {
        self.engine = None;
        self.store = Arc::new(self.store.crash_and_reopen());
        self.watch.look_at(&self.store);
    }

    /// The state is replaced by `store`: a backup, or a new one.
    pub(crate) fn restore(&mut self, store: MemoryStore) {
        self.engine = None;
        self.store = Arc::new(store);
        self.watch.tolerate_holes();
    }

    /// The engine is dropped; the next one is opened over what the rig then holds.
    pub(crate) fn forget_engine(&mut self) {
        self.engine = None;
    }

    /// The engine is closed and will be opened anew: a clean restart, for changed settings.
    pub(crate) async fn restart(&mut self) {
        if let Some(engine) = self.engine.take() {
            assert!(engine.close().await.is_empty());
        }
        self.crash();
    }

    pub(crate) fn assert_sound(&self) {
        let context = format!("seed {}", self.seed);
        self.watch.assert_sound(&context);
        self.library.assert_sound(&context);
        self.sinks.values().for_each(|(_, recorder)| recorder.assert_sound(&context));
    }

    /// Every sink that takes everything holds what the library holds, and nothing else.
    pub(crate) fn assert_converged(&self) {
        self.assert_sound();
        for (name, (route, recorder)) in &self.sinks {
            for stream in &route.streams {
                let (held, truth) = (recorder.holds(*stream), self.library.truth(*stream));
                let agrees = |id: &String| match (truth.get(id), held.get(id)) {
                    (Some(truth), Some(held)) => self.library.agrees(*stream, truth, held),
                    (truth, held) => truth.is_none() && held.is_none(),
                };
                let differing: Vec<_> = truth
                    .keys()
                    .chain(held.keys())
                    .filter(|id| !agrees(id))
                    .map(|id| (id, truth.get(id), held.get(id)))
                    .take(1)
                    .collect();
                assert!(differing.is_empty(), "seed {}: {name} {stream}: (id, truth, held) {differing:?}", self.seed);
            }
        }
    }

    /// No record that lives was ever told to have vanished; numbers are not used again.
    pub(crate) fn assert_nothing_alive_is_buried(&self) {
        let vanished: BTreeSet<(Stream, String)> =
            self.sinks.values().flat_map(|(_, recorder)| recorder.vanished()).collect();
        for stream in Stream::ALL.into_iter().filter(|stream| vanished.iter().any(|(of, _)| of == stream)) {
            let truth = self.library.truth(stream);
            let alive = vanished.iter().find(|(of, id)| *of == stream && truth.contains_key(id));
            assert!(alive.is_none(), "seed {}: {alive:?} lives and was told to have vanished", self.seed);
        }
    }

    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }
}

pub(crate) fn stream_settings(stream: Stream) -> StreamSettings {
    StreamSettings {
        stream,
        cadence: Cadence::Every(minutes(5)),
        deleted_interval: minutes(15),
        overlap: minutes(10),
        settle: Duration::from_secs(30),
        deleted_overlap_days: 1,
        late_sweep: None,
        reconcile: None,
        page_size: 100,
        concurrency: 2,
        fields: Vec::new(),
        locations: Vec::new(),
        hash_ignore: Vec::new(),
        emit_unchanged: false,
    }
}

fn policy() -> Policy {
    let pass = |name: &str| (name.to_owned(), FieldRule::Pass);
    let settings = PrivacySettings {
        key_file: None,
        retention: hours(24 * 30),
        marc_drop: Vec::new(),
        item_fixed_drop: vec!["66".into(), "67".into()],
        item_var_keep: vec!["v".into()],
        patron_fields: [("id".to_owned(), FieldRule::Hmac), pass("homeLibraryCode")].into(),
    };
    Policy::new(&settings, Arc::new(Keyring::for_tests(KEY))).expect("sound settings")
}
