//! What the headers of an answer say about quota, whatever dialect they are written in (A3, A4).
//!
//! Understood: `X-RateLimit-*` and `X-Rate-Limit-*`, the draft standard `RateLimit-*` with `RateLimit-Policy`, the
//! structured `RateLimit` field in both of its draft forms, and `Retry-After`. Where two dialects contradict each
//! other the safer reading wins. Nonsense is ignored and counted. No Sierra answer ever recorded carried any of
//! these; a gateway in front of it may add them.

use std::time::Duration;

use http::HeaderMap;
use jiff::Timestamp;

use super::span::{Span, http_date};

/// Three headers that belong together.
struct Family {
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
}

/// The families that state one fact per header.
const FAMILIES: [Family; 3] = [
    Family { limit: "x-ratelimit-limit", remaining: "x-ratelimit-remaining", reset: "x-ratelimit-reset" },
    Family { limit: "x-rate-limit-limit", remaining: "x-rate-limit-remaining", reset: "x-rate-limit-reset" },
    Family { limit: "ratelimit-limit", remaining: "ratelimit-remaining", reset: "ratelimit-reset" },
];

/// The quota facts of one answer. Everything is optional: what is missing is not assumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateFacts {
    /// Calls granted per window.
    pub limit: Option<u32>,
    /// Calls left in this window once this answer had been counted.
    pub remaining: Option<u32>,
    /// When the window ends.
    pub reset: Option<Span>,
    /// How long the server asks us to stay away.
    pub retry_after: Option<Span>,
    /// Length of the window, if a policy states it.
    pub window: Option<Duration>,
    /// Statements that could not be read or contradict themselves.
    pub nonsense: u32,
}

impl RateFacts {
    /// Reads the headers of one answer. Dates are compared with its own `Date`, never with a clock of ours.
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Self {
        let date = answer_date(headers);
        let mut facts = Self::default();
        for text in FAMILIES.iter().flat_map(|family| texts(headers, family.limit)) {
            facts.note_limit(text);
        }
        for text in FAMILIES.iter().flat_map(|family| texts(headers, family.remaining)) {
            facts.note_remaining(number(text));
        }
        for text in FAMILIES.iter().flat_map(|family| texts(headers, family.reset)) {
            facts.note_reset(Span::parse(text, date));
        }
        facts.read_structured(headers);
        for text in texts(headers, "retry-after") {
            match Span::parse(text, date) {
                Some(span) => facts.retry_after = longer(facts.retry_after, span),
                None => facts.nonsense += 1,
            }
        }
        if let (Some(limit), Some(remaining)) = (facts.limit, facts.remaining)
            && remaining > limit
        {
            facts.nonsense += 1;
            facts.limit = None;
        }
        facts
    }

    /// How long a 429 asks us to wait, if it says so usably: the longer of `Retry-After` and, when nothing is left,
    /// the reset (A4). A wait of zero is no statement.
    #[must_use]
    pub fn usable_wait(&self) -> Option<Span> {
        let reset = self.reset.filter(|_| self.remaining.is_none_or(|remaining| remaining == 0));
        let wait = match (self.retry_after, reset) {
            (Some(asked), Some(reset)) => longer(Some(asked), reset),
            (asked, reset) => asked.or(reset),
        };
        wait.filter(|span| !span.nominal.is_zero())
    }

