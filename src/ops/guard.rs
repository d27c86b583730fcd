//! Who may ask: loopback callers, or bearers of the token. And what every answer tells browsers.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use crate::secret::Secret;

use super::action::{self, NEEDS_TOKEN};
use super::{OpsState, dashboard};

/// Refuses callers that may not ask this, before any handler runs.
///
/// Without a token the endpoint listens on loopback only, and a web page elsewhere could still reach it through a
/// host name that resolves to loopback; so the `Host` must name loopback too. `/livez` and `/readyz` tell nothing
/// and stay open to probes. With a token the dashboard's own files stay open too: they tell nothing, and the page must
/// load to ask for the token.
pub(super) async fn admit(State(state): State<OpsState>, request: Request, next: Next) -> Response {
    match refusal(&state, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    }
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
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn refusal(state: &OpsState, request: &Request) -> Option<Response> {
    let (path, now) = (request.uri().path(), Instant::now());
    let is_action = request.method() == Method::POST;
    if matches!(path, "/livez" | "/readyz") {
        return None;
    }
    if path == "/gate" && !is_action {
        let open = state.token.as_ref().map_or_else(|| names_loopback(request), |token| carries(request, token));
        let is_guess = !open && request.headers().contains_key(AUTHORIZATION);
        return Some(if is_guess && !state.rates.wrong.take(now) { later() } else { gate(open) });
    }
    let is_page = !is_action && dashboard::paths().any(|known| known == path);
    match &state.token {
        None if !names_loopback(request) => {
            let sentence = "this endpoint answers to loopback names only; set ops.token_file to open it";
            return Some(action::answer(StatusCode::MISDIRECTED_REQUEST, sentence));
        }
        None if is_action => return Some(action::answer(StatusCode::FORBIDDEN, NEEDS_TOKEN)),
        None => {}
        Some(_) if is_page => {}
        Some(token) if carries(request, token) => {}
        // Guesses are counted apart: they must not keep out whoever knows the token.
        Some(_) if request.headers().contains_key(AUTHORIZATION) && !state.rates.wrong.take(now) => {
            return Some(later());
        }
        Some(_) => {
            let sentence = "this address needs the token of ops.token_file as a bearer token";
            let refusal = action::answer(StatusCode::UNAUTHORIZED, sentence);
            return Some(([(WWW_AUTHENTICATE, "Bearer")], refusal).into_response());
        }
    }
    let rate = if is_action { &state.rates.actions } else { &state.rates.reads };
    if !is_page && !rate.take(now) {
        return Some(later());
    }
    if is_action && comes_from_elsewhere(request) {
        let sentence =
            "a page of another site asked for this; actions are taken from this dashboard, or without a browser";
        return Some(action::answer(StatusCode::FORBIDDEN, sentence));
    }
    if is_action && !is_json(request) {
        return Some(action::answer(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the body as application/json"));
    }
    None
}

/// `GET /gate`: whether the caller may see the data; for the page, which asks for the token if not.
fn gate(open: bool) -> Response {
    Json(serde_json::json!({ "schema": 1, "open": open })).into_response()
}

fn later() -> Response {
    let refusal = action::answer(StatusCode::TOO_MANY_REQUESTS, "too many requests at once; ask again in a second");
    ([(RETRY_AFTER, "1")], refusal).into_response()
}

/// Whether the request bears `token`. The scheme may be written in any case (RFC 9110 §11.1).
fn carries(request: &Request, token: &Secret) -> bool {
    text(request, &AUTHORIZATION)
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"))
        .is_some_and(|(_, given)| Secret::new(given.trim().to_owned()) == *token)
}

/// Whether a browser says that another site's page asks. The token is enough to keep such pages out, since no browser
/// adds it by itself; this holds even where somebody's proxy does.
fn comes_from_elsewhere(request: &Request) -> bool {
    let site = text(request, &HeaderName::from_static("sec-fetch-site"));
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return true;
    }
    let Some(origin) = request.headers().get(ORIGIN) else { return false };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    !matches!((origin, text(request, &HOST)), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host))
}

fn is_json(request: &Request) -> bool {
    let kind = text(request, &CONTENT_TYPE).and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn text<'r>(request: &'r Request, name: &HeaderName) -> Option<&'r str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

fn names_loopback(request: &Request) -> bool {
    let named = text(request, &HOST);
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
