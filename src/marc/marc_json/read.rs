//! Reading MARC-in-JSON.

use std::io::BufRead;

use super::shape;
use crate::marc::builder::Builder;
use crate::marc::json::text::parse_lenient;
use crate::marc::json::values::Values;
use crate::marc::leader::Leader;
use crate::marc::loss::{Loss, Losses};
use crate::marc::model::Record;
use crate::marc::read::{Damage, ReadError, ReadRecord};
use crate::marc::settings::OnIllegal;

/// Reads MARC-in-JSON records: one, an array of them, or one after the other (NDJSON). The shape is code4lib's, or
/// that of III's `marc-json` (sierra-api.md §4.2).
#[derive(Debug)]
pub struct Reader<R> {
    values: Values<R>,
    policy: OnIllegal,
    losses: Vec<Loss>,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`.
    pub fn new(input: R, policy: OnIllegal) -> Self {
        Self { values: Values::new(input, None), policy, losses: Vec::new() }
    }
}

impl<R: BufRead> ReadRecord for Reader<R> {
    fn read_into(&mut self, record: &mut Record) -> Result<bool, ReadError> {
        if !self.values.next()? {
            return Ok(false);
        }
        let parsed = parse(self.values.value(), record, self.policy);
        match parsed {
            Ok(losses) => {
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

/// Parses one record in either shape into `record`.
pub(in crate::marc) fn parse(bytes: &[u8], record: &mut Record, policy: OnIllegal) -> Result<Vec<Loss>, Damage> {
    let mut refusal = None;
    let parsed = parse_lenient(bytes, |json| {
        record.clear(Leader::default());
        refusal = None;
        let mut losses = Losses::default();
        let builder = Builder { record, losses: &mut losses, policy };
        shape::read(json, builder, &mut refusal)?;
        Ok(losses.into_vec())
    });
    parsed.map_err(|damage| refusal.unwrap_or(damage))
}
