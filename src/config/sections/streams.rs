//! `[streams.bibs]`, `[streams.items]`, `[streams.patrons]`: what is followed, and how closely.

use std::time::Duration;

use crate::config::kind::{DurationIn, IntegerIn, ListOf, OneOf, Switch, TextAs};
use crate::config::section::{Section, Written};
use crate::config::sections::sierra::zone;
use crate::record::Stream;
use crate::sync::schedule::CronSchedule;
use crate::sync::settings::{Cadence, Repeat, StreamSettings};

const FIELD: TextAs<String> = TextAs {
    parse: |text| match !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte))
    {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not the name of a field")),
    },
    hint: "write one name an element, without commas or spaces",
    pattern: "^[A-Za-z0-9._]+$",
};

/// The field that holds the MARC of a bib.
const VAR_FIELDS: &str = "varFields";

pub(super) const LOCATION: TextAs<String> = TextAs {
    parse: |text| match text.trim() == text
        && !text.is_empty()
        && !text.trim_end_matches('*').contains('*')
        && !text.ends_with("**")
    {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not a location")),
    },
    hint: "write a location code, or its beginning and one *, such as \"main*\"",
    pattern: "^[^*]*\\*?$",
};

const FIXED_FIELD: TextAs<String> =
    TextAs { parse: fixed_field, hint: "write its number in quotes, such as \"98\"", pattern: "^[0-9]{1,3}$" };

const LATE_SWEEPS: OneOf<Option<Repeat>> = OneOf(&[("daily", Some(Repeat::Daily)), ("off", None)]);

const RECONCILIATIONS: OneOf<Option<Repeat>> =
    OneOf(&[("weekly", Some(Repeat::Weekly)), ("daily", Some(Repeat::Daily)), ("off", None)]);

const CRON: TextAs<String> = TextAs {
    parse: |text| CronSchedule::new(text, "UTC").map(|_| text.to_owned()).map_err(|error| error.to_string()),
    hint: "write minute, hour, day, month and weekday, such as \"0 2 * * *\"",
    pattern: "^\\S.*$",
};

const ZONE: TextAs<String> = TextAs {
    parse: |text| zone(text).map(|_| text.to_owned()),
    hint: "write an IANA name, such as \"America/New_York\"",
    pattern: "^[A-Za-z0-9_+/-]+$",
};

/// Reads every stream that is written, in the order in which streams are synced.
pub(in crate::config) fn read(root: &mut Section<'_>) -> Vec<StreamSettings> {
    let mut section = root.section("streams", "What is followed. A stream without its table is off.");
    let mut streams = Vec::new();
    for stream in Stream::ALL {
        if let Some(table) = section.section_if_written(stream.name(), about(stream)) {
            streams.push(read_one(stream, table));
        }
    }
    if !Stream::ALL.iter().any(|stream| section.is_written(stream.name())) {
        let hint = "add [streams.bibs], [streams.items] or [streams.patrons]; an empty table is enough";
        root.refuse("streams", "no stream is on, so there is nothing to follow", hint);
    }
    section.finish();
    streams
}

/// Reads the number of a fixed field.
pub(super) fn fixed_field(text: &str) -> Result<String, String> {
    match (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not the number of a fixed field")),
    }
}

