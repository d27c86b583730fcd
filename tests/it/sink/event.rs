//! The event, its schema and its way back.

use sierra_sync::record::Stream;
use sierra_sync::sink::event::{self, Event};
use sierra_sync::sync::{Change, DeleteReason, Op, Payload};

use super::changes::{bib, deleted, item, patron, raw};

/// Every shape that an event can have.
fn every_shape() -> Vec<Change> {
    let mut unknown_update = item(3, 3_900_123, &[2_100_417, 2_100_999], &[]);
    unknown_update.updated = None;
    let mut vanished = deleted(6, Stream::Bibs, 2_100_417, &[]);
    vanished.op = Op::Delete { reason: DeleteReason::Vanished, deleted_on: None };
    let mut patron_gone = patron(8, 1_200_345);
    patron_gone.op = Op::Delete { reason: DeleteReason::Deleted, deleted_on: None };
    patron_gone.payload = Payload::Nothing;
    vec![
        bib(1_853_470_490_492_928, 2_100_417, "Field guide to \"invented\" birds & <others>"),
        item(2, 3_900_123, &[2_100_417], &[2_100_999]),
        unknown_update,
        deleted(4, Stream::Items, 3_900_124, &[2_100_417]),
        deleted(5, Stream::Bibs, 2_100_417, &[]),
        vanished,
        patron(7, 1_200_345),
        patron_gone,
    ]
}

fn line(change: &Change) -> String {
    let mut lines = Vec::new();
    let length = event::append_line(change, &mut lines);
    assert_eq!(length, lines.len());
    String::from_utf8(lines).expect("UTF-8")
}

/// Contract: the events of the design, member for member and in this order.
#[test]
fn events_look_as_documented() {
    let lines: Vec<String> = every_shape().iter().map(line).collect();
    insta::assert_snapshot!(lines.concat());
}

#[test]
fn every_event_is_one_line_and_reads_back_as_it_was() {
    for mut change in every_shape() {
        if let Payload::Item { record, .. } = &mut change.payload {
            *record = raw("{\n  \"id\": \"3900123\",\r\n  \"note\": \"a\\nb\"\n}");
        }
        let line = line(&change);
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let parsed = Event::parse(line.as_bytes()).expect("an event");
        assert_eq!(serde_json::to_string(&parsed).expect("JSON") + "\n", line);
        assert_eq!((parsed.seq, parsed.key.as_ref()), (change.seq, change.key().as_str()));
    }
}

#[test]
fn numbers_of_the_record_stay_digit_for_digit() {
    assert!(line(&bib(1, 7, "t")).contains(r#""publishYear":1969.0"#));
}

#[test]
fn a_line_that_is_cut_or_odd_is_no_event_and_the_error_quotes_nothing() {
    let line = line(&bib(1, 7, "canary"));
    for member in ["op", "suppressed", "seq", "losses", "updated"] {
        let mut odd: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        odd[member] = "canary".into();
        let error = Event::parse(odd.to_string().as_bytes()).expect_err(member);
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
    for cut in 0..line.len() - 2 {
        let error = Event::parse(&line.as_bytes()[..cut]).expect_err("cut short");
        assert!(!error.to_string().contains("canary"));
    }
}

#[test]
fn the_schema_file_says_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/change.json");
    let code = serde_json::to_string_pretty(&event::schema()).expect("JSON") + "\n";
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(path, &code).expect("schemas/change.json can be written");
    }
    let file = std::fs::read_to_string(path).expect("schemas/change.json can be read");
    assert!(file == code, "schemas/change.json is not what the code says; run the tests with UPDATE_SCHEMAS=1");
}

#[test]
fn every_event_passes_its_schema_and_crippled_ones_do_not() {
    let schema = serde_json::to_value(event::schema()).expect("JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("a sound schema");
    for change in every_shape() {
        let event: serde_json::Value = serde_json::from_str(&line(&change)).expect("JSON");
        let problems: Vec<String> = validator.iter_errors(&event).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{event}\n{problems:?}");
        for name in event.as_object().expect("an object").keys().filter(|name| *name != "deleted_on") {
            let mut crippled = event.clone();
            crippled.as_object_mut().expect("an object").remove(name);
            assert!(!validator.is_valid(&crippled), "without {name}: {crippled}");
        }
        for (name, value) in [("marcxml", "<record/>"), ("deleted_on", "2024-03-09"), ("reason", "lost"), ("id", "b1")]
        {
            let mut odd = event.clone();
            odd[name] = value.into();
            let is_at_home = event.get(name).is_some() && !matches!(name, "reason" | "id");
            assert_eq!(
                validator.is_valid(&odd),
                is_at_home || (name == "deleted_on" && event["reason"] == "deleted"),
                "{name}: {odd}"
            );
        }
    }
}
