//! The breaker as tasks share it: a lock around the machine, permits and leases that release themselves.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::StdRng;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::event::{BreakerEvent, BreakerObserver};
use super::machine::{Admission, Admitted, BreakerMachine, Lease, ProbeTarget, Rejection};
use super::snapshot::BreakerSnapshot;
use super::state::BreakerState;
use crate::resilience::endpoint::Endpoint;
use crate::resilience::settings::BreakerSettings;
use crate::resilience::taxonomy::Mark;

/// A person can hold a breaker open for so long; longer is without end.
const LONGEST_HOLD: Duration = Duration::from_secs(366 * 24 * 3600);

/// A breaker shared by every task that uses one API key, or one sink. Cheap to clone.
#[derive(Clone)]
pub struct Breaker {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
    observer: Arc<dyn BreakerObserver>,
}

struct State {
    machine: BreakerMachine,
    rng: StdRng,
}

impl Breaker {
    /// A closed breaker. `rng` comes from the root seed; `observer` hears of every transition.
    #[must_use]
    pub fn new(settings: BreakerSettings, rng: StdRng, observer: Arc<dyn BreakerObserver>) -> Self {
        Self::with(BreakerMachine::new(settings, Instant::now()), rng, observer)
    }

    /// A breaker that takes up where an earlier process left. `date` is the present date.
    #[must_use]
    pub fn restored(
        settings: BreakerSettings,
        snapshot: &BreakerSnapshot,
        date: Timestamp,
        rng: StdRng,
        observer: Arc<dyn BreakerObserver>,
    ) -> Self {
        Self::with(BreakerMachine::restored(settings, snapshot, Instant::now(), date), rng, observer)
    }

    fn with(machine: BreakerMachine, rng: StdRng, observer: Arc<dyn BreakerObserver>) -> Self {
        let state = Mutex::new(State { machine, rng });
        Self { shared: Arc::new(Shared { state, changed: Notify::new(), observer }) }
    }

