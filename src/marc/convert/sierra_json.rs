//! Bibs of Sierra's JSON as MARC records.

use std::io::BufRead;

use super::entry::{Entry, is_entry};
use crate::marc::check::check_against;
use crate::marc::from_sierra::from_sierra;
use crate::marc::json::text::parse_lenient;
use crate::marc::json::values::{Kind, Values};
use crate::marc::loss::Loss;
use crate::marc::marc_json;
use crate::marc::model::Record;
use crate::marc::read::{Damage, ReadError, ReadRecord};
use crate::marc::settings::MarcSettings;

/// Reads the bibs of saved Sierra answers: pages (`{"entries":[…]}`), arrays of entries, single entries, or any of
/// these one after the other. Whatever is no live bib is refused by name: tombstones, items, holdings, patrons, orders,
/// error answers.
///
/// A bib is made of its varFields; where its own `marc` is there as well, that is only compared. A bib that has `marc`
/// alone is read from that.
#[derive(Debug)]
pub struct SierraReader<R> {
    values: Values<R>,
    settings: MarcSettings,
    losses: Vec<Loss>,
}

/// The key of a page's entries.
const ENTRIES: &str = "entries";

impl<R: BufRead> SierraReader<R> {
    /// Reads from `input`.
    pub fn new(input: R, settings: MarcSettings) -> Self {
        let kind = Kind { page_key: Some(ENTRIES), is_record: is_entry };
        Self { values: Values::new(input, kind), settings, losses: Vec::new() }
    }
}

impl<R: BufRead> ReadRecord for SierraReader<R> {
    fn read_into(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        if !self.values.next()? {
            return Ok(false);
        }
        match convert(self.values.value(), &self.settings) {
            Ok((converted, losses)) => {
                *record = converted;
                self.losses = losses;
                Ok(true)
            }
            Err(damage) => Err(self.values.damaged(damage)),
        }
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.losses)
    }
}

fn convert(bytes: &[u8], settings: &MarcSettings) -> Result<(Record, Vec<Loss>), Damage> {
    parse_lenient(bytes, |json| serde_json::from_str(json).map(|entry| convert_entry(entry, settings)))?
}

fn convert_entry(mut entry: Entry<'_>, settings: &MarcSettings) -> Result<(Record, Vec<Loss>), Damage> {
    let id = entry.number()?;
    let var_fields = entry.take_var_fields().unwrap_or_default();
    let (record, mut losses) = from_sierra(id, &var_fields, settings)?;
    if !record.is_empty() {
        losses.extend(entry.marc.and_then(|marc| check_against(&record, marc, settings).loss()));
        return Ok((record, losses));
    }
    let mut record = Record::default();
    let marc = entry.marc.ok_or(Damage::NoMarc)?;
    let losses = marc_json::read::parse(marc.get().as_bytes(), &mut record, settings.on_illegal)?;
    if record.is_empty() { Err(Damage::NoMarc) } else { Ok((record, losses)) }
}
