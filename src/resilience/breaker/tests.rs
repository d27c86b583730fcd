//! The breaker's transitions, one by one and in any order.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::Instant;

use super::machine::Admission;
use super::*;
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

/// A10: ten failures in a row halt every outbound call, and the event carries the correlation id of the tenth.
#[test]
fn ten_consecutive_failures_halt_all_calls() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 9);
    assert_eq!(bench.machine.state(), BreakerState::Closed);
    bench.fail(BIBS, 1);
    assert_eq!(bench.machine.state(), BreakerState::Open);
    for endpoint in Endpoint::ALL {
        assert!(is_rejected(bench.admit(Some(endpoint)), Scope::Key), "{endpoint}");
    }
    let [BreakerEvent::Opened { scope, reason, correlation_id, until }] = bench.events.as_slice() else {
        panic!("one event, got {:?}", bench.events);
    };
    assert_eq!((*scope, reason), (Scope::Key, &OpenReason::ConsecutiveFailures { failures: 10 }));
    assert_eq!(correlation_id.as_deref(), Some("call-1"));
    assert!(until.is_some());
}

/// A healthy answer in between starts the row anew, whatever the provider thought of the request (B5).
#[test]
fn a_permanent_error_counts_as_healthy() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 9).call(BIBS, Mark::Healthy).wait(SECOND * 61).fail(BIBS, 9);
    assert_eq!(bench.machine.state(), BreakerState::Closed);
}

#[test]
fn neutral_results_neither_open_nor_save() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.call(BIBS, Mark::Neutral);
    }
    bench.fail(BIBS, 9).call(BIBS, Mark::Neutral).fail(BIBS, 1);
    assert_eq!(bench.machine.state(), BreakerState::Open);
}

/// The other way to open: half of at least ten calls within a minute.
#[test]
fn half_of_ten_calls_within_a_minute_open_it() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.fail(BIBS, 1).call(BIBS, Mark::Healthy);
    }
    bench.call(BIBS, Mark::Healthy);
    assert_eq!(bench.machine.state(), BreakerState::Closed);
    bench.fail(BIBS, 1);
    assert!(matches!(
        bench.events.as_slice(),
        [BreakerEvent::Opened { reason: OpenReason::FailureRatio { failures: 5, calls: 10 }, .. }]
    ));
    let mut slow = Bench::new();
    for _ in 0..100 {
        slow.fail(BIBS, 1).wait(SECOND * 7).call(BIBS, Mark::Healthy).wait(SECOND * 7);
    }
    assert_eq!(slow.machine.state(), BreakerState::Closed, "fewer than ten calls a minute say nothing");
}

/// B7, BRK-1: one health check at a time; only its success closes the circuit.
#[test]
fn one_health_check_at_a_time_decides() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    assert!(bench.machine.try_probe(bench.now).is_none(), "not before the open time is over");
    let lease = bench.probe();
    assert_eq!(lease.target, ProbeTarget::Health);
    assert_eq!(bench.machine.state(), BreakerState::HalfOpen);
    assert!(bench.machine.try_probe(bench.now).is_none());
    assert!(is_rejected(bench.admit(ITEMS), Scope::Key), "no call goes while the check is on its way");
    bench.report_probe(lease, Mark::Healthy);
    assert_eq!(bench.machine.state(), BreakerState::Closed);
    assert_eq!(bench.names(), ["breaker_opened", "breaker_closed"]);
}

/// 30 s, then 60 s, never more; each shortened by up to a fifth.
#[test]
fn the_open_time_doubles_to_its_cap_with_jitter() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    for (window, longest) in [30, 60, 60, 60].into_iter().enumerate() {
        let open = bench.open_time();
        let longest = SECOND * longest;
        assert!(open <= longest && open >= longest.mul_f64(0.8), "window {window}: {open:?}");
        let lease = bench.probe();
        bench.report_probe(lease, Mark::Failed);
    }
}

/// B12: still open after two windows, somebody is told, once.
#[test]
fn an_outage_escalates_once_after_two_windows() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    for _ in 0..5 {
        let lease = bench.probe();
        bench.report_probe(lease, Mark::Failed);
    }
    let expected = ["breaker_opened", "breaker_reopened", "breaker_reopened", "breaker_escalated"];
    assert_eq!(bench.names()[..4], expected);
    assert_eq!(bench.names().iter().filter(|name| **name == "breaker_escalated").count(), 1);
}

