//! The ledger as tasks share it: it waits for them, and gives permits that release themselves.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::StdRng;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::ledger::{Admission, Grant, Ledger, Quoted};
use super::snapshot::QuotaSnapshot;
use super::waiter::Waiter;
use crate::resilience::endpoint::Endpoint;
use crate::resilience::rate_headers::RateFacts;
use crate::resilience::settings::QuotaSettings;

/// A single wait for quota longer than this is not sat out by a worker.
const LONGEST_IN_PLACE: Duration = Duration::from_secs(60);
/// Nor are waits of one call that are longer in all.
const LONGEST_IN_ALL: Duration = Duration::from_secs(120);

/// How long one call is willing to wait for quota. Shared by all attempts of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    in_place: Duration,
    left: Duration,
}

impl Default for Patience {
    /// Up to 60 s in place and 2 min in all; then the work is parked.
    fn default() -> Self {
        Self { in_place: LONGEST_IN_PLACE, left: LONGEST_IN_ALL }
    }
}

impl Patience {
    /// Waits as long as it takes (`sync --wait`).
    #[must_use]
    pub const fn endless() -> Self {
        Self { in_place: Duration::MAX, left: Duration::MAX }
    }

    /// Does not wait for quota at all.
    #[must_use]
    pub const fn none() -> Self {
        Self { in_place: Duration::ZERO, left: Duration::ZERO }
    }

    /// Whether a further wait of this length is sat out.
    #[must_use]
    pub fn bears(&self, wait: Duration) -> bool {
        wait <= self.in_place && wait <= self.left
    }

    /// A wait was sat out.
    pub fn spend(&mut self, waited: Duration) {
        if self.left != Duration::MAX {
            self.left = self.left.saturating_sub(waited);
        }
    }
}

/// The wait for quota is too long to be sat out: do something else, and come back then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// When to come back.
    pub resume_at: Instant,
}

/// The quota of one API key, shared by every task that uses it. Cheap to clone.
#[derive(Clone)]
pub struct Quota {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    ledger: Ledger,
    rng: StdRng,
    waited: Duration,
}

impl Quota {
    /// A quota about which nothing is known yet. `rng` comes from the root seed; the settings have no problems.
    #[must_use]
    pub fn new(settings: QuotaSettings, rng: StdRng) -> Self {
        let state = State { ledger: Ledger::new(settings, Instant::now()), rng, waited: Duration::ZERO };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }

    /// Takes up what an earlier process knew. `date` is the present date.
    pub fn restore(&self, snapshot: &QuotaSnapshot, date: Timestamp) {
        self.with(|state, now| state.ledger.restore(snapshot, now, date));
    }

    /// Waits until the call may go, and counts it as sent. Dropping the future counts nothing.
    ///
    /// # Errors
    /// When a wait for quota would be longer than `patience` bears. Waiting for our own pace, or for a free place on
    /// the endpoint, is not charged and never fails.
    pub async fn acquire(&self, waiter: &mut Waiter, patience: &mut Patience) -> Result<QuotaPermit, TooLong> {
        let mut waited_for_quota = Duration::ZERO;
        loop {
            // Armed before the check, so that a change in between is not missed.
            let changed = self.shared.changed.notified();
            let (admission, now) = self.look(|state, now| (state.ledger.admit(waiter, now, &mut state.rng), now));
            let (until, cause) = match admission {
                Admission::Go(grant) => {
                    let (quota, endpoint) = (self.clone(), waiter.endpoint);
                    return Ok(QuotaPermit { quota, endpoint, waited_for_quota, grant: Some(grant) });
                }
                Admission::Wait { until, cause } => (until, cause),
            };
            if cause.may_be_long() && !patience.bears(until.saturating_duration_since(now)) {
                return Err(TooLong { resume_at: until });
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(until) => {}
            }
            let waited = Instant::now().saturating_duration_since(now);
            if cause.may_be_long() {
                patience.spend(waited);
            }
            if cause.is_quota() {
                waited_for_quota += waited;
                self.look(|state, _| state.waited += waited);
            }
        }
    }

    /// When this caller may go at the earliest, if a gate is closed; it keeps that place.
    #[must_use]
    pub fn planned(&self, waiter: &mut Waiter) -> Option<Instant> {
        self.look(|state, now| state.ledger.planned(waiter, now, &mut state.rng))
    }

