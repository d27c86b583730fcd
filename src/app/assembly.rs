//! The parts of a running engine, put together from a configuration.

use std::future::ready;
use std::sync::Arc;

use anyhow::Context;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::clock::{SharedClock, SystemClock};
use crate::config::{Config, SinkConfig};
use crate::failure::Disposition;
use crate::privacy::{Absent, Keyring, Policy};
use crate::record::Stream;
use crate::resilience::breaker::{Breaker, BreakerObserver};
use crate::resilience::line::Line;
use crate::resilience::quota::{Patience, Quota};
use crate::resilience::settings::QuotaSettings;
use crate::seed::RootSeed;
use crate::sierra::{
    ClientParts, HttpTransport, SierraClient, install_crypto, read_breaker_snapshot, read_quota_snapshot,
};
use crate::sink;
use crate::store::{self, DryRun, MemoryStore, SledStore, StateLock};
use crate::sync::engine::{Engine, EngineParts, StatusInputs, Vitals};
use crate::sync::meaning::Meanings;
use crate::sync::observer::SharedObserver;
use crate::sync::ports::Snapshot;
use crate::sync::positions::Limits;
use crate::sync::report::StatusReport;
use crate::sync::report::status::{BreakerStatus, QuotaStatus, TokenStatus};
use crate::sync::settings::RouteSettings;
use crate::sync::{Change, Seq, Sink, SinkError, Source, Store, StoreError};

use super::{chronicle::Chronicle, forecast};

/// Everything that a command of the service works with.
pub(super) struct Assembly {
    /// The engine.
    pub(super) engine: Engine,
    /// The connection to Sierra.
    pub(super) client: Arc<SierraClient>,
    /// The durable memory.
    pub(super) store: Arc<dyn Store>,
    /// The store on the disk, when there is one: it holds the lock of the state.
    held: Option<Arc<SledStore>>,
    pub(super) quota: QuotaSettings,
    started: Timestamp,
    stale_after: std::time::Duration,
}

/// What is different from one command to the next.
pub(super) struct Wishes {
    /// How long one call may wait for quota in place.
    pub(super) patience: Patience,
    /// Who logs it all.
    pub(super) chronicle: Arc<Chronicle>,
    /// Who hears what the engine does.
    pub(super) observer: SharedObserver,
    /// Who hears what the breaker does.
    pub(super) breaker_observer: Arc<dyn BreakerObserver>,
    /// Where chance comes from.
    pub(super) seed: RootSeed,
    /// What may be touched.
    pub(super) reach: Reach,
}

/// What a command may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// State and sinks.
    Everything,
    /// Neither: what is written is forgotten, and there are no sinks (`sync --dry-run`).
    Pretend,
    /// Neither: what is there is looked at, sinks are known by their positions (`status`).
    Look,
}

impl Wishes {
    /// Those of an ordinary command: it logs, and it parks long waits.
    pub(super) fn usual() -> Self {
        let chronicle = Arc::new(Chronicle::default());
        Self {
            patience: Patience::default(),
            observer: chronicle.clone(),
            breaker_observer: chronicle.clone(),
            chronicle,
            seed: RootSeed::from_system(),
            reach: Reach::Everything,
        }
    }
}

impl Assembly {
    /// Opens the state, connects nothing yet.
    ///
    /// # Errors
    /// When another process holds the state, or a key or certificate cannot be read.
    pub(super) async fn open(config: &Config, wishes: Wishes) -> anyhow::Result<Self> {
        let clock: SharedClock = Arc::new(SystemClock);
        let Opened { store, held, policy } = open_store(config, &clock, wishes.reach).await?;
        let store: Arc<dyn Store> = match wishes.reach {
            Reach::Everything => store,
            Reach::Pretend | Reach::Look => Arc::new(DryRun::over(store)),
        };
        wishes.chronicle.watch(&store);
        let line = line(config, &wishes, store.as_ref(), clock.now())?;
        let client = Arc::new(client(config, line, store.as_ref(), &clock, wishes.patience)?);
        let engine = Engine::open(EngineParts {
            source: Arc::clone(&client) as Arc<dyn Source>,
            store: Arc::clone(&store),
            sinks: match wishes.reach {
                Reach::Everything => sinks(config, &clock)?,
                Reach::Pretend => Vec::new(),
                Reach::Look => inert_sinks(config),
            },
            streams: config.streams.clone(),
            meanings: meanings(config),
            policy,
            marc: config.marc,
            zone: config.sierra.local_zone.clone(),
            limits: Limits {
                outbox_max_bytes: config.store.outbox_max_size,
                min_free_bytes: config.store.min_free,
                retention: config.store.retention,
            },
            clock: Arc::clone(&clock),
            seed: wishes.seed,
            observer: wishes.observer,
        })
        .await?;
        let (quota, stale_after) = (config.quota, config.alerts.stale_after);
        Ok(Self { engine, client, store, held, quota, started: clock.now(), stale_after })
    }

