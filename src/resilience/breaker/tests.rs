//! The breaker's transitions, one by one and in any order.

mod checks;
mod coming_back;
mod opening;
mod people_and_restarts;
mod schedules;
mod suspension;

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use tokio::time::Instant;

use super::{Admission, Admitted, BreakerEvent, BreakerMachine, Lease, Scope};
use crate::resilience::endpoint::Endpoint;
use crate::resilience::settings::BreakerSettings;
use crate::resilience::taxonomy::Mark;
use crate::seed::RootSeed;

const SECOND: Duration = Duration::from_secs(1);
const BIBS: Option<Endpoint> = Some(Endpoint::Bibs);
const ITEMS: Option<Endpoint> = Some(Endpoint::Items);

/// A machine with a clock that tests move by hand.
struct Bench {
    machine: BreakerMachine,
    now: Instant,
    rng: StdRng,
    events: Vec<BreakerEvent>,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        let machine = BreakerMachine::new(BreakerSettings::default(), now);
        Self { machine, now, rng: RootSeed::new(3).generator("breaker"), events: Vec::new() }
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        let events = self.machine.tick(self.now, &mut self.rng);
        self.events.extend(events);
        self
    }

    fn admit(&mut self, endpoint: Option<Endpoint>) -> Admission {
        self.machine.admit(endpoint, self.now)
    }

    fn admitted(&mut self, endpoint: Option<Endpoint>) -> Admitted {
        match self.admit(endpoint) {
            Admission::Go(admitted) => admitted,
            other => panic!("expected to be admitted, got {other:?}"),
        }
    }

    fn report(&mut self, call: Admitted, mark: Mark) -> &mut Self {
        let correlation_id = Arc::from("call-1");
        let events = self.machine.report(call, mark, Some(&correlation_id), self.now, &mut self.rng);
        self.events.extend(events);
        self
    }

    fn call(&mut self, endpoint: Option<Endpoint>, mark: Mark) -> &mut Self {
        let admitted = self.admitted(endpoint);
        self.report(admitted, mark)
    }

    fn fail(&mut self, endpoint: Option<Endpoint>, times: u32) -> &mut Self {
        for _ in 0..times {
            self.call(endpoint, Mark::Failed);
        }
        self
    }

    /// Waits until the next health check is due and takes its slot.
    fn probe(&mut self) -> Lease {
        let (due, _) = self.machine.next_probe().expect("a health check is due some time");
        self.wait(due.saturating_duration_since(self.now));
        self.machine.try_probe(self.now).expect("the slot is free")
    }

    fn report_probe(&mut self, lease: Lease, mark: Mark) -> &mut Self {
        let events = self.machine.report_probe(lease, mark, self.now, &mut self.rng);
        self.events.extend(events);
        self
    }

    fn names(&self) -> Vec<&'static str> {
        self.events.iter().map(BreakerEvent::name).collect()
    }

    fn open_time(&self) -> Duration {
        let (due, _) = self.machine.next_probe().expect("open");
        due.saturating_duration_since(self.now)
    }
}

fn is_rejected(decision: Admission, scope: Scope) -> bool {
    matches!(decision, Admission::Rejected(rejection) if rejection.scope == scope)
}
