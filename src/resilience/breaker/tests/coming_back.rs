//! How calls come back after an outage.

use super::{BIBS, Bench, ITEMS, SECOND};
use crate::resilience::breaker::{Admission, BreakerState};
use crate::resilience::endpoint::Endpoint;
use crate::resilience::taxonomy::Mark;

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
