//! Playing the scenario: loading, following, pausing a sink through the outage, draining.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, SystemClock};
use crate::simulator::{Action, Fault, Life, Progress, Script, SharedSimulator, Step};
use crate::sync::engine::SyncOptions;
use crate::sync::report::status::{BreakerState, Pause};
use crate::sync::{Pausable, StoreError};

use super::super::assembly::Assembly;

/// How often the script is asked whether its next step is due.
const BEAT: Duration = Duration::from_millis(100);
/// What is kept for the last passes, the drain and the comparison.
const ENDING: Duration = Duration::from_secs(12);
/// How long the end waits for what is owed, beyond the time it was given: a demo that is late says why.
const PATIENCE: Duration = Duration::from_secs(60);
/// The sink that is paused through the outage.
const PAUSED_SINK: &str = "marcxml";

/// The scenario's steps.
pub(super) struct Steps {
    pub(super) script: Script,
    /// The step in which Sierra goes down, from 1.
    pub(super) outage: Option<usize>,
    pub(super) count: usize,
}

/// What was played.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) steps: usize,
    pub(super) steps_left: usize,
    pub(super) most_queued: u64,
    pub(super) breaker_opened: bool,
}

/// A demo under way.
pub(super) struct Play<'a> {
    pub(super) assembly: &'a Assembly,
    pub(super) simulator: &'a SharedSimulator,
    pub(super) say: &'a (dyn Fn(&str) + Send + Sync),
    /// Set by what hears of the breaker: an opening may be shorter than the time between two looks.
    pub(super) breaker_opened: &'a AtomicBool,
    pub(super) ends: Instant,
}

fn paused_sink() -> Pausable {
    Pausable::Sink(PAUSED_SINK.to_owned())
}

/// The step of a script in which every endpoint answers 503, from 1.
pub(super) fn outage_of(steps: &[Step]) -> Option<usize> {
    let is_outage = |action: &Action| match action {
        Action::Fault(plan) => matches!(plan.what, Fault::Html { status: 503 }) && plan.at.is_none(),
        _ => false,
    };
    steps.iter().position(|step| step.actions.iter().any(is_outage)).map(|index| index + 1)
}

impl Play<'_> {
    /// Loads, plays the steps, lets the library live on while there is time, and drains.
    ///
    /// # Errors
    /// When the store fails or the load cannot be had.
    pub(super) async fn run(&self, mut steps: Steps) -> anyhow::Result<Played> {
        (self.say)("First full load:");
        let summary = self.assembly.engine.sync_once(&SyncOptions::default(), &CancellationToken::new()).await?;
        if !summary.ok {
            let why = summary.streams.values().find_map(|stream| stream.error.as_ref());
            let why = why.map_or("see the log", |error| error.message.as_str());
            anyhow::bail!("the first load ended with exit code {}: {why}", summary.exit);
        }
        (self.say)("Loaded. From here on every change is followed.");
        let cancel = CancellationToken::new();
        let mut played = Played::default();
        let follow = self.assembly.engine.follow(&cancel);
        let acts = async {
            let acted = self.act(&mut steps, &mut played).await;
            cancel.cancel();
            acted
        };
        let (followed, acted) = tokio::join!(follow, acts);
        followed?;
        acted?;
        self.drain().await?;
        Ok(played)
    }

    async fn act(&self, steps: &mut Steps, played: &mut Played) -> anyhow::Result<()> {
        let engine = &self.assembly.engine;
        let mut ticks = tokio::time::interval(BEAT);
        // The sink is held from the step before the outage, so that what that step changes waits in the queue.
        let pause_at = steps.outage.map(|outage| outage.saturating_sub(1));
        let (mut is_paused, mut told) = (false, 0);
        while Instant::now() + ENDING < self.ends {
            ticks.tick().await;
            let status = self.assembly.status(true).await?;
            if self.breaker_opened.load(Ordering::Acquire) && !played.breaker_opened {
                played.breaker_opened = true;
                // Sierra was down for long enough to show it, if that was the reason.
                self.simulator.with(|simulator| simulator.cancel_all_faults());
            }
            if is_paused {
                let waiting = status.sinks.get(PAUSED_SINK).map_or(0, |sink| sink.pending);
                if status.breaker.state == BreakerState::Open && waiting > told {
                    told = waiting;
                    (self.say)(&format!("  the durable queue holds {waiting} MARCXML entries for the paused sink"));
                }
                played.most_queued = played.most_queued.max(waiting);
            }
            if pause_at == Some(played.steps + 1) && !is_paused && status.outbox.entries == 0 {
                let reason = Some("to show that the queue keeps what it misses".to_owned());
                let pause = Pause { since: SystemClock.now(), by: Some("the demo".to_owned()), reason };
                engine.pause(&paused_sink(), pause).await?;
                is_paused = true;
                (self.say)("The MARCXML sink is paused; what it misses waits in the durable queue.");
            }
            if pause_at == Some(played.steps + 1) && !is_paused {
                continue;
            }
            // Sierra must not go down before something waits for the paused sink: that is what the scene is about.
            if is_paused && steps.outage == Some(played.steps + 1) && played.most_queued == 0 {
                continue;
            }
            match self.simulator.with(|simulator| steps.script.step(simulator)) {
                Progress::Done { say, step, of } => {
                    (self.say)(&format!("[{step}/{of}] {say}"));
                    played.steps = step;
                    if steps.outage == Some(step) && !played.breaker_opened {
                        // Not every call that fails counts: those that take a page apart do not, and an answer that
                        // was on its way starts the count anew. No fixed number of calls is sure to open the breaker.
                        self.simulator.with(|simulator| simulator.plan(Fault::Html { status: 503 }));
                    }
                    if is_paused && steps.outage.is_some_and(|outage| step > outage) {
                        engine.resume(&paused_sink()).await?;
                        is_paused = false;
                        (self.say)("The MARCXML sink goes on; its queue drains.");
                    }
                    if step == of {
                        (self.say)("The script is played; the library lives on until time is up.");
                        self.simulator.world(|world| world.live(Life::town().times(60.0)));
                    }
                }
                Progress::Waiting { .. } | Progress::Finished => {}
            }
        }
        if is_paused {
            engine.resume(&paused_sink()).await?;
        }
        played.steps_left = steps.count - played.steps;
        self.simulator.with(|simulator| {
            simulator.world.live(Life::default());
            simulator.cancel_all_faults();
        });
        Ok(())
    }

    /// Passes until nothing is owed and nothing waits. The library stands still by now; `settle` and the second that
    /// its stamps leave open must pass before everything can be seen.
    async fn drain(&self) -> anyhow::Result<()> {
        (self.say)("The library stands still. Last passes …");
        let deadline = Instant::now() + PATIENCE;
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let mut quiet = 0;
        while quiet < 2 {
            let pass: Result<_, StoreError> =
                self.assembly.engine.sync_once(&SyncOptions::default(), &CancellationToken::new()).await;
            let summary = pass?;
            let is_still = summary.streams.values().all(|stream| stream.changed + stream.deleted == 0);
            let is_drained = summary.sinks.values().all(|sink| sink.pending == 0);
            quiet = if summary.ok && is_still && is_drained { quiet + 1 } else { 0 };
            if quiet < 2 && Instant::now() > deadline {
                anyhow::bail!("the sinks were not drained within {} s; see the log", PATIENCE.as_secs());
            }
            if !summary.ok {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        Ok(())
    }
}
