//! The dashboard: one page, one style sheet and one script, all built in. Nothing is fetched from elsewhere.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// `GET /`.
pub(super) async fn page() -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], include_str!("dashboard/index.html")).into_response()
}

/// `GET /dashboard.css`.
pub(super) async fn style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], include_str!("dashboard/dashboard.css")).into_response()
}

/// `GET /dashboard.js`.
pub(super) async fn script() -> Response {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("dashboard/dashboard.js")).into_response()
}
