//! Opening an engine: what is refused, what is taken up, what the sinks say they hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex};

use tokio::sync::{Mutex, Semaphore};

use super::reins::Reins;
use super::{Board, Engine, EngineError, EngineParts, Supervisor};
use crate::seed::RootSeed;
use crate::sync::Sink;
use crate::sync::backfill::Book;
use crate::sync::capture::Lane;
use crate::sync::capture::map::Mapper;
use crate::sync::capture::tripwire::Tripwire;
use crate::sync::deliver::SinkLane;
use crate::sync::deliver::courier::{Courier, Met};
use crate::sync::deliver::health::Health;
use crate::sync::deliver::refusals::Refusals;
use crate::sync::deliver::standing::Standing;
use crate::sync::meaning;
use crate::sync::observer::Event;
use crate::sync::pause::Pauses;
use crate::sync::positions::Positions;
use crate::sync::rebuild::Rebuild;
use crate::sync::runs::Runs;
use crate::sync::schedule::CronSchedule;
use crate::sync::settings::{Cadence, RouteSettings, StreamSettings};
use crate::sync::signal;
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
        let pauses = store.call(Pauses::kept).await?;
        let runs = Arc::new(store.call(Runs::open).await?);
        let (ringer, bell) = signal::channel(last);
        let ringer = Arc::new(ringer);
        let quota_lifts = Arc::new(signal::Sender::new(0));
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
                doubt: timekeeper.doubt(),
                positions: Arc::clone(&positions),
                ringer: Arc::clone(&ringer),
                quota_lifts: Arc::clone(&quota_lifts),
                tripwire: Mutex::new(Tripwire::default()),
                sweeping: Semaphore::new(1),
            })
        };
        let rebuild = Arc::new(Rebuild {
            streams: parts.streams.iter().map(|settings| settings.stream).collect(),
            store: store.clone(),
            positions: Arc::clone(&positions),
            clock: Arc::clone(&clock),
            observer: Arc::clone(&observer),
        });
        let reins = |settings: &StreamSettings| Arc::new(Reins::new(pauses.streams.get(&settings.stream).cloned()));
        let reins = parts.streams.iter().map(|settings| (settings.stream, reins(settings))).collect();
        let lanes = parts.streams.into_iter().map(|settings| (settings.stream, lane(settings))).collect();
        let sink_lane = |(route, sink): (RouteSettings, Box<dyn Sink>)| SinkLane {
            store: store.clone(),
            positions: Arc::clone(&positions),
            rebuild: Arc::clone(&rebuild),
            clock: Arc::clone(&clock),
            observer: Arc::clone(&observer),
            bell: bell.clone(),
            paused: signal::Sender::new(route.paused || pauses.sinks.contains_key(&route.name)),
            pause: StdMutex::new(pauses.sinks.get(&route.name).cloned()),
            sink: Mutex::new(courier(sink, parts.seed, &route.name)),
            standing: StdMutex::new(Standing::default()),
            route,
        };
        let sinks: BTreeMap<String, Arc<SinkLane>> =
            parts.sinks.into_iter().map(sink_lane).map(|lane| (lane.name().to_owned(), Arc::new(lane))).collect();
        let book = Arc::new(Book::new(store.clone()));
        let supervisor = Arc::new(Supervisor::new(Arc::clone(&observer), Arc::clone(&clock)));
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
            quota_lifts,
            reins,
            runs,
            supervisor,
        };
        for lane in engine.sinks.values() {
            lane.meet().await?;
        }
        rebuild.after_damage().await?;
        for lane in engine.lanes.values() {
            engine.settle_meaning(lane).await?;
        }
        Ok(engine)
    }

    /// Compares what a stream's events mean now with what the state was made with. Where that changed, what waits to
    /// be delivered is taken back, and loads that other settings asked for are given up: the load that is owed from now
    /// on emits everything again.
    async fn settle_meaning(&self, lane: &Lane) -> Result<(), EngineError> {
        let Some(meaning) = lane.meaning.clone() else { return Ok(()) };
        let (stream, on_the_way) = (lane.stream(), meaning::on_the_way_to(&meaning));
        let before = self.store.call(move |store| meaning::kept(store).map(|kept| kept.get(&stream).cloned())).await?;
        let Some(before) = before else {
            return Ok(self.store.call(move |store| meaning::keep(store, stream, &meaning)).await?);
        };
        if before == meaning {
            return Ok(());
        }
        if before != on_the_way {
            self.store.call(move |store| meaning::forget_waiting(store, stream)).await?;
            self.book.close(move |job| job.stream == stream && job.meaning.is_some()).await?;
            // Last: a crash before it finds the change again.
            self.store.call(move |store| meaning::keep(store, stream, &on_the_way)).await?;
        }
        self.observer.observe(&Event::MeaningChanged { stream });
        Ok(())
    }
}

fn courier(sink: Box<dyn Sink>, seed: RootSeed, name: &str) -> Courier {
    let generator = seed.generator(&format!("deliver {name}"));
    let (health, refusals) = (Health::default(), Refusals::default());
    Courier { sink, health, refusals, generator, met: Met::Never, stock_taken: None }
}

/// Refuses a schedule that cannot be read, rather than never running it.
fn supported(settings: &StreamSettings) -> Result<(), EngineError> {
    let Cadence::Cron { expression, zone } = &settings.cadence else { return Ok(()) };
    CronSchedule::new(expression, zone)
        .map(drop)
        .map_err(|why| EngineError::Schedule { setting: format!("streams.{}.cron", settings.stream), why })
}
