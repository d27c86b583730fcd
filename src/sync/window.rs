//! Half-open spans of time, `[start, end)`, UTC whole seconds.
//!
//! Sierra writes closed ranges at one-second resolution; `sierra::query` alone converts.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// A non-empty half-open span of whole seconds in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Window {
    start: Timestamp,
    end: Timestamp,
}

impl Window {
    /// The span from `start` up to, not including, `end`; both are cut to whole seconds. `None` when that is empty.
    #[must_use]
    pub fn new(start: Timestamp, end: Timestamp) -> Option<Self> {
        let (start, end) = (whole_second(start), whole_second(end));
        if start < end { Some(Self { start, end }) } else { None }
    }

    /// The first second inside.
    #[must_use]
    pub fn start(self) -> Timestamp {
        self.start
    }

    /// The first second after the span.
    #[must_use]
    pub fn end(self) -> Timestamp {
        self.end
    }

    /// The last second inside: what Sierra's closed ranges need.
    #[must_use]
    pub fn last_second(self) -> Timestamp {
        self.end.checked_sub(SignedDuration::from_secs(1)).unwrap_or(self.start)
    }

    /// The length of the span.
    #[must_use]
    pub fn length(self) -> SignedDuration {
        self.end.duration_since(self.start)
    }

    /// Two halves at a whole second; `None` when the span is a single second.
    #[must_use]
    pub fn halves(self) -> Option<(Self, Self)> {
        let half = self.length().as_secs() / 2;
        let middle = self.start.checked_add(SignedDuration::from_secs(half)).ok()?;
        Some((Self::new(self.start, middle)?, Self::new(middle, self.end)?))
    }
}

impl fmt::Display for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}, {})", self.start, self.end)
    }
}

/// Cuts fractions off, towards the past, as Sierra's one-second stamps do (BR-038).
#[must_use]
pub fn whole_second(at: Timestamp) -> Timestamp {
    let seconds = if at.subsec_nanosecond() < 0 { at.as_second() - 1 } else { at.as_second() };
    Timestamp::from_second(seconds).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn fractions_are_cut_and_empty_spans_refused() {
        let window = Window::new(at("2024-03-09T02:14:07.9Z"), at("2024-03-09T02:14:09.1Z")).expect("two seconds");
        assert_eq!(window.to_string(), "[2024-03-09T02:14:07Z, 2024-03-09T02:14:09Z)");
        assert_eq!(window.last_second(), at("2024-03-09T02:14:08Z"));
        assert_eq!(Window::new(at("2024-03-09T02:14:07.1Z"), at("2024-03-09T02:14:07.9Z")), None);
        assert_eq!(whole_second(at("1969-12-31T23:59:59.5Z")), at("1969-12-31T23:59:59Z"));
    }

    #[test]
    fn halves_cover_the_window_without_gap_or_overlap() {
        let window = Window::new(at("2024-01-01T00:00:00Z"), at("2024-01-01T00:00:03Z")).expect("three seconds");
        let (first, second) = window.halves().expect("two halves");
        assert_eq!((first.start(), second.end()), (window.start(), window.end()));
        assert_eq!(first.end(), second.start());
        assert_eq!(first.halves(), None);
    }
}
