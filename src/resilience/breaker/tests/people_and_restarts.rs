//! What a person says, and what outlives the process.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{BIBS, Bench, ITEMS, SECOND, is_rejected};
use crate::resilience::breaker::{
    Admission, BreakerEvent, BreakerMachine, BreakerSnapshot, BreakerState, ClosedBy, ProbeTarget, Scope,
};
use crate::resilience::endpoint::Endpoint;
use crate::resilience::settings::BreakerSettings;
use crate::resilience::taxonomy::Mark;

/// What closed it, each time.
fn closed_by(events: &[BreakerEvent]) -> Vec<ClosedBy> {
    let closed = events.iter().filter_map(|event| match event {
        BreakerEvent::Closed { by, .. } => Some(*by),
        _ => None,
    });
    closed.collect()
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
    assert_eq!(closed_by(&bench.events), [ClosedBy::EndOfHold]);

    let mut bench = Bench::new();
    bench.machine.hold(None, "no end".into(), None, bench.now);
    assert!(bench.machine.next_probe().is_none());
    assert_eq!(closed_by(&bench.machine.close(bench.now)), [ClosedBy::Operator], "no health check had a part in it");
    assert_eq!(ClosedBy::Operator.to_string(), "closed by an operator");
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
    assert_eq!(closed_by(&bench.events), [ClosedBy::HealthCheck]);
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

/// The state as the next process takes it up, an hour later.
fn reborn(bench: &Bench) -> Bench {
    let date: Timestamp = "2026-01-05T10:00:00Z".parse().expect("a date");
    let json = serde_json::to_string(&bench.machine.snapshot(bench.now, date)).expect("plain data");
    let snapshot: BreakerSnapshot = serde_json::from_str(&json).expect("and back");
    let (mut next, later) = (Bench::new(), date + SECOND * 3600);
    next.machine = BreakerMachine::restored(BreakerSettings::default(), &snapshot, next.now, later);
    next
}

/// Processes that end after four calls come to the ten successes together, without another health check.
#[test]
fn successes_after_an_outage_add_up_over_restarts() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy);
    for process in 0..3 {
        assert_eq!(bench.machine.state(), BreakerState::Closed, "process {process}");
        for call in 0..4 {
            let admitted = bench.admitted(BIBS);
            assert_eq!(admitted.is_trial(), (process, call) == (0, 0));
            bench.report(admitted, Mark::Healthy);
        }
        if process < 2 {
            bench = reborn(&bench);
        }
    }
    assert_eq!(bench.names(), ["breaker_recovered"]);

    let mut bench = Bench::new();
    bench.machine.hold(Some("ann".into()), "upgrade".into(), Some(bench.now + SECOND * 60), bench.now);
    bench.machine.close(bench.now);
    let mut bench = reborn(&bench);
    assert_eq!(bench.machine.state(), BreakerState::Closed, "what a person closed stays closed");
    bench.fail(BIBS, 1);
    assert_eq!(bench.machine.state(), BreakerState::Open, "until ten have succeeded any failure opens it again");
}

/// A10 holds for processes that end after a few calls as well.
#[test]
fn failures_in_a_row_add_up_over_restarts() {
    let mut bench = Bench::new();
    bench.fail(BIBS, 5);
    let mut bench = reborn(&bench);
    bench.fail(BIBS, 4);
    let mut bench = reborn(&bench);
    assert_eq!(bench.machine.state(), BreakerState::Closed);
    bench.fail(BIBS, 1);
    assert_eq!(bench.machine.state(), BreakerState::Open);

    let mut bench = Bench::new();
    bench.fail(BIBS, 9).call(ITEMS, Mark::Healthy);
    let mut bench = reborn(&bench);
    bench.fail(BIBS, 9);
    assert_eq!(bench.machine.state(), BreakerState::Closed, "a success in between starts the count again");
}

/// When the token endpoint was the one that failed, no list endpoint waits for another.
#[test]
fn after_an_outage_met_by_a_token_call_the_first_real_call_goes_at_once() {
    let mut bench = Bench::new();
    bench.fail(Some(Endpoint::Token), 10);
    let lease = bench.probe();
    bench.report_probe(lease, Mark::Healthy);
    assert!(bench.admitted(BIBS).is_trial());
}