/// BR-109: a check that is never answered for frees its slot; its late answer changes nothing.
#[test]
fn a_lost_health_check_is_reclaimed_and_its_late_answer_ignored() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let lost = bench.probe();
    bench.wait(PROBE_LEASE);
    assert_eq!(bench.machine.state(), BreakerState::Open, "open again, for longer");
    assert!(bench.open_time() > SECOND * 30);
    bench.report_probe(lost, Mark::Healthy);
    assert_eq!(bench.machine.state(), BreakerState::Open);
    let next = bench.probe();
    bench.report_probe(lost, Mark::Failed).report_probe(next, Mark::Healthy);
    assert_eq!(bench.machine.state(), BreakerState::Closed);
}

/// BR-110: a neutral check (429, cancelled) frees the slot; the open time does not grow and nothing escalates.
#[test]
fn a_neutral_health_check_only_frees_its_slot() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    for _ in 0..50 {
        let lease = bench.probe();
        bench.report_probe(lease, Mark::Neutral);
        assert!(bench.open_time() <= SECOND * 5);
    }
    assert_eq!(bench.names(), ["breaker_opened"]);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Failed);
    assert!(bench.open_time() > SECOND * 30, "the second window follows the first");
}

/// The first real call goes to the endpoint that tripped and asks for little; then one, two, four at a time.
#[test]
fn calls_come_back_a_few_at_a_time_and_the_tripped_endpoint_first() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy);
    assert!(matches!(bench.admit(ITEMS), Admission::Wait(_)), "items let the tripped endpoint go first");
    let trial = bench.admitted(BIBS);
    assert!(trial.is_trial());
    assert!(matches!(bench.admit(BIBS), Admission::Wait(_)), "one at a time");
    bench.report(trial, Mark::Healthy);
    let (first, second) = (bench.admitted(ITEMS), bench.admitted(BIBS));
    assert!(!first.is_trial() && !second.is_trial());
    assert!(matches!(bench.admit(BIBS), Admission::Wait(_)), "two at a time");
    bench.report(first, Mark::Healthy).report(second, Mark::Healthy);
    let eight: Vec<_> = (0..8).map(|_| bench.admitted(BIBS)).collect();
    for call in eight {
        bench.report(call, Mark::Healthy);
    }
    assert_eq!(bench.names(), ["breaker_opened", "breaker_closed", "breaker_recovered"]);
}

#[test]
fn other_endpoints_do_not_wait_for_ever_for_the_one_that_tripped() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy);
    assert!(matches!(bench.admit(Some(Endpoint::Token)), Admission::Go(_)), "a token call serves the others");
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy).wait(SECOND * 5).call(ITEMS, Mark::Healthy);
    assert!(bench.admitted(BIBS).is_trial(), "the tripped endpoint still begins with little");
}

/// A call after the recovery that nobody answers for does not keep the others.
#[test]
fn a_lost_recovery_call_frees_its_slot() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy);
    let lost = bench.admitted(BIBS);
    let Admission::Wait(until) = bench.admit(BIBS) else { panic!("the slot is taken") };
    bench.wait(until.saturating_duration_since(bench.now));
    let next = bench.admitted(BIBS);
    bench.report(lost, Mark::Neutral).report(next, Mark::Healthy);
    assert_eq!(bench.machine.state(), BreakerState::Closed);
}

/// Until ten have succeeded any failure opens it again at once, with the next open time; the outage is one outage.
#[test]
fn a_failure_before_ten_successes_reopens_at_once() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy);
    for _ in 0..9 {
        bench.call(BIBS, Mark::Healthy);
    }
    bench.fail(BIBS, 1);
    assert_eq!(bench.machine.state(), BreakerState::Open);
    assert!(bench.open_time() > SECOND * 30);
    assert_eq!(bench.names(), ["breaker_opened", "breaker_closed", "breaker_reopened"]);
}

