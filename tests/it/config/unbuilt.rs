//! What is not built yet is refused with one sentence, never accepted and ignored.

use sierra_sync::config::unbuilt::{UNBUILT, Unbuilt};

use super::support::{Load, fixture};

/// The key of `row` in the minimal file.
fn key(row: &Unbuilt) -> String {
    row.key.replace("sinks.*", "sinks.archive").replace("streams.*", "streams.bibs")
}

#[test]
fn every_row_of_the_table_is_refused_in_one_sentence() {
    for row in UNBUILT {
        let values = if row.values.is_empty() { &["anything"][..] } else { row.values };
        for value in values {
            let problem = Load::text(&fixture("minimal.toml")).flag(&key(row), value).problem();
            assert!(problem.contains("is not built yet") && problem.ends_with(row.instead), "{problem}");
        }
    }
}

#[test]
fn the_keys_of_a_sink_type_that_is_not_built_add_no_noise() {
    let text = fixture("minimal.toml") + "[sinks.bus]\ntype = \"nats\"\nservers = [\"nats://x\"]\nsubject = \"y\"\n";
    let problem = Load::text(&text).problem();
    assert!(problem.contains("sinks.bus.type: \"nats\" is not built yet; built are file and stdout"), "{problem}");
}
