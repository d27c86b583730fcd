//! The same invented records in all forms. They were not written by this program, so that both sides cannot be wrong
//! in the same way.

use std::path::PathBuf;

use sierra_sync::marc::convert::{Input, Job, Observer, OnError, Source, Summary, convert};
use sierra_sync::marc::{Format, MarcSettings};

pub(crate) const FORMS: [(Format, &str); 3] =
    [(Format::Iso2709, "records.mrc"), (Format::MarcXml, "records.xml"), (Format::MarcJson, "records.json")];

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/marc")).join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).expect("the fixture is in the tree")
}

/// Nothing may be refused here.
struct Strict;

impl Observer for Strict {
    fn refused(&mut self, input: &str, reason: &str) {
        panic!("{input}: {reason}");
    }

    fn broken(&mut self, input: &str, reason: &str) {
        panic!("{input}: {reason}");
    }
}

fn converted(from: Source, bytes: &[u8], to: Format) -> (String, Summary) {
    let job = Job { from, to, on_error: OnError::Stop, settings: MarcSettings::default() };
    let mut summary = Summary::default();
    let input = Input { name: "fixture".into(), bytes: Box::new(bytes) };
    let output = convert([Ok(input)], Vec::new(), &job, &mut Strict, &mut summary).expect("the fixture is sound");
    (String::from_utf8(output).expect("every form is UTF-8"), summary)
}

#[test]
fn every_form_becomes_every_other_byte_for_byte() {
    for (from, source) in FORMS {
        for (to, target) in FORMS {
            let (output, summary) = converted(Source::Marc(from), &bytes(source), to);
            assert_eq!(output, String::from_utf8_lossy(&bytes(target)), "{from:?} to {to:?}");
            assert_eq!(summary, Summary { read: 4, written: 4, ..Summary::default() });
        }
    }
}

#[test]
fn sierras_own_json_becomes_the_same_records() {
    let (output, summary) = converted(Source::SierraJson, &bytes("sierra.json"), Format::Iso2709);
    assert_eq!(output, String::from_utf8_lossy(&bytes("records.mrc")));
    assert_eq!(summary, Summary { read: 4, written: 4, ..Summary::default() });
}
