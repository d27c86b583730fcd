//! Invents what staff type on an item.

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::words::LOCAL_NOTES;
use super::{chance, pick};
use crate::simulator::world::VarField;

/// The invented parts of an item.
pub(crate) struct Holding {
    /// The barcode; `""` on a few items, as on real ones.
    pub(crate) barcode: String,
    /// The shelfmark.
    pub(crate) call_number: Option<String>,
    /// Further fields: volume, donor, price, notes.
    pub(crate) fields: Vec<VarField>,
}

/// One item, known by a number that no other item has.
pub(crate) fn invent_holding(rng: &mut StdRng, number: u64) -> Holding {
    let barcode = if chance(rng, 2) { String::new() } else { format!("3{:013}", 9_000_000 + number) };
    let class = format!(
        "QX{} .{}{}",
        rng.random_range(100..1000),
        (b'A' + rng.random_range(0..26)) as char,
        rng.random_range(1..99)
    );
    let call_number = chance(rng, 92).then_some(class);
    let mut fields = Vec::new();
    if !barcode.is_empty() {
        fields.push(VarField::plain('b', barcode.clone()));
    }
    if let Some(call_number) = &call_number {
        fields.push(VarField::marc('c', "090", "  ").with('a', call_number.as_str()));
    }
    if chance(rng, 20) {
        let volume = format!("v.{}", rng.random_range(1..40));
        fields.push(VarField::plain('v', volume));
    }
    if chance(rng, 25) {
        fields.push(invent_note(rng));
    }
    if chance(rng, 15) {
        fields.push(VarField::plain('p', format!("GB{}.{:02}", rng.random_range(2..90), rng.random_range(0..100))));
    }
    fields.sort_by_key(VarField::rank);
    Holding { barcode, call_number, fields }
}

/// A staff note, field tag `x`.
pub(crate) fn invent_note(rng: &mut StdRng) -> VarField {
    let text = format!("{} ({})", pick(rng, &LOCAL_NOTES), rng.random_range(1000..10_000));
    VarField::plain('x', text)
}
