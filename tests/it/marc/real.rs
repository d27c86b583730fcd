//! Real answers of Sierra and real MARC. They are not part of the tree, so these tests pass over them visibly where
//! they are missing.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use sierra_sync::marc::convert::SierraReader;
use sierra_sync::marc::{
    Comparison, LossKind, MarcSettings, OnIllegal, ReadRecord, Record, check_against, iso2709, marc_json, marcxml,
};

use super::strict_xml;

#[expect(clippy::print_stdout, reason = "a test that is passed over has to say so")]
fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/real")).join(folder);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("SKIPPED: no real data in {}", folder.display());
        return Vec::new();
    };
    let has_extension =
        |path: &PathBuf| extensions.iter().any(|wanted| path.extension().is_some_and(|extension| extension == *wanted));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).filter(has_extension).collect();
    files.sort();
    files
}

fn open(path: &Path) -> std::io::BufReader<std::fs::File> {
    std::io::BufReader::new(std::fs::File::open(path).expect("readable"))
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    entries: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow)]
    marc: Option<&'a RawValue>,
    var_fields: Option<serde::de::IgnoredAny>,
}

/// Every bib that has MARC in any shape becomes strict XML, and where Sierra rendered it too, the fields are the same.
#[test]
fn every_real_bib_becomes_strict_xml_with_the_fields_that_sierra_itself_shows() {
    let (mut converted, mut compared) = (0, 0);
    for path in files("sierra", &["json"]) {
        let text = std::fs::read_to_string(&path).expect("readable");
        let entries = serde_json::from_str::<Page<'_>>(&text).map(|page| page.entries).unwrap_or_default();
        let with_marc = entries.iter().filter(|entry| entry.marc.is_some() || entry.var_fields.is_some());
        let is_bibs = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("bibs"));
        let expected: Vec<Option<&RawValue>> =
            if is_bibs { with_marc.map(|entry| entry.marc).collect() } else { Vec::new() };
        let mut reader = SierraReader::new(text.as_bytes(), MarcSettings::default());
        let mut records = Vec::new();
        loop {
            let mut record = Record::default();
            match reader.read_into(&mut record) {
                Ok(false) => break,
                Ok(true) => {
                    let losses = reader.take_losses();
                    let differs = losses.iter().any(|loss| loss.kind == LossKind::SierraMarcDiffers);
                    assert!(!differs, "{}: {losses:?}", path.display());
                    records.push(record);
                }
                Err(error) => assert!(error.is_one_record(), "{}: {error}", path.display()),
            }
        }
        assert_eq!(records.len(), expected.len(), "{}", path.display());
        for (record, marc) in records.iter().zip(expected) {
            assert_eq!(strict_xml::count_records(marcxml::to_string(record).as_bytes()), Ok(1));
            converted += 1;
            if let Some(marc) = marc {
                assert_eq!(check_against(record, marc, &MarcSettings::default()), Comparison::Same);
                compared += 1;
            }
        }
    }
    println!("{converted} bibs converted, {compared} compared with Sierra's own MARC");
}

#[test]
fn real_marc_files_are_read_whole_and_survive_every_form() {
    fn all(mut reader: impl ReadRecord, path: &Path) -> Vec<Record> {
        let mut records = Vec::new();
        loop {
            let mut record = Record::default();
            match reader.read_into(&mut record) {
                Ok(false) => return records,
                Ok(true) => records.push(record),
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }
    let mut records = Vec::new();
    for path in files("marc", &["dat"]) {
        records.extend(all(iso2709::Reader::new(open(&path), OnIllegal::Quarantine), &path));
    }
    for path in files("marc", &["xml"]) {
        records.extend(all(marcxml::Reader::new(open(&path), OnIllegal::Quarantine), &path));
    }
    for path in files("marc", &["json"]) {
        records.extend(all(marc_json::Reader::new(open(&path), OnIllegal::Quarantine), &path));
    }
    for record in records {
        let xml = marcxml::to_string(&record);
        assert_eq!(strict_xml::count_records(xml.as_bytes()), Ok(1));
        let mut iso = Vec::new();
        iso2709::write_record(&mut iso, &record).expect("it came from a form with these limits, or fits them");
        for again in [
            all(marcxml::Reader::new(xml.as_bytes(), OnIllegal::Quarantine), Path::new("again")),
            all(iso2709::Reader::new(&iso[..], OnIllegal::Quarantine), Path::new("again")),
            all(
                marc_json::Reader::new(marc_json::to_string(&record).as_bytes(), OnIllegal::Quarantine),
                Path::new("again"),
            ),
        ] {
            assert_eq!(again, std::slice::from_ref(&record));
        }
    }
}
