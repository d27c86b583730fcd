//! Each fault does what it says, to the calls it chooses, and to no other.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use sierra_sync::sierra::transport::{SendOptions, Transport, TransportErrorKind};
use sierra_sync::simulator::{BASE_PATH, Endpoint, Fault, Garble, Kind, Latency, SharedSimulator, When};

use super::client::{Client, OPTIONS, id, small_library};

/// What one call to `/bibs` comes to: its status, or why there was none.
async fn fate(client: &Client) -> String {
    match client.try_get("/bibs?limit=5").await {
        Ok(answer) => answer.status().as_str().to_owned(),
        Err(error) => format!("{:?}", error.kind),
    }
}

async fn fates(client: &Client, calls: usize) -> Vec<String> {
    let mut fates = Vec::new();
    for _ in 0..calls {
        fates.push(fate(client).await);
    }
    fates
}

async fn with_client() -> (SharedSimulator, Client) {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    (simulator, client)
}

/// A15: 429 with nothing left and reset at once, 429 again, then success on the third call.
#[tokio::test(start_paused = true)]
async fn the_throttle_can_be_reproduced() {
    let (simulator, client) = with_client().await;
    simulator.plan(Fault::too_many_requests("0", "0").first(2).at(Endpoint::Bibs));
    let first = client.try_get("/bibs").await.unwrap();
    assert_eq!(first.status(), 429);
    assert_eq!(first.headers()["x-ratelimit-remaining"], "0");
    assert_eq!(first.headers()["x-ratelimit-reset"], "0");
    assert!(first.headers().get("retry-after").is_none());
    assert_eq!(fates(&client, 2).await, ["429", "200"]);
}

#[tokio::test(start_paused = true)]
async fn calls_are_chosen_by_number_endpoint_and_parameter() {
    let (simulator, client) = with_client().await;
    simulator.plan(Fault::Html { status: 502 }.every(3).at(Endpoint::Bibs));
    simulator.plan(Fault::Html { status: 503 }.nth(1).at(Endpoint::Items));
    simulator.plan(Fault::Bare { status: 500 }.always().asking("deleted", "true"));
    simulator.plan(Fault::Bare { status: 504 }.always().asking("id", "["));
    assert_eq!(fates(&client, 6).await, ["200", "200", "502", "200", "200", "502"]);
    assert_eq!(client.get("/items").await.0, 503);
    assert_eq!(client.get("/items").await.0, 200);
    assert_eq!(client.get("/items?deleted=true").await.0, 500);
    assert_eq!(client.get("/items?id=[0,]").await.0, 504);
    assert_eq!(client.get("/items?id=1,2").await.0, 404);
}

