//! What happened lately, for the dashboard: samples, runs, and what people did.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::sync::Run;

use super::action::answer;
use super::{OpsState, Sample};

/// What the process remembers of its past.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Past {
    /// Runs, the oldest first.
    pub runs: Vec<Run>,
    /// What people did by command, the oldest first.
    pub actions: Vec<Deed>,
}

/// Something that a person did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deed {
    /// When.
    pub at: Timestamp,
    /// The command.
    pub command: String,
    /// Who, as far as it is known.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// What came of it.
    pub outcome: String,
}

/// Which samples.
#[derive(Debug, Deserialize)]
pub(super) struct Since {
    /// Those after this moment, in unix seconds.
    after: Option<i64>,
}

#[derive(Debug, Serialize)]
struct HistoryAnswer {
    schema: u32,
    samples: Vec<Sample>,
    #[serde(flatten)]
    past: Past,
}

/// `GET /history`: the last day. `?after=` leaves out the samples that the caller has.
pub(super) async fn history(State(state): State<OpsState>, since: Result<Query<Since>, QueryRejection>) -> Response {
    let Ok(Query(since)) = since else {
        return answer(StatusCode::BAD_REQUEST, "\"after\" is a moment in whole unix seconds, such as 1767607200");
    };
    let past = state.recent.source().past().await;
    Json(HistoryAnswer { schema: 1, samples: state.history.samples(since.after), past }).into_response()
}
