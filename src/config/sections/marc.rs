//! `[marc]`: how MARC records are made.

use crate::config::kind::OneOf;
use crate::config::section::Section;
use crate::marc::{ControlNumber, MarcSettings, OnIllegal};

/// Reads the section.
pub(in crate::config) fn read(root: &mut Section<'_>) -> MarcSettings {
    let mut section = root.section("marc", "How MARC records are made.");
    let control_number = section.setting(
        "control_number",
        &OneOf(&[("keep", ControlNumber::Keep), ("sierra", ControlNumber::Sierra)]),
        "keep",
        "Field 001: as it is, or Sierra's record number.",
    );
    let on_illegal = section.setting(
        "on_illegal",
        &OneOf(&[("drop", OnIllegal::Drop), ("replace", OnIllegal::Replace), ("quarantine", OnIllegal::Quarantine)]),
        "drop",
        "What happens to characters that XML 1.0 cannot hold: left out, replaced by U+FFFD, or the record is set aside.",
    );
    section.finish();
    MarcSettings { control_number, on_illegal }
}