    /// `RateLimit: "default";r=50;t=30` or `RateLimit: limit=100, remaining=50, reset=30`, and the policy beside it.
    fn read_structured(&mut self, headers: &HeaderMap) {
        let policies: Vec<Item<'_>> = texts(headers, "ratelimit-policy").flat_map(items).collect();
        for text in texts(headers, "ratelimit") {
            let stated: Vec<Item<'_>> = items(text).collect();
            let keyed = |key: &str| stated.iter().find_map(|item| item.bare_value(key));
            if stated.iter().any(|item| item.bare_value("remaining").is_some()) {
                if let Some(limit) = keyed("limit") {
                    self.note_limit(limit);
                }
                self.note_remaining(keyed("remaining").and_then(number));
                if let Some(reset) = keyed("reset") {
                    self.note_reset(Span::parse(reset, None));
                }
                continue;
            }
            // Of several policies the one with the least left binds.
            let tightest = stated
                .iter()
                .filter_map(|item| Some((number(item.parameter("r")?)?, item)))
                .min_by_key(|(remaining, _)| *remaining);
            let Some((remaining, item)) = tightest else {
                self.nonsense += 1;
                continue;
            };
            self.note_remaining(Some(remaining));
            if let Some(reset) = item.parameter("t") {
                self.note_reset(Span::parse(reset, None));
            }
            if let Some(quota) = policies.iter().find(|policy| policy.name == item.name).and_then(|p| p.parameter("q"))
            {
                self.note_limit(quota);
            }
        }
        let windows = policies.iter().filter_map(|policy| number(policy.parameter("w")?));
        if let Some(seconds) = windows.filter(|seconds| *seconds > 0).max() {
            self.window = Some(Duration::from_secs(u64::from(seconds)));
        }
    }

    /// A limit may carry its policies after it: `100, 100;w=60`.
    fn note_limit(&mut self, text: &str) {
        let first = text.split([',', ';']).next().unwrap_or_default();
        match number(first).filter(|limit| *limit > 0) {
            Some(limit) => self.limit = Some(self.limit.map_or(limit, |known| known.min(limit))),
            None => self.nonsense += 1,
        }
    }

    fn note_remaining(&mut self, remaining: Option<u32>) {
        match remaining {
            Some(remaining) => self.remaining = Some(self.remaining.map_or(remaining, |known| known.min(remaining))),
            None => self.nonsense += 1,
        }
    }

    fn note_reset(&mut self, span: Option<Span>) {
        match span {
            Some(span) => self.reset = longer(self.reset, span),
            None => self.nonsense += 1,
        }
    }
}

/// The `Date` of an answer, if it has one that can be read.
#[must_use]
pub fn answer_date(headers: &HeaderMap) -> Option<Timestamp> {
    headers.get(http::header::DATE).and_then(|value| value.to_str().ok()).and_then(http_date)
}

fn longer(known: Option<Span>, span: Span) -> Option<Span> {
    Some(known.filter(|known| known.nominal >= span.nominal).unwrap_or(span))
}

fn texts<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or_default())
}

fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// One member of a structured list: a name with parameters, or a bare `key=value`.
struct Item<'a> {
    name: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Item<'a> {
    fn parameter(&self, key: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    fn bare_value(&self, key: &str) -> Option<&'a str> {
        let (known, value) = self.name.split_once('=')?;
        (known.trim() == key).then(|| value.trim())
    }
}

