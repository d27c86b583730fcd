//! An export file: ISO 2709, read record by record into the fields that Sierra stores.
//!
//! An export table adds fields that are not stored: 907 with the record number, 945 with one item each, 998 with fixed
//! fields (sierra-api.md §4.3). They are taken off again, and where a site stores fields under these tags, the record
//! will not agree with what is known of it and is read by list.

use bytes::Bytes;
use compact_str::ToCompactString;

use super::envelope::InvalidBody;
use crate::marc::iso2709::Reader;
use crate::marc::{Damage, Field, OnIllegal, ReadError, ReadRecord, Record};
use crate::record::{RecordNumber, Stream, Subfield, VarField};

/// Where the record number stands: `$a .b1234567x`.
const NUMBER: &str = "907";
/// What export tables generate.
const GENERATED: [&str; 3] = [NUMBER, "945", "998"];

/// What a file holds.
#[derive(Debug)]
pub(super) struct Exported {
    /// The stored fields of each record that says its number.
    pub(super) records: Vec<(RecordNumber, Vec<VarField>)>,
}

/// Reads a file off the runtime's threads. `expected` is how many records were exported, if Sierra said so.
///
/// # Errors
/// When it is not a whole file of MARC. A single record that is damaged, or does not say its number, is left out.
pub(super) async fn read(body: Bytes, expected: Option<u64>) -> Result<Exported, InvalidBody> {
    match tokio::task::spawn_blocking(move || parse(&body, expected)).await {
        Ok(parsed) => parsed,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels such a task.
            Err(_) => std::future::pending().await,
        },
    }
}

fn parse(body: &[u8], expected: Option<u64>) -> Result<Exported, InvalidBody> {
    sniff(body, expected)?;
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Exported { records: Vec::new() });
    }
    let (mut reader, mut record) = (Reader::new(body, OnIllegal::Quarantine), Record::default());
    let (mut records, mut count) = (Vec::new(), 0_u64);
    loop {
        match reader.read_into(&mut record) {
            Ok(true) => {
                count += 1;
                records.extend(number_of(&record).map(|number| (number, stored_fields(&record))));
            }
            Ok(false) => break,
            Err(ReadError::Damaged {
                damage: Damage::Truncated | Damage::NoLength | Damage::Length { .. }, ..
            }) => {
                return Err(InvalidBody::MissingRecords);
            }
            Err(ReadError::Damaged { .. }) => count += 1,
            Err(ReadError::Unreadable { .. } | ReadError::Io { .. }) => return Err(InvalidBody::NotMarc),
        }
    }
    if expected.is_some_and(|expected| count < expected) {
        return Err(InvalidBody::MissingRecords);
    }
    Ok(Exported { records })
}

/// Whether it begins as MARC does: with five digits. An error that was saved as the file does not.
fn sniff(body: &[u8], expected: Option<u64>) -> Result<(), InvalidBody> {
    let start = body.trim_ascii_start();
    match start {
        [] if expected == Some(0) => Ok(()),
        [] => Err(InvalidBody::Empty),
        _ if body.get(..5).is_some_and(|length| length.iter().all(u8::is_ascii_digit)) => Ok(()),
        [b'{', ..] => Err(InvalidBody::ErrorObject),
        [b'<', ..] => Err(InvalidBody::Html),
        _ if start.starts_with(b"ErrorCode(") => Err(InvalidBody::ErrorText),
        _ => Err(InvalidBody::NotMarc),
    }
}

fn number_of(record: &Record) -> Option<RecordNumber> {
    record.fields().find_map(|field| match field {
        Field::Data { tag, subfields, .. } if tag.as_str() == NUMBER => {
            let number = subfields.iter().find(|subfield| subfield.code.as_byte() == b'a')?;
            crate::record::spelled(number.value, Stream::Bibs).ok()
        }
        _ => None,
    })
}

