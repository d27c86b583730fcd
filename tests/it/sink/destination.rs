//! Destinations that can be opened again and again, and read as their readers read them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sierra_sync::clock::SystemClock;
use sierra_sync::record::Stream;
use sierra_sync::sink::event::{Event, EventOp};
use sierra_sync::sink::{self, FileFormat, FileSettings, LineSink, SinkSettings};
use sierra_sync::sync::{Change, Op, Payload, Seq, Sink};

/// What readers end with: of each live record the seq, or for MARCXML the title.
pub(crate) type Held = BTreeMap<(Stream, String), String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ndjson,
    Marcxml,
    Stdout,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Ndjson, Self::Marcxml, Self::Stdout];
    pub(crate) const FILES: [Self; 2] = [Self::Ndjson, Self::Marcxml];
}

pub(crate) struct Destination {
    pub(crate) kind: Kind,
    pub(crate) settings: FileSettings,
    directory: tempfile::TempDir,
    output: Output,
}

impl Destination {
    pub(crate) fn new(kind: Kind) -> Self {
        let directory = temporary_directory();
        let settings = FileSettings {
            path: directory.path().join("out"),
            format: if kind == Kind::Marcxml { FileFormat::Marcxml } else { FileFormat::Ndjson },
            rotate_size: 1 << 30,
            rotate_every: Duration::from_secs(86_400),
        };
        Self { kind, settings, directory, output: Output::default() }
    }

    pub(crate) fn rotating_at(mut self, bytes: u64) -> Self {
        self.settings.rotate_size = bytes;
        self
    }

    /// The destination as a crash left it: a copy of the files as they are now.
    pub(crate) fn copy(&self) -> Self {
        let mut copy = Self::new(self.kind);
        copy.settings = FileSettings { path: copy.directory.path().join("out"), ..self.settings.clone() };
        copy_all(self.path(), copy.path());
        copy
    }

    pub(crate) fn path(&self) -> &Path {
        &self.settings.path
    }

    /// A sink on it, as after a start of the program.
    pub(crate) fn open(&self) -> Box<dyn Sink> {
        match self.kind {
            Kind::Stdout => Box::new(LineSink::new(self.output.clone())),
            _ => {
                let settings = SinkSettings::File(self.settings.clone());
                sink::build("archive", &settings, &(Arc::new(SystemClock) as _)).expect("sound settings")
            }
        }
    }

    /// What a reader ends with after reading everything, published or growing under its final name.
    pub(crate) fn held(&self) -> Held {
        let mut held = Held::new();
        match self.kind {
            Kind::Marcxml => {
                assert_eq!(self.numbered("bibs", ".journal.part"), [], "everything is published");
                let mut files = self.numbered("bibs", ".xml");
                files.extend(self.numbered("bibs", ".deletes.txt"));
                // By first seq, and of a pair the collection first: the sort keeps the order of equals.
                files.sort_by_key(|(first, _)| *first);
                for (_, path) in files {
                    let text = fs::read_to_string(&path).expect("UTF-8");
                    if path.extension().is_some_and(|extension| extension == "xml") {
                        held.extend(records(&text).into_iter().map(|(id, title)| ((Stream::Bibs, id), title)));
                    } else {
                        held.retain(|(_, id), _| !text.lines().any(|deleted| deleted == id));
                    }
                }
            }
            _ => {
                for line in self.lines() {
                    let event = Event::parse(line.as_bytes()).expect("an event");
                    let key = (event.stream, event.id.into_owned());
                    match event.op {
                        EventOp::Upsert => held.insert(key, event.seq.to_string()),
                        EventOp::Delete => held.remove(&key),
                    };
                }
            }
        }
        held
    }

    /// How many upserts and deletes stand there, copies included.
    pub(crate) fn count(&self) -> usize {
        match self.kind {
            Kind::Marcxml => {
                let xml = self.numbered("bibs", ".xml").into_iter();
                let records: usize =
                    xml.map(|(_, path)| records(&fs::read_to_string(path).expect("UTF-8")).len()).sum();
                let lists = self.numbered("bibs", ".deletes.txt").into_iter();
                records + lists.map(|(_, path)| fs::read_to_string(path).expect("UTF-8").lines().count()).sum::<usize>()
            }
            _ => self.lines().len(),
        }
    }