/// A5, BR-033, BR-041, BR-046: what 200 can hide.
#[tokio::test(start_paused = true)]
async fn failures_dress_as_success() {
    let (simulator, client) = with_client().await;
    for (fault, body) in [
        (Fault::EmptyBody, ""),
        (Fault::LoneCode, r#"{"code":"-1"}"#),
        (Fault::NoEntries, r#"{"total":0}"#),
        (
            Fault::ErrorCodeText,
            "ErrorCode(code=111, specificCode=0, httpStatus=500, name=Data service error, description=)",
        ),
    ] {
        simulator.plan(fault.first(1));
        let answer = client.try_get("/bibs").await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (200, body.as_bytes()));
    }
    simulator.plan(Fault::MalformedJson.first(1));
    let answer = client.try_get("/bibs").await.unwrap();
    assert!(answer.body().starts_with(b"{\"total\":50,"));
    assert!(serde_json::from_slice::<Value>(answer.body()).is_err());
}

/// BR-077, BR-128, D1: errors keep their class, or lose it, as asked.
#[tokio::test(start_paused = true)]
async fn errors_come_under_any_status_and_form() {
    let (simulator, client) = with_client().await;
    simulator.plan(Fault::error(109).first(1));
    let (status, body) = client.get("/bibs").await;
    assert_eq!((status, &body["code"], &body["httpStatus"]), (500, &json!(109), &json!(500)));
    simulator.plan(Fault::Error { code: 107, status: Some(200), as_text: true }.first(1));
    assert_eq!(
        client.get("/bibs").await,
        (200, json!({"code": "107", "specificCode": 0, "httpStatus": 200, "name": "Record not found"}))
    );
    simulator.plan(Fault::Html { status: 404 }.first(1));
    assert_eq!(client.get("/bibs").await, (404, Value::Null));
    simulator.plan(Fault::NotRetryable { status: 503 }.first(1));
    assert_eq!(client.get("/bibs").await.1["retryable"], false);
}

/// BR-044: Sierra's own refusal, under each of its statuses.
#[tokio::test(start_paused = true)]
async fn rate_exceeded_names_the_minutes() {
    let (simulator, client) = with_client().await;
    for status in [500, 429, 503] {
        simulator.plan(Fault::RateExceeded { status, minutes: "12".into() }.first(1).at(Endpoint::Bibs));
        let (found, body) = client.get("/bibs").await;
        assert_eq!((found, &body["name"]), (status, &json!("Rate exceeded for endpoint")));
        assert!(body["description"].as_str().unwrap().contains("12 minutes"));
    }
}

/// BR-029, BR-080: hang, reset, cut, slow and stale, in tokio's time.
#[tokio::test(start_paused = true)]
async fn answers_get_lost_on_the_way() {
    let (simulator, client) = with_client().await;
    for (fault, expected) in [
        (Fault::Reset, "Closed"),
        (Fault::Cut { percent: 50 }, "Closed"),
        (Fault::Refuse, "Connect"),
        (Fault::Hang, "Timeout"),
        (Fault::Slow { bytes_per_second: 10 }, "Timeout"),
        (Fault::Slow { bytes_per_second: 1_000_000 }, "200"),
        (Fault::Delay { milliseconds: 59_000 }, "200"),
        (Fault::Delay { milliseconds: 61_000 }, "Timeout"),
    ] {
        simulator.plan(fault.clone().first(1));
        assert_eq!(fate(&client).await, expected, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_connection_fails_and_a_fresh_one_works() {
    let (simulator, client) = with_client().await;
    simulator.plan(Fault::StaleConnection.always());
    let request = || {
        http::Request::get(format!("http://sierra.test{BASE_PATH}/bibs"))
            .header("authorization", format!("Bearer {}", client.token))
            .body(bytes::Bytes::new())
            .unwrap()
    };
    let kept = client.transport.send(request(), OPTIONS).await;
    assert_eq!(kept.unwrap_err().kind, TransportErrorKind::Closed);
    let fresh = client.transport.send(request(), SendOptions { fresh_connection: true, ..OPTIONS }).await;
    assert_eq!(fresh.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_not_accepted() {
    let (_simulator, client) = with_client().await;
    let request = http::Request::get(format!("http://sierra.test{BASE_PATH}/bibs"))
        .header("authorization", format!("Bearer {}", client.token))
        .body(bytes::Bytes::new())
        .unwrap();
    let answer = client.transport.send(request, SendOptions { max_body: 100, ..OPTIONS }).await;
    assert_eq!(answer.unwrap_err().kind, TransportErrorKind::TooLarge);
}

/// BR-054: nothing after a full page, once; BR-115: a page that is short before the end.
#[tokio::test(start_paused = true)]
async fn pages_can_be_empty_short_reversed_or_begin_again() {
    let (simulator, client) = with_client().await;
    let all = simulator.world(|world| world.ids(Kind::Bibs));
    let page = format!("/bibs?deleted=false&limit=10&id=[{},]", all[20]);
    let ids = async || client.entries(&page).await.iter().map(id).collect::<Vec<u64>>();
    assert_eq!(ids().await, all[20..30]);

    simulator.plan(Fault::EmptyPage.first(1));
    assert_eq!(client.get(&page).await.1["code"], 107);
    simulator.plan(Fault::ShortPage { entries: 3 }.first(1));
    assert_eq!(ids().await, all[20..23]);
    simulator.plan(Fault::LoopPage.first(1));
    assert_eq!(ids().await, all[0..10]);
    simulator.plan(Fault::ReversedPage.first(1));
    assert_eq!(ids().await, all[20..30].iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(ids().await, all[20..30]);
}

/// BR-045: one record breaks every page that holds it; numbers alone can still be had.
#[tokio::test(start_paused = true)]
async fn a_poison_record_breaks_its_pages_but_not_their_numbers() {
    let (simulator, client) = with_client().await;
    let bib = simulator.world(|world| world.ids(Kind::Bibs)[9]);
    simulator.plan(Fault::Poison { kind: Kind::Bibs, id: bib, code: 103, even_ids: false }.always());
    let range = |from, to| format!("/bibs?id=[{from},{to}]");
    assert_eq!(client.get("/bibs?limit=50").await.1["code"], 103);
    assert_eq!(client.get(&range(bib, bib)).await.0, 500);
    assert_eq!(client.get(&range(0, bib - 1)).await.0, 200);
    assert!(client.entries("/bibs?limit=50&fields=id").await.iter().any(|entry| id(entry) == bib));
}

/// BR-020, BR-021, BR-083: one entry among good ones.
#[tokio::test(start_paused = true)]
async fn one_entry_can_be_garbled() {
    let (simulator, client) = with_client().await;
    let bib = simulator.world(|world| world.ids(Kind::Bibs)[0]);
    let garbled = async |how| {
        let fault = simulator.plan(Fault::Garbled { kind: Kind::Bibs, id: bib, how });
        let answer = client.try_get(&format!("/bibs?limit=2&id=[{bib},]&deleted=false")).await.unwrap();
        simulator.with(|simulator| simulator.cancel(fault));
        serde_json::from_slice::<Value>(answer.body()).ok().map(|page| page["entries"][0].clone())
    };
    assert_eq!(garbled(Garble::OnlyId).await, Some(json!({"id": bib.to_string()})));
    assert_eq!(garbled(Garble::Null).await, Some(Value::Null));
    assert_eq!(garbled(Garble::WrongTypes).await.unwrap()["updatedDate"], 20_260_105);
    assert_eq!(garbled(Garble::Blank).await.unwrap()["title"], "");
    assert!(garbled(Garble::NoId).await.unwrap().get("id").is_none());
    assert_eq!(garbled(Garble::LoneSurrogate).await, None);
    assert_eq!(garbled(Garble::BrokenJson).await, None);
}

/// BR-001: the bib endpoint fails every night while items go on working.
#[tokio::test(start_paused = true)]
async fn an_endpoint_can_fail_at_night_alone() {
    let (simulator, client) = with_client().await;
    let night = When::Daily { from: "03:00".parse().unwrap(), to: "05:00".parse().unwrap() };
    simulator.with(|simulator| simulator.access.token_lifetime = Duration::from_secs(10 * 86_400));
    let client = Client { token: Client::of(&simulator).await.token, ..client };
    simulator.plan(Fault::Hang.when(night).at(Endpoint::Bibs));
    assert_eq!(fate(&client).await, "200");
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(17 * 3_600)).await;
        assert_eq!(fate(&client).await, "Timeout");
        assert_eq!(client.get("/items").await.0, 200);
        tokio::time::sleep(Duration::from_secs(7 * 3_600)).await;
        assert_eq!(fate(&client).await, "200");
    }
}

/// BR-132: stamps and `Date` follow Sierra's clock when it is stepped, and `Date` alone can be wrong or missing.
#[tokio::test(start_paused = true)]
async fn the_server_clock_can_be_stepped_and_its_date_can_lie() {
    let (simulator, client) = with_client().await;
    let date = async || {
        let answer = client.try_get("/info/token").await.unwrap();
        answer.headers().get("date").map(|date| date.to_str().unwrap().to_owned())
    };
    assert_eq!(date().await.unwrap(), "Mon, 05 Jan 2026 10:00:00 GMT");
    simulator.plan(Fault::WrongDate { seconds: 90 }.first(1));
    assert_eq!(date().await.unwrap(), "Mon, 05 Jan 2026 10:01:30 GMT");
    simulator.plan(Fault::NoDate.first(1));
    assert_eq!(date().await, None);
    simulator.with(|simulator| simulator.step_clock(SignedDuration::from_hours(-1)));
    assert_eq!(date().await.unwrap(), "Mon, 05 Jan 2026 09:00:00 GMT");
    let bib = simulator.world(|world| world.create_bib());
    let updated = simulator.world(|world| world.true_record(Kind::Bibs, bib).unwrap().updated);
    assert_eq!(updated.to_string(), "2026-01-05T09:00:00Z");
}

/// BR-004: many calls at once make each slow.
#[tokio::test(start_paused = true)]
async fn crowding_makes_calls_slow_and_the_journal_knows_the_crowd() {
    let (simulator, client) = with_client().await;
    simulator.with(|simulator| simulator.latency = Latency { base_ms: 100, per_record_us: 0, crowding_ms: 1_000 });
    let started = tokio::time::Instant::now();
    let calls = (0..4).map(|_| client.try_get("/bibs"));
    futures_util::future::join_all(calls).await;
    assert_eq!(started.elapsed().as_millis(), 100 + 9_000);
    simulator.with(|simulator| {
        assert_eq!(simulator.journal.most_in_flight(Endpoint::Bibs), 4);
        assert_eq!(simulator.journal.in_flight(Endpoint::Bibs), 0);
    });
}

/// A call that its caller abandons is over for the journal too.
#[tokio::test(start_paused = true)]
async fn an_abandoned_call_leaves_the_count_of_calls_under_way() {
    let (simulator, client) = with_client().await;
    simulator.plan(Fault::Hang.first(1).at(Endpoint::Bibs));
    let abandoned = tokio::time::timeout(Duration::from_secs(5), client.try_get("/bibs")).await;
    assert!(abandoned.is_err());
    simulator.with(|simulator| {
        let call = simulator.journal.calls_to(Endpoint::Bibs).next().unwrap();
        assert_eq!((call.status, call.fault.as_deref()), (None, Some("hang")));
        assert_eq!(call.finished.unwrap().duration_since(call.at).as_secs(), 5);
        assert_eq!(simulator.journal.in_flight(Endpoint::Bibs), 0);
    });
}

#[tokio::test(start_paused = true)]
async fn chance_is_the_seed_s_alone() {
    let storm = async || {
        let (simulator, client) = with_client().await;
        simulator.plan(Fault::Html { status: 503 }.chance(0.3).at(Endpoint::Bibs));
        fates(&client, 60).await
    };
    let first = storm().await;
    assert_eq!(first, storm().await);
    let failures = first.iter().filter(|fate| *fate == "503").count();
    assert!((8..30).contains(&failures), "{failures}");
}
