//! What can happen to a call. Each has a public source: `sierra-api.md` §5–§7 or a field report.

use serde::Deserialize;

use super::super::api::Endpoint;
use super::super::kind::Kind;
use super::garble::Garble;
use super::plan::PlannedFault;
use super::when::When;

/// One kind of misbehaviour.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// One of Sierra's documented errors, under its documented status or another.
    Error {
        /// Sierra's code; it decides name, text and status.
        code: u16,
        /// Another status than the documented one.
        #[serde(default)]
        status: Option<u16>,
        /// Whether `code` is written as a text.
        #[serde(default)]
        as_text: bool,
    },
    /// 401 in one of its forms, whatever the token.
    Unauthorized(Unauthorized),
    /// A gateway's 429 with any of the usual headers, as texts so that nonsense can be sent too.
    TooManyRequests {
        /// `X-RateLimit-Limit`.
        #[serde(default)]
        limit: Option<String>,
        /// `X-RateLimit-Remaining`.
        #[serde(default)]
        remaining: Option<String>,
        /// `X-RateLimit-Reset`.
        #[serde(default)]
        reset: Option<String>,
        /// `Retry-After`.
        #[serde(default)]
        retry_after: Option<String>,
    },
    /// Sierra's own throttle, named "Rate exceeded for endpoint" (BR-044).
    RateExceeded {
        /// 500 as observed; 429 and 503 are possible.
        status: u16,
        /// The minutes in the text; anything, also unreadable.
        minutes: String,
    },
    /// An HTML page of the web server or a proxy, under this status: 502, 503, or 404 without code 107.
    Html {
        /// The status; 200 makes it a login page.
        status: u16,
    },
    /// This status and no body.
    Bare {
        /// The status.
        status: u16,
    },
    /// This status with a JSON body that says `"retryable": false`.
    NotRetryable {
        /// The status.
        status: u16,
    },
    /// Any answer at all.
    Raw {
        /// The status.
        status: u16,
        /// The media type.
        content_type: String,
        /// Further headers.
        #[serde(default)]
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// 200 without a body (BR-033).
    EmptyBody,
    /// 200 with a lone `{"code":"-1"}`.
    LoneCode,
    /// 200 with `{"total":0}`: no `entries` (BR-041).
    NoEntries,
    /// 200 with a text that begins `ErrorCode(` (BR-046).
    ErrorCodeText,
    /// The right answer, its JSON broken off in the middle; the length is honest.
    MalformedJson,
    /// Nothing found, although there is something (BR-054).
    EmptyPage,
    /// All but the first entries withheld: a page shorter than its limit that is not the last.
    ShortPage {
        /// How many entries come.
        entries: usize,
    },
    /// The page begins at the beginning, whatever `id` asks for: its ids do not rise.
    LoopPage,
    /// The entries in descending order (BR-050, BR-134).
    ReversedPage,
    /// A record that breaks every page that holds it, unless nothing but numbers is asked for.
    Poison {
        /// Its kind.
        kind: Kind,
        /// Its number.
        id: u64,
        /// The error of the page.
        code: u16,
        /// Whether it breaks even a page of numbers alone.
        #[serde(default)]
        even_ids: bool,
    },
    /// One entry served in a form that cannot or can hardly be decoded (BR-020, BR-021).
    Garbled {
        /// Its kind.
        kind: Kind,
        /// Its number.
        id: u64,
        /// The form.
        how: Garble,
    },
    /// No answer, ever.
    Hang,
    /// The connection is closed instead of an answer.
    Reset,
    /// No connection.
    Refuse,
    /// The body ends early, although its length was announced.
    Cut {
        /// How much of it comes, in hundredths.
        percent: u8,
    },
    /// The body at this pace.
    Slow {
        /// Bytes a second.
        bytes_per_second: u64,
    },
    /// A kept connection turns out to be closed; a fresh one works (`sierra-api.md` §5.3).
    StaleConnection,
    /// A right answer, after which the connection is closed without notice.
    CloseAfter,
    /// A right answer, late.
    Delay {
        /// How late.
        milliseconds: u64,
    },
    /// No `Date` header.
    NoDate,
    /// A `Date` header that is off, while the stamps are right.
    WrongDate {
        /// By how much; ahead if positive.
        seconds: i64,
    },
    /// Every token given out so far dies just before the call.
    RevokeTokens,
    /// A token reply whose `expires_in` is this JSON literal, or missing when there is none.
    ExpiresIn {
        /// `null`, `-5`, `"soon"`, `1e9` and so on.
        #[serde(default)]
        literal: Option<String>,
    },
}

