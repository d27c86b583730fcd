//! Any schedule of results, checks and words of people.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::Instant;

use super::{BIBS, ITEMS, SECOND};
use crate::resilience::breaker::{Admission, Admitted, BreakerMachine, Lease, PROBE_LEASE};
use crate::resilience::endpoint::Endpoint;
use crate::resilience::settings::BreakerSettings;
use crate::resilience::taxonomy::Mark;
use crate::seed::RootSeed;

/// BRK-1, BR-109, BR-110: whatever happens, in whatever order, with results lost, late, neutral or cancelled: never two
/// health checks at once, and once the other side is well, every call gets through within minutes.
#[test]
fn no_schedule_gets_it_stuck_or_lets_two_health_checks_out() {
    let seed = RootSeed::new(20_260_105);
    let mut rng = seed.generator("schedules");
    for schedule in 0..100_000_u32 {
        let mut world = Schedule::new(schedule);
        let steps = rng.random_range(5..25);
        for _ in 0..steps {
            world.step(&mut rng);
        }
        world.must_recover(&mut rng);
    }
}

struct Schedule {
    number: u32,
    machine: BreakerMachine,
    now: Instant,
    calls: Vec<Admitted>,
    lease: Option<(Lease, Instant)>,
    lost: Vec<Lease>,
}

impl Schedule {
    fn new(number: u32) -> Self {
        let now = Instant::now();
        let settings = BreakerSettings { failure_threshold: 3, ..BreakerSettings::default() };
        let machine = BreakerMachine::new(settings, now);
        Self { number, machine, now, calls: Vec::new(), lease: None, lost: Vec::new() }
    }

    fn step(&mut self, rng: &mut StdRng) {
        let mark = [Mark::Failed, Mark::Failed, Mark::Healthy, Mark::Neutral][rng.random_range(0..4)];
        match rng.random_range(0..100) {
            0..40 => {
                let endpoint = [BIBS, ITEMS, Some(Endpoint::Token), None][rng.random_range(0..4)];
                if let Admission::Go(call) = self.machine.admit(endpoint, self.now) {
                    self.calls.push(call);
                }
            }
            40..70 if !self.calls.is_empty() => {
                // Late ones among them; some are reported twice, some never.
                let at = rng.random_range(0..self.calls.len());
                let call = if rng.random_bool(0.9) { self.calls.swap_remove(at) } else { self.calls[at] };
                self.machine.report(call, mark, None, self.now, rng);
            }
            70..80 => self.probe(),
            80..88 => {
                if let Some((lease, _)) = self.lease.take() {
                    if rng.random_bool(0.3) {
                        self.lost.push(lease);
                    } else {
                        self.machine.report_probe(lease, mark, self.now, rng);
                    }
                }
            }
            88..90 => {
                if let Some(lease) = self.lost.pop() {
                    self.machine.report_probe(lease, mark, self.now, rng);
                }
            }
            90 => drop(self.machine.hold(None, "test".into(), Some(self.now + SECOND * 90), self.now)),
            91 => drop(self.machine.close(self.now)),
            92 => drop(self.machine.reset(self.now)),
            _ => self.pass(SECOND * rng.random_range(0..45), rng),
        }
        self.machine.tick(self.now, rng);
    }

    fn pass(&mut self, time: Duration, rng: &mut StdRng) {
        self.now += time;
        self.machine.tick(self.now, rng);
    }

    fn probe(&mut self) {
        if let Some(lease) = self.machine.try_probe(self.now) {
            // A lease that is neither reported nor run out is on its way, unless a person changed the state meanwhile.
            if let Some((other, until)) = self.lease.replace((lease, self.now + PROBE_LEASE)) {
                let is_out = until > self.now && other.target == lease.target && self.machine_took_twice(other, lease);
                assert!(!is_out, "schedule {}: {other:?} and {lease:?} at once", self.number);
            }
        }
    }

    /// Both are held at once: reporting the older one would still do something.
    fn machine_took_twice(&self, older: Lease, newer: Lease) -> bool {
        let effect = |lease: Lease| {
            let mut copy = self.machine.clone();
            let mut rng = RootSeed::new(1).generator("copy");
            !copy.report_probe(lease, Mark::Healthy, self.now, &mut rng).is_empty()
        };
        effect(older) && effect(newer)
    }

    /// Everything on its way is lost; from now on every answer is good.
    fn must_recover(&mut self, rng: &mut StdRng) {
        self.calls.clear();
        let begun = self.now;
        let all = [BIBS, ITEMS, Some(Endpoint::Token), None];
        loop {
            let due = self.machine.next_probe().map(|(due, _)| due.saturating_duration_since(self.now));
            self.pass(due.unwrap_or_default().max(SECOND * 5), rng);
            while let Some(lease) = self.machine.try_probe(self.now) {
                assert!(self.machine.try_probe(self.now).is_none_or(|other| other.target != lease.target));
                self.machine.report_probe(lease, Mark::Healthy, self.now, rng);
            }
            let mut through = 0;
            for endpoint in all {
                if let Admission::Go(call) = self.machine.admit(endpoint, self.now) {
                    self.machine.report(call, Mark::Healthy, None, self.now, rng);
                    through += 1;
                }
            }
            if through == all.len() {
                return;
            }
            assert!(self.now - begun < SECOND * 600, "schedule {} is stuck", self.number);
        }
    }
}
