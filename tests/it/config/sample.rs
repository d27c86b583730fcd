//! The sample that `init` writes.

use sierra_sync::config::{self, SAMPLE};

use super::support::{Load, fixture};

/// The sample with the settings that it comments out in force: `#key = …` and `#[table]`, without a space.
fn uncommented() -> String {
    let is_setting = |line: &str| line.starts_with(|first: char| first.is_ascii_lowercase() || first == '[');
    let lines = SAMPLE.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if is_setting(setting) => setting,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n").replace("<version>", env!("CARGO_PKG_VERSION"))
}

fn load(text: &str) -> String {
    let config = Load::text(text)
        .variable("SIERRA_SYNC__SIERRA__CLIENT_KEY", "key")
        .variable("SIERRA_SYNC__SIERRA__BASE_URL", "https://lib.example.edu/v6")
        .config();
    format!("{config:#?}")
}

#[test]
fn its_values_are_the_defaults() {
    let bare = "config_version = 1\n[streams.bibs]\n[streams.items]\n[sinks.archive]\ntype = \"file\"\n";
    assert_eq!(load(SAMPLE), load(bare));
    assert_eq!(load(&uncommented()), load(&format!("{bare}[streams.patrons]\n")));
}

#[test]
fn every_key_stands_in_it() {
    let sample: toml::Table = uncommented().parse().expect("it is TOML");
    let missing = |key: &config::KeyPath| {
        let mut segments = key.segments().iter().map(String::as_str);
        // Items and patrons have the keys of bibs; patron fields have those that are passed on.
        if key.fits("streams.items.*") || key.fits("streams.patrons.*") || key.fits("privacy.patrons.fields.*") {
            return false;
        }
        let first = segments.next().and_then(|first| sample.get(first));
        let found = segments.try_fold(first, |value, segment| {
            let table = value?.as_table()?;
            Some(if segment == "*" { table.values().next() } else { table.get(segment) })
        });
        found.flatten().is_none()
    };
    let missing: Vec<String> = config::keys().iter().filter(|key| missing(key)).map(ToString::to_string).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn as_written_only_key_and_secret_are_missing() {
    let problems = Load::without_secret(SAMPLE).problems();
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(problems[0].contains("sierra.client_secret: is missing") && problems[1].contains("client_key: is empty"));
}

#[test]
fn a_minimal_file_just_works() {
    assert_eq!(Load::text(&fixture("minimal.toml")).warnings(), Vec::<String>::new());
}
