//! The loop that reads, writes and counts.

use std::io::{self, BufRead, Write};

use super::Source;
use super::sierra_json::SierraReader;
use super::summary::Summary;
use crate::marc::format::{Format, WriteError, Writer};
use crate::marc::read::{ReadError, ReadRecord};
use crate::marc::settings::MarcSettings;
use crate::marc::{Loss, Record, iso2709, loss, marc_json, marcxml};

/// What to convert into what.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// The form of every input.
    pub from: Source,
    /// The form of the output.
    pub to: Format,
    /// What to do about a record that cannot be read or written.
    pub on_error: OnError,
    /// How MARC is made from Sierra's fields, and what happens to characters that XML 1.0 forbids in any form.
    pub settings: MarcSettings,
}

/// What to do about a record that cannot be read or written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnError {
    /// End with an error.
    #[default]
    Stop,
    /// Count it, tell the observer, and go on.
    Skip,
}

/// One input.
pub struct Input<'a> {
    /// Its name, for messages.
    pub name: String,
    /// Its bytes.
    pub bytes: Box<dyn BufRead + 'a>,
}

/// Hears of what is refused while it happens.
pub trait Observer {
    /// A record of `input` is not in the output.
    fn refused(&mut self, input: &str, reason: &str);
    /// `input` cannot be read to its end; the others still are.
    fn broken(&mut self, input: &str, reason: &str);
}

/// Why a conversion ended early. The output is then not a whole file.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A record was refused under [`OnError::Stop`], or an input is not what it was said to be.
    #[error("{input}: {reason}")]
    Refused {
        /// The name of the input.
        input: String,
        /// Why.
        reason: String,
    },
    /// An input failed.
    #[error("{input}: {source}")]
    Input {
        /// The name of the input.
        input: String,
        /// The cause.
        source: io::Error,
    },
    /// The output failed.
    #[error("the output failed: {source}")]
    Output {
        /// The cause.
        source: io::Error,
    },
}

/// Converts every record of `inputs`, in order, into one file written to `output`. `summary` counts along, so that it
/// tells how far things went when this fails.
///
/// # Errors
/// See [`ConvertError`]. Under [`OnError::Skip`] refused records and broken inputs are no errors but counted, unless
/// nothing at all could be written because of them.
pub fn convert<'a, W: Write>(
    inputs: impl IntoIterator<Item = Result<Input<'a>, ConvertError>>,
    output: W,
    job: &Job,
    observer: &mut dyn Observer,
    summary: &mut Summary,
) -> Result<W, ConvertError> {
    let mut writer = Writer::new(output, job.to);
    let mut breakage = None;
    for input in inputs {
        let Input { name, bytes } = input?;
        let mut run = Run { name: &name, on_error: job.on_error, observer: &mut *observer, summary: &mut *summary };
        let policy = job.settings.on_illegal;
        let copied = match job.from {
            Source::Marc(Format::Iso2709) => run.copy(iso2709::Reader::new(bytes, policy), &mut writer),
            Source::Marc(Format::MarcXml) => run.copy(marcxml::Reader::new(bytes, policy), &mut writer),
            Source::Marc(Format::MarcJson) => run.copy(marc_json::Reader::new(bytes, policy), &mut writer),
            Source::SierraJson => run.copy(SierraReader::new(bytes, job.settings), &mut writer),
        }?;
        if let Some(reason) = copied {
            observer.broken(&name, &reason);
            summary.broken_inputs += 1;
            breakage = Some((name, reason));
        }
    }
    match breakage {
        Some((input, reason)) if summary.written == 0 => Err(ConvertError::Refused { input, reason }),
        _ => writer.finish().map_err(|source| ConvertError::Output { source }),
    }
}

struct Run<'r> {
    name: &'r str,
    on_error: OnError,
    observer: &'r mut dyn Observer,
    summary: &'r mut Summary,
}

impl Run<'_> {
    /// Copies one input; says why if it could not be read to its end.
    fn copy<W: Write>(
        &mut self,
        mut reader: impl ReadRecord,
        writer: &mut Writer<W>,
    ) -> Result<Option<String>, ConvertError> {
        let mut record = Record::default();
        loop {
            match reader.read_into(&mut record) {
                Ok(false) => return Ok(None),
                Ok(true) => {}
                Err(ReadError::Io { source, .. }) => {
                    return Err(ConvertError::Input { input: self.name.to_owned(), source });
                }
                Err(error @ ReadError::Unreadable { .. }) if self.on_error == OnError::Skip => {
                    return Ok(Some(error.to_string()));
                }
                Err(error @ ReadError::Unreadable { .. }) => return Err(self.stop(error.to_string())),
                Err(error @ ReadError::Damaged { .. }) => {
                    let label = if let ReadError::Damaged { damage, .. } = &error { damage.label() } else { "damaged" };
                    self.refuse(label, error.to_string())?;
                    continue;
                }
            }
            match writer.write(&record) {
                Ok(()) => self.count(reader.take_losses()),
                Err(WriteError::DoesNotFit(reason)) => {
                    let number = self.summary.read + 1;
                    self.refuse("does not fit", format!("record {number}: {reason}"))?;
                }
                Err(WriteError::Io(source)) => return Err(ConvertError::Output { source }),
            }
        }
    }

    fn count(&mut self, losses: Vec<Loss>) {
        self.summary.read += 1;
        self.summary.written += 1;
        self.summary.repaired += u64::from(!losses.is_empty());
        for (kind, count) in loss::counts(&losses) {
            *self.summary.losses.entry(kind).or_default() += count;
        }
    }

    fn refuse(&mut self, label: &'static str, reason: String) -> Result<(), ConvertError> {
        self.summary.read += 1;
        self.summary.refused += 1;
        *self.summary.reasons.entry(label).or_default() += 1;
        if self.on_error == OnError::Stop {
            return Err(self.stop(reason));
        }
        self.observer.refused(self.name, &reason);
        Ok(())
    }

    fn stop(&self, reason: String) -> ConvertError {
        ConvertError::Refused { input: self.name.to_owned(), reason }
    }
}