    /// The lock of the state, when this process holds one.
    pub(super) fn lock(&self) -> Option<&StateLock> {
        self.held.as_ref().map(|store| store.lock())
    }

    /// The store on the disk, when there is one.
    pub(super) fn disk(&self) -> Option<Arc<SledStore>> {
        self.held.clone()
    }

    /// The status of everything. `serving` is whether a service runs, rather than a command that ends.
    ///
    /// # Errors
    /// On any storage error.
    pub(super) async fn status(&self, serving: bool) -> Result<StatusReport, StoreError> {
        let inputs = StatusInputs {
            vitals: self,
            version: env!("CARGO_PKG_VERSION"),
            started: serving.then_some(self.started),
            stale_after: self.stale_after,
        };
        self.engine.status(&inputs).await
    }

    /// Keeps breaker, quota and latch for the next process.
    ///
    /// # Errors
    /// On any storage error.
    pub(super) fn keep_vitals(&self) -> Result<(), StoreError> {
        keep_vitals(&self.client, self.store.as_ref())
    }
}

impl Vitals for Assembly {
    fn quota(&self) -> QuotaStatus {
        self.client.quota_status()
    }

    fn breaker(&self) -> BreakerStatus {
        self.client.breaker_status()
    }

    fn token(&self) -> TokenStatus {
        self.client.token_status()
    }

    fn seconds_for(&self, calls: u64) -> Option<f64> {
        forecast::of(&self.client, &self.quota, calls, forecast::SECONDS_PER_CALL).eta_seconds
    }
}

/// What the events of each stream mean: a hash of its settings, as hexadecimal digits.
fn meanings(config: &Config) -> Meanings {
    let hex = |bytes: [u8; 16]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let streams = config.streams.iter().map(|settings| settings.stream);
    streams.map(|stream| (stream, hex(config.settings_hash(stream).bytes()))).collect()
}

/// Keeps breaker, quota and latch of `client` for the next process.
///
/// # Errors
/// On any storage error.
pub(super) fn keep_vitals(client: &SierraClient, store: &dyn Store) -> Result<(), StoreError> {
    store.save_snapshot(Snapshot::Breaker, &client.breaker_snapshot())?;
    store.save_snapshot(Snapshot::Quota, &client.quota_snapshot())?;
    store.save_snapshot(Snapshot::Latch, &client.latch_snapshot())
}

/// What is opened first.
pub(super) struct Opened {
    /// The durable memory.
    pub(super) store: Arc<dyn Store>,
    /// The same, when it is on the disk.
    pub(super) held: Option<Arc<SledStore>>,
    /// What may leave about people.
    pub(super) policy: Arc<Policy>,
}

/// Opens the store and the keys beside it. Who only looks at a state that is not there yet makes none.
pub(super) async fn open_store(config: &Config, clock: &SharedClock, reach: Reach) -> anyhow::Result<Opened> {
    let (settings, privacy, clock) = (config.store.clone(), config.privacy.clone(), Arc::clone(clock));
    let has_patrons = config.streams.iter().any(|settings| settings.stream == Stream::Patrons);
    let opening = tokio::task::spawn_blocking(move || {
        let is_there = store::disk::is_there(&settings.path);
        let absent = match reach {
            _ if is_there && has_patrons => Absent::Refuse,
            Reach::Everything => Absent::Make,
            Reach::Pretend | Reach::Look => Absent::Forget,
        };
        let keyring = Arc::new(Keyring::of(&privacy, &settings.path, absent).context(
            "failed to read or make the privacy key; see that state.path is a directory that this user may write",
        )?);
        let policy = Policy::new(&privacy, Arc::clone(&keyring)).context("failed to set up [privacy]")?;
        let policy = Arc::new(policy);
        if !is_there && reach != Reach::Everything {
            return Ok(Opened { store: Arc::new(MemoryStore::new(clock)), held: None, policy });
        }
        let store = SledStore::open(&settings, keyring, clock)
            .with_context(|| format!("failed to open the state in {}", settings.path.display()))?;
        let store = Arc::new(store);
        Ok(Opened { store: Arc::clone(&store) as Arc<dyn Store>, held: Some(store), policy })
    });
    opening.await.context("failed to open the state")?
}

