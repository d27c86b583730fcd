//! The faults that are planned, and the choice among them when a call comes.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rand::rngs::StdRng;

use super::super::api::Endpoint;
use super::fault::Fault;
use super::meddling::Meddling;
use super::when::When;
use crate::seed::RootSeed;

/// A fault, the calls it can meet, and which of them it chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedFault {
    /// What happens.
    pub fault: Fault,
    /// To which of the calls.
    pub when: When,
    /// Calls of this endpoint only; else of any.
    pub endpoint: Option<Endpoint>,
    /// Calls with this query parameter only, whose value begins like this; an empty value means any.
    pub parameter: Option<(String, String)>,
}

impl PlannedFault {
    /// Calls of one endpoint only.
    #[must_use]
    pub fn at(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    /// Calls with a query parameter only whose value begins with `start`; an empty one means any. `asking("id", "[")`
    /// meets ranges of numbers and spares lists.
    #[must_use]
    pub fn asking(mut self, name: &str, start: &str) -> Self {
        self.parameter = Some((name.into(), start.into()));
        self
    }

    fn concerns(&self, call: &Sighting<'_>) -> bool {
        let has = |(name, start): &(String, String)| {
            call.parameters.iter().any(|(found, text)| found == name && text.starts_with(start.as_str()))
        };
        self.endpoint.is_none_or(|endpoint| endpoint == call.endpoint) && self.parameter.as_ref().is_none_or(has)
    }
}

impl From<Fault> for PlannedFault {
    fn from(fault: Fault) -> Self {
        fault.always()
    }
}

/// Names a planned fault, to look after it or to cancel it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(u64);

/// What a fault sees of a call.
pub(crate) struct Sighting<'a> {
    pub(crate) endpoint: Endpoint,
    pub(crate) parameters: &'a [(String, String)],
    pub(crate) is_reused_connection: bool,
}

/// The planned faults.
#[derive(Debug)]
pub(crate) struct Faults {
    seed: RootSeed,
    planned: Vec<Entry>,
    last: u64,
}

#[derive(Debug)]
struct Entry {
    id: FaultId,
    plan: PlannedFault,
    at: Timestamp,
    seen: u64,
    hits: u64,
    rng: StdRng,
}

impl Faults {
    pub(crate) fn new(seed: RootSeed) -> Self {
        Self { seed, planned: Vec::new(), last: 0 }
    }

    /// Plans a fault from `now` on.
    pub(crate) fn plan(&mut self, plan: PlannedFault, now: Timestamp) -> FaultId {
        self.last += 1;
        let rng = self.seed.generator(&format!("simulator.fault.{}", self.last));
        self.planned.push(Entry { id: FaultId(self.last), plan, at: now, seen: 0, hits: 0, rng });
        FaultId(self.last)
    }

    /// Takes a fault off the plan; one that is not there is no matter.
    pub(crate) fn cancel(&mut self, id: FaultId) {
        self.planned.retain(|entry| entry.id != id);
    }

    /// Takes all faults off the plan.
    pub(crate) fn clear(&mut self) {
        self.planned.clear();
    }

    /// Whether a fault is off the plan or can meet no later call.
    pub(crate) fn is_spent(&self, id: FaultId, now: Timestamp) -> bool {
        let entry = self.planned.iter().find(|entry| entry.id == id);
        entry.is_none_or(|entry| entry.plan.when.is_spent(entry.seen, now, entry.at))
    }

    /// How many calls a fault has met.
    pub(crate) fn hits(&self, id: FaultId) -> u64 {
        self.planned.iter().find(|entry| entry.id == id).map_or(0, |entry| entry.hits)
    }

    /// What happens to a call.
    pub(crate) fn meet(&mut self, call: &Sighting<'_>, now: Timestamp, zone: &TimeZone) -> Meddling {
        let mut meddling = Meddling::default();
        for entry in &mut self.planned {
            if !entry.plan.concerns(call) {
                continue;
            }
            entry.seen += 1;
            if entry.plan.when.chooses(entry.seen, now, entry.at, zone, &mut entry.rng) {
                entry.hits += 1;
                meddling.add(&entry.plan.fault, call.is_reused_connection);
            }
        }
        meddling
    }
}
