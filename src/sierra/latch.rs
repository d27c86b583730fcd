//! The credential latch: after Sierra has refused the key for good, nothing is asked until something changes.
//!
//! Pure: events in, state out. A refused key retried in a loop helps nobody and can lock the account, so the latch is
//! apart from the breaker, which only knows about a server that is unwell. It closes when the token endpoint refuses
//! the credential before and after one repeat, or when three calls in a row end in a second 401 (BR-100, BR-130). It
//! lifts on a changed address, key or secret, on a person's word (`recover`, `breaker reset`), or by one trial an hour.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// One trial token call is allowed so often while the latch is closed.
const TRIAL_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// So many calls in a row that end in a second 401 close the latch.
const CALLS_TO_CLOSE: u8 = 3;
/// The tokens that such a call has spent are all that may be asked for within this, in whatever process (BR-100).
const PAUSE_AFTER_RESTART: Duration = Duration::from_secs(5 * 60);

/// Why the latch is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LatchCause {
    /// `/token` answered 400, 401 or 403, twice.
    CredentialRefused {
        /// The status.
        status: u16,
    },
    /// `/token` gave tokens, and the API refused each of them.
    TokensRefused,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LatchChange {
    /// Nothing that anybody must hear of.
    None,
    /// It closed: a person must act.
    Closed(LatchCause),
    /// It lifted.
    Lifted,
}

/// Whether a call may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may.
    Pass,
    /// It may, as the hourly trial; its token must be new.
    Trial,
    /// It may not, until then or until a person acts.
    Refused {
        /// Why.
        cause: LatchCause,
        /// When the next trial is allowed.
        next_trial: Instant,
    },
}

/// The latch.
#[derive(Debug, Clone)]
pub(super) struct Latch {
    state: State,
    /// Calls in a row that ended in a second 401.
    ended: u8,
    /// When the last of them ended.
    last_ended: Option<(Instant, Timestamp)>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Lifted,
    Closed {
        cause: LatchCause,
        since: Timestamp,
        next_trial: Instant,
    },
    /// The hourly trial has a token that the API has not yet seen.
    OnTrial {
        cause: LatchCause,
        since: Timestamp,
        next_trial: Instant,
    },
}

impl Latch {
    /// A lifted latch.
    pub(super) fn new() -> Self {
        Self { state: State::Lifted, ended: 0, last_ended: None }
    }

    /// Asks to make a call. The one trial an hour is given to whoever asks first.
    pub(super) fn admit(&mut self, now: Instant) -> Admission {
        match self.state {
            State::Lifted | State::OnTrial { .. } => Admission::Pass,
            State::Closed { cause, since, next_trial } if now >= next_trial => {
                self.state = State::Closed { cause, since, next_trial: now + TRIAL_INTERVAL };
                Admission::Trial
            }
            State::Closed { cause, next_trial, .. } => Admission::Refused { cause, next_trial },
        }
    }

    /// Whether calls that hold a token may go on: no trial is given.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    /// Why it is closed or on trial, and since when.
    pub(super) fn cause(&self) -> Option<(LatchCause, Timestamp)> {
        match self.state {
            State::Lifted => None,
            State::Closed { cause, since, .. } | State::OnTrial { cause, since, .. } => Some((cause, since)),
        }
    }

    /// `/token` refused the credential, and refused it again.
    pub(super) fn credential_refused(&mut self, status: u16, now: Instant, date: Timestamp) -> LatchChange {
        self.close(LatchCause::CredentialRefused { status }, now, date)
    }

    /// `/token` gave a token. That answers a refused credential; a refused token must still prove itself.
    pub(super) fn token_fetched(&mut self) -> LatchChange {
        match self.state {
            State::Closed { cause: LatchCause::CredentialRefused { .. }, .. } => self.lift(),
            State::Closed { cause, since, next_trial } => {
                self.state = State::OnTrial { cause, since, next_trial };
                LatchChange::None
            }
            State::Lifted | State::OnTrial { .. } => LatchChange::None,
        }
    }

    /// The API took a token: whatever came before is forgotten (BR-100: twenty expiries in ten hours are no failure).
    pub(super) fn token_accepted(&mut self) -> LatchChange {
        self.ended = 0;
        if matches!(self.state, State::OnTrial { .. }) { self.lift() } else { LatchChange::None }
    }

