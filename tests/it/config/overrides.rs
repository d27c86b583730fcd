//! Defaults < file < environment < flags.

use std::time::Duration;

use sierra_sync::privacy::FieldRule;
use sierra_sync::record::Stream;
use sierra_sync::resilience::endpoint::Endpoint;
use sierra_sync::sink::SinkSettings;

use super::support::{Load, minimal_with};

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let text = minimal_with("[retry]\ncap = \"31s\"\n");
    let cap = |load: Load<'_>| load.config().retry.cap;
    assert_eq!(cap(Load::text(&minimal_with(""))), Duration::from_secs(30));
    assert_eq!(cap(Load::text(&text)), Duration::from_secs(31));
    assert_eq!(cap(Load::text(&text).variable("SIERRA_SYNC__RETRY__CAP", "32s")), Duration::from_secs(32));
    let both = Load::text(&text).variable("SIERRA_SYNC__RETRY__CAP", "32s").flag("retry.cap", "33s");
    assert_eq!(cap(both), Duration::from_secs(33));
}

#[test]
fn variables_reach_into_tables_and_are_read_by_the_type_of_their_key() {
    let text = minimal_with("");
    let config = Load::text(&text)
        .variable("SIERRA_SYNC__SINKS__ARCHIVE__PATH", "/data/out")
        .variable("SIERRA_SYNC__SINKS__ARCHIVE__PAUSED", "true")
        .variable("SIERRA_SYNC__SINKS__ARCHIVE__STREAMS", r#"["bibs"]"#)
        .variable("SIERRA_SYNC__SINKS__ARCHIVE__ROTATE__SIZE", "1MiB")
        .variable("SIERRA_SYNC__STREAMS__BIBS__LOCATIONS", "main*, law")
        .variable("SIERRA_SYNC__STREAMS__BIBS__PAGE_SIZE", "50")
        .variable("SIERRA_SYNC__STREAMS__ITEMS", "{ interval = \"1m\" }")
        .variable("SIERRA_SYNC__QUOTA__SHARE", "0.5")
        .variable("SIERRA_SYNC__PRIVACY__PATRONS__FIELDS__LANGPREF", "pass")
        .config();
    let sink = &config.sinks["archive"];
    let SinkSettings::File(file) = &sink.sink else { panic!("it is a file sink") };
    assert_eq!((file.path.to_str(), file.rotate_size), (Some("/data/out"), 1 << 20));
    assert_eq!((sink.route.paused, sink.route.streams.as_slice()), (true, &[Stream::Bibs][..]));
    let bibs = config.stream(Stream::Bibs).expect("it is on");
    assert_eq!((bibs.page_size, bibs.locations.as_slice()), (50, &["main*".to_owned(), "law".to_owned()][..]));
    assert!(config.stream(Stream::Items).is_some());
    assert_eq!(config.privacy.patron_fields.get("langPref"), Some(&FieldRule::Pass));
}

#[test]
fn the_environment_alone_can_be_the_whole_configuration() {
    let config = Load::text("")
        .variable("SIERRA_SYNC__CONFIG_VERSION", "1")
        .variable("SIERRA_SYNC__SIERRA__BASE_URL", "https://lib.example.edu/iii/sierra-api/v6/")
        .variable("SIERRA_SYNC__SIERRA__CLIENT_KEY", "key")
        .variable("SIERRA_SYNC__STREAMS__BIBS__INTERVAL", "5m")
        .variable("SIERRA_SYNC__SINKS__OUT__TYPE", "stdout")
        .config();
    assert_eq!(config.sierra.base_url, "https://lib.example.edu/iii/sierra-api/v6");
    assert_eq!(config.sinks["out"].sink, SinkSettings::Stdout);
}

#[test]
fn a_misspelt_variable_is_refused_with_the_nearest_name() {
    let text = minimal_with("");
    let problem = Load::text(&text).variable("SIERRA_SYNC__SIERRA__BASEURL", "x").problem();
    let expected = r#"sierra.baseurl: is not a known key; did you mean "base_url"?"#;
    assert_eq!(problem, format!("SIERRA_SYNC__SIERRA__BASEURL: {expected}"));
}

/// A19: calls at once are capped on each endpoint, by the settings of its stream.
#[test]
fn each_endpoint_takes_the_concurrency_of_its_stream() {
    let text = minimal_with("[streams.items]\nconcurrency = 3\n");
    let config = Load::text(&text).variable("SIERRA_SYNC__QUOTA__RATE", "90/m").config();
    assert_eq!(*config.quota.concurrency.of(Endpoint::Bibs), 2);
    assert_eq!(*config.quota.concurrency.of(Endpoint::Items), 3);
    assert_eq!(*config.quota.concurrency.of(Endpoint::Token), 1);
    assert!((config.quota.rate - 1.5).abs() < 1e-9);
    assert_eq!(config.retry.attempt_timeout, Duration::from_secs(60));
}

/// What stands in the file can be pasted into an override, quotes and all. The quotes of a secret are its own.
#[test]
fn an_override_may_be_in_quotes_as_in_the_file() {
    let text = minimal_with("");
    let cap = |load: Load<'_>| load.config().retry.cap;
    assert_eq!(cap(Load::text(&text).flag("retry.cap", "\"31s\"")), Duration::from_secs(31));
    assert_eq!(cap(Load::text(&text).variable("SIERRA_SYNC__RETRY__CAP", "'32s'")), Duration::from_secs(32));
    Load::text(&text).flag("retry.jitter", "\"full\"").config();
    let secret = Load::without_secret(&text).variable("SIERRA_SYNC__SIERRA__CLIENT_SECRET", "\"quoted\"").config();
    assert_eq!(secret.sierra.client_secret.expose(), "\"quoted\"");
    let half = Load::text(&text).flag("retry.cap", "\"31s").problem();
    assert!(half.contains("is not a duration"), "{half}");
}
