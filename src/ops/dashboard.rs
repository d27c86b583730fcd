//! The dashboard: one page, one style sheet and a few scripts, all built in. Nothing is fetched from elsewhere.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Each file by its path: its type, and what is in it.
const FILES: [(&str, &str, &str); 7] = [
    ("/", "text/html; charset=utf-8", include_str!("dashboard/index.html")),
    ("/dashboard.css", "text/css; charset=utf-8", include_str!("dashboard/dashboard.css")),
    ("/dashboard.js", SCRIPT, include_str!("dashboard/dashboard.js")),
    ("/charts.js", SCRIPT, include_str!("dashboard/charts.js")),
    ("/deeds.js", SCRIPT, include_str!("dashboard/deeds.js")),
    ("/gate.js", SCRIPT, include_str!("dashboard/gate.js")),
    ("/words.js", SCRIPT, include_str!("dashboard/words.js")),
];

/// Where the files are.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, ..)| *path)
}

/// `GET` of one of them.
pub(super) async fn file(path: axum::http::Uri) -> Response {
    match FILES.iter().find(|(known, ..)| *known == path.path()) {
        Some((_, kind, content)) => ([(CONTENT_TYPE, *kind)], *content).into_response(),
        None => axum::http::StatusCode::NOT_FOUND.into_response(),
    }
}
