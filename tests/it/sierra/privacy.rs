//! Canaries: a key, a secret, tokens and a patron, planted everywhere and found nowhere.

use std::io;
use std::sync::{Arc, Mutex};

use base64::Engine;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::sierra::transport::TransportErrorKind;
use sierra_sync::sync::ports::{FieldSet, PageQuery, Source};
use tracing_subscriber::fmt::MakeWriter;

use super::script::{Act, KEY, NOTHING, SECRET, Script, TOKEN, after, answer, client, live, page, with_header};

/// Keeps every log line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// Captures everything down to trace, as JSON, on this thread until the guard goes.
    fn capture(&self) -> tracing::subscriber::DefaultGuard {
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing::Level::TRACE)
            .with_writer(self.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("not poisoned").clone()).expect("UTF-8")
    }

    fn events(&self, name: &str) -> Vec<serde_json::Value> {
        let lines = self.text();
        let values = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        values.filter(|value| value["event"] == name).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn assert_clean(text: &str) {
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("{KEY}:{SECRET}"));
    for canary in [KEY, SECRET, TOKEN, &basic, "CANARY"] {
        assert!(!text.contains(canary), "{canary} in {text}");
    }
}

/// A page that gives back what it was sent, as error pages of proxies do.
fn echo(status: u16) -> Act {
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("{KEY}:{SECRET}"));
    let headers = format!("Authorization: Bearer {TOKEN}1 Basic {basic} {KEY} {SECRET} {TOKEN}2");
    answer(status, &format!(r#"{{"code":109,"httpStatus":{status},"name":"{headers}","description":"{headers}"}}"#))
}

/// BR-035: debug level on, a 401, a 500 that echoes headers, a refused token call, a failing connection.
#[tokio::test(start_paused = true)]
async fn no_token_secret_or_key_is_ever_written() {
    let lines = Lines::default();
    let _guard = lines.capture();
    let script =
        Arc::new(Script::new().on("info/token", [echo(403)]).on(
            "bibs",
            [echo(401), echo(500), echo(429), Act::Fail(TransportErrorKind::Closed), page(&[1]), echo(400)],
        ));
    let client = client(&script);
    let query = live(Stream::Bibs);
    client.page(&query).await.expect("a page at last");
    let refused = client.page(&query).await.expect_err("refused");
    client.pulse().await.expect("alive");
    script.change("bibs", [echo(401)]);
    let unauthorised = client.page(&query).await.expect_err("refused");
    script.change("token", [echo(401)]);
    client.recover();
    let latched = client.page(&query).await.expect_err("latched");

    assert!(refused.message.contains("[redacted]"), "Sierra's words are quoted: {}", refused.message);
    for error in [refused, unauthorised, latched] {
        assert_clean(&format!("{error:?} {error}"));
    }
    assert_clean(&format!("{client:?} {:?} {:?}", client.token_status(), client.line()));
    assert_clean(&String::from_utf8(client.latch_snapshot()).expect("text"));
    let text = lines.text();
    assert!(text.contains("request_sent") && text.contains("credential_latch_closed"), "{text}");
    assert_clean(&text);
}

/// PRV-1: neither a patron's number nor Sierra's words about one are ever written.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_patron_is_ever_written() {
    let lines = Lines::default();
    let _guard = lines.capture();
    let words = r#"{"code":108,"httpStatus":400,"name":"CANARY, PAT","description":"patron 1200345 CANARY"}"#;
    let patrons = r#"{"entries":[{"id":1200345,"names":["CANARY, PAT"]},{"id":1200346,"suppressed":"CANARY"}]}"#;
    let script = Arc::new(Script::new().on(
        "patrons",
        [
            answer(200, patrons),
            answer(500, words),
            answer(404, NOTHING),
            answer(400, words),
            answer(200, r#"{"entries":[{"id":1200344}]}"#),
        ],
    ));
    let client = client(&script);
    let query = after(live(Stream::Patrons), 1_200_344);
    let query = PageQuery { until: Some(RecordNumber::new(1_200_399)), fields: FieldSet::Configured, ..query };
    let page = client.page(&query).await.expect("a page");
    client.page(&query).await.expect("nothing");
    let refused = client.page(&query).await.expect_err("refused");
    let looped = client.page(&query).await.expect_err("looped");
    for text in [lines.text(), format!("{refused:?} {refused} {looped:?} {looped}")] {
        assert_clean(&text);
        assert!(!text.contains("120034") && !text.contains("1200399"), "{text}");
    }
    assert_clean(&format!("{page:?}"));
    assert!(lines.text().contains(r#""path":"/iii/sierra-api/v6/patrons""#), "the path without its query");
}

/// A13: `jq 'select(.status_code == 429 and .attempt > 3)'` finds a storm; and the fields of C9 stand flat on the line.
#[tokio::test(start_paused = true)]
async fn a_retry_storm_is_found_by_status_and_attempt() {
    let lines = Lines::default();
    let _guard = lines.capture();
    let throttled = with_header(answer(429, ""), "x-ratelimit-remaining", "7");
    let script = Arc::new(Script::new().on("bibs", [throttled]));
    let error = client(&script).page(&live(Stream::Bibs)).await.expect_err("throttled");
    let retries = lines.events("retry_scheduled");
    let storm: Vec<_> = retries
        .iter()
        .filter(|line| line["status_code"] == 429 && line["attempt"].as_u64().is_some_and(|attempt| attempt > 3))
        .collect();
    assert!(!storm.is_empty(), "{retries:?}");
    let line = storm[0];
    assert_eq!((&line["endpoint"], &line["rate_limit_remaining"]), (&"bibs".into(), &7.into()));
    assert_eq!(line["correlation_id"], error.correlation_id.as_str());
    assert_eq!(line["honored_retry_after"], false);
    for field in ["delay", "computed_jitter", "elapsed"] {
        assert!(line[field].is_f64(), "{field}: {line}");
    }
}

/// A9: a key that may write is reported, once.
#[tokio::test(start_paused = true)]
async fn a_key_that_can_write_is_reported() {
    let lines = Lines::default();
    let _guard = lines.capture();
    let info = r#"{"roles":[{"name":"Bibs","permissions":["Bibs_List","Bibs_Delete"]}]}"#;
    let script = Arc::new(Script::new().on("info/token", [answer(200, info)]));
    let client = client(&script);
    for _ in 0..3 {
        client.pulse().await.expect("alive");
    }
    let told = lines.events("key_can_write");
    assert_eq!((told.len(), &told[0]["permissions"]), (1, &"Bibs_Delete".into()));
}

/// BR-134, and halves of characters: coped with, and told.
#[tokio::test(start_paused = true)]
async fn odd_pages_are_told_of() {
    let lines = Lines::default();
    let _guard = lines.capture();
    let odd = answer(200, r#"{"entries":[{"id":9},{"id":7,"title":"\ud83d"}]}"#);
    let script = Arc::new(Script::new().on("bibs", [odd]));
    client(&script).page(&live(Stream::Bibs)).await.expect("a page");
    assert_eq!(lines.events("page_out_of_order").len(), 1);
    assert_eq!(lines.events("surrogates_replaced")[0]["count"], 1);
}
