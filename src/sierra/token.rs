//! The session token as a state machine: when to use it, when to fetch another, whose refusal counts.
//!
//! Pure: it holds the token and knows times and generations; `auth` makes the calls. Each fetched token is a
//! generation. A refusal names the generation it was for, so sixteen workers refused together cause one refresh, and
//! a late refusal of an old token causes none.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::secret::Secret;

/// What is assumed when the server does not say how long a token lives: Sierra's default (sierra-api.md §1.2).
pub(super) const DEFAULT_LIFE: Duration = Duration::from_secs(3600);
/// A longer life is taken for an error of the server.
const MAX_LIFE: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// A token this close to its end is not sent any more: the request takes time to arrive.
const MAX_MARGIN: Duration = Duration::from_secs(10);
/// How long a failed background refresh waits before the next, while the old token still works.
const BACKGROUND_PAUSE: Duration = Duration::from_secs(30);
/// Within this time at most [`UNPROVEN_FETCHES`] tokens are fetched if the API takes none of them (BR-100).
const UNPROVEN_SPAN: Duration = Duration::from_secs(5 * 60);
/// See [`UNPROVEN_SPAN`].
const UNPROVEN_FETCHES: usize = 2;

/// A token to send, and the generation to name when it is refused.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// Counts fetched tokens.
    pub(super) generation: u64,
    /// The value.
    pub(super) value: Secret,
}

/// What to do about a token before a call.
#[derive(Debug)]
pub(super) enum Need {
    /// Send this one.
    Use(Token),
    /// Send this one, and fetch the next beside the call (A7).
    UseAndRefresh(Token),
    /// There is none to send: fetch one first.
    Fetch,
}

/// What to do about a 401.
#[derive(Debug)]
pub(super) enum AfterRefusal {
    /// The refused token was an old one: repeat with this.
    Newer(Token),
    /// Fetch a new one and repeat, outside every budget (A8).
    Refresh,
    /// New tokens have been refused as well: the call ends.
    GiveUp,
}

/// How long a token lives, and whether the server said so properly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    /// The time.
    pub(super) duration: Duration,
    /// The server's statement was missing or nonsense.
    pub(super) is_assumed: bool,
}

impl Life {
    /// Judges what the server said, in seconds.
    pub(super) fn of(seconds: Option<u64>) -> Self {
        match seconds.map(Duration::from_secs) {
            Some(duration) if !duration.is_zero() && duration <= MAX_LIFE => Self { duration, is_assumed: false },
            _ => Self { duration: DEFAULT_LIFE, is_assumed: true },
        }
    }
}

/// The machine.
#[derive(Debug, Default)]
pub(super) struct TokenState {
    held: Option<Held>,
    last_generation: u64,
    /// When the tokens since the last accepted one were fetched, oldest first.
    unproven: Vec<Instant>,
    is_refreshing: bool,
}

#[derive(Debug)]
struct Held {
    token: Token,
    /// From then on it is not sent any more.
    good_until: Instant,
    /// From then on another is fetched in the background.
    refresh_at: Instant,
    expires_at: Timestamp,
    is_refused: bool,
}

impl TokenState {
    /// What a call needs at `now`.
    pub(super) fn need(&mut self, now: Instant) -> Need {
        let Some(held) = self.held.as_ref().filter(|held| held.is_good(now)) else { return Need::Fetch };
        let token = held.token.clone();
        if now >= held.refresh_at && !self.is_refreshing {
            self.is_refreshing = true;
            return Need::UseAndRefresh(token);
        }
        Need::Use(token)
    }

    /// The token that can be sent at `now`, if there is one.
    pub(super) fn current(&self, now: Instant) -> Option<Token> {
        self.held.as_ref().filter(|held| held.is_good(now)).map(|held| held.token.clone())
    }

    /// Whether `token` may be sent at `now`: it may have died, or been refused, while its call waited (BR-097).
    pub(super) fn is_good(&self, token: &Token, now: Instant) -> bool {
        self.held.as_ref().is_some_and(|held| held.token.generation == token.generation && held.is_good(now))
    }

