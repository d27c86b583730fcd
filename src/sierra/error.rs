//! What went wrong: with one attempt, and with a whole call, in words that say what to do next.

use std::fmt::Write;
use std::time::Duration;

use jiff::Timestamp;

use super::api_error::ApiError;
use super::base_url::BaseUrlError;
use super::envelope::InvalidBody;
use super::latch::LatchCause;
use super::page::PageViolation;
use super::poison::Signature;
use super::scrub::Scrubber;
use super::transport::{TransportError, TransportErrorKind};
use crate::resilience::breaker::{OutageSnapshot, Scope};
use crate::resilience::retry::{Ended, Ending, ParkReason};
use crate::resilience::taxonomy::{Decision, Evidence};
use crate::sync::ports::{SourceError, SourceErrorKind, Traffic};

/// Why the client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SierraClientError {
    /// The address of the API.
    #[error(transparent)]
    BaseUrl(#[from] BaseUrlError),
    /// The key and its secret cannot be put into a header.
    #[error("sierra.client_key and its secret must be plain text on one line")]
    Credential,
}

/// An answer that brought no value, with what is needed to judge it.
#[derive(Debug)]
pub(super) enum Fault {
    /// No complete answer came.
    Transport(TransportError),
    /// A success status over something that is no success (A5).
    Invalid {
        /// The status.
        status: u16,
        /// Why.
        reason: InvalidBody,
        /// The body as an error, where it is one.
        error: Option<ApiError>,
    },
    /// A page that does not answer the question.
    Violation(PageViolation),
    /// A status that is no success.
    Refused {
        /// The status.
        status: u16,
        /// The body as an error, where it is one.
        error: Option<ApiError>,
    },
}

impl Fault {
    /// What the loops do about it. `body` is looked at for a verdict alone (D1).
    pub(super) fn decision(&self, body: &[u8]) -> Decision {
        match self {
            // Asking again would bring the same: ask for less.
            Self::Transport(error) if error.kind == TransportErrorKind::TooLarge => Decision::NarrowRange,
            Self::Transport(_) | Self::Violation(_) => Decision::Transient,
            Self::Invalid { reason: InvalidBody::Empty, .. } => Decision::EmptyReply,
            Self::Invalid { status, error, .. } | Self::Refused { status, error } => {
                let (name, description) = error.as_ref().map_or((None, None), ApiError::texts);
                let code = error.as_ref().and_then(|error| error.code);
                Decision::of(&Evidence { status: Some(*status), code, name, description, body })
            }
        }
    }

    /// How a repeat would look if it failed the same way.
    pub(super) fn signature(&self) -> Signature {
        match self {
            Self::Transport(error) => Signature::Transport(error.kind),
            Self::Invalid { reason, .. } => Signature::Invalid(*reason),
            Self::Violation(violation) => Signature::Violation(*violation),
            Self::Refused { status, error } => Signature::Status(*status, error.as_ref().and_then(|error| error.code)),
        }
    }

    /// For people. Sierra's words are quoted through `scrubber`; without one they are not quoted at all (patrons).
    pub(super) fn into_error(self, scrubber: Option<&Scrubber>) -> AttemptError {
        match self {
            Self::Transport(error) if error.kind == TransportErrorKind::Untrusted => {
                AttemptError::Untrusted(error.to_string())
            }
            Self::Transport(error) => AttemptError::Transport(error.to_string()),
            Self::Violation(violation) => AttemptError::Violation(violation),
            Self::Invalid { status, reason, error } => {
                AttemptError::Invalid { status, reason, code: error.and_then(|error| error.code) }
            }
            Self::Refused { status, error } => {
                let quote = || scrubber?.quote_if_any(&error.as_ref()?.text()?);
                AttemptError::Refused { status, code: error.as_ref().and_then(|error| error.code), quote: quote() }
            }
        }
    }
}

