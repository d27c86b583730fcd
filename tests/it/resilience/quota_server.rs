//! Servers that count calls in three ways and say so in many dialects, on a clock that is not ours.

use std::collections::VecDeque;
use std::time::Duration;

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// How a server counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// In windows of one length, one after the other; the reset is the end of the window.
    FixedWindow,
    /// Over the last window length at any moment; the reset is when the oldest counted call leaves.
    MovingWindow,
    /// A bucket that refills evenly; the reset is when it is full again.
    TokenBucket,
}

/// How a server writes what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `X-RateLimit-*`, seconds from now, rounded up.
    DeltaRoundedUp,
    /// `X-RateLimit-*`, seconds from now, rounded down.
    DeltaRoundedDown,
    /// `X-RateLimit-*`, epoch seconds, rounded up.
    EpochSeconds,
    /// `X-RateLimit-*`, epoch seconds, rounded down.
    EpochSecondsRoundedDown,
    /// `X-RateLimit-*`, epoch milliseconds.
    EpochMilliseconds,
    /// `X-RateLimit-*`, RFC 3339.
    Rfc3339,
    /// `X-RateLimit-*`, an HTTP date.
    HttpDate,
    /// `RateLimit-*` of the draft, with the policy after the limit.
    Draft,
    /// `RateLimit: "default";r=…;t=…` with `RateLimit-Policy`.
    Structured,
}

impl Dialect {
    pub(super) const ALL: [Self; 9] = [
        Self::DeltaRoundedUp,
        Self::DeltaRoundedDown,
        Self::EpochSeconds,
        Self::EpochSecondsRoundedDown,
        Self::EpochMilliseconds,
        Self::Rfc3339,
        Self::HttpDate,
        Self::Draft,
        Self::Structured,
    ];
}

/// A server with a quota.
#[derive(Debug)]
pub(super) struct QuotaServer {
    counting: Counting,
    dialect: Dialect,
    pub(super) limit: u32,
    pub(super) window: Duration,
    started: Instant,
    /// Where in its window the server is when the simulation starts.
    phase: Duration,
    /// Its clock's reading at the start.
    epoch: Timestamp,
    in_window: (u64, u32),
    log: VecDeque<Duration>,
    tokens: f64,
    refilled: Duration,
    pub(super) refusals: u32,
}

/// An answer, as far as quota goes.
#[derive(Debug)]
pub(super) struct QuotaAnswer {
    pub(super) served: bool,
    pub(super) headers: HeaderMap,
}

impl QuotaServer {
    /// `offset` is how far its clock is from ours.
    pub(super) fn new(
        counting: Counting,
        dialect: Dialect,
        limit: u32,
        window: Duration,
        offset: SignedDuration,
    ) -> Self {
        let ours: Timestamp = "2026-01-05T10:00:00.437Z".parse().expect("a date");
        Self {
            counting,
            dialect,
            limit,
            window,
            started: Instant::now(),
            phase: Duration::ZERO,
            epoch: ours + offset,
            in_window: (0, 0),
            log: VecDeque::new(),
            tokens: f64::from(limit),
            refilled: Duration::ZERO,
            refusals: 0,
        }
    }

    /// Counts a call that reaches it now.
    pub(super) fn call(&mut self) -> QuotaAnswer {
        let now = self.started.elapsed();
        let (served, remaining, reset) = match self.counting {
            Counting::FixedWindow => self.fixed(now + self.phase, now),
            Counting::MovingWindow => self.moving(now),
            Counting::TokenBucket => self.bucket(now),
        };
        self.refusals += u32::from(!served);
        QuotaAnswer { served, headers: self.headers(now, remaining, reset) }
    }

    fn fixed(&mut self, at: Duration, now: Duration) -> (bool, u32, Duration) {
        let number = (at.as_nanos() / self.window.as_nanos()) as u64;
        if self.in_window.0 != number {
            self.in_window = (number, 0);
        }
        let served = self.in_window.1 < self.limit;
        self.in_window.1 += u32::from(served);
        let end = self.window * (number as u32 + 1);
        (served, self.limit - self.in_window.1, now + (end - at))
    }

    fn moving(&mut self, now: Duration) -> (bool, u32, Duration) {
        while self.log.front().is_some_and(|call| *call + self.window <= now) {
            self.log.pop_front();
        }
        let served = self.log.len() < self.limit as usize;
        if served {
            self.log.push_back(now);
        }
        let oldest = self.log.front().copied().unwrap_or(now);
        (served, self.limit - self.log.len() as u32, oldest + self.window)
    }

    fn bucket(&mut self, now: Duration) -> (bool, u32, Duration) {
        let per_second = f64::from(self.limit) / self.window.as_secs_f64();
        let filled = self.tokens + (now - self.refilled).as_secs_f64() * per_second;
        self.tokens = filled.min(f64::from(self.limit));
        self.refilled = now;
        let served = self.tokens >= 1.0;
        if served {
            self.tokens -= 1.0;
        }
        let full_in = (f64::from(self.limit) - self.tokens) / per_second;
        (served, self.tokens as u32, now + Duration::from_secs_f64(full_in))
    }

    fn headers(&self, now: Duration, remaining: u32, reset: Duration) -> HeaderMap {
        let at =
            |since_start: Duration| self.epoch + SignedDuration::try_from(since_start).expect("a short simulation");
        let http = |time: Timestamp| time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let delta = reset - now;
        let up = delta.as_nanos().div_ceil(1_000_000_000);
        let (limit, remaining) = (self.limit.to_string(), remaining.to_string());
        let mut lines = vec![("date", http(at(now)))];
        let mut classic = |reset: String| {
            lines.extend([
                ("x-ratelimit-limit", limit.clone()),
                ("x-ratelimit-remaining", remaining.clone()),
                ("x-ratelimit-reset", reset),
            ]);
        };
        match self.dialect {
            Dialect::DeltaRoundedUp => classic(up.to_string()),
            Dialect::DeltaRoundedDown => classic(delta.as_secs().to_string()),
            Dialect::EpochSeconds => {
                classic((at(reset).as_nanosecond() + 999_999_999).div_euclid(1_000_000_000).to_string())
            }
            Dialect::EpochSecondsRoundedDown => classic(at(reset).as_second().to_string()),
            Dialect::EpochMilliseconds => classic(at(reset).as_millisecond().to_string()),
            Dialect::Rfc3339 => classic(at(reset).to_string()),
            Dialect::HttpDate => classic(http(at(reset))),
            Dialect::Draft => lines.extend([
                ("ratelimit-limit", format!("{limit}, {limit};w={}", self.window.as_secs())),
                ("ratelimit-remaining", remaining),
                ("ratelimit-reset", up.to_string()),
            ]),
            Dialect::Structured => lines.extend([
                ("ratelimit-policy", format!(r#""default";q={limit};w={}"#, self.window.as_secs())),
                ("ratelimit", format!(r#""default";r={remaining};t={up}"#)),
            ]),
        }
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(name, value.parse().expect("a header value"));
        }
        headers
    }
}
