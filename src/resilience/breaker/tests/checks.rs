//! Health checks: one at a time, ever later, and never lost for good.

use super::{BIBS, Bench, ITEMS, SECOND, is_rejected};
use crate::resilience::breaker::{BreakerState, PROBE_LEASE, ProbeTarget, Scope};
use crate::resilience::endpoint::Endpoint;
use crate::resilience::taxonomy::Mark;

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