/// What went wrong with an attempt, for people; scrubbed already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AttemptError {
    /// No complete answer came.
    #[error("the request {0}")]
    Transport(String),
    /// No complete answer came, since Sierra's certificate is not believed.
    #[error("the request {0}")]
    Untrusted(String),
    /// A failure dressed as success.
    #[error("Sierra answered {status} and {reason}")]
    Invalid {
        /// The status.
        status: u16,
        /// Why.
        reason: InvalidBody,
        /// Sierra's code, if the body had one.
        code: Option<i64>,
    },
    /// A page that does not answer the question.
    #[error("Sierra answered and {0}")]
    Violation(PageViolation),
    /// A status that is no success.
    #[error("Sierra answered {status}{}", detail(*code, quote.as_deref()))]
    Refused {
        /// The status.
        status: u16,
        /// Sierra's code, if the body had one.
        code: Option<i64>,
        /// Its words.
        quote: Option<String>,
    },
    /// The session token that the call needs could not be had.
    #[error("no session token, since {0}")]
    NoToken(Box<Self>),
    /// The credential latch is closed; nothing was sent, or what was sent closed it.
    #[error("{}", latched(*cause))]
    Latched {
        /// Why.
        cause: LatchCause,
    },
}

impl AttemptError {
    /// Sierra's code, if it said one.
    pub(super) fn code(&self) -> Option<i64> {
        match self {
            Self::Invalid { code, .. } | Self::Refused { code, .. } => *code,
            Self::NoToken(error) => error.code(),
            Self::Transport(_) | Self::Untrusted(_) | Self::Violation(_) | Self::Latched { .. } => None,
        }
    }

    /// Whether it is Sierra's certificate, in whichever call.
    fn is_untrusted(&self) -> bool {
        match self {
            Self::Untrusted(_) => true,
            Self::NoToken(error) => error.is_untrusted(),
            _ => false,
        }
    }
}

fn detail(code: Option<i64>, quote: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(code) = code {
        // Writing to a String cannot fail.
        let _written = write!(text, ", code {code}");
    }
    if let Some(quote) = quote {
        let _written = write!(text, ": {quote}");
    }
    text
}

fn latched(cause: LatchCause) -> String {
    match cause {
        LatchCause::CredentialRefused { status } => {
            format!("nothing is asked, since Sierra refused the API key and its secret with status {status}")
        }
        LatchCause::TokensRefused => {
            "nothing is asked, since Sierra grants tokens for the API key and then refuses them".to_owned()
        }
    }
}

/// What surrounds a failed call.
pub(super) struct Surroundings<'a> {
    /// The endpoint's label.
    pub(super) endpoint: &'static str,
    /// Ties to log lines.
    pub(super) correlation_id: &'a str,
    /// What the attempts cost.
    pub(super) traffic: Traffic,
    /// The same page failed again and again while others did not.
    pub(super) is_poisoned: bool,
    /// The outage of the key, while its breaker is open.
    pub(super) outage: Option<OutageSnapshot>,
    /// Turns a monotonic time into a date.
    pub(super) date_of: &'a dyn Fn(tokio::time::Instant) -> Timestamp,
}

/// The error of a call that ended without its value.
pub(super) fn source_error(ended: &Ended<AttemptError>, around: &Surroundings<'_>) -> SourceError {
    let kind = kind(ended, around);
    SourceError {
        kind,
        message: message(ended, around, kind),
        endpoint: around.endpoint,
        status_code: ended.status,
        code: ended.error.as_ref().and_then(AttemptError::code),
        correlation_id: around.correlation_id.to_owned(),
        hint: hint(ended, around, kind),
        traffic: around.traffic,
    }
}

/// The error of a question that cannot be put: a fault of ours.
pub(super) fn unaskable(problem: &dyn std::error::Error, around: &Surroundings<'_>) -> SourceError {
    SourceError {
        kind: SourceErrorKind::Permanent,
        message: format!("{}: nothing was asked, since {problem}", around.endpoint),
        endpoint: around.endpoint,
        status_code: None,
        code: None,
        correlation_id: around.correlation_id.to_owned(),
        hint: "this is a fault of sierra-sync itself: please report it with this message".to_owned(),
        traffic: around.traffic,
    }
}

