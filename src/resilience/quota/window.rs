//! What we know about the server's quota window: how much is left of it, and when it ends.
//!
//! The server's clock, its rounding and the round trip blur every statement, so the end is an interval; the
//! intervals of one window are intersected, and it counts as over at the upper end. Calls of ours that the server
//! may not have counted yet are taken off what it says is left.
//!
//! Most servers count in fixed windows. Some count over the last minute at any moment, or refill a bucket; their
//! stated end moves on with every call. Once that has been seen, the end means "then there is more", and what
//! comes back in between follows from our own calls of one window length ago.

mod learning;

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::others::Others;
use super::sends::Sends;
use crate::resilience::rate_headers::RateFacts;
use crate::resilience::settings::QuotaSettings;

/// With fewer left than the reserve and no reset stated, the window is taken to end after this (A3).
const UNSTATED: Duration = Duration::from_secs(10);
/// What two statements about one moment may differ by.
const BLUR: Duration = Duration::from_secs(2);
/// What a refusal that we did not see coming adds to our doubt of the window's length.
const DOUBT_STEP: Duration = Duration::from_millis(500);
/// Answers that are remembered one by one.
const RECENT: usize = 256;
/// A call that was not answered for so long beyond a window is not counted any more.
const LONGEST_FLIGHT: Duration = Duration::from_secs(180);

/// What a caller may do now, as far as the window goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// This many calls may be made.
    Calls(u32),
    /// No more before the end of the window.
    Spent { until: Instant },
    /// No more before then, because an earlier call of ours still counts or others are to have their part.
    Later { at: Instant },
}

/// Over what time paced calls are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    /// What is left of the window, for what is left of its calls.
    Over(Duration),
    /// One window length, for a whole grant, at any moment.
    Steady(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interval {
    earliest: Instant,
    latest: Instant,
}

/// What the server said was left, and when.
#[derive(Debug, Clone, Copy)]
struct View {
    left: i64,
    /// When the call was sent whose answer said so.
    asked: Instant,
    /// When that answer came.
    heard: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One window after the other.
    Fixed,
    /// The last window length at any moment; the stated end is when the oldest counted call leaves.
    Rolling,
    /// A bucket that refills evenly; the stated end is when it is full.
    Refilling,
}

/// What is known of the time of a whole refill, should the server keep a bucket: between these two, by answers that
/// came while between these two parts of the bucket were gone.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Refill {
    shortest: Duration,
    longest: Duration,
    least: f64,
    most: f64,
}

#[derive(Debug, Clone)]
pub(super) struct Window {
    limit: Option<u32>,
    length: Option<Duration>,
    length_is_policy: bool,
    /// The longest wait for an end that was ever stated, give or take.
    longest_wait: Duration,
    shape: Shape,
    /// Number of the present window; grows.
    pub(super) generation: u64,
    began: Instant,
    end: Option<Interval>,
    /// The end of the window before, while this one's is not known.
    last_end: Option<Interval>,
    view: Option<View>,
    /// Our calls in this window.
    used: u32,
    /// When answers came: a call counts on the server from before that moment.
    answers: Sends,
    /// The last of them, one by one.
    recent: VecDeque<Instant>,
    /// When the calls went out that are not answered yet, the oldest first.
    flying: VecDeque<Instant>,
    /// By how much the window may be longer than we think: grows with refusals that we did not see coming.
    doubt: Duration,
    others: Others,
    /// Calls of others before we came: the first window was not seen from its beginning.
    before_us: Option<u32>,
    contradictions: u32,
    refill: Option<Refill>,
    /// Statements that were ignored.
    pub(super) nonsense: u64,
}

