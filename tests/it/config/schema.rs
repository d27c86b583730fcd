//! The JSON Schemas in `schemas/` are those of the code.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use sierra_sync::cli::schema::SchemaName;
use sierra_sync::config::SAMPLE;

fn file(name: SchemaName) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas")).join(name.file())
}

/// Run with `UPDATE_SCHEMAS=1` to write them.
#[test]
fn the_files_equal_the_code() {
    for name in SchemaName::ALL {
        let (path, text) = (file(name), name.text().expect("it is JSON"));
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&path, &text).expect("it can be written");
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{} is not up to date; run the tests with UPDATE_SCHEMAS=1", path.display());
    }
}

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(&SchemaName::Config.text().expect("it is JSON")).expect("it is JSON");
    jsonschema::validator_for(&schema).expect("it is a schema")
}

fn sample() -> Value {
    let table: toml::Table = SAMPLE.parse().expect("the sample is TOML");
    serde_json::to_value(table).expect("its values are JSON")
}

#[test]
fn the_schema_accepts_the_sample() {
    let validator = validator();
    let errors: Vec<String> = validator.iter_errors(&sample()).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn the_schema_refuses_what_the_program_refuses() {
    let validator = validator();
    for (pointer, value) in [
        ("/sierra/base_url", json!("ftp://x/v6")),
        ("/sierra/colour", json!("green")),
        ("/retry/cap", json!("30")),
        ("/retry/jitter", json!("additive")),
        ("/streams/bibs/page_size", json!(5000)),
        ("/streams/bibs/late_sweep", json!("weekly")),
        ("/streams/bibs/zone", json!("New York")),
        ("/sinks/archive/type", json!("postgres")),
        ("/sinks/archive/rotate/size", json!(1)),
        ("/privacy/patrons/fields/id", json!("show")),
    ] {
        let mut file = sample();
        let (parent, key) = pointer.rsplit_once('/').expect("it is a pointer");
        file.pointer_mut(parent).expect("the table is there")[key] = value;
        assert!(!validator.is_valid(&file), "{pointer} was accepted");
    }
}