fn items(text: &str) -> impl Iterator<Item = Item<'_>> {
    text.split(',').filter(|member| !member.trim().is_empty()).map(|member| {
        let mut parts = member.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let parameters = parts.filter_map(|part| part.split_once('=').map(|(key, value)| (key.trim(), value.trim())));
        Item { name, parameters: parameters.collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(lines: &[(&str, &str)]) -> RateFacts {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: http::HeaderName = name.parse().expect("test header name");
            headers.append(name, value.parse().expect("test header value"));
        }
        RateFacts::read(&headers)
    }

    fn summary(lines: &[(&str, &str)]) -> (Option<u32>, Option<u32>, Option<u64>) {
        let facts = facts(lines);
        (facts.limit, facts.remaining, facts.reset.map(|span| span.nominal.as_secs()))
    }

    const DATE: (&str, &str) = ("date", "Mon, 05 Jan 2026 10:00:00 GMT");

    /// A3: the same facts, whatever the dialect and the form of the reset.
    #[test]
    fn every_dialect_and_reset_form_states_the_same_facts() {
        let expected = (Some(100), Some(50), Some(30));
        let resets = [
            "30",
            "1767607230",
            "1767607230000",
            "2026-01-05T10:00:30Z",
            "Mon, 05 Jan 2026 10:00:30 GMT",
            "Monday, 05-Jan-26 10:00:30 GMT",
            "Mon Jan  5 10:00:30 2026",
        ];
        for prefix in ["x-ratelimit", "x-rate-limit", "ratelimit"] {
            for reset in resets {
                let (limit, remaining) = (format!("{prefix}-limit"), format!("{prefix}-remaining"));
                let name = format!("{prefix}-reset");
                let lines = [DATE, (limit.as_str(), "100"), (remaining.as_str(), "50"), (name.as_str(), reset)];
                assert_eq!(summary(&lines), expected, "{prefix} {reset}");
            }
        }
        assert_eq!(summary(&[("ratelimit", "limit=100, remaining=50, reset=30")]), expected);
        let policy = ("ratelimit-policy", r#""default";q=100;w=60"#);
        assert_eq!(summary(&[("ratelimit", r#""default";r=50;t=30"#), policy]), expected);
        assert_eq!(facts(&[policy]).window, Some(Duration::from_secs(60)));
        let lines = [("ratelimit-limit", "100, 100;w=60"), ("ratelimit-remaining", "50"), ("ratelimit-reset", "30")];
        assert_eq!(summary(&lines), expected);
    }

    /// BR-102: absent, empty or contradictory statements lead to the safer reading, and are counted.
    #[test]
    fn nonsense_is_ignored_and_counted() {
        assert_eq!(facts(&[]), RateFacts::default());
        for value in ["", "abc", "-1", "4.5", "99999999999", "0x10"] {
            let read = facts(&[("x-ratelimit-remaining", value)]);
            assert_eq!((read.remaining, read.nonsense), (None, 1), "{value:?}");
        }
        assert_eq!(facts(&[("x-ratelimit-limit", "0")]).nonsense, 1);
        assert_eq!(facts(&[("x-ratelimit-reset", "1767607230")]).nonsense, 1, "an epoch without a Date");
        let over = facts(&[("x-ratelimit-limit", "10"), ("x-ratelimit-remaining", "50")]);
        assert_eq!((over.limit, over.remaining, over.nonsense), (None, Some(50), 1));
        assert_eq!(facts(&[("ratelimit", "garbage")]).nonsense, 1);
    }

    #[test]
    fn contradicting_dialects_are_read_the_safer_way() {
        let lines = [
            ("x-ratelimit-remaining", "80"),
            ("ratelimit-remaining", "20"),
            ("x-ratelimit-reset", "10"),
            ("ratelimit-reset", "40"),
        ];
        assert_eq!(summary(&lines), (None, Some(20), Some(40)));
        let several = facts(&[("ratelimit", r#""burst";r=5;t=1, "day";r=900;t=40000"#)]);
        assert_eq!((several.remaining, several.reset.map(|span| span.nominal.as_secs())), (Some(5), Some(1)));
    }

    /// A4: when both a `Retry-After` and an exhausted window are stated, the longer wait wins.
    #[test]
    fn the_longer_of_retry_after_and_reset_is_the_usable_wait() {
        let wait = |lines: &[(&str, &str)]| facts(lines).usable_wait().map(|span| span.nominal.as_secs());
        let spent = ("x-ratelimit-remaining", "0");
        assert_eq!(wait(&[("retry-after", "5"), spent, ("x-ratelimit-reset", "40")]), Some(40));
        assert_eq!(wait(&[("retry-after", "50"), spent, ("x-ratelimit-reset", "40")]), Some(50));
        assert_eq!(wait(&[("retry-after", "5")]), Some(5));
        assert_eq!(wait(&[spent, ("x-ratelimit-reset", "0")]), None, "a wait of zero is no statement");
        assert_eq!(wait(&[("retry-after", "0")]), None);
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after", "5"), ("retry-after", "9")]), Some(9));
    }
}