fn kind(ended: &Ended<AttemptError>, around: &Surroundings<'_>) -> SourceErrorKind {
    if matches!(ended.error, Some(AttemptError::Latched { .. })) {
        return SourceErrorKind::Credentials;
    }
    match ended.ending {
        Ending::Parked { reason: ParkReason::RetryAfter, resume_at } => {
            SourceErrorKind::AskedToWait { resume_at: (around.date_of)(resume_at) }
        }
        Ending::Parked { resume_at, .. } => SourceErrorKind::WaitingQuota { resume_at: (around.date_of)(resume_at) },
        Ending::CircuitOpen { rejection } if rejection.scope == Scope::Key => SourceErrorKind::CircuitOpen,
        Ending::CircuitOpen { .. } => SourceErrorKind::Suspended,
        Ending::BudgetExhausted { .. } if around.is_poisoned => SourceErrorKind::Narrow,
        Ending::BudgetExhausted { .. } => SourceErrorKind::Exhausted,
        Ending::Permanent { decision: Decision::NarrowRange } => SourceErrorKind::Narrow,
        // A second 401 ends the call, not the stream: its window stays owed and is asked again on schedule.
        Ending::Permanent { decision: Decision::Unauthorised } => SourceErrorKind::Exhausted,
        Ending::Permanent { .. } => match ended.error.as_ref().and_then(AttemptError::code) {
            Some(116..=118 | 132) => SourceErrorKind::Stopped,
            _ => SourceErrorKind::Permanent,
        },
    }
}

fn message(ended: &Ended<AttemptError>, around: &Surroundings<'_>, kind: SourceErrorKind) -> String {
    let endpoint = around.endpoint;
    let last = ended.error.as_ref().map(|error| format!("; last: {error}")).unwrap_or_default();
    match kind {
        SourceErrorKind::Credentials | SourceErrorKind::Stopped | SourceErrorKind::Permanent => {
            let error = ended.error.as_ref().map_or_else(|| "the call failed".to_owned(), ToString::to_string);
            format!("{endpoint}: {error}")
        }
        SourceErrorKind::CircuitOpen => {
            let why = around.outage.as_ref().map(opened).unwrap_or_default();
            format!("{endpoint}: not asked, since the breaker is open{why}{last}")
        }
        SourceErrorKind::Suspended => format!("{endpoint}: not asked, since this endpoint is suspended{last}"),
        SourceErrorKind::WaitingQuota { resume_at } => {
            format!("{endpoint}: quota allows no call before {}{last}", to_the_second(resume_at))
        }
        SourceErrorKind::AskedToWait { resume_at } => {
            format!("{endpoint}: Sierra asks to wait until {}{last}", to_the_second(resume_at))
        }
        SourceErrorKind::Narrow => format!("{endpoint}: this page always fails while others do not{last}"),
        SourceErrorKind::Exhausted => {
            let (sends, elapsed) = (ended.tally.sends, rounded(ended.tally.elapsed));
            match sends {
                0 => format!("{endpoint}: no request could be sent within {elapsed:?}{last}"),
                1 if elapsed.is_zero() => format!("{endpoint}: no good answer to 1 request{last}"),
                1 => format!("{endpoint}: no good answer to 1 request within {elapsed:?}{last}"),
                _ if elapsed.is_zero() => format!("{endpoint}: no good answer to {sends} requests{last}"),
                _ => format!("{endpoint}: no good answer to {sends} requests within {elapsed:?}{last}"),
            }
        }
    }
}

/// Why the breaker is open; where a person opened it, also for how long.
fn opened(outage: &OutageSnapshot) -> String {
    let reason = &outage.reason;
    match (outage.held, outage.next_probe) {
        (true, Some(until)) => format!(": {reason} (until {})", to_the_second(until)),
        (true, None) => format!(": {reason} (until it is closed)"),
        (false, _) => format!(": {reason}"),
    }
}

fn to_the_second(date: Timestamp) -> impl std::fmt::Display {
    date.strftime("%Y-%m-%dT%H:%M:%SZ")
}

fn rounded(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX) / 100 * 100)
}

