//! The JSON Schema of the configuration file, from the same declarations that check it.

use serde_json::{Map, Value, json};

use crate::config::document::Document;
use crate::config::env::Environment;
use crate::config::load;
use crate::config::path::KeyPath;
use crate::config::section::{Described, Reading};

/// A file in which every kind of table occurs, so that reading it meets every declaration.
const EVERY_TABLE: &str = "
[streams.bibs]
[streams.items]
[streams.patrons]
[sinks.a]
type = \"file\"
[sinks.b]
type = \"stdout\"
";

/// The JSON Schema of the file.
#[must_use]
pub fn schema() -> schemars::Schema {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sierra-sync configuration",
        "description": "The configuration of sierra-sync, as the JSON form of its TOML file. Durations, sizes and \
                        rates are texts with a unit; x-minimum and x-maximum are their ranges.",
        "type": "object",
        "properties": {},
        "additionalProperties": false,
    });
    for key in described() {
        add(&mut root, key.path.segments(), &key);
    }
    schemars::Schema::try_from(root).expect("an object is a schema")
}

/// Every key that can be written, in the order of the sections; `*` stands for a name that people choose.
#[must_use]
pub fn keys() -> Vec<KeyPath> {
    described().into_iter().map(|key| key.path).collect()
}

fn described() -> Vec<Described> {
    let (document, problems) = Document::parse("schema".as_ref(), EVERY_TABLE);
    debug_assert!(problems.is_empty(), "the tables of EVERY_TABLE are TOML");
    let environment = Environment::default();
    let reading = Reading::of(&document, &environment);
    // What is missing is of no interest here, only what was asked for.
    drop(load::read(&reading));
    reading.described.into_inner()
}

/// Puts `key` below `schema`, at `path`.
fn add(schema: &mut Value, path: &[String], key: &Described) {
    let Some(object) = schema.as_object_mut() else { return };
    match path {
        [] => {}
        [name] if name == "*" => {}
        [name] => {
            let properties = entry(object, "properties", json!({}));
            let Some(properties) = properties.as_object_mut() else { return };
            // The keys that sinks of every type have are declared once for each type.
            properties.entry(name).or_insert_with(|| leaf(key));
            if key.required {
                let required = entry(object, "required", json!([]));
                let Some(required) = required.as_array_mut() else { return };
                if !required.contains(&json!(name)) {
                    required.push(json!(name));
                }
            }
        }
        [name, rest @ ..] if name == "*" => {
            let fresh = || json!({"type": "object", "properties": {}, "additionalProperties": false});
            let below = entry(object, "additionalProperties", fresh());
            if !below.is_object() {
                *below = fresh();
            }
            add(below, rest, key);
        }
        [name, rest @ ..] => {
            let Some(below) = entry(object, "properties", json!({})).get_mut(name) else { return };
            add(below, rest, key);
        }
    }
}

fn leaf(key: &Described) -> Value {
    let mut schema = key.schema.clone();
    let Some(object) = schema.as_object_mut() else { return schema };
    if !key.about.is_empty() {
        object.insert("description".to_owned(), json!(key.about));
    }
    if let Some(default) = &key.default {
        object.insert("default".to_owned(), default.clone());
    }
    if object.get("type") == Some(&json!("object")) {
        object.insert("properties".to_owned(), json!({}));
        object.insert("additionalProperties".to_owned(), json!(false));
    }
    schema
}

fn entry<'m>(object: &'m mut Map<String, Value>, name: &str, fresh: Value) -> &'m mut Value {
    object.entry(name).or_insert(fresh)
}