/// `/info/token` can pass while every list fails. Once it has misled us, the endpoint that tripped is asked itself.
#[test]
fn a_misleading_health_check_is_replaced_by_the_endpoint_that_tripped() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy).fail(BIBS, 1);
    let lease = bench.probe();
    assert_eq!(lease.target, ProbeTarget::Endpoint(Endpoint::Bibs));
    bench.report_probe(lease, Mark::Healthy);
    for _ in 0..10 {
        bench.call(BIBS, Mark::Healthy);
    }
    bench.fail(BIBS, 10);
    assert_eq!(bench.probe().target, ProbeTarget::Health, "the next outage begins anew");
}

#[test]
fn a_late_result_from_before_the_opening_changes_nothing() {
    let mut bench = Bench::new();
    let early = bench.admitted(BIBS);
    bench.fail(BIBS, 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy);
    assert!(!bench.machine.is_current(&early));
    bench.report(early, Mark::Failed);
    assert_eq!(bench.machine.state(), BreakerState::Closed, "an old failure does not re-open");
    assert_eq!(bench.names().len(), 2);
}

/// One endpoint fails while another works: that endpoint alone is suspended, and probed by itself.
#[test]
fn an_endpoint_that_fails_alone_is_suspended_alone() {
    let mut bench = Bench::new();
    for _ in 0..5 {
        bench.call(ITEMS, Mark::Healthy).fail(BIBS, 1).wait(SECOND);
    }
    let suspended = Scope::Endpoint(Endpoint::Bibs);
    assert!(is_rejected(bench.admit(BIBS), suspended));
    assert_eq!(bench.machine.state(), BreakerState::Closed);
    bench.call(ITEMS, Mark::Healthy);
    let lease = bench.probe();
    assert_eq!(lease.target, ProbeTarget::Endpoint(Endpoint::Bibs));
    bench.report_probe(lease, Mark::Failed).call(ITEMS, Mark::Healthy);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy);
    assert!(bench.admitted(BIBS).is_trial());
    assert!(bench.events.iter().all(|event| event.scope() == suspended), "{:?}", bench.events);
}

#[test]
fn a_good_answer_starts_the_row_of_an_endpoint_anew() {
    let mut bench = Bench::new();
    for _ in 0..12 {
        bench.call(ITEMS, Mark::Healthy).fail(BIBS, 1).wait(SECOND * 61).call(BIBS, Mark::Healthy);
    }
    assert!(bench.events.is_empty(), "{:?}", bench.events);
}

/// Token calls vouch for nothing: with one stream on, the key's circuit opens (A10).
#[test]
fn token_calls_do_not_vouch_for_the_rest() {
    let mut bench = Bench::new();
    for _ in 0..10 {
        bench.call(Some(Endpoint::Token), Mark::Healthy).call(Some(Endpoint::TokenInfo), Mark::Healthy).fail(BIBS, 3);
        if bench.machine.state() == BreakerState::Open {
            break;
        }
    }
    assert_eq!(bench.machine.state(), BreakerState::Open);
}

/// A failure anywhere else, or no good answer since the first failure, and it is not the endpoint alone.
#[test]
fn failures_elsewhere_open_the_key() {
    let mut bench = Bench::new();
    bench.call(ITEMS, Mark::Healthy).wait(SECOND).fail(BIBS, 9);
    assert_eq!(bench.machine.state(), BreakerState::Open, "items answered well only before the first failure");
    let mut bench = Bench::new();
    bench.fail(ITEMS, 1).fail(BIBS, 1).call(ITEMS, Mark::Healthy).fail(BIBS, 7);
    assert_eq!(bench.machine.state(), BreakerState::Open, "items failed as well");
}

#[test]
fn an_operator_opens_closes_and_resets() {
    let mut bench = Bench::new();
    let events =
        bench.machine.hold(Some("ann".into()), "upgrade tonight".into(), Some(bench.now + SECOND * 600), bench.now);
    bench.events.extend(events);
    bench.wait(SECOND * 599);
    assert!(is_rejected(bench.admit(BIBS), Scope::Key));
    assert!(bench.machine.try_probe(bench.now).is_none(), "no health check while held");
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy);
    assert_eq!(bench.machine.state(), BreakerState::Closed, "it expires into a health check");

    let mut bench = Bench::new();
    bench.machine.hold(None, "no end".into(), None, bench.now);
    assert!(bench.machine.next_probe().is_none());
    bench.machine.close(bench.now);
    bench.call(BIBS, Mark::Healthy);

    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let events = bench.machine.reset(bench.now);
    assert!(matches!(events.as_slice(), [BreakerEvent::Recovered { .. }]));
    bench.fail(BIBS, 9);
    assert_eq!(bench.machine.state(), BreakerState::Closed, "what led to the outage is forgotten");

    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy).fail(BIBS, 1);
    bench.machine.reset(bench.now);
    bench.fail(BIBS, 10);
    assert_eq!(bench.probe().target, ProbeTarget::Health, "and that a health check misled us");
}

