//! `[sinks.<name>]`: where changes go.

use std::collections::BTreeMap;

use crate::config::kind::{DirectoryPath, DurationIn, ListOf, OneOf, SizeIn, Switch};
use crate::config::section::Section;
use crate::config::sections::streams::LOCATION;
use crate::config::settings::SinkConfig;
use crate::record::Stream;
use crate::sink::{FileFormat, FileSettings, SinkSettings};
use crate::sync::settings::{RouteSettings, SuppressedAs, WhenFull};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SinkType {
    File,
    Stdout,
}

const TYPES: OneOf<SinkType> = OneOf(&[("file", SinkType::File), ("stdout", SinkType::Stdout)]);

const FORMATS: OneOf<FileFormat> = OneOf(&[("ndjson", FileFormat::Ndjson), ("marcxml", FileFormat::Marcxml)]);

const STREAMS: ListOf<OneOf<Stream>> =
    ListOf(OneOf(&[("bibs", Stream::Bibs), ("items", Stream::Items), ("patrons", Stream::Patrons)]));

/// Sinks at once: each is a task, a place in the queue and a handful of series in the metrics, of which there are never
/// more than 500.
pub(in crate::config) const MOST_SINKS: usize = 32;

/// Reads every sink. `on` are the streams that are followed.
pub(in crate::config) fn read(root: &mut Section<'_>, on: &[Stream]) -> BTreeMap<String, SinkConfig> {
    let about = "Where changes go. The name is yours; the state remembers each sink by it.";
    let mut sinks = BTreeMap::new();
    let written = root.named("sinks", "[sinks.archive]", about);
    if written.is_empty() {
        let hint = "add a table such as [sinks.archive] with type = \"file\" and path = \"./out\"";
        root.refuse("sinks", "there is no sink, so changes would go nowhere", hint);
    }
    if written.len() > MOST_SINKS {
        let message = format!("there are {} sinks, and at most {MOST_SINKS} can be served", written.len());
        root.refuse(
            "sinks",
            message,
            "let consumers share a sink, or run a second sierra-sync with a state of its own",
        );
    }
    for (name, section) in written {
        let is_name = |name: &str| {
            let mut characters = name.chars();
            let allowed = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '_' | '-');
            characters.next().is_some_and(|first| first.is_ascii_lowercase()) && characters.all(allowed)
        };
        if !is_name(&name) || name.contains("__") || name.len() > 64 {
            let hint = "begin with a small letter, go on with small letters, digits, - and single _, 64 at most";
            section.refuse_itself("cannot be the name of a sink", hint);
        }
        if let Some(sink) = read_one(&name, section, on) {
            sinks.insert(name, sink);
        }
    }
    for stream in on.iter().filter(|stream| !sinks.values().any(|sink| sink.route.streams.contains(stream))) {
        if !sinks.is_empty() {
            let hint = format!("name {stream} in the streams of a sink, or leave [streams.{stream}] out");
            root.warn("sinks", format!("no sink takes {stream}, which are followed for nothing"), hint);
        }
    }
    sinks
}

fn read_one(name: &str, mut section: Section<'_>, on: &[Stream]) -> Option<SinkConfig> {
    let Some(sink_type) = section.required("type", &TYPES, "What kind of destination it is.") else {
        // Which other keys are right depends on the type: one sentence about the type is enough.
        return None;
    };
    let file = (sink_type == SinkType::File).then(|| read_file(&mut section));
    let format = file.as_ref().map_or(FileFormat::Ndjson, |file| file.format);
    let streams = read_streams(&mut section, format, on);
    let suppressed = section.setting(
        "suppressed",
        &OneOf(&[("flag", SuppressedAs::Flag), ("delete", SuppressedAs::Delete)]),
        "flag",
        "What the sink is told of suppressed records: an upsert with suppressed = true, or a delete.",
    );
    let locations = section.setting(
        "locations",
        &ListOf(LOCATION),
        "[]",
        "Location codes that count for this sink, one * allowed at the end; empty means all.",
    );
    let paused = section.setting("paused", &Switch, "false", "Hold deliveries; changes wait in the outbox.");
    let when_full = section.setting(
        "when_full",
        &OneOf(&[("detach", WhenFull::Detach), ("hold", WhenFull::Hold)]),
        "detach",
        "When this sink's backlog fills the outbox: it loses its place and must be loaded again, or capture waits.",
    );
    section.finish();
    let route = RouteSettings { name: name.to_owned(), streams, suppressed, locations, paused, when_full };
    Some(SinkConfig { route, sink: file.map_or(SinkSettings::Stdout, SinkSettings::File) })
}

fn read_file(section: &mut Section<'_>) -> FileSettings {
    let path = section.setting("path", &DirectoryPath, "./out", "The directory; one folder a stream is made below it.");
    let format = section.setting("format", &FORMATS, "ndjson", "What is written; marcxml holds bibs only.");
    let mut rotate = section.section("rotate", "When a file is closed and the next begun.");
    let rotate_size = rotate.setting("size", &SizeIn("1B"..="1TiB"), "256MiB", "When it is larger than this.");
    let rotate_every = rotate.setting("every", &DurationIn("1s"..="365d"), "1d", "When it is older than this.");
    rotate.finish();
    section.setting("compress", &OneOf(&[("none", ())]), "none", "How files are compressed.");
    FileSettings { path, format, rotate_size, rotate_every }
}

/// The streams a sink takes, of those that are on.
fn read_streams(section: &mut Section<'_>, format: FileFormat, on: &[Stream]) -> Vec<Stream> {
    let default = match format {
        FileFormat::Ndjson => r#"["bibs", "items"]"#,
        FileFormat::Marcxml => r#"["bibs"]"#,
    };
    let is_written = section.is_written("streams");
    let mut streams = section.setting("streams", &STREAMS, default, "The streams it takes.");
    streams.sort_unstable();
    streams.dedup();
    if streams.is_empty() {
        section.refuse("streams", "is empty, so this sink would get nothing", "name a stream, or set paused = true");
    }
    if format == FileFormat::Marcxml && streams.iter().any(|stream| *stream != Stream::Bibs) {
        section.refuse("streams", "format = \"marcxml\" holds bibs only", "write streams = [\"bibs\"], or use ndjson");
    }
    let off = streams.extract_if(.., |stream| !on.contains(stream)).collect::<Vec<_>>();
    for stream in off.into_iter().filter(|_| is_written) {
        let message = format!("{stream} are not followed, so this sink gets none");
        section.warn("streams", message, format!("add [streams.{stream}], or take {stream} out of the list"));
    }
    streams
}