impl Window {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            limit: None,
            length: None,
            length_is_policy: false,
            longest_wait: Duration::ZERO,
            shape: Shape::Fixed,
            generation: 0,
            began: now,
            end: None,
            last_end: None,
            view: None,
            used: 0,
            answers: Sends::default(),
            recent: VecDeque::new(),
            flying: VecDeque::new(),
            doubt: Duration::ZERO,
            others: Others::default(),
            before_us: None,
            contradictions: 0,
            refill: None,
            nonsense: 0,
        }
    }

    pub(super) fn limit(&self) -> Option<u32> {
        self.limit
    }

    pub(super) fn length(&self) -> Option<Duration> {
        self.length
    }

    /// When the window is over for certain.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.end.map(|end| end.latest)
    }

    /// Calls left on the server, by what it said and what we have done since.
    pub(super) fn remaining(&self, now: Instant) -> Option<u32> {
        self.left_on_server(now).map(|left| u32::try_from(left.max(0)).unwrap_or(u32::MAX))
    }

    /// Takes up a window that an earlier process knew.
    pub(super) fn restore(&mut self, limit: Option<u32>, remaining: Option<u32>, end: Option<Instant>, now: Instant) {
        self.limit = limit;
        let Some(end) = end.filter(|end| *end > now) else { return };
        self.end = Some(Interval { earliest: now, latest: end });
        self.view = remaining.map(|left| View { left: i64::from(left), asked: now, heard: now });
        let grant_used = limit.zip(remaining).map_or(0, |(limit, remaining)| limit.saturating_sub(remaining));
        self.used = grant_used;
    }

    /// Forgets everything the server said, but not what we sent.
    pub(super) fn forget(&mut self, now: Instant) {
        let (answers, recent) = (std::mem::take(&mut self.answers), std::mem::take(&mut self.recent));
        let (generation, nonsense, flying) = (self.generation + 1, self.nonsense, std::mem::take(&mut self.flying));
        *self = Self { generation, nonsense, answers, recent, flying, ..Self::new(now) };
    }

    /// Whether an answer speaks of the fixed window that we know: it ends at the same time, more or less.
    pub(super) fn agrees_with(&self, facts: &RateFacts, now: Instant) -> bool {
        let (Some(end), Some(reset), Shape::Fixed) = (self.end, facts.reset, self.shape) else { return false };
        now + reset.latest + BLUR >= end.earliest && now + reset.earliest <= end.latest + BLUR
    }

    /// Lets time pass: begins a new window when the present one is over for certain.
    pub(super) fn roll(&mut self, now: Instant) {
        if self.ends_at().is_some_and(|end| end <= now) {
            self.begin(now);
        }
    }

    /// Begins a new window, about which nothing is known yet but the limit.
    pub(super) fn begin(&mut self, now: Instant) {
        let end = self.ends_at().unwrap_or(now).min(now);
        self.last_end = self.end.take().or(self.last_end);
        self.view = None;
        self.generation += 1;
        if self.shape == Shape::Fixed {
            self.others.close_window();
            self.began = end;
            self.used = 0;
            self.before_us = Some(0);
        }
    }

    /// A call of ours goes out.
    pub(super) fn sent(&mut self, now: Instant) {
        self.used = self.used.saturating_add(1);
        self.flying.push_back(now);
        if let (Shape::Fixed, Some(view)) = (self.shape, &mut self.view) {
            view.left -= 1;
        }
    }

    /// The call that went out at `sent` was answered, or is given up: the server has counted it by now.
    pub(super) fn landed(&mut self, sent: Instant, now: Instant) {
        self.is_back(sent);
        self.answers.record(now);
        self.recent.push_back(now);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let kept = self.length.unwrap_or(Duration::from_secs(3600)).saturating_mul(2);
        if let Some(horizon) = now.checked_sub(kept) {
            self.answers.forget_before(horizon);
        }
    }

    /// A call that was counted did not go out after all.
    pub(super) fn take_back(&mut self, sent: Instant, generation: u64) {
        self.is_back(sent);
        if generation == self.generation {
            self.used = self.used.saturating_sub(1);
            if let (Shape::Fixed, Some(view)) = (self.shape, &mut self.view) {
                view.left += 1;
            }
        }
    }

    fn is_back(&mut self, sent: Instant) {
        if let Some(place) = self.flying.iter().position(|flying| *flying == sent) {
            self.flying.remove(place);
        }
    }

    /// The server refused a call: where it counts over a moving span, that may be longer than we think.
    pub(super) fn refused(&mut self) {
        if self.shape != Shape::Fixed {
            self.doubt = (self.doubt + DOUBT_STEP).min(BLUR);
        }
    }

    /// How many more calls fit, by our share and by what the server has left.
    pub(super) fn room(&self, settings: &QuotaSettings, now: Instant) -> Room {
        match self.shape {
            Shape::Fixed => self.room_in_fixed(settings, now),
            Shape::Rolling | Shape::Refilling => self.room_in_rolling(settings, now),
        }
    }

    fn room_in_fixed(&self, settings: &QuotaSettings, now: Instant) -> Room {
        let ours = self.limit.map_or(i64::MAX, |limit| i64::from(settings.grant(limit)) - i64::from(self.used));
        // With fewer than the reserve left we wait (A3): the call that brings it there may still go.
        let on_server = self.left_on_server(now).map_or(i64::MAX, |left| left + 1 - i64::from(settings.reserve.max(1)));
        let room = ours.min(on_server);
        if room <= 0 {
            return match self.ends_at() {
                Some(until) => Room::Spent { until },
                // Our share of a window whose end was never stated means nothing.
                None if on_server > 0 => Room::Calls(u32::MAX),
                None => match self.view.map_or(now, |view| view.heard) + UNSTATED {
                    until if until > now => Room::Spent { until },
                    _ => Room::Calls(1),
                },
            };
        }
        let (Some(end), Some(_)) = (self.end, self.view) else { return Room::Calls(clamp(room)) };
        let length = end.latest.saturating_duration_since(self.began);
        let free = |at: Instant| on_server - i64::from(self.others.expected(self.began, length, at));
        let room = ours.min(free(now));
        if room > 0 {
            return Room::Calls(clamp(room));
        }
        // What is kept for others shrinks as the window runs out; find when it leaves room for one call.
        let (mut early, mut late) = (now, end.latest);
        for _ in 0..20 {
            let middle = early + late.saturating_duration_since(early) / 2;
            if free(middle) > 0 { late = middle } else { early = middle }
        }
        Room::Later { at: late.max(now + Duration::from_millis(1)) }
    }

    fn room_in_rolling(&self, settings: &QuotaSettings, now: Instant) -> Room {
        let length = self.length.unwrap_or(Duration::from_secs(1)) + self.doubt;
        let horizon = now.checked_sub(length).unwrap_or(now);
        let ours = self
            .limit
            .map_or(i64::MAX, |limit| i64::from(settings.grant(limit)) - i64::from(self.counted_since(horizon, now)));
        let next_freed = self.answers.oldest_since(horizon).map(|oldest| oldest + length + Duration::from_millis(1));
        if ours <= 0 {
            // A call that is still out counts for a window from its answer, and not for ever if none comes.
            let landing = self.flying.front().map(|sent| match *sent + length {
                freed if freed > now => freed,
                freed => freed + LONGEST_FLIGHT,
            });
            let at = next_freed.into_iter().chain(landing).min().unwrap_or(now + length);
            return Room::Later { at: at.max(now + Duration::from_millis(1)) };
        }
        let soon = self.ends_at().map_or(Duration::ZERO, |end| end.saturating_duration_since(now));
        let kept = i64::from(settings.reserve.max(1)) - 1 + i64::from(self.others.expected_during(soon, length, now));
        let room = ours.min(self.left_on_server(now).map_or(i64::MAX, |left| left - kept));
        if room > 0 {
            return Room::Calls(clamp(room));
        }
        let end = self.ends_at().unwrap_or(self.view.map_or(now, |view| view.heard) + UNSTATED);
        if end <= now {
            return Room::Calls(1);
        }
        match next_freed.filter(|freed| *freed < end && *freed > now) {
            Some(at) => Room::Later { at },
            None => Room::Spent { until: end },
        }
    }

    /// Over what time paced calls are to be spread, if anything is known.
    pub(super) fn time_to_spread_over(&self, now: Instant) -> Option<Spread> {
        match self.shape {
            Shape::Fixed => Some(Spread::Over(self.end?.earliest.saturating_duration_since(now))),
            Shape::Rolling | Shape::Refilling => self.length.map(Spread::Steady),
        }
    }

    /// Calls of ours that the server may have counted after `moment`: those answered since, and those still out.
    fn counted_since(&self, moment: Instant, now: Instant) -> u32 {
        let length = self.length.unwrap_or_default() + LONGEST_FLIGHT;
        let lost = self.flying.iter().take_while(|sent| **sent + length <= now).count();
        let flying = u32::try_from(self.flying.len() - lost).unwrap_or(u32::MAX);
        flying.saturating_add(self.answers.since(moment))
    }

    fn left_on_server(&self, now: Instant) -> Option<i64> {
        let view = self.view?;
        match self.shape {
            Shape::Fixed => Some(view.left),
            Shape::Rolling | Shape::Refilling => {
                // What was answered since that call was sent, itself apart, may not have been counted yet.
                let answered = match self.recent.front() {
                    Some(first) if *first <= view.asked || self.recent.len() < RECENT => {
                        self.recent.iter().rev().take_while(|answer| **answer > view.asked).count() as i64
                    }
                    _ => i64::from(self.answers.since(view.asked)),
                };
                let since = self.flying.len() as i64 + (answered - 1).max(0);
                Some(view.left - since + i64::from(self.freed(view, now)))
            }
        }
    }

    /// Calls that came back since `view`, where they come back one by one.
    fn freed(&self, view: View, now: Instant) -> u32 {
        let length = self.length.unwrap_or_default() + self.doubt;
        if self.shape == Shape::Refilling {
            let part = now.saturating_duration_since(view.heard).as_secs_f64() / length.as_secs_f64();
            return (f64::from(self.limit.unwrap_or(0)) * part) as u32;
        }
        match (view.heard.checked_sub(length), now.checked_sub(length)) {
            (Some(then), Some(now)) => self.answers.between(then, now),
            _ => 0,
        }
    }
}

fn clamp(room: i64) -> u32 {
    u32::try_from(room.max(0)).unwrap_or(u32::MAX)
}