    /// A token came: asked for at `asked` by the monotonic clock, `date` by the calendar. Its life is counted from the
    /// question, not from the answer.
    pub(super) fn fetched(&mut self, value: Secret, life: Duration, asked: Instant, date: Timestamp) -> Token {
        self.last_generation += 1;
        let token = Token { generation: self.last_generation, value };
        self.held = Some(Held {
            token: token.clone(),
            good_until: asked + (life - MAX_MARGIN.min(life / 10)),
            refresh_at: asked + life.mul_f64(0.8),
            expires_at: date.checked_add(life).unwrap_or(Timestamp::MAX),
            is_refused: false,
        });
        self.unproven.push(asked);
        self.is_refreshing = false;
        token
    }

    /// The API took a token: new ones are worth fetching again.
    pub(super) fn accepted(&mut self, generation: u64) {
        if self.held.as_ref().is_some_and(|held| held.token.generation == generation) {
            self.unproven.clear();
        }
    }

    /// The API refused the token of `generation` at `now`.
    pub(super) fn refused(&mut self, generation: u64, now: Instant) -> AfterRefusal {
        self.unproven.retain(|fetched| now.saturating_duration_since(*fetched) < UNPROVEN_SPAN);
        let may_fetch = self.unproven.len() < UNPROVEN_FETCHES;
        let Some(held) = self.held.as_mut() else { return AfterRefusal::Refresh };
        if held.token.generation > generation && held.is_good(now) {
            return AfterRefusal::Newer(held.token.clone());
        }
        if held.is_refused {
            return AfterRefusal::Refresh;
        }
        // Kept as it is when no other may be fetched: later calls try it, and end by its refusal.
        held.is_refused = may_fetch;
        if may_fetch { AfterRefusal::Refresh } else { AfterRefusal::GiveUp }
    }

    /// A background refresh failed at `now`: a token that works goes on working. When the credential itself was
    /// refused, it is not presented again before the token has ended.
    pub(super) fn background_failed(&mut self, was_refused: bool, now: Instant) {
        self.is_refreshing = false;
        if let Some(held) = self.held.as_mut() {
            let left = held.good_until.saturating_duration_since(now);
            held.refresh_at = if was_refused { held.good_until } else { now + BACKGROUND_PAUSE.min(left / 2) };
        }
    }

    /// Forgets the token: a person asked for a new one, or the latch closed.
    pub(super) fn forget(&mut self) {
        self.held = None;
        self.unproven.clear();
        self.is_refreshing = false;
    }

    /// When the held token ends, if one is held that works.
    pub(super) fn expires_at(&self, now: Instant) -> Option<Timestamp> {
        self.held.as_ref().filter(|held| held.is_good(now)).map(|held| held.expires_at)
    }

    /// Whether a background refresh is under way.
    pub(super) fn is_refreshing(&self) -> bool {
        self.is_refreshing
    }
}

