//! Live against ready: whether the process answers, and whether it can do its work.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::sync::report::status::StoreState;

use super::OpsState;

/// `GET /livez`: 200 as long as the process serves requests.
pub(super) async fn livez() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: 200 when the configuration is loaded and the store works, else 503. Sierra being down changes
/// nothing here: a restart would not help.
pub(super) async fn readyz(State(state): State<OpsState>) -> Response {
    let report = state.recent.status().await;
    match report.store.state {
        StoreState::Ok => (StatusCode::OK, Json(json!({ "ready": true }))).into_response(),
        StoreState::Failed => {
            let body = json!({ "ready": false, "reason": "the store failed; restart the service and see its log" });
            (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
        }
    }
}
