//! A storm, recorded: refusals, failures, dead tokens and an outage, as the JSON lines that an operator keeps.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sierra_sync::simulator::{Endpoint, Fault, Unauthorized, When};

use super::support::{Library, SECRET, Site};

/// What the body of every failing answer holds.
const IN_BODIES: &str = "canary-of-a-body";

/// `jq 'select(.status_code == 429 and .attempt > 3)'`.
fn is_of_a_retry_storm(line: &Value) -> bool {
    // As jq compares them: a missing field is null, and null is less than any number.
    line["status_code"] == 429 && line["attempt"].as_f64().is_some_and(|attempt| attempt > 3.0)
}

/// A13: the filter of the rule finds the storm in the log and nothing else; every line of a retry carries the masked
/// facts, flat; and no line holds a body, a token, the secret, or anything of a patron.
#[test]
fn the_log_of_a_storm_answers_the_rules_own_filter() {
    let site = Site::new(Library::sized(60, 80, 40));
    site.configure(|text| {
        text.replace("[quota]", "[streams.patrons]\nsettle = \"0s\"\npage_size = 10\n\n[quota]")
            .replace("path = \"./lines\"", "path = \"./lines\"\nstreams = [\"bibs\", \"items\", \"patrons\"]")
    });
    let canaries = site.library.with(|simulator| simulator.world.canaries());
    let body = format!(
        "<html>{IN_BODIES} {} Bearer sim0001-0123456789 {}</html>",
        canaries[0],
        STANDARD.encode(format!("simulator-key:{SECRET}"))
    );
    let failing = |status| Fault::Raw {
        status,
        content_type: "text/html".into(),
        headers: vec![("x-ratelimit-remaining".into(), "17".into())],
        body: body.clone(),
    };
    site.library.plan(Fault::too_many_requests("0", "0").first(4).at(Endpoint::Bibs).asking("deleted", "false"));
    site.library.plan(failing(500).when(When::Calls { from: 2, to: 3 }).at(Endpoint::Items));
    site.library.plan(Fault::Unauthorized(Unauthorized::InvalidGrant).nth(2).at(Endpoint::Patrons));
    site.library.plan(failing(502).nth(3).at(Endpoint::Patrons));
    // Late enough that the four refusals are over, however fast the other streams are, and in the midst of the load.
    site.library.plan(failing(503).when(When::Calls { from: 24, to: 52 }));

    let mut log = String::new();
    let is_over = (0..200).any(|_| {
        let run = site.sync(&["--log", "trace", "--log-format", "json"]);
        log.push_str(&run.stderr);
        run.code == Some(0)
    });
    assert!(is_over, "the storm does not end");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).count();
    for event in ["retry_scheduled", "retry_reauthenticating", "retry_succeeded", "breaker_opened", "breaker_closed"] {
        assert!(of(event) > 0, "no {event} in the storm");
    }

    let storm: Vec<&Value> = lines.iter().filter(|line| is_of_a_retry_storm(line)).collect();
    let found: Vec<_> = storm.iter().map(|line| (&line["endpoint"], &line["attempt"])).collect();
    assert_eq!(found, [(&"bibs".into(), &4.into())], "four refusals in a row of one call: {storm:#?}");
    for line in lines.iter().filter(|line| line["event"] == "retry_scheduled") {
        for field in ["endpoint", "correlation_id"] {
            assert!(line[field].is_string(), "{field}: {line}");
        }
        for field in ["attempt", "delay", "computed_jitter", "elapsed"] {
            assert!(line[field].is_number(), "{field}: {line}");
        }
        assert!(line["honored_retry_after"].is_boolean() && line["status_code"].is_u64(), "{line}");
        assert!(line["rate_limit_remaining"] == 0 || line["rate_limit_remaining"] == 17, "{line}");
    }
    let opened = lines.iter().find(|line| line["event"] == "breaker_opened").expect("it opened");
    assert!(opened["correlation_id"].is_string() && opened["queued"].is_u64() && opened["reason"].is_string());
    let is_flat = |line: &Value| line.as_object().is_some_and(|line| line.values().all(|value| !value.is_object()));
    assert!(lines.iter().all(is_flat));

    for forbidden in [IN_BODIES, SECRET, "sim00", &STANDARD.encode(format!("simulator-key:{SECRET}"))] {
        assert!(!log.contains(forbidden), "{forbidden} in the log");
    }
    let names = canaries.iter().filter(|canary| canary.bytes().any(|byte| !byte.is_ascii_digit()));
    for canary in names {
        assert!(!log.contains(canary.as_str()), "{canary} in the log");
    }
    let asked = lines.iter().filter(|line| line["event"] == "request_sent" && line["endpoint"] == "patrons");
    let paths: Vec<&str> = asked.filter_map(|line| line["path"].as_str()).collect();
    assert!(!paths.is_empty() && paths.iter().all(|path| !path.contains('?')), "{paths:?}");
}