    /// What readers should end with after `changes`.
    pub(crate) fn expected(&self, changes: &[Change]) -> Held {
        let mut held = Held::new();
        for change in self.taken(changes) {
            let key = (change.stream, change.id.clone());
            match (change.op, &change.payload) {
                (Op::Upsert, Payload::Bib { record, .. }) if self.kind == Kind::Marcxml => {
                    let record: serde_json::Value = serde_json::from_str(record.get()).expect("JSON");
                    held.insert(key, record.get("title").and_then(|title| title.as_str()).expect("a title").to_owned())
                }
                (Op::Upsert, _) => held.insert(key, change.seq.to_string()),
                (Op::Delete { .. }, _) => held.remove(&key),
            };
        }
        held
    }

    /// The changes that this destination takes.
    pub(crate) fn taken<'a>(&self, changes: &'a [Change]) -> impl Iterator<Item = &'a Change> {
        let bibs_only = self.kind == Kind::Marcxml;
        changes.iter().filter(move |change| !bibs_only || change.stream == Stream::Bibs)
    }

    /// The lines in the order in which a reader gets them: stream by stream, file by file.
    pub(crate) fn lines(&self) -> Vec<String> {
        if self.kind == Kind::Stdout {
            return self.output.text().lines().map(str::to_owned).collect();
        }
        let mut lines = Vec::new();
        for stream in Stream::ALL {
            for (first, path) in self.numbered(stream.name(), ".ndjson") {
                let text = fs::read_to_string(path).expect("UTF-8");
                assert!(text.ends_with('\n'), "{text:?} ends in a torn line");
                let events: Vec<Seq> =
                    text.lines().map(|line| Event::parse(line.as_bytes()).expect("an event").seq).collect();
                assert_eq!(events.first().map(|seq| seq.value()), Some(first), "the name is the first seq");
                assert!(events.is_sorted_by(|a, b| a < b));
                lines.extend(text.lines().map(str::to_owned));
            }
        }
        lines
    }

    /// The files `<number><extension>` of a stream, in order.
    pub(crate) fn numbered(&self, stream: &str, extension: &str) -> Vec<(u64, PathBuf)> {
        let Ok(entries) = fs::read_dir(self.path().join(stream)) else { return Vec::new() };
        let mut files: Vec<(u64, PathBuf)> = entries
            .map(|entry| entry.expect("an entry").path())
            .filter_map(|path| Some((path.file_name()?.to_str()?.strip_suffix(extension)?.parse().ok()?, path)))
            .collect();
        files.sort();
        files
    }

    pub(crate) fn manifest(&self) -> serde_json::Value {
        serde_json::from_slice(&fs::read(self.path().join("manifest.json")).expect("a manifest")).expect("JSON")
    }
}

/// In memory where the system has such a place: thousands of syncs take their time on a disk, and no test here can
/// cut the power.
fn temporary_directory() -> tempfile::TempDir {
    let in_memory = Path::new("/dev/shm");
    let made = if in_memory.is_dir() { tempfile::tempdir_in(in_memory) } else { tempfile::tempdir() };
    made.or_else(|_| tempfile::tempdir()).expect("a temporary directory")
}

/// The record number and title of each record of a collection, read strictly.
fn records(xml: &str) -> Vec<(String, String)> {
    use quick_xml::events::Event as Xml;
    let mut reader = quick_xml::Reader::from_str(xml);
    let (mut records, mut open, mut field, mut text) = (Vec::new(), 0, String::new(), String::new());
    let mut current = (String::new(), String::new());
    loop {
        match reader.read_event().expect("well-formed XML") {
            Xml::Start(start) => {
                open += 1;
                text.clear();
                if let Some(tag) = start.try_get_attribute("tag").expect("sound attributes") {
                    field = tag.value.into_owned();
                }
            }
            Xml::Text(part) => text.push_str(&part),
            Xml::GeneralRef(reference) => text.push_str(match &*reference {
                "amp" => "&",
                "lt" => "<",
                "gt" => ">",
                other => panic!("&{other};"),
            }),
            Xml::End(end) => {
                open -= 1;
                match (end.local_name().as_ref(), field.as_str()) {
                    ("controlfield", "001") => current.0 = text.strip_prefix("ex").expect("an invented id").to_owned(),
                    ("subfield", "245") => current.1.clone_from(&text),
                    ("record", _) => records.push(std::mem::take(&mut current)),
                    _ => {}
                }
            }
            Xml::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0, "the collection is closed");
    records
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}

/// Standard output of an invented process.
#[derive(Clone, Default)]
pub(crate) struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("not poisoned").clone()).expect("UTF-8")
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
