//! Actions: by POST, with the token, from nobody's page but our own.

use super::{Call, serve};
use sierra_sync::ops::{Action, BreakerWord};
use sierra_sync::record::Stream;
use sierra_sync::sync::Pausable;
use sierra_sync::sync::report::status::StoreState;

const BEARER: &str = "Host: ops.example\r\nAuthorization: Bearer correct-horse\r\nContent-Type: application/json";

#[tokio::test]
async fn without_a_token_file_actions_are_refused_with_a_sentence() {
    let endpoint = serve(None, StoreState::Ok).await;
    let answer = endpoint.post("/actions/sync", "Host: localhost\r\nContent-Type: application/json", "{}").await;
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("ops.token_file"), "{}", answer.body);
    let listed = endpoint.get("/actions", "Host: localhost").await;
    assert!(listed.body.contains("\"enabled\":false") && listed.body.contains("ops.token_file"), "{}", listed.body);
    assert_eq!(endpoint.calls(), []);
}

#[tokio::test]
async fn whoever_bears_the_token_acts_and_nobody_else_does() {
    let endpoint = serve(Some("correct-horse"), StoreState::Ok).await;
    let body = r#"{"sink":"archive","reason":"the disk is changed","by":"ann"}"#;
    assert_eq!(
        endpoint.post("/actions/pause", "Host: localhost\r\nContent-Type: application/json", body).await.status,
        401
    );
    let wrong = BEARER.replace("horse", "donkey");
    assert_eq!(endpoint.post("/actions/pause", &wrong, body).await.status, 401);
    let cookie = "Host: localhost\r\nContent-Type: application/json\r\nCookie: token=correct-horse";
    assert_eq!(endpoint.post("/actions/pause", cookie, body).await.status, 401, "no cookie is looked at");
    assert_eq!(endpoint.calls(), []);

    let answer = endpoint.post("/actions/pause", BEARER, body).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"schema":1,"ok":true,"message":"done"}"#));
    endpoint.post("/actions/sync", BEARER, r#"{"streams":["bibs"]}"#).await;
    endpoint.post("/actions/breaker", BEARER, r#"{"order":"close"}"#).await;
    let expected = [
        Call(Action::Pause(Pausable::Sink("archive".into())), Some("ann".into()), Some("the disk is changed".into())),
        Call(Action::Sync(vec![Stream::Bibs]), None, None),
        Call(Action::Breaker(BreakerWord::Close), None, None),
    ];
    assert_eq!(endpoint.calls(), expected);
    for path in ["/actions/pause", "/actions/sync"] {
        assert_eq!(endpoint.get(path, BEARER).await.status, 405, "nothing is done by GET");
    }
    assert_eq!(endpoint.calls().len(), 3);
}

/// A page elsewhere cannot make a browser act, even where somebody's proxy adds the token.
#[tokio::test]
async fn a_browser_cannot_be_made_to_act_by_another_sites_page() {
    let endpoint = serve(Some("correct-horse"), StoreState::Ok).await;
    for (header, status) in [
        ("Origin: https://evil.example", 403),
        ("Origin: null", 403),
        ("Origin: http://ops.example.evil.example", 403),
        ("Sec-Fetch-Site: cross-site", 403),
        ("Sec-Fetch-Site: same-site", 403),
        ("Origin: http://ops.example\r\nSec-Fetch-Site: same-origin", 200),
        ("Origin: https://OPS.example", 200),
    ] {
        let answer = endpoint.post("/actions/recover", &format!("{BEARER}\r\n{header}"), "{}").await;
        assert_eq!(answer.status, status, "{header}");
    }
    // What a form can send without asking first is not taken.
    let form = BEARER.replace("application/json", "text/plain");
    assert_eq!(endpoint.post("/actions/recover", &form, "{}").await.status, 415);
    let preflight =
        endpoint.call("OPTIONS", "/actions/recover", "Host: ops.example\r\nOrigin: https://evil.example", "").await;
    assert!(!preflight.head.to_lowercase().contains("access-control-allow"), "{}", preflight.head);
    assert_eq!(endpoint.calls().len(), 2);
}

#[tokio::test]
async fn bodies_are_short_and_understood_whole() {
    let endpoint = serve(Some("correct-horse"), StoreState::Ok).await;
    let long = format!(r#"{{"reason":"{}"}}"#, "x".repeat(20_000));
    assert_eq!(endpoint.post("/actions/recover", BEARER, &long).await.status, 413);
    let answer = endpoint.post("/actions/recover", BEARER, r#"{"wait":true}"#).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("unknown field `wait`"), "{}", answer.body);
    assert_eq!(endpoint.post("/actions/erase", BEARER, "{}").await.status, 404);
    assert_eq!(endpoint.calls(), []);
}

#[tokio::test]
async fn guesses_and_actions_are_bounded_and_do_not_keep_the_bearer_out() {
    let endpoint = serve(Some("correct-horse"), StoreState::Ok).await;
    let mut refused = 0;
    for guess in 0..30 {
        let headers = format!("Host: ops.example\r\nAuthorization: Bearer guess-{guess}");
        let status = endpoint.get("/status", &headers).await.status;
        assert!(status == 401 || status == 429, "{status}");
        refused += u32::from(status == 429);
    }
    assert!(refused >= 10, "{refused}");
    assert_eq!(endpoint.get("/status", BEARER).await.status, 200);
    let mut later = 0;
    for _ in 0..40 {
        let answer = endpoint.post("/actions/recover", BEARER, "{}").await;
        if answer.status == 429 {
            assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
            assert!(answer.body.contains("ask again in a second"), "{}", answer.body);
            assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
            later += 1;
        }
    }
    assert!((10..=20).contains(&later), "{later}");
}

/// The page must load to ask for the token; it tells nothing by itself.
#[tokio::test]
async fn with_a_token_the_page_loads_and_its_data_does_not() {
    let endpoint = serve(Some("correct-horse"), StoreState::Ok).await;
    for path in ["/", "/dashboard.js", "/dashboard.css"] {
        assert_eq!(endpoint.get(path, "Host: ops.example").await.status, 200, "{path}");
    }
    for path in ["/status", "/history", "/metrics", "/actions", "/nothing-here"] {
        let answer = endpoint.get(path, "Host: ops.example").await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.head.contains("www-authenticate: Bearer"), "{}", answer.head);
    }
}
