//! Opening an engine: what is refused, what is taken up, what the sinks say they hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex};

use tokio::sync::{Mutex, watch};

use super::{Board, Engine, EngineError, EngineParts};
use crate::seed::RootSeed;
use crate::sync::Sink;
use crate::sync::backfill::{Book, is_begun};
use crate::sync::capture::Lane;
use crate::sync::capture::map::Mapper;
use crate::sync::capture::tripwire::Tripwire;
use crate::sync::deliver::SinkLane;
use crate::sync::deliver::health::Health;
use crate::sync::deliver::lane::{Courier, Met, Standing};
use crate::sync::deliver::refusals::Refusals;
use crate::sync::meaning;
use crate::sync::observer::Event;
use crate::sync::positions::Positions;
use crate::sync::rebuild::Rebuild;
use crate::sync::settings::{Cadence, RouteSettings, StreamSettings};
use crate::sync::store_handle::StoreHandle;
use crate::sync::timekeeper::Timekeeper;

impl Engine {
    /// Opens an engine over its parts. No request is made.
    ///
    /// # Errors
    /// When a setting asks for what is not supported, and on any storage error.
    pub async fn open(parts: EngineParts) -> Result<Self, EngineError> {
        parts.streams.iter().try_for_each(supported)?;
        let store = StoreHandle::new(parts.store);
        let (clock, observer) = (parts.clock, parts.observer);
        let routes: Vec<RouteSettings> = parts.sinks.iter().map(|(route, _)| route.clone()).collect();
        let positions =
            Positions::open(&routes, parts.limits, store.clone(), Arc::clone(&clock), Arc::clone(&observer)).await?;
        let timekeeper =
            Timekeeper::open(Arc::clone(&parts.source), store.clone(), Arc::clone(&clock), Arc::clone(&observer))
                .await?;
        let last = store.call(|store| store.last_seq()).await?;
        let (ringer, bell) = watch::channel(last);
        let ringer = Arc::new(ringer);
        let lane = |settings: StreamSettings| {
            let mapper = Mapper::new(&settings, Arc::clone(&parts.policy), parts.marc, parts.zone.clone());
            let meaning = parts.meanings.get(&settings.stream).cloned();
            Arc::new(Lane {
                settings,
                meaning,
                source: Arc::clone(&parts.source),
                store: store.clone(),
                mapper: Arc::new(mapper),
                zone: parts.zone.clone(),
                clock: Arc::clone(&clock),
                observer: Arc::clone(&observer),
                positions: Arc::clone(&positions),
                ringer: Arc::clone(&ringer),
                tripwire: Mutex::new(Tripwire::default()),
            })
        };
        let rebuild = Arc::new(Rebuild {
            streams: parts.streams.iter().map(|settings| settings.stream).collect(),
            store: store.clone(),
            positions: Arc::clone(&positions),
            clock: Arc::clone(&clock),
            observer: Arc::clone(&observer),
        });
        let lanes = parts.streams.into_iter().map(|settings| (settings.stream, lane(settings))).collect();
        let sink_lane = |(route, sink): (RouteSettings, Box<dyn Sink>)| SinkLane {
            store: store.clone(),
            positions: Arc::clone(&positions),
            rebuild: Arc::clone(&rebuild),
            clock: Arc::clone(&clock),
            observer: Arc::clone(&observer),
            bell: bell.clone(),
            paused: watch::channel(route.paused).0,
            sink: Mutex::new(courier(sink, parts.seed, &route.name)),
            standing: StdMutex::new(Standing::default()),
            route,
        };
        let sinks: BTreeMap<String, Arc<SinkLane>> =
            parts.sinks.into_iter().map(sink_lane).map(|lane| (lane.name().to_owned(), Arc::new(lane))).collect();
        let book = Arc::new(Book::new(store.clone()));
        let engine = Self {
            lanes,
            book,
            sinks,
            positions,
            timekeeper: Arc::new(timekeeper),
            store,
            clock,
            seed: parts.seed,
            observer,
            board: Arc::new(Board::default()),
        };
        for lane in engine.sinks.values() {
            lane.meet().await?;
        }
        for lane in engine.lanes.values() {
            engine.settle_meaning(lane).await?;
        }
        Ok(engine)
    }

    /// Compares what a stream's events mean now with what the state was made with. Where that changed, what waits to
    /// be delivered is taken back: the load that is owed from now on emits it again.
    async fn settle_meaning(&self, lane: &Lane) -> Result<(), EngineError> {
        let Some(meaning) = lane.meaning.clone() else { return Ok(()) };
        let (stream, now) = (lane.stream(), meaning.clone());
        let before = self.store.call(move |store| meaning::kept(store).map(|kept| kept.get(&stream).cloned())).await?;
        match before {
            None => Ok(self.store.call(move |store| meaning::keep(store, stream, &now)).await?),
            Some(before) if before == meaning => Ok(()),
            Some(_) => {
                if !is_begun(lane, &self.book, &meaning).await? {
                    self.store.call(move |store| meaning::forget_waiting(store, stream)).await?;
                }
                self.observer.observe(&Event::MeaningChanged { stream });
                Ok(())
            }
        }
    }
}

fn courier(sink: Box<dyn Sink>, seed: RootSeed, name: &str) -> Courier {
    let generator = seed.generator(&format!("deliver {name}"));
    let (health, refusals) = (Health::default(), Refusals::default());
    Courier { sink, health, refusals, generator, met: Met::Never, stock_taken: None }
}

/// Refuses what this version does not do, rather than ignoring it.
fn supported(settings: &StreamSettings) -> Result<(), EngineError> {
    let refuse = |key: &str, instead| {
        Err(EngineError::Unsupported { setting: format!("streams.{}.{key}", settings.stream), instead })
    };
    match settings {
        StreamSettings { cadence: Cadence::Cron { .. }, .. } => refuse("cron", "write an interval"),
        StreamSettings { late_sweep: Some(_), .. } => refuse("late_sweep", "write \"off\""),
        StreamSettings { reconcile: Some(_), .. } => refuse("reconcile", "write \"off\""),
        _ => Ok(()),
    }
}
