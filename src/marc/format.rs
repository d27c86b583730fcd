//! The three forms in which records are written, and files of them.

use std::io::{self, Write};

use super::iso2709::{self, DoesNotFit};
use super::marcxml::{self, Namespace};
use super::model::Record;
use super::{NAMESPACE, marc_json};

/// A form in which MARC records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// ISO 2709 in UTF-8: records one after another.
    Iso2709,
    /// MARCXML: a `<collection>`, one record a line.
    MarcXml,
    /// MARC-in-JSON: an array, one record a line.
    MarcJson,
}

impl Format {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Iso2709, Self::MarcXml, Self::MarcJson];

    /// The name on the command line: `iso2709`, `marcxml` or `marc-json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iso2709 => "iso2709",
            Self::MarcXml => "marcxml",
            Self::MarcJson => "marc-json",
        }
    }

    /// What a file of this form begins with.
    #[must_use]
    pub fn file_start(self) -> String {
        match self {
            Self::Iso2709 => String::new(),
            Self::MarcXml => {
                format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<collection xmlns=\"{NAMESPACE}\">\n")
            }
            Self::MarcJson => "[\n".to_owned(),
        }
    }

    /// What stands between two records of a file.
    #[must_use]
    pub const fn separator(self) -> &'static str {
        match self {
            Self::Iso2709 => "",
            Self::MarcXml => "\n",
            Self::MarcJson => ",\n",
        }
    }

    /// What a file of this form ends with; after the last record of a file with `has_records`.
    #[must_use]
    pub const fn file_end(self, has_records: bool) -> &'static str {
        match (self, has_records) {
            (Self::Iso2709, _) => "",
            (Self::MarcXml, true) => "\n</collection>\n",
            (Self::MarcXml, false) => "</collection>\n",
            (Self::MarcJson, true) => "\n]\n",
            (Self::MarcJson, false) => "]\n",
        }
    }

    /// Appends one record as it stands in a file of this form.
    ///
    /// # Errors
    /// When the record does not fit into ISO 2709; nothing has been appended then.
    pub fn append(self, target: &mut Vec<u8>, record: &Record) -> Result<(), DoesNotFit> {
        match self {
            Self::Iso2709 => return iso2709::write_record(target, record),
            Self::MarcXml => marcxml::write_record(target, record, Namespace::Inherited),
            Self::MarcJson => marc_json::write_record(target, record),
        }
        Ok(())
    }
}

/// Why a record was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It has no place in this form; the next one may.
    #[error(transparent)]
    DoesNotFit(#[from] DoesNotFit),
    /// The target failed; nothing more can be written.
    #[error("the output failed: {0}")]
    Io(#[from] io::Error),
}

/// Writes a file of records. It buffers by itself; what has no [`Writer::finish`] is not a whole file.
#[derive(Debug)]
pub struct Writer<W> {
    target: W,
    format: Format,
    buffer: Vec<u8>,
    has_records: bool,
}

/// How much is gathered before it is passed on. Large writes keep the system calls few, which shows in the speed.
const BUFFER_BYTES: usize = 128 << 10;

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(target: W, format: Format) -> Self {
        let mut buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        buffer.extend_from_slice(format.file_start().as_bytes());
        Self { target, format, buffer, has_records: false }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`WriteError::DoesNotFit`] leaves no trace of the record; after [`WriteError::Io`] the file is broken.
    pub fn write(&mut self, record: &Record) -> Result<(), WriteError> {
        // The one form that can refuse a record has no separator to take back.
        if self.has_records {
            self.buffer.extend_from_slice(self.format.separator().as_bytes());
        }
        self.format.append(&mut self.buffer, record)?;
        self.has_records = true;
        if self.buffer.len() >= BUFFER_BYTES {
            self.target.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Ends the file and gives the target back, flushed.
    ///
    /// # Errors
    /// When the target fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.buffer.extend_from_slice(self.format.file_end(self.has_records).as_bytes());
        self.target.write_all(&self.buffer)?;
        self.target.flush()?;
        Ok(self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marc::{Leader, Tag};

    fn record(value: &str) -> Record {
        let mut record = Record::new(Leader::default());
        record.push_control(Tag::CONTROL_NUMBER, value).expect("valid");
        record
    }

    fn file(format: Format, records: &[Record]) -> String {
        let mut writer = Writer::new(Vec::new(), format);
        for record in records {
            writer.write(record).ok();
        }
        String::from_utf8(writer.finish().expect("memory does not fail")).expect("UTF-8")
    }

    #[test]
    fn files_are_whole_with_no_one_and_many_records() {
        assert_eq!(file(Format::Iso2709, &[]), "");
        assert_eq!(file(Format::MarcJson, &[]), "[\n]\n");
        assert_eq!(
            file(Format::MarcXml, &[]),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<collection xmlns=\"http://www.loc.gov/MARC21/slim\">\n</collection>\n"
        );
        let json = |value| format!("{{\"leader\":\"00000nam a2200000   4500\",\"fields\":[{{\"001\":\"{value}\"}}]}}");
        assert_eq!(file(Format::MarcJson, &[record("1"), record("2")]), format!("[\n{},\n{}\n]\n", json(1), json(2)));
        let xml = file(Format::MarcXml, &[record("1"), record("2")]);
        assert_eq!(xml.lines().count(), 5);
        assert_eq!(
            xml.lines().nth(3),
            Some(
                "<record><leader>00000nam a2200000   4500</leader><controlfield tag=\"001\">2</controlfield></record>"
            )
        );
    }

    #[test]
    fn a_record_that_does_not_fit_leaves_no_trace_in_the_file() {
        let long = record(&"x".repeat(10_000));
        let expected = file(Format::Iso2709, &[record("1"), record("2")]);
        assert_eq!(file(Format::Iso2709, &[record("1"), long.clone(), record("2")]), expected);
        assert_eq!(file(Format::Iso2709, &[long]), "");
    }

    #[test]
    fn a_failing_target_is_an_error_and_not_a_short_file() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = Writer::new(Full(BUFFER_BYTES), Format::MarcXml);
        let long = record(&"x".repeat(100_000));
        let failed = (0..10).find_map(|_| writer.write(&long).err());
        assert!(matches!(failed, Some(WriteError::Io(_))));
        assert!(Writer::new(Full(3), Format::MarcJson).finish().is_err(), "the end is written, too");
    }
}