/// The fields as Sierra's lists would have them, the leader first.
fn stored_fields(record: &Record) -> Vec<VarField> {
    let leader =
        VarField { field_tag: "_".into(), content: Some(record.leader().as_str().to_owned()), ..VarField::default() };
    let stored = record.fields().filter(|field| !GENERATED.contains(&field.tag().as_str())).map(|field| match field {
        Field::Control { tag, value } => {
            VarField { marc_tag: Some(tag.as_str().into()), content: Some(value.to_owned()), ..VarField::default() }
        }
        Field::Data { tag, indicators: [first, second], subfields } => VarField {
            marc_tag: Some(tag.as_str().into()),
            ind1: Some(char::from(first.as_byte()).to_compact_string()),
            ind2: Some(char::from(second.as_byte()).to_compact_string()),
            subfields: subfields
                .iter()
                .map(|subfield| Subfield {
                    tag: char::from(subfield.code.as_byte()).to_compact_string(),
                    content: subfield.value.to_owned(),
                })
                .collect(),
            ..VarField::default()
        },
    });
    std::iter::once(leader).chain(stored).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with its number and a title, as an export writes it.
    fn record(number: &str, title: &str) -> Vec<u8> {
        let fields = [("245", format!("10\u{1f}a{title}\u{1e}")), ("907", format!("  \u{1f}a{number}\u{1e}"))];
        let (mut directory, mut data) = (String::new(), String::new());
        for (tag, field) in &fields {
            directory += &format!("{tag}{:04}{:05}", field.len(), data.len());
            data += field;
        }
        let base = 24 + directory.len() + 1;
        let length = base + data.len() + 1;
        format!("{length:05}nam a22{base:05} a 4500{directory}\u{1e}{data}\u{1d}").into_bytes()
    }

    fn file() -> Vec<u8> {
        [record(".b10243641", "one"), record(".b10243653", "two")].concat()
    }

    fn parsed(body: &[u8], expected: Option<u64>) -> Result<Vec<u64>, InvalidBody> {
        let exported = parse(body, expected)?;
        Ok(exported.records.iter().map(|(number, _)| number.value()).collect())
    }

    #[test]
    fn records_are_told_by_their_number_and_generated_fields_go() {
        assert_eq!(parsed(&file(), Some(2)), Ok(vec![1_024_364, 1_024_365]));
        let exported = parse(&file(), None).expect("MARC");
        let (_, fields) = &exported.records[0];
        let tags: Vec<_> = fields.iter().map(|field| (field.field_tag.as_str(), field.marc_tag.as_deref())).collect();
        assert_eq!(tags, [("_", None), ("", Some("245"))]);
        // One whose number is not readable is left out, and is no damage to the file.
        assert_eq!(
            parsed(&[record("lost", "one"), record(".b10243653", "two")].concat(), Some(2)),
            Ok(vec![1_024_365])
        );
    }

    /// BR-046: an error that lies where a file was expected is never taken for one.
    #[test]
    fn what_is_not_marc_is_refused() {
        let table: [(&[u8], InvalidBody); 7] = [
            (b"", InvalidBody::Empty),
            (b"{\"code\":123,\"httpStatus\":401}", InvalidBody::ErrorObject),
            (b"ErrorCode(code=107)", InvalidBody::ErrorText),
            (b"<html>login</html>", InvalidBody::Html),
            (b"no such file", InvalidBody::NotMarc),
            (b"\n00066nam", InvalidBody::NotMarc),
            (b"12345", InvalidBody::MissingRecords),
        ];
        for (body, expected) in table {
            assert_eq!(parsed(body, Some(2)), Err(expected), "{}", String::from_utf8_lossy(body));
        }
        assert_eq!(parsed(b"", Some(0)), Ok(Vec::new()));
    }

    /// Cut anywhere it is refused, also where the cut falls between two records.
    #[test]
    fn a_file_that_is_cut_short_is_refused() {
        let whole = file();
        for end in 1..whole.len() {
            assert!(parsed(&whole[..end], Some(2)).is_err(), "cut at {end}");
        }
        assert_eq!(parsed(&whole, Some(3)), Err(InvalidBody::MissingRecords));
    }
}
