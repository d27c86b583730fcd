//! A wait that a server stated, read from text in any of the forms seen in the wild.
//!
//! Servers write whole seconds, our view of when they wrote them is as wide as the round trip, and their clock is
//! not ours. So a stated wait is an interval, measured from the moment the server wrote its answer, and a stated
//! date is compared with the `Date` of that same answer, never with a clock of this machine.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// An integer below this is a number of seconds from now; sites have sent both under one header name.
const FIRST_EPOCH_SECOND: u64 = 1_000_000_000;
/// An integer from here on is an epoch in milliseconds.
const FIRST_EPOCH_MILLISECOND: u64 = 1_000_000_000_000;
/// What a whole number of seconds may be off by, in either direction: servers round down, up and to the nearest.
const WHOLE_SECOND: Duration = Duration::from_secs(1);
/// Longer statements are cut to this: beyond a year they are a fault, and arithmetic on them must not overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// A wait counted from the moment the answer was written. `earliest <= nominal <= latest`, all finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// It can be over from here on.
    pub earliest: Duration,
    /// What the server said, taken literally.
    pub nominal: Duration,
    /// It is over by here for certain.
    pub latest: Duration,
}

impl Span {
    /// Reads a delta in seconds (whole or fractional), an epoch in seconds or milliseconds, an RFC 3339 time or an
    /// HTTP date. `date` is the `Date` of the answer; without it a point in time means nothing and gives `None`.
    #[must_use]
    pub fn parse(text: &str, date: Option<Timestamp>) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            // Digits that overflow are a number beyond any epoch we know, hence far in the future.
            let number = text.parse::<u64>().unwrap_or(u64::MAX);
            return match number {
                0..FIRST_EPOCH_SECOND => Some(Self::whole_seconds(number)),
                FIRST_EPOCH_SECOND..FIRST_EPOCH_MILLISECOND => {
                    Some(Self::until(Timestamp::from_second(i64::try_from(number).ok()?).ok()?, WHOLE_SECOND, date?))
                }
                _ => Some(Self::until(
                    Timestamp::from_millisecond(i64::try_from(number).ok()?).ok()?,
                    Duration::ZERO,
                    date?,
                )),
            };
        }
        if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return text
                .parse::<f64>()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .map(Self::exactly);
        }
        let point = http_date(text).map(|point| (point, WHOLE_SECOND)).or_else(|| {
            let point = text.parse::<Timestamp>().ok()?;
            let coarse = if point.subsec_nanosecond() == 0 { WHOLE_SECOND } else { Duration::ZERO };
            Some((point, coarse))
        });
        point.and_then(|(point, coarse)| Some(Self::until(point, coarse, date?)))
    }

    /// A whole number of seconds, of which the server may have rounded off up to one.
    #[must_use]
    pub fn whole_seconds(seconds: u64) -> Self {
        let nominal = Duration::from_secs(seconds).min(LONGEST);
        Self { earliest: nominal.saturating_sub(WHOLE_SECOND), nominal, latest: nominal + WHOLE_SECOND }
    }

    /// A wait that is known exactly.
    #[must_use]
    pub fn exactly(wait: Duration) -> Self {
        let wait = wait.min(LONGEST);
        Self { earliest: wait, nominal: wait, latest: wait }
    }

    /// Until a point in time on the server's clock, which may be off by `coarse` either way; `date` was cut to whole
    /// seconds when it was written.
    fn until(point: Timestamp, coarse: Duration, date: Timestamp) -> Self {
        let nominal = Duration::try_from(point.duration_since(date)).unwrap_or(Duration::ZERO).min(LONGEST);
        let latest = point.duration_since(date) + SignedDuration::try_from(coarse).unwrap_or(SignedDuration::ZERO);
        Self {
            earliest: nominal.saturating_sub(coarse + WHOLE_SECOND),
            nominal,
            latest: Duration::try_from(latest).unwrap_or(Duration::ZERO).clamp(nominal, LONGEST + WHOLE_SECOND),
        }
    }
}

/// Reads the three forms of an HTTP date (RFC 9110 §5.6.7): IMF-fixdate, RFC 850 and asctime.
#[must_use]
pub fn http_date(text: &str) -> Option<Timestamp> {
    const FORMS: [&str; 3] = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    let text = text.trim();
    FORMS.iter().find_map(|form| {
        let civil = jiff::fmt::strtime::parse(form, text).ok()?.to_datetime().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date() -> Option<Timestamp> {
        http_date("Mon, 05 Jan 2026 10:00:00 GMT")
    }

    fn nominal(text: &str) -> Option<f64> {
        Span::parse(text, date()).map(|span| span.nominal.as_secs_f64())
    }

    /// BR-103: every form of a wait is finite, and what cannot be read is nothing rather than zero or endless.
    #[test]
    fn every_form_of_a_wait_is_read_or_refused() {
        let table: [(&str, Option<f64>); 19] = [
            ("120", Some(120.0)),
            (" 120 ", Some(120.0)),
            ("0.493", Some(0.493)),
            ("0", Some(0.0)),
            ("-5", None),
            ("+5", None),
            ("", None),
            ("abc", None),
            ("NaN", None),
            ("1e400", None),
            ("Mon, 05 Jan 2026 10:02:00 GMT", Some(120.0)),
            ("Monday, 05-Jan-26 10:02:00 GMT", Some(120.0)),
            ("Mon Jan  5 10:02:00 2026", Some(120.0)),
            ("Mon, 05 Jan 2026 09:59:00 GMT", Some(0.0)),
            ("2026-01-05T10:02:00Z", Some(120.0)),
            ("2026-01-05T11:02:00.25+01:00", Some(120.25)),
            ("1767607320", Some(120.0)),
            ("1767607320000", Some(120.0)),
            ("1000000000000", Some(0.0)),
        ];
        for (text, expected) in table {
            assert_eq!(nominal(text), expected, "{text:?}");
        }
        assert!(Span::parse(&"9".repeat(400), date()).is_none_or(|span| span.latest <= LONGEST + WHOLE_SECOND));
        assert!(Span::parse("999999999", None).is_some_and(|span| span.latest <= LONGEST + WHOLE_SECOND));
    }

    #[test]
    fn a_point_in_time_means_nothing_without_the_date_of_its_answer() {
        for text in ["1767607320", "1767607320000", "2026-01-05T10:02:00Z", "Mon, 05 Jan 2026 10:02:00 GMT"] {
            assert_eq!(Span::parse(text, None), None, "{text}");
        }
    }

    #[test]
    fn the_interval_holds_what_any_rounding_can_have_done() {
        let whole = Span::parse("60", None).expect("a number of seconds");
        assert_eq!((whole.earliest.as_secs(), whole.latest.as_secs()), (59, 61));
        let epoch = Span::parse("1767607260", date()).expect("an epoch with a date");
        assert_eq!((epoch.earliest.as_secs(), epoch.latest.as_secs()), (58, 61));
        let milliseconds = Span::parse("1767607260500", date()).expect("an epoch with a date");
        assert_eq!((milliseconds.earliest.as_millis(), milliseconds.latest.as_millis()), (59_500, 60_500));
    }
}
