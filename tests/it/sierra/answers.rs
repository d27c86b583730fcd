//! What each answer of Sierra becomes: page, nothing, or a failure that says what to do.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use sierra_sync::record::Stream;
use sierra_sync::sierra::transport::TransportErrorKind;
use sierra_sync::sync::ports::{Answer, PageFilter, PageQuery, Source, SourceError, SourceErrorKind};
use tokio::time::Instant;

use super::real_data::recorded;
use super::script::{Act, NOTHING, Script, after, answer, client, live, page, with_header};

fn outcome(result: &Result<Answer, SourceError>) -> String {
    match result {
        Ok(Answer::Page(page)) => format!("page of {}, {} calls", page.entries.len(), page.traffic.calls),
        Ok(Answer::Nothing { traffic, .. }) => format!("nothing, {} calls", traffic.calls),
        Err(error) => {
            let kind = match error.kind {
                SourceErrorKind::WaitingQuota { resume_at } => format!("WaitingQuota until {resume_at:.0}"),
                kind => format!("{kind:?}"),
            };
            format!("{kind}, {} calls\n    {}\n    hint: {}", error.traffic.calls, error.message, error.hint)
        }
    }
}

/// A2, A5, B1, C2, BR-033, BR-041, BR-067, BR-077, BR-128: the table of answers. Each is followed by a good page, so a
/// transient one ends as a page after three calls (a token, the answer, the page).
#[tokio::test(start_paused = true)]
async fn answers_and_what_becomes_of_them() {
    let sierra = |code: i64, status: u16, name: &str| {
        format!(r#"{{"code":{code},"specificCode":0,"httpStatus":{status},"name":"{name}"}}"#)
    };
    let answers: Vec<(u16, String)> = [
        (200, r#"{"total":2,"start":0,"entries":[{"id":"1"},{"id":2}]}"#),
        (200, r#"{"entries":[{"id":1}]}"#),
        (200, r#"{"start":0,"entries":[]}"#),
        (204, ""),
        (404, NOTHING),
        (404, r#"{"ErrorCodes":{"code":"107"}}"#),
        (404, r#"{"code":108,"httpStatus":404}"#),
        (404, "<html>Not Found</html>"),
        (404, ""),
        (200, ""),
        (200, "{}"),
        (200, r#"{"total":0}"#),
        (200, r#"{"code":"-1"}"#),
        (200, NOTHING),
        (200, r#"{"code":1,"entries":[{"id":1}]}"#),
        (200, r#"{"entries":[{"id":1},{"i"#),
        (200, "<html><title>Login</title></html>"),
        (200, "ErrorCode(code=100)"),
        (200, "[]"),
        (302, ""),
        (403, "<html>Forbidden</html>"),
        (413, ""),
        (418, ""),
        (425, ""),
        (408, ""),
        (500, ""),
        (501, ""),
        (502, "<html>Bad Gateway</html>"),
        (503, ""),
        (504, ""),
        (507, ""),
        (599, ""),
        (500, r#"{"code":109,"retryable":false}"#),
        (500, r#"{"code":109,"retryable":"false"}"#),
        (429, ""),
        (500, r#"{"name":"Rate exceeded for endpoint","description":"wait 12 minutes"}"#),
        (200, r#"{"code":9,"name":"Rate exceeded for endpoint","description":"wait 12 minutes"}"#),
    ]
    .into_iter()
    .map(|(status, body)| (status, body.to_owned()))
    .chain([102, 103, 109, 111, 112, 132, 135].map(|code| (500, sierra(code, 500, "Internal"))))
    .chain([117, 118].map(|code| (503, sierra(code, 503, "API disabled"))))
    .chain([106, 108, 115, 130].map(|code| (400, sierra(code, 400, "Invalid parameter"))))
    .chain([114, 116].map(|code| (403, sierra(code, 403, "Forbidden"))))
    .collect();
    let mut table = String::new();
    for (status, body) in answers {
        let script = Arc::new(Script::new().on("bibs", [answer(status, &body), page(&[1])]));
        let result = client(&script).page(&live(Stream::Bibs)).await;
        writeln!(table, "{status} {body}\n  {}", outcome(&result)).expect("written");
    }
    insta::assert_snapshot!(table);
}

/// A15: 429 with nothing left and a reset of nought, 429, 200: success on the third call.
#[tokio::test(start_paused = true)]
async fn a_throttle_is_sat_out_and_the_third_call_succeeds() {
    let empty = with_header(answer(429, ""), "x-ratelimit-remaining", "0");
    let script =
        Arc::new(Script::new().on("bibs", [with_header(empty, "x-ratelimit-reset", "0"), answer(429, ""), page(&[1])]));
    let Ok(Answer::Page(page)) = client(&script).page(&live(Stream::Bibs)).await else { panic!("no page") };
    assert_eq!((page.traffic.calls, script.count("bibs")), (4, 3));
}

/// BR-044: the refusal of one endpoint holds that endpoint alone, costs no attempt and no breaker.
#[tokio::test(start_paused = true)]
async fn sierras_own_refusal_holds_its_endpoint_alone() {
    let refusal = answer(500, r#"{"name":"Rate exceeded for endpoint","description":"wait 12 minutes"}"#);
    let script = Arc::new(Script::new().on("bibs", [refusal]).on("items", [page(&[1])]));
    let client = client(&script);
    for _ in 0..20 {
        let error = client.page(&live(Stream::Bibs)).await.expect_err("refused");
        assert!(matches!(error.kind, SourceErrorKind::WaitingQuota { .. }), "{error:?}");
        client.page(&live(Stream::Items)).await.expect("a page");
    }
    assert_eq!(script.count("bibs"), 1);
    assert_eq!(client.refused_endpoints().len(), 1);
    assert_eq!(client.breaker_status().reason, None);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_to_the_end_says_how_hard_it_tried() {
    let script = Arc::new(Script::new().on("bibs", [answer(503, ""), answer(502, "")]));
    let client = client(&script);
    let error = client.page(&live(Stream::Bibs)).await.expect_err("exhausted");
    assert_eq!((error.kind, error.status_code, error.endpoint), (SourceErrorKind::Exhausted, Some(502), "bibs"));
    assert_eq!(
        (script.count("bibs"), error.traffic.calls, error.traffic.retries),
        (8, 9, 4),
        "five, and three small questions"
    );
    assert!(error.message.starts_with("bibs: no good answer to 5 requests within "), "{}", error.message);
    assert!(!error.correlation_id.is_empty() && !error.hint.is_empty());
}

/// A server that is not well is no quota, whatever wait it asks for.
#[tokio::test(start_paused = true)]
async fn a_failure_that_asks_for_a_long_wait_is_no_wait_for_quota() {
    for (status, seconds, most) in [(503, "1800", 1800), (503, "86400", 3600), (408, "1800", 1800), (500, "1800", 1800)]
    {
        let refused = with_header(answer(status, ""), "retry-after", seconds);
        let script = Arc::new(Script::new().on("bibs", [refused]));
        let error = client(&script).page(&live(Stream::Bibs)).await.expect_err("not well");
        assert!(matches!(error.kind, SourceErrorKind::AskedToWait { .. }), "{status}, {most}: {error:?}");
        assert!(error.message.starts_with("bibs: Sierra asks to wait until "), "{}", error.message);
        assert!(!error.hint.contains("quota") && script.count("bibs") == 1, "{}", error.hint);
    }
}

/// It is asked again, and never taken for the end.
#[tokio::test(start_paused = true)]
async fn no_entries_beside_a_total_is_no_answer() {
    let contradiction = || answer(200, r#"{"total":3,"start":0,"entries":[]}"#);
    let script = Arc::new(Script::new().on("bibs", [contradiction(), page(&[1])]));
    let Ok(Answer::Page(_)) = client(&script).page(&live(Stream::Bibs)).await else { panic!("no page") };
    let script = Arc::new(Script::new().on("bibs", [answer(200, r#"{"total":0,"entries":[]}"#)]));
    let Ok(Answer::Nothing { .. }) = client(&script).page(&live(Stream::Bibs)).await else { panic!("not nothing") };
    let script = Arc::new(Script::new().on("bibs", [contradiction()]));
    let error = client(&script).page(&live(Stream::Bibs)).await.expect_err("no answer");
    assert!(error.message.contains("the list of entries is empty although their total is not 0"), "{}", error.message);
}

/// A repeat goes over another connection: another back-end may answer it.
#[tokio::test(start_paused = true)]
async fn repeats_and_fresh_questions_use_a_connection_of_their_own() {
    let script = Arc::new(Script::new().on("bibs", [answer(503, ""), page(&[1])]));
    let client = client(&script);
    client.page(&live(Stream::Bibs)).await.expect("a page");
    client.page(&PageQuery { fresh_connection: true, ..live(Stream::Bibs) }).await.expect("a page");
    client.page(&live(Stream::Bibs)).await.expect("a page");
    let fresh: Vec<bool> = script.seen_of("bibs").iter().map(|seen| seen.fresh_connection).collect();
    assert_eq!(fresh, [false, true, true, false]);
}

/// Design §7.4: numbers rise, and an answer's lies above its question's.
#[tokio::test(start_paused = true)]
async fn pages_carry_rising_numbers_and_sierras_date() {
    let dated = |act| with_header(act, "date", "Mon, 05 Jan 2026 10:00:00 GMT");
    let script = Arc::new(Script::new().on("bibs", [dated(page(&[1])), dated(answer(404, NOTHING))]));
    let client = client(&script);
    let Ok(Answer::Page(page)) = client.page(&live(Stream::Bibs)).await else { panic!("no page") };
    let Ok(Answer::Nothing { sent, answered, date, .. }) = client.page(&after(live(Stream::Bibs), 1)).await else {
        panic!("not nothing")
    };
    assert!(page.sent < page.answered && page.answered < sent && sent < answered);
    assert!(page.sent.0 > 3 << 40, "above every number of earlier boots");
    assert_eq!((page.date, date.map(|date| date.to_string()).as_deref()), (date, Some("2026-01-05T10:00:00Z")));
}

/// BR-135 and its like: a page that cannot be the answer is no page, and one that stands still is no loop.
#[tokio::test(start_paused = true)]
async fn a_page_that_does_not_rise_is_a_failure_and_never_a_loop() {
    let script = Arc::new(Script::new().on("bibs", [page(&[5, 6])]));
    let error = client(&script).page(&after(live(Stream::Bibs), 6)).await.expect_err("a failure");
    assert_eq!(error.kind, SourceErrorKind::Exhausted);
    assert!(error.message.contains("asking on would loop"), "{}", error.message);
    assert_eq!(script.count("bibs"), 5);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_records_is_not_asked() {
    let script = Arc::new(Script::new());
    let client = client(&script);
    let between = PageQuery { until: Some(sierra_sync::record::RecordNumber::new(7)), ..after(live(Stream::Bibs), 7) };
    assert!(matches!(client.page(&between).await, Ok(Answer::Nothing { .. })));
    let none = PageQuery { filter: PageFilter::Ids(Vec::new()), ..live(Stream::Bibs) };
    let error = client.page(&none).await.expect_err("refused");
    assert_eq!((error.kind, error.status_code), (SourceErrorKind::Permanent, None));
    assert!(script.seen().is_empty());
}

/// Design §7.5: a page that fails the same way each time while its endpoint works is to be asked for in parts; each of
/// those questions is sent once, and the breaker hears of none.
#[tokio::test(start_paused = true)]
async fn a_page_that_always_fails_is_told_apart_from_a_server_that_is_unwell() {
    let poison = answer(500, r#"{"code":109,"httpStatus":500,"name":"Invalid configuration"}"#);
    let mut acts = vec![poison.clone(); 5];
    acts.push(page(&[1]));
    acts.extend(vec![poison; 11]);
    acts.push(page(&[8]));
    let script = Arc::new(Script::new().on("bibs", acts));
    let client = client(&script);
    let query = after(live(Stream::Bibs), 7);
    let error = client.page(&query).await.expect_err("poisoned");
    assert_eq!((error.kind, error.code, script.count("bibs")), (SourceErrorKind::Narrow, Some(109), 6));
    assert_eq!(script.seen_of("bibs").last().map(|seen| seen.path.clone()).as_deref(), Some("bibs?limit=1&fields=id"));
    for question in 0..11 {
        let smaller = PageQuery { limit: 1000 >> question, ..query.clone() };
        assert_eq!(client.page(&smaller).await.expect_err("poisoned").kind, SourceErrorKind::Narrow);
    }
    assert_eq!(script.count("bibs"), 17, "each asked once");
    client.page(&query).await.expect("a page");
    assert_eq!(client.breaker_status().reason, None);
}

#[tokio::test(start_paused = true)]
async fn when_the_control_fails_too_the_server_is_unwell() {
    let script = Arc::new(Script::new().on("bibs", [answer(500, "")]));
    let client = client(&script);
    let error = client.page(&live(Stream::Bibs)).await.expect_err("exhausted");
    assert_eq!((error.kind, script.count("bibs")), (SourceErrorKind::Exhausted, 8));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_only_times_out_is_to_be_asked_for_in_parts() {
    let script = Arc::new(Script::new().on("bibs", (0..5).map(|_| Act::Hang).chain([page(&[1])])));
    let client = client(&script);
    let before = Instant::now();
    let error = client.page(&live(Stream::Bibs)).await.expect_err("too slow");
    assert_eq!(error.kind, SourceErrorKind::Narrow, "{error:?}");
    assert!(before.elapsed() <= Duration::from_secs(90 + 20), "{:?}", before.elapsed());
}

/// BR-045: code 135 names a range that cannot be had in one piece: no retry, no breaker.
#[tokio::test(start_paused = true)]
async fn code_135_narrows_at_once_and_leaves_the_breaker_alone() {
    let script = Arc::new(Script::new().on("bibs", [answer(500, r#"{"code":135,"name":"External Process Failed"}"#)]));
    let client = client(&script);
    for _ in 0..30 {
        assert_eq!(client.page(&live(Stream::Bibs)).await.expect_err("narrow").kind, SourceErrorKind::Narrow);
    }
    assert_eq!((script.count("bibs"), client.breaker_status().reason), (30, None));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_asked_for_in_parts() {
    let script = Arc::new(Script::new().on("bibs", [Act::Fail(TransportErrorKind::TooLarge)]));
    assert_eq!(client(&script).page(&live(Stream::Bibs)).await.expect_err("narrow").kind, SourceErrorKind::Narrow);
    assert_eq!(script.count("bibs"), 1);
}

/// A10, B6, B7: ten failures open the breaker, nothing more is sent, a health check closes it, and the first real call
/// asks for one record.
#[tokio::test(start_paused = true)]
async fn the_breaker_opens_is_checked_and_closes() {
    let script = Arc::new(
        Script::new()
            .on("bibs", [Act::Fail(TransportErrorKind::Closed)])
            .on("info/token", [answer(503, ""), answer(200, "{}")]),
    );
    let client = client(&script);
    let query = live(Stream::Bibs);
    let mut last = client.page(&query).await.expect_err("fails");
    while last.kind == SourceErrorKind::Exhausted {
        last = client.page(&query).await.expect_err("fails");
    }
    let asked = script.count("bibs");
    assert!(last.kind == SourceErrorKind::CircuitOpen && asked <= 10, "{asked} {last:?}");
    let open = client.breaker_status();
    assert!(open.reason.is_some() && open.next_probe.is_some());
    for _ in 0..20 {
        let error = client.page(&query).await.expect_err("open");
        assert_eq!((error.kind, error.traffic.calls), (SourceErrorKind::CircuitOpen, 0));
    }
    assert_eq!(script.count("bibs"), asked);
    script.change("bibs", [page(&[1])]);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(script.count("info/token"), 2, "one failed, one closed it");
    let Ok(Answer::Page(page)) = client.page(&query).await else { panic!("no page") };
    assert_eq!(page.entries.len(), 1);
    assert_eq!(
        script.seen_of("bibs").last().map(|seen| seen.path.clone()).as_deref(),
        Some("bibs?limit=1&fields=id&deleted=false")
    );
    client.page(&query).await.expect("a page");
    assert!(script.seen_of("bibs").last().is_some_and(|seen| seen.path.starts_with("bibs?limit=2000")));
}

/// BR-110: whatever the check answers, its slot is free again, and what shows Sierra at work closes the breaker.
#[tokio::test(start_paused = true)]
async fn any_answer_of_sierras_own_closes_the_breaker() {
    for sign in [answer(404, NOTHING), answer(400, r#"{"code":106,"httpStatus":400}"#), answer(401, "")] {
        let script =
            Arc::new(Script::new().on("bibs", [Act::Fail(TransportErrorKind::Closed)]).on("info/token", [sign]));
        let client = client(&script);
        while client.page(&live(Stream::Bibs)).await.expect_err("fails").kind == SourceErrorKind::Exhausted {}
        tokio::time::sleep(Duration::from_secs(31)).await;
        script.change("bibs", [page(&[1])]);
        client.page(&live(Stream::Bibs)).await.expect("a page");
    }
}

/// The pulse is Sierra's sign of life, not a test of rights; but a page of something else is no sign.
#[tokio::test(start_paused = true)]
async fn a_pulse_needs_an_answer_of_sierras_own() {
    let dated = |act| with_header(act, "date", "Mon, 05 Jan 2026 10:00:00 GMT");
    for sign in [
        answer(200, r#"{"keyId":"x","expiresIn":10,"roles":[]}"#),
        answer(403, r#"{"code":116,"httpStatus":403,"name":"Forbidden"}"#),
        answer(404, NOTHING),
    ] {
        let script = Arc::new(Script::new().on("info/token", [dated(sign)]));
        let pulse = client(&script).pulse().await.expect("alive");
        assert_eq!(pulse.date.map(|date| date.to_string()).as_deref(), Some("2026-01-05T10:00:00Z"));
        assert_eq!(pulse.traffic.calls, 2);
    }
    let table = [
        (answer(404, "<html>no such page</html>"), SourceErrorKind::Permanent),
        (answer(302, ""), SourceErrorKind::Permanent),
        (answer(200, "<html>login</html>"), SourceErrorKind::Exhausted),
        (answer(200, ""), SourceErrorKind::Exhausted),
        (answer(503, r#"{"code":117,"httpStatus":503,"name":"API disabled"}"#), SourceErrorKind::Stopped),
    ];
    for (sign, kind) in table {
        let script = Arc::new(Script::new().on("info/token", [sign.clone()]));
        let error = client(&script).pulse().await.expect_err("no sign of life");
        assert_eq!((error.kind, error.endpoint), (kind, "info/token"), "{sign:?}");
    }
}

/// The recorded keyset chain of a real server: a full page, a short one, and Sierra's own end.
#[tokio::test(start_paused = true)]
async fn a_recorded_chain_of_pages_is_walked_to_its_end() {
    let Some(first) = recorded("holdings-v6-page1.json") else { return };
    let rest = |name| recorded(name).expect("recorded beside the first");
    let script = Arc::new(Script::new().on(
        "items",
        [
            answer(200, &first),
            answer(200, &rest("holdings-v6-page2.json")),
            answer(404, &rest("holdings-v6-page3-end.json")),
        ],
    ));
    let client = client(&script);
    let (mut query, mut seen) = (live(Stream::Items), Vec::new());
    while let Answer::Page(page) = client.page(&query).await.expect("an answer") {
        seen.push((page.entries.len(), page.last_id.value()));
        query = after(query, page.last_id.value());
    }
    assert_eq!(seen.iter().map(|(entries, _)| *entries).collect::<Vec<_>>(), [50, 1]);
    assert_eq!(seen.last().map(|(_, last)| *last), Some(1_064_036));
    let asked: Vec<String> = script.seen_of("items").into_iter().map(|seen| seen.path).collect();
    assert_eq!(asked[2], "items?limit=2000&fields=id&deleted=false&id=%5B1064037,%5D");
}

/// D3: a body that forbids the retry ends the call after that one attempt on every path that sends requests: a page, a sign
/// of life, the token call, and the question whether a failing page is to blame itself.
#[tokio::test(start_paused = true)]
async fn a_declared_error_is_obeyed_on_every_path() {
    let declared = || answer(503, r#"{"code":109,"httpStatus":503,"retryable":false}"#);
    let script = Arc::new(Script::new().on("bibs", [declared()]).on("info/token", [declared()]));
    client(&script).page(&live(Stream::Bibs)).await.expect_err("declared");
    client(&script).pulse().await.expect_err("declared");
    assert_eq!((script.count("bibs"), script.count("info/token")), (1, 1));

    let script = Arc::new(Script::new().on("token", [declared()]).on("bibs", [page(&[1])]));
    client(&script).page(&live(Stream::Bibs)).await.expect_err("no token");
    assert_eq!((script.count("token"), script.count("bibs")), (1, 0));

    let failing = || answer(200, r#"{"total":0}"#);
    let control = [failing(), failing(), failing(), failing(), failing(), declared()];
    let script = Arc::new(Script::new().on("bibs", control));
    client(&script).page(&live(Stream::Bibs)).await.expect_err("a page that fails, and a control that is declared");
    assert_eq!(script.count("bibs"), 6);
}
