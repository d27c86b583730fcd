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
/// A bucket is recognised when the time of its refill is known to within this factor …
const SURE: f64 = 1.3;
/// … by answers over such a range of what was missing from it.
const TELLING_RANGE: f64 = 1.8;
/// Lengths that servers like, in seconds, the roundest first.
const ROUND: [u64; 9] = [86_400, 3_600, 900, 300, 60, 30, 10, 5, 1];
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

    /// The window is as long as the longest wait for its end that was ever stated, and a round number of seconds where
    /// that is as likely: whole seconds blur what is stated.
    fn learn_length(&mut self, reset: Span) {
        let stated = (reset.earliest + reset.latest) / 2;
        if self.length_is_policy || self.shape == Shape::Refilling || stated <= self.longest_wait {
            return;
        }
        self.longest_wait = stated;
        self.length = Some(rounded(stated, reset.latest.saturating_sub(stated)));
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
            self.used = self.counted_since(known.earliest, now);
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

    /// In a bucket the time until it is full goes with what is missing from it: the same quotient when a twentieth and
    /// when a third are gone, which nothing else shows. The quotient is the time of a whole refill, our window.
    fn learn_refill(&mut self, reset: Span, facts: &RateFacts) {
        let (Some(limit), Some(remaining)) = (self.limit, facts.remaining) else { return };
        let limit = f64::from(limit.max(1));
        // What is left is rounded down to whole calls.
        let missing = 1.0 - f64::from(remaining) / limit;
        let at_least = missing - 1.0 / limit;
        // A call or two say too little, and nothing cannot be divided by.
        if at_least * limit < 1.5 || reset.earliest.is_zero() {
            return;
        }
        let now = Refill {
            shortest: reset.earliest.div_f64(missing),
            longest: reset.latest.div_f64(at_least),
            least: missing,
            most: missing,
        };
        let both = self.refill.map(|known| Refill {
            shortest: known.shortest.max(now.shortest),
            longest: known.longest.min(now.longest),
            least: known.least.min(missing),
            most: known.most.max(missing),
        });
        match both {
            Some(both) if both.shortest <= both.longest => {
                self.refill = Some(both);
                let is_told_well = both.longest <= both.shortest.mul_f64(SURE);
                if is_told_well && (self.shape == Shape::Refilling || both.most >= both.least * TELLING_RANGE) {
                    self.shape = Shape::Refilling;
                    if !self.length_is_policy {
                        let middle = (both.shortest + both.longest) / 2;
                        self.length = Some(rounded(middle, both.longest.saturating_sub(middle)));
                    }
                }
            }
            _ => self.refill = Some(now),
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
                    now.checked_sub(self.length.unwrap_or_default()).map_or(0, |from| self.answers.since(from))
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

/// The roundest number of seconds within `doubt` of `length`; `length` itself where there is none.
fn rounded(length: Duration, doubt: Duration) -> Duration {
    let (shortest, longest) = (length.saturating_sub(doubt), length + doubt);
    let nearest = |step: u64| {
        let steps = (length.as_secs_f64() / step as f64).round().max(1.0);
        Duration::from_secs(step).mul_f64(steps)
    };
    ROUND.into_iter().map(nearest).find(|round| *round >= shortest && *round <= longest).unwrap_or(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_the_roundest_that_was_meant() {
        let rounded = |length: f64, doubt: f64| {
            rounded(Duration::from_secs_f64(length), Duration::from_secs_f64(doubt)).as_secs_f64()
        };
        assert_eq!((rounded(59.5, 1.0), rounded(60.5, 1.0), rounded(60.0, 0.0)), (60.0, 60.0, 60.0));
        assert_eq!((rounded(3599.6, 1.0), rounded(899.4, 1.0), rounded(0.4, 0.5)), (3600.0, 900.0, 0.4));
        assert_eq!((rounded(43.2, 1.0), rounded(12.3, 0.1), rounded(9.7, 0.5)), (43.0, 12.3, 10.0));
    }
}
