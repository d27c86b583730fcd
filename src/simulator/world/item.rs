//! An item as the library keeps it.

use jiff::Timestamp;

use super::VarField;
use crate::simulator::site::Code;

/// A live item.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// The bibs it hangs from, in the order they were linked.
    pub(crate) bib_ids: Vec<u64>,
    /// Fixed field 79.
    pub(crate) location: &'static Code,
    /// Fixed field 88.
    pub(crate) status: &'static Code,
    /// Fixed field 61.
    pub(crate) item_type: &'static Code,
    /// Fixed field 60; which values suppress is the site's choice.
    pub(crate) code2: char,
    /// Fixed field 58.
    pub(crate) copy: u32,
    /// The barcode, perhaps empty.
    pub(crate) barcode: String,
    /// The shelfmark, when it has one of its own.
    pub(crate) call_number: Option<String>,
    /// Its variable-length fields, in stored order.
    pub(crate) fields: Vec<VarField>,
    /// Its life at the desk.
    pub(crate) circulation: Circulation,
}

/// Loans and uses of one item.
#[derive(Debug, Clone, Default)]
pub(crate) struct Circulation {
    /// Present while on loan; then fixed field 66 names the patron, and the status a due date.
    pub(crate) loan: Option<Loan>,
    /// Fixed field 67.
    pub(crate) last_patron: Option<u64>,
    /// Fixed field 76.
    pub(crate) checkouts: u32,
    /// Fixed field 77.
    pub(crate) renewals: u32,
    /// Fixed field 93.
    pub(crate) internal_uses: u32,
    /// Fixed field 78.
    pub(crate) last_out: Option<Timestamp>,
    /// Fixed field 68.
    pub(crate) last_in: Option<Timestamp>,
    /// Holds on it.
    pub(crate) holds: u32,
}

/// A loan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loan {
    /// Who has it.
    pub(crate) patron: u64,
    /// Until when.
    pub(crate) due: Timestamp,
}