    /// Whether a 401 may still be answered by a new token: not during a trial, whose one token call is spent.
    pub(super) fn may_refresh(&self) -> bool {
        matches!(self.state, State::Lifted)
    }

    /// A call ended in a second 401.
    pub(super) fn call_ended(&mut self, now: Instant, date: Timestamp) -> LatchChange {
        match self.state {
            State::Closed { .. } => LatchChange::None,
            // The same cause goes on: nobody needs to hear of it again.
            State::OnTrial { cause, since, next_trial } => {
                self.state = State::Closed { cause, since, next_trial };
                LatchChange::None
            }
            State::Lifted => {
                self.ended = self.ended.saturating_add(1);
                self.last_ended = Some((now, date));
                if self.ended < CALLS_TO_CLOSE {
                    return LatchChange::None;
                }
                self.close(LatchCause::TokensRefused, now, date)
            }
        }
    }

    /// A person says that the cause is gone: `recover`, `breaker reset`.
    pub(super) fn lift(&mut self) -> LatchChange {
        let was_lifted = matches!(self.state, State::Lifted);
        *self = Self::new();
        if was_lifted { LatchChange::None } else { LatchChange::Lifted }
    }

    fn close(&mut self, cause: LatchCause, now: Instant, date: Timestamp) -> LatchChange {
        let was_lifted = matches!(self.state, State::Lifted);
        let since = self.cause().map_or(date, |(_, since)| since);
        let next_trial = match self.state {
            State::Closed { next_trial, .. } | State::OnTrial { next_trial, .. } if next_trial > now => next_trial,
            _ => now + TRIAL_INTERVAL,
        };
        self.state = State::Closed { cause, since, next_trial };
        self.ended = 0;
        if was_lifted { LatchChange::Closed(cause) } else { LatchChange::None }
    }
}

/// A closed latch as it is stored: it survives a restart, or a service that restarts on failure would ask for ever.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u8,
    cause: LatchCause,
    since: Timestamp,
    next_trial: Timestamp,
    credential: Fingerprint,
}

/// The version of the stored form. The first knew nothing of the address.
const VERSION: u8 = 2;

impl Latch {
    /// What to store; nothing when the latch is lifted and the last call ended well.
    ///
    /// The next process has no token and cannot try the refused ones again, as this one would: it finds the latch closed
    /// for what is left of five minutes, and then has one trial.
    pub(super) fn snapshot(&self, credential: Fingerprint, now: Instant, date: Timestamp) -> Vec<u8> {
        let (cause, since, next_trial) = match (self.state, self.last_ended) {
            (State::Closed { cause, since, next_trial } | State::OnTrial { cause, since, next_trial }, _) => {
                (cause, since, next_trial)
            }
            (State::Lifted, Some((ended, since))) if self.ended > 0 => {
                (LatchCause::TokensRefused, since, ended + PAUSE_AFTER_RESTART)
            }
            (State::Lifted, _) => return Vec::new(),
        };
        let left = next_trial.saturating_duration_since(now);
        let next_trial = date.checked_add(left).unwrap_or(date);
        let stored = Stored { version: VERSION, cause, since, next_trial, credential };
        serde_json::to_vec(&stored).unwrap_or_default()
    }

    /// Takes a snapshot up again. A changed address or credential lifts the latch, and so does what cannot be read: the
    /// worst that follows are two token calls.
    pub(super) fn restore(bytes: &[u8], credential: Fingerprint, now: Instant, date: Timestamp) -> Self {
        let stored = serde_json::from_slice::<Stored>(bytes).ok();
        let Some(stored) = stored.filter(|stored| stored.version == VERSION && stored.credential == credential) else {
            return Self::new();
        };
        let left = Duration::try_from(stored.next_trial.duration_since(date)).unwrap_or_default();
        let next_trial = now + left.min(TRIAL_INTERVAL);
        Self {
            state: State::Closed { cause: stored.cause, since: stored.since, next_trial },
            ended: 0,
            last_ended: None,
        }
    }
}

/// What a latch is closed to: one credential at one address.
///
/// Of the secret there are sixteen bits of a hash that the address and the key are the key to: enough to notice a
/// changed secret (missed once in 65,536 times, and then until the next hourly trial), too few to help anybody who
/// guesses at it. A changed address or key is always noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    place: u64,
    secret: u16,
}

