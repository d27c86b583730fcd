//! A script: steps that wait for the client rather than for the clock.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::super::api::Endpoint;
use super::super::faults::FaultId;
use super::super::journal::Call;
use super::super::simulator::Simulator;
use super::action::Action;

/// One step of a script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What happens, as a sentence for the person who watches.
    pub say: String,
    /// When it happens, counted from the step before.
    #[serde(default)]
    pub when: Trigger,
    /// What is done.
    #[serde(rename = "do")]
    pub actions: Vec<Action>,
}

/// What a step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Trigger {
    /// Nothing.
    #[default]
    AtOnce,
    /// Time.
    After(SignedDuration),
    /// Calls of one endpoint, whatever comes of them.
    Calls {
        /// The endpoint.
        at: Endpoint,
        /// How many.
        count: u64,
    },
    /// The faults of all steps before are over, and the client has since been answered well by an endpoint of records.
    Recovered,
}

/// How far a script is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A step was done.
    Done {
        /// Its sentence.
        say: String,
        /// Its number, from one.
        step: usize,
        /// How many steps there are.
        of: usize,
    },
    /// The next step waits.
    Waiting {
        /// For what, as the rest of a sentence that begins "waiting".
        until: String,
        /// Its number, from one.
        step: usize,
        /// How many steps there are.
        of: usize,
    },
    /// All steps are done.
    Finished,
}

/// A script and how far it is.
#[derive(Debug, Clone)]
pub struct Script {
    steps: Vec<Step>,
    done: usize,
    since: Option<Mark>,
    faults: Vec<FaultId>,
}

/// Where things stood when the step before was done.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Timestamp,
    last_call: u64,
}

impl Script {
    /// A script of these steps, none of them done.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps, done: 0, since: None, faults: Vec::new() }
    }

    /// Does the next step if what it waits for has come. Call it again and again, some times a second; the simulator
    /// must have been moved to now.
    pub fn step(&mut self, simulator: &mut Simulator) -> Progress {
        let of = self.steps.len();
        let Some(step) = self.steps.get(self.done) else { return Progress::Finished };
        let since = *self.since.get_or_insert_with(|| Mark::now(simulator));
        let number = self.done + 1;
        if let Some(until) = self.waits_for(step.when, since, simulator) {
            return Progress::Waiting { until, step: number, of };
        }
        for action in &step.actions {
            self.faults.extend(action.act(simulator));
        }
        let say = step.say.clone();
        self.done = number;
        self.since = Some(Mark::now(simulator));
        Progress::Done { say, step: number, of }
    }

    fn waits_for(&self, trigger: Trigger, since: Mark, simulator: &Simulator) -> Option<String> {
        match trigger {
            Trigger::AtOnce => None,
            Trigger::After(wait) => {
                let left = wait.saturating_sub(simulator.now().duration_since(since.at));
                left.is_positive().then(|| format!("{left:#} more"))
            }
            Trigger::Calls { at, count } => {
                let calls = calls_since(since, simulator).filter(|call| call.endpoint == at).count();
                let left = count.saturating_sub(u64::try_from(calls).unwrap_or(u64::MAX));
                (left > 0).then(|| format!("for {left} more calls"))
            }
            Trigger::Recovered if !self.faults.iter().all(|fault| simulator.is_spent(*fault)) => {
                Some("for the client to meet what was planned".into())
            }
            Trigger::Recovered => (!has_recovered(since, simulator)).then(|| "for the client to recover".into()),
        }
    }
}

/// The calls since a mark, latest first.
fn calls_since(since: Mark, simulator: &Simulator) -> impl Iterator<Item = &Call> {
    simulator.journal.calls().rev().take_while(move |call| call.number > since.last_call)
}

/// Whether a page came through since the mark and, if a list endpoint failed meanwhile, later and from that one.
fn has_recovered(since: Mark, simulator: &Simulator) -> bool {
    let failed = calls_since(since, simulator).find(|call| call.fault.is_some());
    let is_later = |call: &&Call| failed.is_none_or(|failed| call.number > failed.number);
    let failed_list = failed.map(|call| call.endpoint).filter(|endpoint| endpoint.is_list());
    let is_there = |call: &Call| failed_list.is_none_or(|endpoint| call.endpoint == endpoint);
    calls_since(since, simulator).take_while(is_later).any(|call| call.is_good_page() && is_there(call))
}

impl Mark {
    fn now(simulator: &Simulator) -> Self {
        Self { at: simulator.now(), last_call: simulator.journal.last_number() }
    }
}
