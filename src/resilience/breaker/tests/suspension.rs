//! One endpoint that fails while another works.

use super::{BIBS, Bench, ITEMS, SECOND, is_rejected};
use crate::resilience::breaker::{BreakerState, ProbeTarget, Scope};
use crate::resilience::endpoint::Endpoint;
use crate::resilience::taxonomy::Mark;

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
