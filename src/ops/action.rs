//! What people may do from the dashboard: `POST /actions/…` with the token, and nothing without it.
//!
//! Each action is carried out by whoever answers the same command on the command line, and kept in the same history.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::record::Stream;
use crate::sync::Pausable;

use super::OpsState;

/// The longest body of an action, in bytes.
const LONGEST_BODY: usize = 8 * 1024;
/// It arrives within this time.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// Whoever carries actions out.
pub trait Actor: Send + Sync {
    /// Carries `action` out; goes on with it when nobody waits for the answer any more.
    fn act(&self, action: Action, by: Option<String>, reason: Option<String>) -> BoxFuture<'_, Acted>;
}

/// What can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A pass over these streams as soon as they can make one; none means all.
    Sync(Vec<Stream>),
    /// Holds a stream or a sink back.
    Pause(Pausable),
    /// Lets it go on.
    Resume(Pausable),
    /// A word to the breaker.
    Breaker(BreakerWord),
    /// Back to work after a stall.
    Recover,
    /// What was set aside is read once more, and offered once more to the sink that refused it.
    Replay {
        /// Only the entries with these names; none means all.
        ids: Vec<String>,
        /// Only those of this stream.
        stream: Option<Stream>,
    },
}

/// What can be said to the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerWord {
    /// No call goes to Sierra, for so long or until somebody says otherwise.
    Open(Option<Duration>),
    /// Calls go again, once a health check has passed.
    Close,
    /// Every outage is over.
    Reset,
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acted {
    /// It is done; a sentence.
    Done(String),
    /// It was refused, and why.
    Refused(String),
    /// It was tried in vain, and why.
    Failed(String),
}

/// An answer as it travels.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    schema: u32,
    ok: bool,
    message: &'a str,
}

/// `GET /actions`: whether there are any, for the page.
pub(super) async fn list(State(state): State<OpsState>) -> Response {
    let names = ["sync", "pause", "resume", "breaker", "recover", "replay"];
    let enabled = state.token.is_some();
    let why = if enabled { "" } else { NEEDS_TOKEN };
    Json(serde_json::json!({ "schema": 1, "enabled": enabled, "why": why, "actions": names })).into_response()
}

/// Why actions are refused without a token.
pub(super) const NEEDS_TOKEN: &str = "Actions are off: put a token into a file that only the service may read, name it in ops.token_file, and reload the \
     configuration (SIGHUP).";

/// `POST /actions/{name}`. The guard has seen the token.
pub(super) async fn act(State(state): State<OpsState>, Path(name): Path<String>, body: Body) -> Response {
    let reading = tokio::time::timeout(BODY_WITHIN, to_bytes(body, LONGEST_BODY));
    let body = match reading.await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return answer(StatusCode::PAYLOAD_TOO_LARGE, "the body is cut, or longer than 8 KiB"),
        Err(_) => return answer(StatusCode::REQUEST_TIMEOUT, "the body did not arrive within ten seconds"),
    };
    let (action, said) = match understood(&name, &body) {
        Ok(understood) => understood,
        Err((status, sentence)) => return answer(status, &sentence),
    };
    match state.actor.act(action, said.by, said.reason).await {
        Acted::Done(sentence) => answer(StatusCode::OK, &sentence),
        Acted::Refused(sentence) => answer(StatusCode::CONFLICT, &sentence),
        Acted::Failed(sentence) => answer(StatusCode::SERVICE_UNAVAILABLE, &sentence),
    }
}

/// An answer of one sentence.
pub(super) fn answer(status: StatusCode, message: &str) -> Response {
    (status, Json(Answer { schema: 1, ok: status.is_success(), message })).into_response()
}