    /// Asks to make a call: to an endpoint of Sierra, or to no endpoint in particular (a sink). Returns at once, but
    /// for the moments after a recovery in which calls go a few at a time. Dropping the future gives nothing away.
    ///
    /// # Errors
    /// When the circuit of the key or of that endpoint is open.
    pub async fn admit(&self, endpoint: Option<Endpoint>) -> Result<BreakerPermit, Rejection> {
        loop {
            // Armed before the check, so that a change in between is not missed.
            let changed = self.shared.changed.notified();
            let decision = self.transition(|state, now, _| state.machine.admit(endpoint, now));
            match decision {
                Admission::Go(admitted) => {
                    return Ok(BreakerPermit { breaker: self.clone(), admitted: Some(admitted) });
                }
                Admission::Rejected(rejection) => return Err(rejection),
                Admission::Wait(until) => {
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = sleep_until(until) => {}
                    }
                }
            }
        }
    }

    /// Takes the slot of the health check that is due, if one is due and none is on its way.
    #[must_use]
    pub fn try_probe(&self) -> Option<ProbeLease> {
        let lease = self.transition(|state, now, _| state.machine.try_probe(now))?;
        self.shared.changed.notify_waiters();
        Some(ProbeLease { breaker: self.clone(), lease: Some(lease) })
    }

    /// What holds calls to `endpoint` back at present, if anything does.
    #[must_use]
    pub fn rejects(&self, endpoint: Option<Endpoint>) -> Option<Rejection> {
        self.transition(|state, _, _| state.machine.rejects(endpoint))
    }

    /// Waits until a health check is due, without taking its slot: the time to see that quota allows one.
    pub async fn wait_until_probe_due(&self) -> ProbeTarget {
        loop {
            let changed = self.shared.changed.notified();
            let next = self.transition(|state, now, _| {
                let next = state.machine.next_probe();
                next.map(|(due, target)| (due, target, due <= now))
            });
            match next {
                Some((_, target, true)) => return target,
                Some((due, _, false)) => {
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = sleep_until(due) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Waits until calls pass, or until the health check that is due next has failed. Returns which it was; at once if
    /// calls pass already. Somebody must be driving the health checks.
    pub async fn decided(&self) -> BreakerState {
        let openings = self.transition(|state, _, _| state.machine.openings());
        loop {
            let changed = self.shared.changed.notified();
            let (state, now_openings) =
                self.transition(|state, _, _| (state.machine.state(), state.machine.openings()));
            if state == BreakerState::Closed || now_openings != openings {
                return state;
            }
            changed.await;
        }
    }

    /// Waits until calls to `endpoint` pass, or until a health check that stands between has failed; at once if they pass
    /// already. Somebody must be driving the health checks.
    pub async fn decided_for(&self, endpoint: Endpoint) {
        let openings = self.transition(|state, _, _| state.machine.openings_before(endpoint));
        loop {
            let changed = self.shared.changed.notified();
            let is_decided = self.transition(|state, _, _| {
                state.machine.rejects(Some(endpoint)).is_none() || state.machine.openings_before(endpoint) != openings
            });
            if is_decided {
                return;
            }
            changed.await;
        }
    }

    /// Resolves at the next transition, or when a slot becomes free. Arm it before looking at the state.
    pub fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.shared.changed.notified()
    }

    /// Whether calls pass.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.transition(|state, _, _| state.machine.state())
    }

    /// The breaker as it stands, in dates; `date` is the present date. To be shown, and to be kept across restarts.
    #[must_use]
    pub fn snapshot(&self, date: Timestamp) -> BreakerSnapshot {
        self.transition(|state, now, _| state.machine.snapshot(now, date))
    }

    /// A person, by name where that is known, holds everything back: for so long (a year at most), or without end.
    pub fn hold(&self, by: Option<&str>, reason: &str, duration: Option<Duration>) {
        let (by, reason) = (by.map(str::to_owned), reason.to_owned());
        self.transition(|state, now, events| {
            let until = duration.map(|duration| now + duration.min(LONGEST_HOLD));
            events.extend(state.machine.hold(by, reason, until, now));
        });
    }

    /// A person closes every circuit; calls go again as carefully as after a health check.
    pub fn close(&self) {
        self.transition(|state, now, events| events.extend(state.machine.close(now)));
    }

    /// A person declares every outage over.
    pub fn reset(&self) {
        self.transition(|state, now, events| events.extend(state.machine.reset(now)));
    }

    /// Runs one step under the lock, then tells what happened without it.
    fn transition<T>(&self, step: impl FnOnce(&mut State, Instant, &mut Vec<BreakerEvent>) -> T) -> T {
        let now = Instant::now();
        let mut events = Vec::new();
        let result = {
            let mut guard = self.lock();
            let state = &mut *guard;
            events.extend(state.machine.tick(now, &mut state.rng));
            step(state, now, &mut events)
        };
        if !events.is_empty() {
            self.shared.changed.notify_waiters();
        }
        for event in &events {
            self.shared.observer.on_breaker_event(event);
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The machine is whole between its methods, and none of them panics half-way.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Breaker").finish_non_exhaustive()
    }
}

/// The right to make one call. Dropped without a report it counts as neutral and frees its slot.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once admits nothing"]
pub struct BreakerPermit {
    breaker: Breaker,
    admitted: Option<Admitted>,
}

impl BreakerPermit {
    /// Whether this is the first real call after an outage: ask for `limit=1`.
    #[must_use]
    pub fn is_trial(&self) -> bool {
        self.admitted.is_some_and(|admitted| admitted.is_trial())
    }

    /// Whether it still stands: nothing opened since it was given.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.admitted.is_some_and(|admitted| self.breaker.transition(|state, _, _| state.machine.is_current(&admitted)))
    }

    /// Reports what the call taught us about the other side.
    pub fn report(mut self, mark: Mark, correlation_id: &Arc<str>) {
        self.settle(mark, Some(correlation_id));
    }

    fn settle(&mut self, mark: Mark, correlation_id: Option<&Arc<str>>) {
        let Some(admitted) = self.admitted.take() else { return };
        self.breaker.transition(|state, now, events| {
            events.extend(state.machine.report(admitted, mark, correlation_id, now, &mut state.rng));
        });
        self.breaker.shared.changed.notify_waiters();
    }
}

impl Drop for BreakerPermit {
    fn drop(&mut self) {
        self.settle(Mark::Neutral, None);
    }
}

/// The slot of one health check. Dropped without a report it counts as neutral and frees the slot.
#[derive(Debug)]
#[must_use = "a lease that is dropped at once checks nothing"]
pub struct ProbeLease {
    breaker: Breaker,
    lease: Option<Lease>,
}

impl ProbeLease {
    /// What to ask.
    #[must_use]
    pub fn target(&self) -> ProbeTarget {
        self.lease.map_or(ProbeTarget::Health, |lease| lease.target)
    }

    /// Reports the outcome. [`Mark::Healthy`] closes the circuit; an answer that shows the other side working, such
    /// as 400 or 404 with code 107, is healthy (BR-110).
    pub fn report(mut self, mark: Mark) {
        self.settle(mark);
    }

    fn settle(&mut self, mark: Mark) {
        let Some(lease) = self.lease.take() else { return };
        self.breaker.transition(|state, now, events| {
            events.extend(state.machine.report_probe(lease, mark, now, &mut state.rng));
        });
        self.breaker.shared.changed.notify_waiters();
    }
}

impl Drop for ProbeLease {
    fn drop(&mut self) {
        self.settle(Mark::Neutral);
    }
}
