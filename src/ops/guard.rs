//! Who may ask: loopback callers, or bearers of the token. And what every answer tells browsers.

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::secret::Secret;

use super::OpsState;

/// Refuses callers that may not see the page, before any handler runs.
///
/// Without a token the endpoint listens on loopback only, and a web page elsewhere could still reach it through a
/// host name that resolves to loopback; so the `Host` must name loopback too. `/livez` and `/readyz` tell nothing
/// and stay open to probes.
pub(super) async fn admit(State(state): State<OpsState>, request: Request, next: Next) -> Response {
    let open = matches!(request.uri().path(), "/livez" | "/readyz");
    let admitted = open
        || match &state.token {
            Some(token) => carries(&request, token),
            None => names_loopback(&request),
        };
    if admitted {
        return next.run(request).await;
    }
    let (status, text) = if state.token.is_some() {
        (StatusCode::UNAUTHORIZED, "this address needs the token of ops.token_file as a bearer token\n")
    } else {
        (
            StatusCode::MISDIRECTED_REQUEST,
            "this endpoint answers to loopback names only; set ops.token_file to open it\n",
        )
    };
    (status, text).into_response()
}

/// Adds the security headers to every answer: nothing is fetched from elsewhere, framed or cached.
pub(super) async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    );
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn carries(request: &Request, token: &Secret) -> bool {
    request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .is_some_and(|given| Secret::new(given.trim().to_owned()) == *token)
}

fn names_loopback(request: &Request) -> bool {
    let named = request.headers().get(HOST).and_then(|value| value.to_str().ok());
    let Some(host) = named.and_then(|host| format!("http://{host}").parse::<Uri>().ok()) else { return false };
    match host.host() {
        Some("localhost") => true,
        Some(host) => {
            let address = host.trim_start_matches('[').trim_end_matches(']');
            address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}