/// Who says it, and why; in every body.
#[derive(Debug, Default)]
struct Said {
    by: Option<String>,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object of JSON")]
struct SyncBody {
    #[serde(default)]
    streams: Vec<Stream>,
    by: Option<String>,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object of JSON")]
struct PauseBody {
    stream: Option<Stream>,
    sink: Option<String>,
    by: Option<String>,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object of JSON")]
struct BreakerBody {
    order: BreakerOrderName,
    /// Only with `open`.
    minutes: Option<u32>,
    by: Option<String>,
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BreakerOrderName {
    Open,
    Close,
    Reset,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object of JSON")]
struct RecoverBody {
    by: Option<String>,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object of JSON")]
struct ReplayBody {
    #[serde(default)]
    ids: Vec<String>,
    stream: Option<Stream>,
    by: Option<String>,
    reason: Option<String>,
}

type Misunderstood = (StatusCode, String);

fn understood(name: &str, body: &[u8]) -> Result<(Action, Said), Misunderstood> {
    match name {
        "sync" => {
            let SyncBody { streams, by, reason } = read(body)?;
            // However often a stream is named, it gets one pass.
            let streams = BTreeSet::from_iter(streams).into_iter().collect();
            Ok((Action::Sync(streams), Said { by, reason }))
        }
        "pause" | "resume" => {
            let PauseBody { stream, sink, by, reason } = read(body)?;
            let what = match (stream, sink) {
                (Some(stream), None) => Pausable::Stream(stream),
                (None, Some(sink)) => Pausable::Sink(sink),
                _ => return Err(bad("name either a \"stream\" or a \"sink\"")),
            };
            let action = if name == "pause" { Action::Pause(what) } else { Action::Resume(what) };
            Ok((action, Said { by, reason }))
        }
        "breaker" => {
            let BreakerBody { order, minutes, by, reason } = read(body)?;
            let lasts = minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
            let word = match (order, lasts) {
                (BreakerOrderName::Open, Some(Duration::ZERO)) => return Err(bad("\"minutes\" is at least 1")),
                (BreakerOrderName::Open, lasts) => BreakerWord::Open(lasts),
                (_, Some(_)) => return Err(bad("\"minutes\" goes with \"open\" only")),
                (BreakerOrderName::Close, None) => BreakerWord::Close,
                (BreakerOrderName::Reset, None) => BreakerWord::Reset,
            };
            Ok((Action::Breaker(word), Said { by, reason }))
        }
        "recover" => {
            let RecoverBody { by, reason } = read(body)?;
            Ok((Action::Recover, Said { by, reason }))
        }
        "replay" => {
            let ReplayBody { ids, stream, by, reason } = read(body)?;
            if !ids.is_empty() && stream.is_some() {
                return Err(bad("name either \"ids\" or a \"stream\""));
            }
            Ok((Action::Replay { ids, stream }, Said { by, reason }))
        }
        _ => Err((StatusCode::NOT_FOUND, "there is no such action; GET /actions lists them".to_owned())),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Misunderstood> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| bad(&format!("the body is not understood: {error}")))
}

fn bad(sentence: &str) -> Misunderstood {
    (StatusCode::BAD_REQUEST, sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(name: &str, body: &str) -> Result<Action, u16> {
        understood(name, body.as_bytes()).map(|(action, _)| action).map_err(|(status, _)| status.as_u16())
    }

    #[test]
    fn what_is_no_object_is_told_without_names_of_ours() {
        for name in ["sync", "pause", "resume", "breaker", "recover", "replay"] {
            for body in ["7", "\"now\"", "[1]"] {
                let (status, sentence) = understood(name, body.as_bytes()).expect_err("no object");
                assert_eq!(status, StatusCode::BAD_REQUEST);
                assert!(!sentence.contains("Body") && sentence.starts_with("the body is not"), "{name}: {sentence}");
            }
        }
    }

    #[test]
    fn bodies_are_understood_whole_or_not_at_all() {
        assert_eq!(action("sync", ""), Ok(Action::Sync(Vec::new())));
        assert_eq!(action("sync", r#"{"streams":["bibs"]}"#), Ok(Action::Sync(vec![Stream::Bibs])));
        let twice = r#"{"streams":["items","bibs","items","bibs"]}"#;
        assert_eq!(action("sync", twice), Ok(Action::Sync(vec![Stream::Bibs, Stream::Items])));
        assert_eq!(
            action("pause", r#"{"sink":"archive","reason":"move"}"#),
            Ok(Action::Pause(Pausable::Sink("archive".into())))
        );
        assert_eq!(action("resume", r#"{"stream":"items"}"#), Ok(Action::Resume(Pausable::Stream(Stream::Items))));
        let half_an_hour = Action::Breaker(BreakerWord::Open(Some(Duration::from_secs(1800))));
        assert_eq!(action("breaker", r#"{"order":"open","minutes":30}"#), Ok(half_an_hour));
        assert_eq!(action("breaker", r#"{"order":"close"}"#), Ok(Action::Breaker(BreakerWord::Close)));
        let replay = |ids: &[&str], stream| {
            let ids = ids.iter().map(|id| (*id).to_owned()).collect();
            Ok(Action::Replay { ids, stream })
        };
        assert_eq!(action("replay", ""), replay(&[], None));
        assert_eq!(action("replay", r#"{"stream":"bibs"}"#), replay(&[], Some(Stream::Bibs)));
        assert_eq!(action("replay", r#"{"ids":["0a1b"]}"#), replay(&["0a1b"], None));
        for (name, body) in [
            ("sync", r#"{"streams":["holdings"]}"#),
            ("sync", "[]"),
            ("pause", "{}"),
            ("pause", r#"{"sink":"a","stream":"bibs"}"#),
            ("pause", r#"{"sink":"a","forever":true}"#),
            ("breaker", r#"{"order":"open","minutes":0}"#),
            ("breaker", r#"{"order":"reset","minutes":5}"#),
            ("breaker", r#"{"order":"half"}"#),
            ("recover", r#"{"wait":"#),
            ("replay", r#"{"ids":["0a1b"],"stream":"bibs"}"#),
        ] {
            assert_eq!(action(name, body), Err(400), "{name} {body}");
        }
        assert_eq!(action("erase", "{}"), Err(404));
    }
}
