//! `simulate` says what a client needs, and serves it.

use std::sync::Arc;

use clap::Parser;
use sierra_sync::cli::simulate::{SimulateArgs, run_until};
use sierra_sync::clock::SystemClock;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    simulate: SimulateArgs,
}

fn args(line: &[&str]) -> Result<SimulateArgs, clap::Error> {
    Cli::try_parse_from([&["simulate"], line].concat()).map(|cli| cli.simulate)
}

/// Runs the command until it has introduced itself; returns what it said on stdout and stderr.
async fn introduction(line: &[&str]) -> anyhow::Result<(String, String)> {
    let (mut out, mut talk) = (Vec::new(), Vec::new());
    let stop = std::future::ready(());
    // `--json` is an option of every command, so it is parsed above this one.
    let (json, own): (Vec<&str>, Vec<&str>) = line.iter().partition(|argument| **argument == "--json");
    let mut args = args(&own).unwrap();
    args.json = !json.is_empty();
    run_until(args, Arc::new(SystemClock), stop, &mut out, &mut talk).await?;
    Ok((String::from_utf8(out).unwrap(), String::from_utf8(talk).unwrap()))
}

#[tokio::test]
async fn data_goes_to_stdout_and_talk_to_stderr() {
    let line = ["--bibs", "30", "--items", "20", "--patrons", "10", "--zone", "Europe/Oslo", "--json"];
    let (out, talk) = introduction(&line).await.unwrap();
    let data: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&data["bibs"], &data["items"], &data["patrons"]), (&30.into(), &20.into(), &10.into()));
    let base_url = data["base_url"].as_str().unwrap();
    assert!(base_url.starts_with("http://127.0.0.1:") && base_url.ends_with("/iii/sierra-api/v6"));
    for part in
        [base_url, "client_key = \"simulator-key\"", "local_zone = \"Europe/Oslo\"", "CLIENT_SECRET=simulator-secret"]
    {
        assert!(talk.contains(part), "{talk}");
    }
    let (out, _) = introduction(&line[..8]).await.unwrap();
    assert_eq!(out, "");
}

/// The configuration that is offered for pasting can be read.
#[tokio::test]
async fn the_offered_configuration_is_toml() {
    let (_, talk) = introduction(&["--bibs", "3", "--items", "3"]).await.unwrap();
    let lines = talk.lines().filter_map(|line| line.strip_prefix("    ")).filter(|line| !line.starts_with("export"));
    let config: toml::Table = toml::from_str(&lines.collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!(config["config_version"].as_integer(), Some(1));
    assert!(config["sierra"]["base_url"].as_str().unwrap().starts_with("http://127.0.0.1:"));
}

#[tokio::test]
async fn an_unknown_scenario_is_named_with_those_there_are() {
    let error = introduction(&["--scenario", "rainstorm"]).await.unwrap_err();
    assert!(format!("{error:#}").contains("demo, night, outage, quiet, storm"), "{error:#}");
}

#[test]
fn nonsense_is_refused_before_anything_starts() {
    for line in [
        &["--rate-limit", "fast"][..],
        &["--rate-limit", "0/60"],
        &["--rate-limit", "100/60", "--rate-dialect", "klingon"],
        &["--rate-dialect", "silent"],
        &["--life", "-1"],
        &["--listen", "nowhere"],
    ] {
        assert!(args(line).is_err(), "{line:?}");
    }
    let limited = args(&["--rate-limit", "100/60", "--rate-dialect", "rate_limit_item", "--rate-reset", "rfc3339"]);
    assert_eq!(limited.unwrap().rate_limit, Some((100, 60)));
}