/// After a restart the remaining open time is served, then the check runs; a stepped clock cannot stretch it.
#[test]
fn an_outage_survives_a_restart() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10).wait(SECOND * 10);
    let date: Timestamp = "2026-01-05T10:00:00Z".parse().expect("a date");
    let snapshot = bench.machine.snapshot(bench.now, date);
    let json = serde_json::to_string(&snapshot).expect("a snapshot is plain data");
    let snapshot: BreakerSnapshot = serde_json::from_str(&json).expect("and comes back");
    assert_eq!((snapshot.state, snapshot.tripped), (BreakerState::Open, Some(Endpoint::Bibs)));

    let left = bench.open_time();
    let reborn = Instant::now();
    let restored = |date| BreakerMachine::restored(BreakerSettings::default(), &snapshot, reborn, date);
    let due = |machine: &BreakerMachine| machine.next_probe().expect("open").0.saturating_duration_since(reborn);
    let later = restored(date + jiff::SignedDuration::from_secs(5));
    assert!(due(&later).abs_diff(left.saturating_sub(SECOND * 5)) < SECOND);
    assert_eq!(later.state(), BreakerState::Open);
    let stepped_back = restored(date - jiff::SignedDuration::from_hours(10));
    assert!(due(&stepped_back) <= SECOND * 60);
    assert_eq!(due(&restored(date + jiff::SignedDuration::from_hours(1))), Duration::ZERO);
}

/// What a person said outlives the process, to the second; an end that passed meanwhile leads to a health check.
#[test]
fn an_operators_hold_survives_a_restart_and_ends_in_its_time() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10).wait(SECOND * 300);
    let until = bench.now + SECOND * 7_200;
    bench.machine.hold(Some("ann".into()), "upgrade".into(), Some(until), bench.now);
    let date: Timestamp = "2026-01-05T10:00:00Z".parse().expect("a date");
    let snapshot = bench.machine.snapshot(bench.now, date);
    let outage = snapshot.outage.as_ref().expect("held");
    assert_eq!(outage.to_string(), "opened by operator ann: upgrade since 2026-01-05T10:00:00Z");
    assert_eq!((outage.held, outage.next_probe), (true, Some(date + SECOND * 7_200)));

    let json = serde_json::to_string(&snapshot).expect("plain data");
    let before_names = json.replace(",\"by\":\"ann\"", "");
    for json in [&json, &before_names] {
        let snapshot: BreakerSnapshot = serde_json::from_str(json).expect("and back");
        let at = Instant::now();
        let mut restored = BreakerMachine::restored(BreakerSettings::default(), &snapshot, at, date + SECOND * 7_000);
        assert!(is_rejected(restored.admit(BIBS, at + SECOND * 199), Scope::Key));
        assert_eq!(restored.next_probe().map(|(due, _)| due), Some(at + SECOND * 200));
        let mut late = BreakerMachine::restored(BreakerSettings::default(), &snapshot, at, date + SECOND * 9_000);
        late.tick(at, &mut bench.rng);
        assert!(late.try_probe(at).is_some(), "its time is over: a health check decides");
    }
}

#[test]
fn a_suspension_survives_a_restart() {
    let mut bench = Bench::new();
    for _ in 0..5 {
        bench.call(ITEMS, Mark::Healthy).fail(BIBS, 1);
    }
    let date = Timestamp::UNIX_EPOCH;
    let snapshot = bench.machine.snapshot(bench.now, date);
    assert_eq!(snapshot.suspended_endpoints().collect::<Vec<_>>(), [Endpoint::Bibs]);
    let mut restored = BreakerMachine::restored(BreakerSettings::default(), &snapshot, bench.now, date);
    assert!(is_rejected(restored.admit(BIBS, bench.now), Scope::Endpoint(Endpoint::Bibs)));
    assert!(matches!(restored.admit(ITEMS, bench.now), Admission::Go(_)));
}

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