fn read_one(stream: Stream, mut section: Section<'_>) -> StreamSettings {
    let interval = section.setting("interval", &DurationIn("1s"..="30d"), "5m", "How often changes are looked for.");
    let cadence = cadence(&mut section, interval);
    let deleted_interval =
        section.setting("deleted_interval", &DurationIn("1s"..="30d"), "15m", "How often deletions are looked for.");
    let overlap = section.setting(
        "overlap",
        &DurationIn("0s"..="30d"),
        "10m",
        "How far each window reaches back over the one before, for changes that Sierra commits late.",
    );
    let settle =
        section.setting("settle", &DurationIn("0s"..="1d"), "30s", "How far behind Sierra's clock a window ends.");
    let deleted_overlap_days = section.setting(
        "deleted_overlap_days",
        &IntegerIn(0..=30),
        "1",
        "Days added on both sides when deletions are looked for.",
    );
    let late_sweep = section.setting(
        "late_sweep",
        &LATE_SWEEPS,
        "daily",
        "How often the last 48 hours are read again, for what became visible late.",
    );
    let reconcile = section.setting(
        "reconcile",
        &RECONCILIATIONS,
        "weekly",
        "How often the whole stream is compared with what is known, and what differs is read and emitted again.",
    );
    let page_size =
        section.setting("page_size", &IntegerIn(1..=2000), "2000", "Records asked per call; Sierra allows 2000.");
    let concurrency = section.setting("concurrency", &IntegerIn(1..=64), "2", "Calls at once on this endpoint.");
    let mut fields = section.setting(
        "fields",
        &ListOf(FIELD),
        default_fields(stream),
        "The fields asked for. What the service itself needs (id, dates, deleted, suppressed, links, locations) is \
         always asked for besides.",
    );
    if stream == Stream::Bibs && !fields.iter().any(|field| field == VAR_FIELDS) {
        let message = format!("leaves out {VAR_FIELDS}, without which no bib has MARC; it is asked for all the same");
        section.warn("fields", message, format!("add {VAR_FIELDS:?}, so that the file says what is asked for"));
        fields.push(VAR_FIELDS.to_owned());
    }
    let locations = section.setting(
        "locations",
        &ListOf(LOCATION),
        "[]",
        "Location codes that count, one * allowed at the end; empty means all. A known record that leaves them is \
         emitted as a delete with reason \"filtered\".",
    );
    let hash_ignore = section.setting(
        "hash_ignore",
        &ListOf(FIXED_FIELD),
        default_hash_ignore(stream),
        "Fixed fields, by number, whose change alone is no change.",
    );
    let emit_unchanged =
        section.setting("emit_unchanged", &Switch, "false", "Emit records that Sierra touched without changing them.");
    let key = section.key("overlap");
    let readings = overlap.as_secs_f64() / interval.as_secs_f64();
    if readings > 10.0 && matches!(cadence, Cadence::Every(_)) {
        let message =
            format!("every change is read about {readings:.0} times, because overlap is much longer than interval");
        section.reading().warn(&key, message, "shorten overlap or lengthen interval");
    }
    section.finish();
    StreamSettings {
        stream,
        cadence,
        deleted_interval,
        overlap,
        settle,
        deleted_overlap_days: u8::try_from(deleted_overlap_days).unwrap_or(u8::MAX),
        late_sweep,
        reconcile,
        page_size,
        concurrency,
        fields,
        locations,
        hash_ignore,
        emit_unchanged,
    }
}

/// `interval`, or `cron` with its `zone`.
fn cadence(section: &mut Section<'_>, interval: Duration) -> Cadence {
    let cron = section.written(
        "cron",
        &CRON,
        "When changes are looked for, instead of an interval: minute, hour, day, month, weekday, by the clock of zone.",
    );
    let zone = section.written("zone", &ZONE, "The zone whose clock cron means, by its IANA name.");
    match (cron, zone) {
        (Written::Good(expression), Written::Good(zone)) => {
            if section.is_written("interval") {
                section.refuse("interval", "says the same as cron in another way", "keep one of the two");
            }
            return Cadence::Cron { expression, zone };
        }
        (Written::Good(_), Written::Absent) => {
            let hint = "write the zone whose clock it means, such as zone = \"America/New_York\"";
            section.refuse("cron", "has no zone beside it", hint);
        }
        (Written::Absent, Written::Good(_)) => {
            section.refuse("zone", "means nothing without cron", "add cron, or leave zone out");
        }
        _ => {}
    }
    Cadence::Every(interval)
}

fn about(stream: Stream) -> &'static str {
    match stream {
        Stream::Bibs => "Bibliographic records.",
        Stream::Items => "Item records.",
        Stream::Patrons => "Patron records, masked as [privacy] says.",
    }
}

fn default_fields(stream: Stream) -> &'static str {
    match stream {
        Stream::Bibs => r#"["default", "fixedFields", "varFields", "locations"]"#,
        Stream::Items => r#"["default", "suppressed", "fixedFields", "varFields", "itemType", "copyNo"]"#,
        Stream::Patrons => r#"["default", "suppressed", "homeLibraryCode"]"#,
    }
}

/// 84 updated, 85 revisions, 98 PDATE change with every touch. Of items, circulation moves the rest: checkout dates
/// and counts, due date, loan rule, renewals, last patron's use (sierra-api.md §4).
fn default_hash_ignore(stream: Stream) -> &'static str {
    match stream {
        Stream::Items => r#"["84", "85", "98", "64", "68", "70", "76", "77", "78", "93", "94", "109", "110"]"#,
        Stream::Bibs | Stream::Patrons => r#"["84", "85", "98"]"#,
    }
}
