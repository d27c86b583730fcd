//! What opens a circuit, and what does not.

use super::{BIBS, Bench, SECOND, is_rejected};
use crate::resilience::breaker::{BreakerEvent, BreakerState, OpenReason, Scope};
use crate::resilience::endpoint::Endpoint;
use crate::resilience::taxonomy::Mark;

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
