//! Quotas: what the server grants, says and refuses.

use std::time::Duration;

use sierra_sync::simulator::{Counting, Dialect, Endpoint, EndpointLimit, RateLimit, Reset, RetryAfter};

use super::client::{Client, small_library};

#[tokio::test(start_paused = true)]
async fn the_quota_counts_every_call_of_the_key_and_tells_what_is_left() {
    let simulator = small_library();
    let limit =
        RateLimit { calls: 4, retry_after: RetryAfter::Seconds, reset: Reset::DeltaSeconds, ..RateLimit::default() };
    simulator.with(|simulator| simulator.limit_rate(Some(limit)));
    let client = Client::of(&simulator).await;
    let remaining = async |path: &str| {
        let answer = client.try_get(path).await.unwrap();
        (answer.status().as_u16(), answer.headers()["x-ratelimit-remaining"].to_str().unwrap().to_owned())
    };
    assert_eq!(remaining("/bibs").await, (200, "2".into()));
    assert!(simulator.with(|simulator| simulator.spend_as_another()));
    assert_eq!(remaining("/items").await, (200, "0".into()));
    let refused = client.try_get("/info/token").await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "60");
    assert!(!simulator.with(|simulator| simulator.spend_as_another()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(remaining("/bibs").await, (200, "3".into()));
}

/// The reset is told by the clock of the same answer's `Date`, however far that is off.
#[tokio::test(start_paused = true)]
async fn epochs_follow_the_clock_that_date_shows() {
    let simulator = small_library();
    simulator.with(|simulator| {
        simulator.limit_rate(Some(RateLimit::default()));
        simulator.step_clock(jiff::SignedDuration::from_secs(300));
    });
    let client = Client::of(&simulator).await;
    let answer = client.try_get("/bibs").await.unwrap();
    assert_eq!(answer.headers()["date"], "Mon, 05 Jan 2026 10:05:00 GMT");
    let reset: i64 = answer.headers()["x-ratelimit-reset"].to_str().unwrap().parse().unwrap();
    assert_eq!(jiff::Timestamp::from_second(reset).unwrap().to_string(), "2026-01-05T10:06:00Z");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_says_nothing_but_429() {
    let simulator = small_library();
    let limit = RateLimit {
        calls: 1,
        dialect: Dialect::Silent,
        counting: Counting::MovingWindow,
        free_token_calls: true,
        ..RateLimit::default()
    };
    simulator.with(|simulator| simulator.limit_rate(Some(limit)));
    let client = Client::of(&simulator).await;
    assert_eq!(client.get("/bibs").await.0, 200);
    let refused = client.try_get("/bibs").await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().keys().all(|name| !name.as_str().contains("limit") && name != "retry-after"));
}

/// BR-044: one endpoint is locked, the others go on.
#[tokio::test(start_paused = true)]
async fn an_endpoint_is_locked_for_the_minutes_it_names() {
    let simulator = small_library();
    simulator.with(|simulator| {
        simulator.limit_endpoints([EndpointLimit { endpoint: Endpoint::Bibs, calls: 2, seconds: 900, status: 503 }]);
    });
    let client = Client::of(&simulator).await;
    for expected in [200, 200, 503, 503] {
        assert_eq!(client.get("/bibs").await.0, expected);
    }
    let (_, body) = client.get("/bibs").await;
    assert_eq!(body["name"], "Rate exceeded for endpoint");
    assert!(body["description"].as_str().unwrap().contains("15 minutes"));
    assert_eq!(client.get("/items").await.0, 200);
    tokio::time::sleep(Duration::from_secs(900)).await;
    assert_eq!(client.get("/bibs").await.0, 200);
}