impl Fingerprint {
    pub(super) fn of(base_url: &str, client_key: &str, client_secret: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("sierra-sync credential latch 2026");
        hasher.update(&(base_url.len() as u64).to_le_bytes());
        hasher.update(base_url.as_bytes());
        hasher.update(client_key.as_bytes());
        let place = hasher.finalize();
        let secret = blake3::keyed_hash(place.as_bytes(), client_secret.as_bytes());
        let ([a, b, c, d, e, f, g, h, ..], [first, second, ..]) = (*place.as_bytes(), *secret.as_bytes());
        Self { place: u64::from_le_bytes([a, b, c, d, e, f, g, h]), secret: u16::from_le_bytes([first, second]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: Timestamp = Timestamp::UNIX_EPOCH;
    const OURS: Fingerprint = Fingerprint { place: 7, secret: 7 };

    fn hours(count: u64) -> Duration {
        Duration::from_secs(3600 * count)
    }

    fn closed_by_calls(now: Instant) -> Latch {
        let mut latch = Latch::new();
        for _ in 0..2 {
            assert_eq!(latch.call_ended(now, DATE), LatchChange::None);
        }
        assert_eq!(latch.call_ended(now, DATE), LatchChange::Closed(LatchCause::TokensRefused));
        latch
    }

    /// BR-100: three calls in a row, and a success between them starts the count again.
    #[tokio::test(start_paused = true)]
    async fn three_calls_in_a_row_that_end_in_a_second_401_close_it() {
        let now = Instant::now();
        let mut latch = Latch::new();
        for _ in 0..20 {
            latch.call_ended(now, DATE);
            latch.call_ended(now, DATE);
            assert_eq!(latch.token_accepted(), LatchChange::None);
            assert_eq!(latch.admit(now), Admission::Pass);
        }
        let next_trial = now + hours(1);
        let refused = Admission::Refused { cause: LatchCause::TokensRefused, next_trial };
        assert_eq!(closed_by_calls(now).admit(now), refused);
    }

    #[tokio::test(start_paused = true)]
    async fn one_trial_an_hour_is_given_and_to_one_caller() {
        let now = Instant::now();
        let mut latch = Latch::new();
        latch.credential_refused(401, now, DATE);
        assert!(matches!(latch.admit(now + hours(1) - Duration::from_secs(1)), Admission::Refused { .. }));
        assert_eq!(latch.admit(now + hours(1)), Admission::Trial);
        assert!(matches!(latch.admit(now + hours(1)), Admission::Refused { .. }));
        // Refused again, or lost on the way: the next trial is an hour after this one.
        assert_eq!(latch.credential_refused(401, now + hours(1), DATE), LatchChange::None);
        assert!(matches!(latch.admit(now + hours(2) - Duration::from_secs(1)), Admission::Refused { .. }));
        assert_eq!(latch.admit(now + hours(2)), Admission::Trial);
        assert_eq!(latch.token_fetched(), LatchChange::Lifted);
        assert_eq!(latch.admit(now + hours(2)), Admission::Pass);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_on_trial_must_be_taken_by_the_api() {
        let now = Instant::now();
        let mut latch = closed_by_calls(now);
        assert_eq!(latch.admit(now + hours(1)), Admission::Trial);
        assert_eq!(latch.token_fetched(), LatchChange::None);
        assert!(!latch.may_refresh() && !latch.is_closed());
        // Refused: closed again without another word, and without another token.
        assert_eq!(latch.call_ended(now + hours(1), DATE), LatchChange::None);
        assert!(matches!(latch.admit(now + hours(1)), Admission::Refused { .. }));
        assert_eq!(latch.admit(now + hours(2)), Admission::Trial);
        latch.token_fetched();
        assert_eq!(latch.token_accepted(), LatchChange::Lifted);
        assert!(latch.may_refresh());
    }

    #[tokio::test(start_paused = true)]
    async fn a_person_lifts_it_at_once() {
        let now = Instant::now();
        let mut latch = closed_by_calls(now);
        assert_eq!(latch.cause(), Some((LatchCause::TokensRefused, DATE)));
        assert_eq!(latch.lift(), LatchChange::Lifted);
        assert_eq!((latch.lift(), latch.admit(now), latch.cause()), (LatchChange::None, Admission::Pass, None));
    }

    /// BR-100: two tokens in five minutes and no more, although each process ends before the third call.
    #[tokio::test(start_paused = true)]
    async fn a_restart_after_a_second_401_asks_for_no_token_within_five_minutes() {
        let now = Instant::now();
        let mut latch = Latch::new();
        latch.call_ended(now, DATE);
        assert_eq!(latch.admit(now), Admission::Pass, "this process has a token to try again");
        let minute = Duration::from_secs(60);
        let stored = latch.snapshot(OURS, now + minute, DATE + minute);
        let mut restored = Latch::restore(&stored, OURS, now, DATE + minute);
        let next_trial = now + minute * 4;
        assert_eq!(restored.admit(now), Admission::Refused { cause: LatchCause::TokensRefused, next_trial });
        assert_eq!(restored.admit(next_trial), Admission::Trial);
        restored.token_fetched();
        restored.call_ended(next_trial, DATE);
        assert!(matches!(restored.admit(next_trial + hours(1) - minute), Admission::Refused { .. }));

        let mut late = Latch::restore(&stored, OURS, now, DATE + hours(2));
        assert_eq!(late.admit(now), Admission::Trial, "a night later it is asked at once");
        late.token_fetched();
        assert_eq!(late.token_accepted(), LatchChange::Lifted);
        latch.token_accepted();
        assert!(latch.snapshot(OURS, now, DATE).is_empty(), "a token that was taken ends it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_restart_keeps_it_closed_and_a_changed_credential_lifts_it() {
        let now = Instant::now();
        let mut latch = Latch::new();
        assert!(latch.snapshot(OURS, now, DATE).is_empty());
        latch.credential_refused(403, now, DATE);
        let stored = latch.snapshot(OURS, now + Duration::from_secs(600), DATE + Duration::from_secs(600));
        // Half an hour later by the calendar, whatever the monotonic clock says after the restart.
        let later = DATE + Duration::from_secs(1800);
        let mut restored = Latch::restore(&stored, OURS, now, later);
        let cause = LatchCause::CredentialRefused { status: 403 };
        assert_eq!(restored.cause(), Some((cause, DATE)));
        let next_trial = now + Duration::from_secs(1800);
        assert_eq!(restored.admit(now), Admission::Refused { cause, next_trial });
        for other in [Fingerprint { secret: 8, ..OURS }, Fingerprint { place: 8, ..OURS }] {
            assert_eq!(Latch::restore(&stored, other, now, later).admit(now), Admission::Pass);
        }
        // A clock that was stepped back does not put the trial off for ever.
        let stepped = Latch::restore(&stored, OURS, now, DATE - Duration::from_secs(1_000_000)).admit(now);
        assert_eq!(stepped, Admission::Refused { cause, next_trial: now + TRIAL_INTERVAL });
        for unreadable in [b"".as_slice(), b"{}", br#"{"version":1}"#, br#"{"version":3}"#] {
            assert_eq!(Latch::restore(unreadable, OURS, now, later).admit(now), Admission::Pass);
        }
    }

    /// Any part of what was refused may be the one that was wrong; the stored form is of no use to one who guesses.
    #[test]
    fn address_key_and_secret_each_make_another_credential() {
        let ours = Fingerprint::of("https://a/v6", "key", "secret");
        assert_eq!(Fingerprint::of("https://a/v6", "key", "secret"), ours);
        assert_ne!(Fingerprint::of("https://a/v6", "key", "changed"), ours);
        assert_ne!(Fingerprint::of("https://a/v5", "key", "secret").place, ours.place);
        assert_ne!(Fingerprint::of("https://a/v6", "keys", "ecret").place, ours.place);
        assert_ne!(Fingerprint::of("https://a/v6k", "ey", "secret").place, ours.place);
        // The same secret elsewhere leaves another trace: two stored forms tell nothing about each other.
        assert_ne!(Fingerprint::of("https://b/v6", "key", "secret").secret, ours.secret);
        let mut latch = Latch::new();
        latch.credential_refused(401, Instant::now(), DATE);
        let stored = String::from_utf8(latch.snapshot(ours, Instant::now(), DATE)).expect("text");
        assert!(!stored.contains("secret\":\"") && !stored.contains("https"), "{stored}");
    }
}
