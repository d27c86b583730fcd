//! `check --offline` lints the configuration.

use serde_json::json;

use super::support::Bench;

#[test]
fn every_line_has_the_four_keys_of_its_contract() {
    let bench = Bench::configured();
    let run = bench.run(&["check", "--offline", "--json", "--set", "retry.cap=5s"]);
    assert_eq!(run.code, 0, "{run:?}");
    let lines = run.json_lines();
    assert!(lines.len() >= 3, "{lines:#?}");
    for line in &lines {
        let keys: Vec<&String> = line.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["hint", "message", "ok", "probe"]);
    }
    assert_eq!(lines[0]["message"], "valid; follows bibs into archive");
    let is_warned = |line: &serde_json::Value| {
        line["message"].as_str().is_some_and(|message| message.starts_with("retry.cap is 5s, shorter than"))
    };
    assert!(lines.iter().any(is_warned), "{lines:#?}");
}

#[test]
fn every_problem_is_a_line_that_failed() {
    let bench = Bench::with_config(include_str!("../../../fixtures/config/broken.toml"));
    let run = bench.run(&["check", "--offline", "--json"]);
    assert_eq!(run.code, 2, "{run:?}");
    let lines = run.json_lines();
    assert!(lines.len() > 40, "{} problems", lines.len());
    assert!(lines.iter().all(|line| line["ok"] == json!(false) && line["probe"] == json!("config")));
    assert!(!run.stdout.contains("canary") && !run.stderr.contains("canary"));
}

/// BR-122: what the chosen overlap and intervals cost is said before they are paid.
#[test]
fn the_cost_of_the_schedule_is_told() {
    let bench = Bench::configured();
    let calls = |interval: &str| {
        let set = format!("streams.bibs.interval={interval}");
        let run = bench.run(&["check", "--offline", "--set", &set]);
        let estimate = run.stdout.lines().find(|line| line.contains("estimate")).expect("it is told").to_owned();
        estimate.split_once("about ").expect("a number").1.split_once(" calls").expect("calls").0.replace(',', "")
    };
    let (often, seldom): (u64, u64) = (calls("1m").parse().expect("a number"), calls("1h").parse().expect("a number"));
    assert_eq!((often, seldom), (1440 * 3 + 96, 24 * 3 + 96));
}