impl Held {
    fn is_good(&self, now: Instant) -> bool {
        !self.is_refused && now < self.good_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: Timestamp = Timestamp::UNIX_EPOCH;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn fetch(state: &mut TokenState, now: Instant) -> Token {
        state.fetched(Secret::new("token".to_owned()), DEFAULT_LIFE, now, DATE)
    }

    #[test]
    fn odd_lifetimes_are_taken_for_an_hour() {
        let hour = Life { duration: DEFAULT_LIFE, is_assumed: true };
        for odd in [None, Some(0), Some(u64::MAX), Some(400 * 24 * 3600)] {
            assert_eq!(Life::of(odd), hour, "{odd:?}");
        }
        assert_eq!(Life::of(Some(300)), Life { duration: seconds(300), is_assumed: false });
    }

    /// A7: at 80 % of its life a new token is fetched, once, beside the calls that go on with the old one.
    #[tokio::test(start_paused = true)]
    async fn at_four_fifths_of_its_life_one_caller_is_told_to_refresh() {
        let start = Instant::now();
        let mut state = TokenState::default();
        assert!(matches!(state.need(start), Need::Fetch));
        fetch(&mut state, start);
        assert!(matches!(state.need(start + seconds(2879)), Need::Use(_)));
        assert!(matches!(state.need(start + seconds(2880)), Need::UseAndRefresh(_)));
        assert!(matches!(state.need(start + seconds(2881)), Need::Use(_)));
        let newer = state.fetched(Secret::new("newer".to_owned()), DEFAULT_LIFE, start + seconds(2881), DATE);
        assert_eq!(newer.generation, 2);
        assert!(matches!(state.need(start + seconds(2881 + 2879)), Need::Use(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_background_refresh_leaves_a_working_token_alone() {
        let start = Instant::now();
        let mut state = TokenState::default();
        let token = fetch(&mut state, start);
        let late = start + seconds(2880);
        assert!(matches!(state.need(late), Need::UseAndRefresh(_)));
        state.background_failed(false, late);
        assert!(state.is_good(&token, late) && !state.is_refreshing());
        assert!(matches!(state.need(late + seconds(29)), Need::Use(_)));
        assert!(matches!(state.need(late + seconds(30)), Need::UseAndRefresh(_)));
        state.background_failed(true, late + seconds(31));
        assert!(matches!(state.need(start + seconds(3589)), Need::Use(_)));
        assert!(matches!(state.need(start + seconds(3590)), Need::Fetch));
    }

    /// BR-097: what was good before a wait may be dead after it.
    #[tokio::test(start_paused = true)]
    async fn a_token_dies_a_little_before_its_time() {
        let start = Instant::now();
        let mut state = TokenState::default();
        let token = state.fetched(Secret::new("token".to_owned()), seconds(300), start, DATE);
        assert_eq!(state.expires_at(start), Some(DATE + seconds(300)));
        assert!(state.is_good(&token, start + seconds(289)));
        assert!(!state.is_good(&token, start + seconds(290)));
        assert_eq!(state.expires_at(start + seconds(290)), None);
        // A very short life still leaves something to use.
        let brief = state.fetched(Secret::new("token".to_owned()), seconds(1), start, DATE);
        assert!(state.is_good(&brief, start + Duration::from_millis(899)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_refusal_of_an_old_token_causes_no_refresh() {
        let start = Instant::now();
        let mut state = TokenState::default();
        let old = fetch(&mut state, start);
        state.accepted(old.generation);
        for _ in 0..16 {
            assert!(matches!(state.refused(old.generation, start), AfterRefusal::Refresh));
        }
        assert!(matches!(state.need(start), Need::Fetch));
        let new = fetch(&mut state, start);
        match state.refused(old.generation, start) {
            AfterRefusal::Newer(token) => assert_eq!(token.generation, new.generation),
            other => panic!("{other:?}"),
        }
    }

    /// BR-100, BR-130: an API that takes no token sees two of them in five minutes.
    #[tokio::test(start_paused = true)]
    async fn tokens_that_nobody_takes_are_not_fetched_for_ever() {
        let start = Instant::now();
        let mut state = TokenState::default();
        let first = fetch(&mut state, start);
        assert!(matches!(state.refused(first.generation, start), AfterRefusal::Refresh));
        let second = fetch(&mut state, start);
        for second_later in 0..299 {
            let now = start + seconds(second_later);
            assert!(matches!(state.refused(second.generation, now), AfterRefusal::GiveUp));
            assert!(matches!(state.need(now), Need::Use(_)), "later calls try the same token");
        }
        assert!(matches!(state.refused(second.generation, start + seconds(300)), AfterRefusal::Refresh));
    }

    /// BR-100: ten hours with twenty tokens that die early.
    #[tokio::test(start_paused = true)]
    async fn an_accepted_token_makes_the_next_one_worth_fetching() {
        let start = Instant::now();
        let mut state = TokenState::default();
        for expiry in 0..20 {
            let now = start + seconds(expiry * 60);
            let token = fetch(&mut state, now);
            state.accepted(token.generation);
            assert!(matches!(state.refused(token.generation, now + seconds(59)), AfterRefusal::Refresh));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_token_is_fetched_anew() {
        let now = Instant::now();
        let mut state = TokenState::default();
        let token = fetch(&mut state, now);
        state.forget();
        assert!(matches!(state.need(now), Need::Fetch) && !state.is_good(&token, now));
        assert_eq!(fetch(&mut state, now).generation, 2);
    }

    /// BR-035.
    #[tokio::test(start_paused = true)]
    async fn debug_shows_no_token() {
        let mut state = TokenState::default();
        state.fetched(Secret::new("canary".to_owned()), DEFAULT_LIFE, Instant::now(), DATE);
        assert!(!format!("{state:?}").contains("canary"));
    }
}
