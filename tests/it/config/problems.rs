//! Every problem is reported at once, with its place, what is wrong and what would be right.

use std::fs;

use proptest::prelude::*;
use sierra_sync::config::{self, Environment};

use super::support::{Load, fixture, minimal_with};

/// The main rule 11: fail on configuration once, completely, before the first request.
#[test]
fn every_config_problem_is_listed() {
    let text = fixture("broken.toml");
    let problems = Load::without_secret(&text)
        .variable("SIERRA_SYNC__RETRY__CAPP", "30s")
        .variable("SIERRA_SYNC__OPS", "loopback")
        .variable("SIERRA_SYNC__STATE____PATH", "./state")
        .variable("SIERRA_SYNC__BREAKER__OPEN_CAP", "1 minute")
        .flag("quota.reserve", "many")
        .flag("sierra.client_key", "")
        .problems();
    assert!(!problems.iter().any(|problem| problem.contains("canary")), "a secret was shown: {problems:#?}");
    insta::assert_snapshot!(problems.join("\n"));
}

#[test]
fn every_syntax_error_is_listed() {
    let problems =
        Load::text("config_version = \n[sierra]\nbase_url = 'x\n[sierra]\nclient_key = \"a\" \"b\"\n").problems();
    insta::assert_snapshot!(problems.join("\n"));
}

/// A17: the parameters live in a versioned configuration.
#[test]
fn a_configuration_without_its_version_is_refused() {
    let text = fixture("minimal.toml");
    let problem = Load::text(text.trim_start_matches("config_version = 1")).problem();
    let hint = "is missing; write it in the file or set SIERRA_SYNC__CONFIG_VERSION";
    assert_eq!(problem, format!("sierra-sync.toml: config_version: {hint}"));
}

/// BR-007: a window of no length is a configuration error, not an endless loop.
#[test]
fn an_interval_of_zero_is_refused() {
    let text = minimal_with("").replace("[streams.bibs]", "[streams.bibs]\ninterval = \"0s\"");
    let problem = Load::text(&text).problem();
    assert!(problem.contains("streams.bibs.interval: \"0s\" is out of range"), "{problem}");
}

/// BR-040: a field list with commas or spaces inside confuses the API.
#[test]
fn a_field_name_with_a_comma_or_space_is_refused() {
    for name in ["id,updatedDate", "id updatedDate", "", "id "] {
        let text = minimal_with("").replace("[streams.bibs]", &format!("[streams.bibs]\nfields = [{name:?}]"));
        let problem = Load::text(&text).problem();
        assert!(problem.contains("is not the name of a field; write one name an element"), "{problem}");
    }
}

/// BR-131: verification of certificates has no switch.
#[test]
fn verification_cannot_be_switched_off() {
    for key in ["verify_tls", "insecure", "accept_invalid_certs"] {
        let text = minimal_with("").replace("[sierra]", &format!("[sierra]\n{key} = true"));
        let problem = Load::text(&text).problem();
        assert!(problem.contains(&format!("sierra.{key}: is not a known key")), "{problem}");
    }
}

#[test]
fn a_missing_file_and_one_that_is_no_text_are_told_apart() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("sierra-sync.toml");
    let load = || config::load(Some(&path), &Environment::default(), &[]).expect_err("it is wrong").to_string();
    assert!(load().contains("there is no such file"), "{}", load());
    fs::write(&path, [0xff, 0xfe]).expect("it can be written");
    assert!(load().contains("is not UTF-8 text"), "{}", load());
    fs::write(&path, vec![b'#'; 2 << 20]).expect("it can be written");
    assert!(load().contains("is larger than 1 MiB"), "{}", load());
}

/// A line that sets one of the keys there are to some value.
fn line() -> impl Strategy<Value = String> {
    let keys: Vec<String> = config::keys().iter().map(|key| key.to_string().replace("\"*\"", "archive")).collect();
    let value = prop_oneof![
        "\"[^\"\\\\\\p{Cc}]{0,9}\"",
        "-?[0-9]{1,20}",
        "[0-9]{1,3}\\.[0-9]",
        Just("true".to_owned()),
        Just("2026-01-05".to_owned()),
        "\\[([0-9]|\"[a-z*]{0,3}\"), \"x\"\\]",
        "\\{[a-z]{1,4} = 1\\}",
        "\"[0-9]{1,4}(ms|s|m|h|d|MiB|/s)\"",
    ];
    (proptest::sample::select(keys), value).prop_map(|(key, value)| format!("{key} = {value}\n"))
}

proptest! {
    #[test]
    fn any_values_are_taken_or_refused_with_reasons(lines in proptest::collection::vec(line(), 0..12)) {
        if let Err(problems) = Load::text(&lines.concat()).result() {
            prop_assert!(problems.iter().next().is_some());
        }
    }

    #[test]
    fn any_text_is_read_or_refused_with_reasons(text in "(.{0,20}\n){0,12}") {
        prop_assert!(Load::text(&text).result().is_err());
    }
}