/// Breaker, quota and retries, taking up where an earlier process left.
pub(super) fn line(config: &Config, wishes: &Wishes, store: &dyn Store, now: Timestamp) -> anyhow::Result<Line> {
    let chance = |label: &str| wishes.seed.generator(label);
    let observer = Arc::clone(&wishes.breaker_observer);
    let kept = store.snapshot(Snapshot::Breaker)?.and_then(|bytes| read_breaker_snapshot(&bytes));
    let breaker = match kept {
        Some(kept) => Breaker::restored(config.breaker, &kept, now, chance("breaker"), observer),
        None => Breaker::new(config.breaker, chance("breaker"), observer),
    };
    let quota = Quota::new(config.quota, chance("quota"));
    if let Some(kept) = store.snapshot(Snapshot::Quota)?.and_then(|bytes| read_quota_snapshot(&bytes)) {
        quota.restore(&kept, now);
    }
    Line::new(config.retry, breaker, Some(quota), chance("retry")).map_err(|problems| {
        let sentences: Vec<String> =
            problems.iter().map(|problem| format!("{} {}", problem.key, problem.message)).collect();
        anyhow::anyhow!("failed to set up retries: {}", sentences.join("; "))
    })
}

/// A connection to Sierra without a state behind it, for probes: it forgets what it learns.
///
/// # Errors
/// When the address, a certificate or the credential cannot be used.
pub(super) fn bare_client(config: &Config, clock: &SharedClock) -> anyhow::Result<SierraClient> {
    let forgetful = MemoryStore::new(Arc::clone(clock));
    let line = line(config, &Wishes::usual(), &forgetful, clock.now())?;
    client(config, line, &forgetful, clock, Patience::default())
}

/// The connection to Sierra.
pub(super) fn client(
    config: &Config,
    line: Line,
    store: &dyn Store,
    clock: &SharedClock,
    patience: Patience,
) -> anyhow::Result<SierraClient> {
    install_crypto();
    let transport = HttpTransport::new(&config.sierra).context("failed to set up the connection to Sierra")?;
    let fields: Vec<_> = config.streams.iter().map(|stream| (stream.stream, stream.fields.clone())).collect();
    let latch = store.snapshot(Snapshot::Latch)?.unwrap_or_default();
    let parts = ClientParts {
        transport: Arc::new(transport),
        line,
        clock: Arc::clone(clock),
        boot_number: store.boot_number(),
        fields: &fields,
        patience,
        latch: &latch,
    };
    SierraClient::start(&config.sierra, parts).context("failed to set up the client of Sierra")
}

/// Every configured sink with its route.
fn sinks(config: &Config, clock: &SharedClock) -> anyhow::Result<Vec<(RouteSettings, Box<dyn Sink>)>> {
    let build = |(name, sink): (&String, &SinkConfig)| {
        let built = sink::build(name, &sink.sink, clock).with_context(|| format!("failed to set up sink {name}"))?;
        Ok((sink.route.clone(), built))
    };
    config.sinks.iter().map(build).collect()
}

/// The routes of the configured sinks over sinks that are never opened.
fn inert_sinks(config: &Config) -> Vec<(RouteSettings, Box<dyn Sink>)> {
    config.sinks.values().map(|sink| (sink.route.clone(), Box::new(Inert) as Box<dyn Sink>)).collect()
}

/// Stands for a sink that must not be touched. No delivery runs over it.
struct Inert;

impl Sink for Inert {
    fn deliver<'a>(&'a mut self, _: &'a [Change]) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(ready(Err(SinkError {
            disposition: Disposition::Halt,
            message: "deliver: this command reads only".to_owned(),
            hint: "run `sierra-sync sync`".to_owned(),
            culprit: None,
            source: None,
        })))
    }

    fn highest_seq(&mut self) -> BoxFuture<'_, Result<Option<Seq>, SinkError>> {
        Box::pin(ready(Ok(None)))
    }

    fn settle(&mut self) -> BoxFuture<'_, Result<(), SinkError>> {
        Box::pin(ready(Ok(())))
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), SinkError>> {
        Box::pin(ready(Ok(())))
    }
}