    /// Time that a caller sat out behind a gate by itself, to be counted with the rest.
    pub fn note_waited(&self, waited: Duration) {
        self.look(|state, _| state.waited += waited);
    }

    /// Waits until no gate is closed to that endpoint, however long; takes nothing.
    pub async fn wait_until_open(&self, endpoint: Endpoint) {
        loop {
            let changed = self.shared.changed.notified();
            let Some(until) = self.look(|state, now| state.ledger.opens_at(endpoint, now)) else { return };
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(until) => {}
            }
        }
    }

    /// Whether a live stream is behind, so that paced calls keep to half of the grant.
    pub fn set_behind(&self, behind: bool) {
        self.with(|state, _| state.ledger.set_behind(behind));
    }

    /// Waits until no call is under way.
    pub async fn drained(&self) {
        loop {
            let changed = self.shared.changed.notified();
            if self.look(|state, _| Endpoint::ALL.iter().all(|endpoint| state.ledger.in_flight(*endpoint) == 0)) {
                return;
            }
            changed.await;
        }
    }

    /// Whether only one call goes at once.
    #[must_use]
    pub fn is_cautious(&self) -> bool {
        self.look(|state, _| state.ledger.is_cautious())
    }

    /// Whether to allow only one call at once, token calls apart (A18).
    pub fn set_cautious(&self, cautious: bool) {
        self.with(|state, _| state.ledger.set_cautious(cautious));
    }

    /// New settings, from now on. They have no problems.
    pub fn set_settings(&self, settings: QuotaSettings) {
        self.with(|state, _| state.ledger.set_settings(settings));
    }

    /// Forgets what the server said about its limits, and opens every gate (A18).
    pub fn forget(&self) {
        self.with(|state, now| state.ledger.forget(now));
    }

    /// The quota as it stands, in dates; `date` is the present date. To be shown, and to be kept across restarts.
    #[must_use]
    pub fn snapshot(&self, date: Timestamp) -> QuotaSnapshot {
        self.look(|state, now| state.ledger.snapshot(now, date, state.waited))
    }

    /// One step under the lock.
    fn look<T>(&self, step: impl FnOnce(&mut State, Instant) -> T) -> T {
        let now = Instant::now();
        step(&mut self.lock(), now)
    }

    /// One step under the lock after which waiters look again.
    fn with<T>(&self, step: impl FnOnce(&mut State, Instant) -> T) -> T {
        let result = self.look(step);
        self.shared.changed.notify_waiters();
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The ledger is whole between its methods, and none of them panics half-way.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Quota").finish_non_exhaustive()
    }
}

/// The right to make one call, already counted as made. Dropped without an answer it stays counted, since the call
/// may have reached the server, but its place in flight is free again.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once has spent quota for nothing"]
pub struct QuotaPermit {
    quota: Quota,
    endpoint: Endpoint,
    waited_for_quota: Duration,
    grant: Option<Grant>,
}

impl QuotaPermit {
    /// How long it took to get, as far as that is owed to the server's quota and not to our own pace.
    #[must_use]
    pub fn waited_for_quota(&self) -> Duration {
        self.waited_for_quota
    }

    /// The endpoint it is for.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Reports the answer. Returns how long the other side asked to be left alone, if it did so usably.
    pub fn answered(mut self, facts: &RateFacts, quoted: Quoted) -> Option<Duration> {
        let grant = self.grant.take()?;
        let (wait, is_first_nonsense) = self.quota.with(|state, now| {
            let before = state.ledger.nonsense();
            let wait = state.ledger.answered(grant, facts, quoted, now);
            (wait, before == 0 && state.ledger.nonsense() > 0)
        });
        if is_first_nonsense {
            tracing::warn!(
                event = "quota_headers_ignored",
                endpoint = self.endpoint.name(),
                "a statement about quota cannot be read or contradicts an earlier one; it is ignored, as later ones will be"
            );
        }
        wait
    }

    /// The call was not made after all.
    pub fn give_back(mut self) {
        if let Some(grant) = self.grant.take() {
            self.quota.with(|state, now| state.ledger.returned(grant, now));
        }
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            self.quota.with(|state, now| state.ledger.lost(grant, now));
        }
    }
}
