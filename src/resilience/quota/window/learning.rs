//! What each answer teaches about the window: its end, its length, how the server counts, and what others use.

use std::time::Duration;

use tokio::time::Instant;

use super::{BLUR, Interval, Refill, Shape, UNSTATED, View, Window};
use crate::resilience::rate_headers::RateFacts;
use crate::resilience::settings::QuotaSettings;
use crate::resilience::span::Span;

/// A window that would last longer is nonsense.
const LONGEST: Duration = Duration::from_secs(31 * 24 * 3600);
/// Windows no longer than this are too blurred by whole seconds to tell how the server counts.
const TELLING: Duration = Duration::from_secs(10);
/// So many answers in a row that contradict what we took for the window, and they are right.
const INSISTENT: u32 = 3;

impl Window {
    /// Learns from an answer. `asked` is when its call went out; `in_flight` is how many other calls of ours are out,
    /// which the server may or may not have counted.
    pub(in super::super) fn learn(
        &mut self,
        facts: &RateFacts,
        asked: Instant,
        now: Instant,
        in_flight: u32,
        settings: &QuotaSettings,
    ) {
        self.nonsense += u64::from(facts.nonsense);
        if let Some(length) = facts.window {
            self.length = Some(length);
            self.length_is_policy = true;
        }
        if let Some(limit) = facts.limit {
            self.limit = Some(limit);
        }
        // An answer to a call from before this window speaks of the last one.
        if self.shape == Shape::Fixed && asked < self.began {
            return;
        }
        // An answer overtaken by a younger one is old news.
        if self.view.is_some_and(|view| asked < view.asked) && self.shape != Shape::Fixed {
            return;
        }
        let stated = facts.reset.and_then(|reset| {
            let interval = Interval { earliest: asked + reset.earliest, latest: now + reset.latest };
            if reset.nominal > LONGEST {
                self.nonsense += 1;
                return None;
            }
            self.learn_length(reset);
            self.learn_refill(reset, facts);
            Some(interval)
        });
        match stated {
            Some(stated) => self.learn_end(stated, asked, now),
            None if facts.remaining.is_some_and(|left| left < settings.reserve) && self.end.is_none() => {
                self.end = Some(Interval { earliest: now + UNSTATED, latest: now + UNSTATED });
            }
            None => {}
        }
        if let Some(remaining) = facts.remaining {
            self.learn_remaining(remaining, asked, now, in_flight, settings);
        }
    }

    /// The window is as long as the longest wait for its end that was ever stated.
    fn learn_length(&mut self, reset: Span) {
        let is_refill = self.shape == Shape::Refilling;
        if !self.length_is_policy && !is_refill {
            let stated = (reset.earliest + reset.latest) / 2;
            self.length = Some(self.length.map_or(stated, |known| known.max(stated)));
        }
    }

    fn learn_end(&mut self, stated: Interval, asked: Instant, now: Instant) {
        if let Some(before) = self.end.or(self.last_end) {
            self.learn_shape(before, stated, now);
        }
        let Some(known) = self.end else {
            self.end = Some(stated);
            // Windows may have passed unseen since the last one.
            let beginning = self.length.and_then(|length| stated.earliest.checked_sub(length));
            self.began = beginning.map_or(self.began, |beginning| self.began.max(beginning.min(asked)));
            return;
        };
        let both = Interval { earliest: known.earliest.max(stated.earliest), latest: known.latest.min(stated.latest) };
        if self.shape != Shape::Fixed {
            self.end = Some(stated);
        } else if both.earliest <= both.latest {
            self.contradictions = 0;
            self.end = Some(both);
        } else if stated.earliest > known.latest {
            // The server began its next window a little before we could be certain.
            self.begin(now);
            self.began = known.earliest.min(asked);
            self.used = self.sends.since(known.earliest);
            self.end = Some(stated);
        } else {
            // It now ends earlier than it was to. Waiting longer is the safe reading, unless the server insists.
            self.nonsense += 1;
            self.contradictions += 1;
            if self.contradictions >= INSISTENT {
                self.contradictions = 0;
                self.end = Some(stated);
            }
        }
    }

    /// The end of a fixed window stays until it has come, and then jumps by a whole window or more; the end of any
    /// other creeps.
    fn learn_shape(&mut self, before: Interval, stated: Interval, now: Instant) {
        if stated.earliest <= before.latest {
            return;
        }
        let jump = stated.latest.saturating_duration_since(before.latest);
        let creeps = match self.length.filter(|length| *length > TELLING) {
            _ if now < before.earliest => true,
            Some(length) => jump + BLUR + length.mul_f64(0.05) < length,
            None => return,
        };
        self.shape = match (creeps, self.shape) {
            (false, _) => Shape::Fixed,
            (true, Shape::Refilling) => Shape::Refilling,
            (true, _) => Shape::Rolling,
        };
    }

    /// In a bucket the time until it is full goes with what is missing from it: the same quotient when a fifth and when
    /// a third are gone, which nothing else shows. The quotient is the time of a whole refill, our window.
    fn learn_refill(&mut self, reset: Span, facts: &RateFacts) {
        let (Some(limit), Some(remaining)) = (self.limit, facts.remaining) else { return };
        let missing = 1.0 - f64::from(remaining.min(limit)) / f64::from(limit);
        let whole = |missing: f64| ((reset.earliest + reset.latest) / 2).div_f64(missing);
        if let (Some(Refill::Known { seen }), Shape::Refilling) = (self.refill, self.shape) {
            // The more is missing, the less a whole second blurs.
            if missing > seen {
                self.believe_refill(missing, whole(missing));
            }
            return;
        }
        match self.refill {
            _ if (0.15..0.25).contains(&missing) => self.refill = Some(Refill::Guessed(whole(missing))),
            Some(Refill::Guessed(guess)) if missing >= 0.35 => {
                self.refill = None;
                if whole(missing).abs_diff(guess) < guess.mul_f64(0.12) {
                    self.shape = Shape::Refilling;
                    self.believe_refill(missing, whole(missing));
                }
            }
            _ => {}
        }
    }

    fn believe_refill(&mut self, missing: f64, whole: Duration) {
        self.refill = Some(Refill::Known { seen: missing });
        if !self.length_is_policy {
            self.length = Some(whole);
        }
    }

    fn learn_remaining(
        &mut self,
        remaining: u32,
        asked: Instant,
        now: Instant,
        in_flight: u32,
        settings: &QuotaSettings,
    ) {
        if let Some(limit) = self.limit {
            let ours = match self.shape {
                Shape::Fixed => self.used,
                Shape::Rolling | Shape::Refilling => {
                    now.checked_sub(self.length.unwrap_or_default()).map_or(0, |from| self.sends.since(from))
                }
            };
            let counted = limit.saturating_sub(remaining).saturating_sub(ours);
            let theirs = match self.shape {
                Shape::Fixed => counted.saturating_sub(*self.before_us.get_or_insert(counted)),
                Shape::Rolling => counted,
                // What is missing from a bucket is not what was called within a window.
                Shape::Refilling => 0,
            };
            self.others.observe(theirs, limit, remaining < settings.reserve, now);
        }
        let left = i64::from(remaining);
        let left = match self.shape {
            // Sends since are counted from the log.
            Shape::Rolling | Shape::Refilling => left,
            // Without an end nothing would ever raise it again.
            Shape::Fixed if self.end.is_none() => left - i64::from(in_flight),
            Shape::Fixed => {
                let left = left - i64::from(in_flight);
                self.view.map_or(left, |known| known.left.min(left))
            }
        };
        self.view = Some(View { left, asked, heard: now });
    }
}