/// The forms of 401 (`sierra-api.md` §1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unauthorized {
    /// Code 113: missing or garbled header.
    BadHeader,
    /// Code 120: `invalid_token`.
    InvalidToken,
    /// Code 123: `invalid_grant`, seen in production.
    InvalidGrant,
    /// A page of the web server.
    Html,
    /// No body.
    Bare,
}

impl Fault {
    /// A gateway's 429 that says how many calls remain and when they return.
    #[must_use]
    pub fn too_many_requests(remaining: &str, reset: &str) -> Self {
        Self::TooManyRequests {
            limit: None,
            remaining: Some(remaining.into()),
            reset: Some(reset.into()),
            retry_after: None,
        }
    }

    /// A 429 with `Retry-After` alone.
    #[must_use]
    pub fn retry_after(value: &str) -> Self {
        Self::TooManyRequests { limit: None, remaining: None, reset: None, retry_after: Some(value.into()) }
    }

    /// A documented error under its documented status.
    #[must_use]
    pub fn error(code: u16) -> Self {
        Self::Error { code, status: None, as_text: false }
    }

    /// Happens to calls as `when` says.
    #[must_use]
    pub fn when(self, when: When) -> PlannedFault {
        PlannedFault { fault: self, when, endpoint: None, parameter: None }
    }

    /// Happens to the `n`-th call alone, counted from one.
    #[must_use]
    pub fn nth(self, n: u64) -> PlannedFault {
        self.when(When::Nth(n))
    }

    /// Happens to the next `n` calls.
    #[must_use]
    pub fn first(self, n: u64) -> PlannedFault {
        self.when(When::First(n))
    }

    /// Happens to every `k`-th call.
    #[must_use]
    pub fn every(self, k: u64) -> PlannedFault {
        self.when(When::Every(k))
    }

    /// Happens to calls by chance, with this probability.
    #[must_use]
    pub fn chance(self, probability: f64) -> PlannedFault {
        self.when(When::Chance(probability))
    }

    /// Happens to every call until it is cancelled.
    #[must_use]
    pub fn always(self) -> PlannedFault {
        self.when(When::Always)
    }

    /// Happens to every call of one endpoint until it is cancelled.
    #[must_use]
    pub fn at(self, endpoint: Endpoint) -> PlannedFault {
        self.always().at(endpoint)
    }

    /// A short name for the journal.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Error { code, .. } => format!("error {code}"),
            Self::Unauthorized(form) => format!("unauthorized {form:?}"),
            Self::TooManyRequests { .. } => "too many requests".into(),
            Self::RateExceeded { status, .. } => format!("rate exceeded {status}"),
            Self::Html { status } => format!("html {status}"),
            Self::Bare { status } => format!("bare {status}"),
            Self::NotRetryable { status } => format!("not retryable {status}"),
            Self::Raw { status, .. } => format!("raw {status}"),
            Self::EmptyBody => "empty body".into(),
            Self::LoneCode => "lone code".into(),
            Self::NoEntries => "no entries".into(),
            Self::ErrorCodeText => "ErrorCode text".into(),
            Self::MalformedJson => "malformed JSON".into(),
            Self::EmptyPage => "empty page".into(),
            Self::ShortPage { .. } => "short page".into(),
            Self::LoopPage => "loop page".into(),
            Self::ReversedPage => "reversed page".into(),
            Self::Poison { id, .. } => format!("poison {id}"),
            Self::Garbled { id, .. } => format!("garbled {id}"),
            Self::Hang => "hang".into(),
            Self::Reset => "reset".into(),
            Self::Refuse => "refuse".into(),
            Self::Cut { .. } => "cut".into(),
            Self::Slow { .. } => "slow".into(),
            Self::StaleConnection => "stale connection".into(),
            Self::CloseAfter => "close after".into(),
            Self::Delay { .. } => "delay".into(),
            Self::NoDate => "no date".into(),
            Self::WrongDate { .. } => "wrong date".into(),
            Self::RevokeTokens => "revoke tokens".into(),
            Self::ExpiresIn { .. } => "expires_in".into(),
        }
    }
}
