//! What a conversion did, in numbers that add up.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::marc::loss::LossKind;

/// Counts of one conversion. Always `read == written + refused`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Records met in the inputs, damaged ones and tombstones included.
    pub read: u64,
    /// Records in the output.
    pub written: u64,
    /// Records that are not in the output.
    pub refused: u64,
    /// The refused ones by reason.
    pub reasons: BTreeMap<&'static str, u64>,
    /// Written records that were repaired or lost something.
    pub repaired: u64,
    /// Repairs and omissions by kind.
    pub losses: BTreeMap<LossKind, u64>,
    /// Inputs that could not be read to their end, with an unknown number of records in the rest.
    pub broken_inputs: u64,
}

impl Summary {
    /// Whether something that came in is not in the output.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.refused > 0 || self.broken_inputs > 0
    }
}

impl fmt::Display for Summary {
    /// One line: `10 read = 8 written + 2 refused (1 damaged, 1 tombstone); 1 repaired (2 tag-repaired)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} read = {} written + {} refused", self.read, self.written, self.refused)?;
        list(formatter, self.reasons.iter())?;
        if self.repaired > 0 {
            write!(formatter, "; {} repaired", self.repaired)?;
            list(formatter, self.losses.iter())?;
        }
        match self.broken_inputs {
            0 => Ok(()),
            1 => formatter.write_str("; 1 input could not be read to its end"),
            more => write!(formatter, "; {more} inputs could not be read to their ends"),
        }
    }
}

fn list<'a>(
    formatter: &mut fmt::Formatter<'_>,
    counts: impl Iterator<Item = (impl fmt::Display, &'a u64)>,
) -> fmt::Result {
    let listed: Vec<String> = counts.map(|(name, count)| format!("{count} {name}")).collect();
    if listed.is_empty() { Ok(()) } else { write!(formatter, " ({})", listed.join(", ")) }
}