fn hint(ended: &Ended<AttemptError>, around: &Surroundings<'_>, kind: SourceErrorKind) -> String {
    let endpoint = around.endpoint;
    let code = ended.error.as_ref().and_then(AttemptError::code);
    match kind {
        SourceErrorKind::Exhausted if ended.status == Some(401) => {
            "if this goes on, check that the API key is enabled \
            and not expired (Sierra Admin, Sierra API keys)"
                .to_owned()
        }
        SourceErrorKind::Exhausted if ended.error.as_ref().is_some_and(AttemptError::is_untrusted) => {
            "see that sierra.base_url has the name that the certificate is made out to and that the certificate has not \
            expired; where its issuer is one of your own, or a proxy's, name that root certificate in sierra.ca_file"
                .to_owned()
        }
        SourceErrorKind::Exhausted if ended.status.is_none() => "see that sierra.base_url is right and that this \
            machine reaches it; what is owed is asked for again on schedule"
            .to_owned(),
        SourceErrorKind::Exhausted => "nothing to do at once: what is owed is asked for again on schedule; if it goes \
            on, look at Sierra's own health"
            .to_owned(),
        SourceErrorKind::WaitingQuota { .. } => "nothing to do: it goes on by itself; if it happens daily, lower \
            quota.share or lengthen the intervals, or ask the vendor for a larger grant"
            .to_owned(),
        SourceErrorKind::AskedToWait { .. } => "nothing to do: it is asked again by then; if it goes on, look at Sierra's \
            own health"
            .to_owned(),
        SourceErrorKind::CircuitOpen if around.outage.as_ref().is_some_and(|outage| outage.held) => {
            "`sierra-sync breaker close --yes` lets calls go again before that; ask whoever opened it".to_owned()
        }
        SourceErrorKind::CircuitOpen => "nothing to do at once: a health check closes it as soon as Sierra is well; \
            `sierra-sync status` shows when the next one is due"
            .to_owned(),
        SourceErrorKind::Suspended => format!(
            "nothing to do at once: {endpoint} is probed by itself and goes on as soon as it answers; \
             `sierra-sync status` shows when"
        ),
        SourceErrorKind::Credentials => "check sierra.client_key and its secret, and that the key is enabled (Sierra \
            Admin, Sierra API keys); a changed address, key or secret is tried at once, the same one once an hour, or as \
            soon as you run `sierra-sync recover` or `sierra-sync breaker reset --yes`"
            .to_owned(),
        SourceErrorKind::Narrow => {
            "nothing to do: the page is asked for in smaller parts, and a record that cannot be \
            read is set aside"
                .to_owned()
        }
        SourceErrorKind::Stopped if code == Some(116) => format!(
            "ask the vendor, or your Sierra administrator, to give the API key the role to read {endpoint}; \
             `sierra-sync check` lists the roles it has"
        ),
        SourceErrorKind::Stopped => {
            "ask the vendor to enable the API for this key: Sierra says that it is off or not in \
            the licensed tier"
                .to_owned()
        }
        SourceErrorKind::Permanent => permanent_hint(ended.status, code, endpoint),
    }
}

fn permanent_hint(status: Option<u16>, code: Option<i64>, endpoint: &str) -> String {
    match (status, code) {
        (Some(304), _) => {
            "no question was conditional, so this is the answer of a cache between here and Sierra: have it \
            leave the API alone"
                .to_owned()
        }
        (Some(300..=399), _) => {
            "sierra.base_url leads to a redirect, which is not followed with a token in hand: set it \
            to the final address"
                .to_owned()
        }
        (Some(404), None) | (Some(405), _) => "check sierra.base_url: it must end with the version of the API, as in \
            https://host/iii/sierra-api/v6"
            .to_owned(),
        (Some(400), Some(106)) => {
            "check the version at the end of sierra.base_url: this one does not know a parameter \
            that v5 and v6 do"
                .to_owned()
        }
        (Some(400), Some(108)) => {
            format!("check streams.{endpoint}.fields: this Sierra does not know one of them")
        }
        (Some(403), Some(114)) => "sierra.base_url must begin with https".to_owned(),
        (Some(403), None) => "check whether a firewall or proxy lets this machine reach Sierra".to_owned(),
        _ => "run `sierra-sync check`; if it finds nothing, please report this message".to_owned(),
    }
}
