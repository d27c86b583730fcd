//! The parts of a running engine, put together from a configuration.

use std::future::ready;
use std::path::{PathBuf, absolute};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::time::Instant;

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
use crate::sync::engine::{Engine, EngineError, EngineParts, StatusInputs, Vitals};
use crate::sync::observer::SharedObserver;
use crate::sync::ports::Snapshot;
use crate::sync::positions::Limits;
use crate::sync::report::StatusReport;
use crate::sync::report::status::{BreakerStatus, QuotaStatus, TokenStatus};
use crate::sync::settings::RouteSettings;
use crate::sync::{Change, Seq, Sink, SinkError, Source, Store, StoreError};

use super::{chronicle::Chronicle, cursor::CursorGround, damage, desk, forecast};

/// A state that is held by somebody who answers nobody is asked for so long, and so often.
const LOOKS_END_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

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
    /// Where a damaged state was set aside when this was opened.
    pub(super) set_aside: Option<String>,
    pub(super) quota: QuotaSettings,
    /// The directory of the state.
    pub(super) state: PathBuf,
    /// What orders about cursors go by.
    pub(super) ground: CursorGround,
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
    /// Whether a damaged state is set aside and a new one begun; else it is refused.
    pub(super) begins_anew: bool,
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
            begins_anew: false,
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
        let anew = wishes.begins_anew.then_some(&wishes.observer);
        let opened = open_store(config, &clock, wishes.reach, anew).await?;
        let held = opened.held.clone();
        Self::over(config, wishes, opened, clock).await.inspect_err(|error| mark_if_damaged(held.as_deref(), error))
    }

    async fn over(config: &Config, wishes: Wishes, opened: Opened, clock: SharedClock) -> anyhow::Result<Self> {
        let Opened { store, held, set_aside, policy } = opened;
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
            meanings: config.meanings(),
            policy,
            marc: config.marc,
            zone: config.sierra.local_zone.clone(),
            limits: Limits {
                // Whoever reads it stands somewhere else.
                place: absolute(&config.store.path).unwrap_or_else(|_| config.store.path.clone()).display().to_string(),
                outbox_max_bytes: config.store.outbox_max_size,
                min_free_bytes: config.store.min_free,
                retention: config.store.retention,
            },
            clock: Arc::clone(&clock),
            seed: wishes.seed,
            observer: wishes.observer,
        })
        .await
        .map_err(|error| match error {
            // Itself, so that whoever decides by kinds of failure finds it.
            EngineError::Store(error) => anyhow::Error::new(error),
            error => error.into(),
        })?;
        let (quota, stale_after) = (config.quota, config.alerts.stale_after);
        let ground = CursorGround::of(config);
        Ok(Self {
            engine,
            client,
            store,
            held,
            set_aside,
            quota,
            ground,
            state: config.store.path.clone(),
            started: clock.now(),
            stale_after,
        })
    }

    /// The lock of the state, when this process holds one.
    pub(super) fn lock(&self) -> Option<&StateLock> {
        self.held.as_ref().map(|store| store.lock())
    }

    /// The store on the disk, when there is one.
    pub(super) fn disk(&self) -> Option<Arc<SledStore>> {
        self.held.clone()
    }

    /// Takes note of what ended the engine: a damaged state is refused from now on, until a new one is begun.
    pub(super) fn failed_with(&self, error: &anyhow::Error) {
        mark_if_damaged(self.held.as_deref(), error);
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

    /// Keeps breaker, quota, latch and recent runs for the next process.
    ///
    /// # Errors
    /// On any storage error.
    pub(super) fn keep_vitals(&self) -> Result<(), StoreError> {
        self.engine.keep_runs(self.store.as_ref())?;
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

/// Keeps breaker, quota and latch of `client` for the next process.
///
/// # Errors
/// On any storage error.
pub(super) fn keep_vitals(client: &SierraClient, store: &dyn Store) -> Result<(), StoreError> {
    store.save_snapshot(Snapshot::Breaker, &client.breaker_snapshot())?;
    store.save_snapshot(Snapshot::Quota, &client.quota_snapshot())?;
    store.save_snapshot(Snapshot::Latch, &client.latch_snapshot())
}

/// The engine finds damage too: in what the store gives back as it was written.
fn mark_if_damaged(store: Option<&SledStore>, error: &anyhow::Error) {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<StoreError>());
    if let (Some(store), Some(cause)) = (store, cause) {
        store.mark_damaged(cause);
    }
}

/// What is opened first.
pub(super) struct Opened {
    /// The durable memory.
    pub(super) store: Arc<dyn Store>,
    /// The same, when it is on the disk.
    pub(super) held: Option<Arc<SledStore>>,
    /// Where a damaged one was set aside for it.
    pub(super) set_aside: Option<String>,
    /// What may leave about people.
    pub(super) policy: Arc<Policy>,
}

/// Opens the store and the keys beside it. Who only looks at a state that is not there yet makes none. A damaged one is
/// refused, unless a new one may be begun: whoever hears of that is given.
///
/// A command that only looks holds the state for a moment and answers nobody: its end is waited for.
pub(super) async fn open_store(
    config: &Config,
    clock: &SharedClock,
    reach: Reach,
    begins_anew: Option<&SharedObserver>,
) -> anyhow::Result<Opened> {
    let began = Instant::now();
    let mut has_told = false;
    loop {
        match try_open_store(config, clock, reach, begins_anew).await {
            Err(error) if desk::is_held(&error) && began.elapsed() < LOOKS_END_WITHIN => {
                if desk::is_answered(&config.store.path).await {
                    return Err(error);
                }
                if !std::mem::replace(&mut has_told, true) {
                    tracing::debug!(event = "state_held", "{error:#}; waits a moment for its end");
                }
                tokio::time::sleep(LOOK_AGAIN_AFTER).await;
            }
            opened => return opened,
        }
    }
}

async fn try_open_store(
    config: &Config,
    clock: &SharedClock,
    reach: Reach,
    begins_anew: Option<&SharedObserver>,
) -> anyhow::Result<Opened> {
    let begins_anew = begins_anew.cloned();
    let (settings, privacy, clock) = (config.store.clone(), config.privacy.clone(), Arc::clone(clock));
    let has_patrons = config.streams.iter().any(|settings| settings.stream == Stream::Patrons);
    let opening = tokio::task::spawn_blocking(move || {
        let is_there = store::disk::is_there(&settings.path);
        let absent = match reach {
            _ if is_there && has_patrons => Absent::Refuse,
            Reach::Everything => Absent::Make,
            Reach::Pretend | Reach::Look => Absent::Forget,
        };
        let keyring = Keyring::of(&privacy, &settings.path, absent).map_err(|error| {
            let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
            anyhow::Error::new(error).context(format!("failed to set up the privacy key{hint}"))
        })?;
        let keyring = Arc::new(keyring);
        let policy = Policy::new(&privacy, Arc::clone(&keyring)).context("failed to set up [privacy]")?;
        let policy = Arc::new(policy);
        if !is_there && reach != Reach::Everything {
            let store = Arc::new(MemoryStore::new(clock));
            return Ok(Opened { store, held: None, set_aside: None, policy });
        }
        let opened = match (reach, begins_anew) {
            (Reach::Everything, Some(observer)) => damage::open_or_begin_anew(&settings, &keyring, &clock, &observer),
            (Reach::Everything, None) => SledStore::open(&settings, keyring, clock).map(|store| (store, None)),
            (Reach::Pretend | Reach::Look, _) => {
                SledStore::open_to_look(&settings, keyring, clock).map(|store| (store, None))
            }
        };
        let (store, set_aside) =
            opened.with_context(|| format!("failed to open the state in {}", settings.path.display()))?;
        let store = Arc::new(store);
        Ok(Opened { store: Arc::clone(&store) as Arc<dyn Store>, held: Some(store), set_aside, policy })
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
