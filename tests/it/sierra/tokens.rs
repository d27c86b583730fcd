//! Session tokens as a whole client uses them, on paused time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sierra_sync::record::Stream;
use sierra_sync::secret::Secret;
use sierra_sync::sierra::SierraSettings;
use sierra_sync::sierra::transport::TransportErrorKind;
use sierra_sync::sync::ports::{Answer, Source, SourceErrorKind};
use sierra_sync::sync::report::status::TokenState;
use tokio::time::{Instant, advance, sleep};

use super::script::{
    Act, NOTHING, Script, TOKEN, answer, client, client_of, client_with, line, live, page, settings, with_header,
};

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

fn unauthorised() -> Act {
    answer(401, r#"{"code":123,"specificCode":0,"httpStatus":401,"name":"Unauthorized","description":"invalid_grant"}"#)
}

/// BR-034: one token for a thousand calls, and one call for sixteen workers that start together.
#[tokio::test(start_paused = true)]
async fn one_token_serves_everybody() {
    let slow = Act::After(Duration::from_secs(2), Box::new(Act::Token(3600)));
    let script = Arc::new(Script::new().on("token", [slow]).on("bibs", [page(&[1])]));
    let client = client(&script);
    let query = live(Stream::Bibs);
    let answers = join_all((0..16).map(|_| client.page(&query))).await;
    assert!(answers.iter().all(Result::is_ok));
    for _ in 0..984 {
        client.page(&query).await.expect("a page");
    }
    assert_eq!((script.count("token"), script.count("bibs")), (1, 1000));
    let expected = format!("Bearer {TOKEN}1");
    assert!(script.seen_of("bibs").iter().all(|seen| seen.authorization.as_deref() == Some(expected.as_str())));
}

/// A flight belongs to whoever holds it: when that caller goes away, the next one flies.
#[tokio::test(start_paused = true)]
async fn a_caller_that_is_dropped_leaves_the_flight_to_the_next() {
    let script = Arc::new(Script::new().on("token", [Act::Hang, Act::Token(3600)]).on("bibs", [page(&[1])]));
    let client = Arc::new(client(&script));
    let query = live(Stream::Bibs);
    let first = tokio::time::timeout(Duration::from_secs(1), client.page(&query));
    let second = async {
        sleep(Duration::from_millis(500)).await;
        client.page(&query).await
    };
    let (first, second) = tokio::join!(first, second);
    assert!(first.is_err() && second.is_ok());
}

/// When a flight fails, those who waited for it do not fly again one after the other.
#[tokio::test(start_paused = true)]
async fn a_failed_flight_fails_for_all_who_waited() {
    let script = Arc::new(Script::new().on("token", [Act::Fail(TransportErrorKind::Connect)]));
    let client = client(&script);
    let query = live(Stream::Bibs);
    let answers = join_all((0..16).map(|_| client.page(&query))).await;
    for error in answers.into_iter().map(|answer| answer.expect_err("no token")) {
        assert_eq!(error.kind, SourceErrorKind::Exhausted);
        assert!(error.message.contains("no session token, since the request could not connect"), "{}", error.message);
    }
    assert_eq!(script.count("token"), 5);
}

/// There is no smaller token to ask for.
#[tokio::test(start_paused = true)]
async fn an_oversized_answer_to_the_question_for_a_token_is_told_as_such() {
    let script = Arc::new(Script::new().on("token", [Act::Fail(TransportErrorKind::TooLarge)]));
    let error = client(&script).page(&live(Stream::Bibs)).await.expect_err("no token");
    assert_eq!(error.kind, SourceErrorKind::Exhausted, "{error:?}");
    assert!(error.message.contains("no session token, since the request "), "{}", error.message);
    assert!(!error.message.contains("page") && !error.hint.contains("page"), "{error:?}");
}

/// A7: from 80 % of its life on a token is replaced beside the calls, which do not wait.
#[tokio::test(start_paused = true)]
async fn a_token_is_replaced_in_the_background_at_four_fifths_of_its_life() {
    let slow = Act::After(Duration::from_secs(5), Box::new(Act::Token(3600)));
    let script = Arc::new(Script::new().on("token", [Act::Token(3600), slow]).on("bibs", [page(&[1])]));
    let client = client(&script);
    let query = live(Stream::Bibs);
    client.page(&query).await.expect("a page");
    sleep(minutes(47)).await;
    client.page(&query).await.expect("a page");
    assert_eq!(script.count("token"), 1);
    sleep(minutes(1)).await;
    let before = Instant::now();
    client.page(&query).await.expect("a page");
    assert!(before.elapsed() < Duration::from_secs(1), "the call did not wait for the new token");
    tokio::task::yield_now().await;
    assert_eq!(client.token_status().state, TokenState::Refreshing);
    client.page(&query).await.expect("a page");
    sleep(Duration::from_secs(6)).await;
    let answer = client.page(&query).await.expect("a page");
    assert_eq!(script.count("token"), 2);
    assert_eq!(
        script.seen_of("bibs").last().and_then(|seen| seen.authorization.clone()),
        Some(format!("Bearer {TOKEN}2"))
    );
    // The refresh is on the account of whoever asks next, so that nothing sent is left uncounted.
    let Answer::Page(answer) = answer else { panic!("no page") };
    assert_eq!(answer.traffic.calls, 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_replacement_leaves_a_working_token_alone() {
    for refusal in [Act::Fail(TransportErrorKind::Connect), answer(401, ""), answer(503, "")] {
        let script = Arc::new(Script::new().on("token", [Act::Token(3600), refusal.clone()]).on("bibs", [page(&[1])]));
        let client = client(&script);
        let query = live(Stream::Bibs);
        client.page(&query).await.expect("a page");
        sleep(minutes(48)).await;
        for _ in 0..11 {
            client.page(&query).await.expect("a page");
            sleep(minutes(1)).await;
        }
        assert_ne!(client.token_status().state, TokenState::Latched, "{refusal:?}");
        script.change("token", [Act::Token(3600)]);
        sleep(minutes(2)).await;
        client.page(&query).await.expect("a page");
    }
}

/// A8: a 401 is answered by a new token and a repeat at once, charged to no budget.
#[tokio::test(start_paused = true)]
async fn a_refused_token_is_replaced_and_the_call_repeated_at_once() {
    for body in ["", "<html>login</html>", r#"{"code":113}"#, r#"{"code":"120"}"#, r#"{"code":123,"httpStatus":401}"#] {
        let script = Arc::new(Script::new().on("bibs", [answer(401, body), page(&[1])]));
        let client = client(&script);
        let before = Instant::now();
        let answer = client.page(&live(Stream::Bibs)).await.expect("a page");
        assert!(before.elapsed() < Duration::from_millis(100), "{body}");
        let Answer::Page(answer) = answer else { panic!("no page") };
        assert_eq!((answer.traffic.calls, answer.traffic.retries, script.count("token")), (4, 1, 2), "{body}");
    }
}

/// The generation: sixteen late refusals of one token cause one new token.
#[tokio::test(start_paused = true)]
async fn sixteen_workers_refused_together_cause_one_refresh() {
    let late = |seconds| Box::new(Act::After(Duration::from_secs(seconds), Box::new(unauthorised())));
    let acts = (0..32).map(|request| Act::ForToken(2, Box::new(page(&[1])), late(1 + request % 4)));
    let script = Arc::new(Script::new().on("bibs", acts));
    let client = client(&script);
    let query = live(Stream::Bibs);
    let answers = join_all((0..16).map(|_| client.page(&query))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!((script.count("token"), script.count("bibs")), (2, 32));
}

/// BR-100, BR-130: an API that takes no token. One forced refresh, then the latch; two token calls in five minutes.
#[tokio::test(start_paused = true)]
async fn tokens_that_are_always_refused_close_the_latch() {
    let script = Arc::new(Script::new().on("bibs", [unauthorised()]));
    let client = client(&script);
    let query = live(Stream::Bibs);
    let mut kinds = Vec::new();
    for _ in 0..30 {
        kinds.push(client.page(&query).await.expect_err("refused").kind);
        sleep(Duration::from_secs(9)).await;
    }
    assert_eq!(script.count("token"), 2);
    assert_eq!(script.count("bibs"), 4, "a call and its repeat, then one each for the other two");
    assert_eq!(kinds[..2], [SourceErrorKind::Exhausted; 2]);
    assert!(kinds[2..].iter().all(|kind| *kind == SourceErrorKind::Credentials));
    assert_eq!(client.token_status().state, TokenState::Latched);
    let error = client.page(&query).await.expect_err("latched");
    assert!(error.hint.contains("`sierra-sync recover`") && error.traffic.calls == 0, "{error:?}");

    // One trial an hour: one token call, and its token is refused once.
    sleep(minutes(60)).await;
    client.page(&query).await.expect_err("refused");
    client.page(&query).await.expect_err("latched");
    assert_eq!((script.count("token"), script.count("bibs")), (3, 5));

    // A trial that succeeds lifts it.
    script.change("bibs", [page(&[1])]);
    sleep(minutes(60)).await;
    client.page(&query).await.expect("a page");
    assert_eq!(client.token_status().state, TokenState::Ok);
}

/// BR-100: ten hours with twenty tokens that die early are no failure.
#[tokio::test(start_paused = true)]
async fn tokens_that_die_early_are_replaced_for_hours() {
    let mut acts = Vec::new();
    for _ in 0..20 {
        acts.extend([page(&[1]), page(&[1]), unauthorised()]);
    }
    let script = Arc::new(Script::new().on("bibs", acts.into_iter().chain([page(&[1])])));
    let client = client(&script);
    for _ in 0..60 {
        client.page(&live(Stream::Bibs)).await.expect("a page");
        sleep(minutes(10)).await;
    }
    assert_eq!(client.token_status().state, TokenState::Ok);
}

/// The latch: `/token` refuses the credential before and after one repeat; it outlives a restart and lifts on a changed
/// secret or a person's word.
#[tokio::test(start_paused = true)]
async fn a_refused_credential_closes_the_latch_and_survives_a_restart() {
    for status in [400, 401, 403] {
        let refusal = answer(status, r#"{"error":"invalid_client","error_description":"canary-secret"}"#);
        let script = Arc::new(Script::new().on("token", [refusal]).on("bibs", [page(&[1])]));
        let client = client(&script);
        let query = live(Stream::Bibs);
        for _ in 0..20 {
            let error = client.page(&query).await.expect_err("refused");
            assert_eq!((error.kind, error.status_code), (SourceErrorKind::Credentials, Some(status)));
            assert!(!format!("{error:?}").contains("canary"));
            sleep(Duration::from_secs(15)).await;
        }
        assert_eq!(script.count("token"), 2, "{status}");

        let restarted = client_with(&script, line(), &client.latch_snapshot());
        assert_eq!(restarted.page(&query).await.expect_err("latched").kind, SourceErrorKind::Credentials);
        assert_eq!(script.count("token"), 2, "{status}");
        script.change("token", [Act::Token(3600)]);
        restarted.recover();
        restarted.page(&query).await.expect("a page");
        assert!(restarted.latch_snapshot().is_empty());

        client.reset_breaker();
        client.page(&query).await.expect("a page");
    }
}

/// The latch is closed to one credential at one address: another address, key or secret is tried at once, whatever an
/// earlier process was refused; the same one is not.
#[tokio::test(start_paused = true)]
async fn a_changed_address_key_or_secret_is_tried_at_once() {
    let script = Arc::new(Script::new().on("token", [answer(401, "")]).on("bibs", [page(&[1])]));
    let refused = client(&script);
    let query = live(Stream::Bibs);
    refused.page(&query).await.expect_err("refused");
    let latch = refused.latch_snapshot();
    script.change("token", [Act::Token(3600)]);
    let ours = settings();
    let elsewhere = "https://catalog.example.edu/test/iii/sierra-api/v6";
    for changed in [
        SierraSettings { base_url: elsewhere.to_owned(), ..ours.clone() },
        SierraSettings { client_key: "another-key".to_owned(), ..ours.clone() },
        SierraSettings { client_secret: Secret::new("another-secret".to_owned()), ..ours.clone() },
    ] {
        let client = client_of(&script, line(), &latch, &changed);
        client.page(&query).await.expect("tried, and taken");
        assert!(client.latch_snapshot().is_empty());
    }
    let calls = script.seen().len();
    let error = client_of(&script, line(), &latch, &ours).page(&query).await.expect_err("the same");
    assert_eq!((error.kind, script.seen().len()), (SourceErrorKind::Credentials, calls));
}

/// A refusal that a repeat does not confirm is an accident.
#[tokio::test(start_paused = true)]
async fn one_refusal_of_the_credential_is_not_believed() {
    let script = Arc::new(Script::new().on("token", [answer(401, ""), Act::Token(3600)]).on("bibs", [page(&[1])]));
    let Ok(Answer::Page(page)) = client(&script).page(&live(Stream::Bibs)).await else { panic!("no page") };
    assert_eq!((page.traffic.calls, page.traffic.retries), (3, 1));
}

/// BR-097: a token of five minutes, a refusal of sixteen: the next try takes a new token first and meets no 401.
#[tokio::test(start_paused = true)]
async fn after_a_wait_longer_than_its_life_a_new_token_comes_first() {
    let refusal = answer(500, r#"{"code":1,"name":"Rate exceeded for endpoint","description":"wait 16 minutes"}"#);
    let script = Arc::new(Script::new().on("token", [Act::Token(300)]).on("bibs", [refusal, page(&[1])]));
    let client = client(&script);
    let query = live(Stream::Bibs);
    let error = client.page(&query).await.expect_err("parked");
    let SourceErrorKind::WaitingQuota { resume_at } = error.kind else { panic!("{error:?}") };
    let wait = Duration::try_from(resume_at.duration_since("2026-01-05T10:00:00Z".parse().expect("a date")));
    assert!(wait.is_ok_and(|wait| wait >= minutes(16) && wait < minutes(17)), "{error}");
    sleep(minutes(17)).await;
    client.page(&query).await.expect("a page");
    let paths: Vec<String> =
        script.seen().into_iter().map(|seen| seen.path.split('?').next().unwrap_or("").to_owned()).collect();
    assert_eq!(paths, ["token", "bibs", "token", "bibs"]);
}

/// BR-097, sat out in place: the token is looked at again after every wait.
#[tokio::test(start_paused = true)]
async fn a_token_that_dies_during_a_wait_in_place_is_replaced_before_the_call() {
    let throttled = with_header(answer(429, ""), "retry-after", "50");
    let script = Arc::new(Script::new().on("token", [Act::Token(40)]).on("bibs", [throttled, page(&[1])]));
    let client = client(&script);
    client.page(&live(Stream::Bibs)).await.expect("a page");
    let seen = script.seen_of("bibs");
    assert!(seen[1].at - seen[0].at >= Duration::from_secs(50));
    assert_eq!(seen[1].authorization.as_deref(), Some("Bearer canary-token-2"));
    assert_eq!(script.count("token"), 2);
}

/// BR-033: an empty 2xx from `/token` is repeated at once, then backed off.
#[tokio::test(start_paused = true)]
async fn an_empty_token_reply_is_repeated_at_once() {
    let empty = || answer(200, "");
    let script = Arc::new(Script::new().on("token", [empty(), empty(), Act::Token(3600)]).on("bibs", [page(&[1])]));
    client(&script).page(&live(Stream::Bibs)).await.expect("a page");
    let seen = script.seen_of("token");
    assert!(seen[1].at - seen[0].at <= Duration::from_millis(10), "at once");
    assert_eq!(seen.len(), 3);
}

/// Silly lifetimes are an hour, and the service goes on.
#[tokio::test(start_paused = true)]
async fn a_token_without_a_lifetime_is_good_for_an_hour() {
    let grant = answer(200, r#"{"access_token":"t-one-two","token_type":"bearer"}"#);
    let script = Arc::new(Script::new().on("token", [grant]).on("items", [answer(404, NOTHING)]));
    let client = client(&script);
    client.page(&live(Stream::Items)).await.expect("nothing");
    let expires_at = client.token_status().expires_at.expect("an end");
    assert_eq!(expires_at.to_string(), "2026-01-05T11:00:00Z");
    advance(minutes(47)).await;
    client.page(&live(Stream::Items)).await.expect("nothing");
    assert_eq!(script.count("token"), 1);
}
