//! What the configuration language has and this version does not do yet: refused with one sentence, never accepted
//! and ignored.
//!
//! When something is built its row goes, and with it the refusal; a test keeps the README's list equal to this table.

use crate::config::path::KeyPath;

/// Something that is not built yet.
#[derive(Debug, Clone, Copy)]
pub struct Unbuilt {
    /// The keys, with `*` for a name that people choose.
    pub key: &'static str,
    /// The values that are refused; empty means any value.
    pub values: &'static [&'static str],
    /// What is built instead, as the end of a sentence.
    pub instead: &'static str,
}

/// Every row.
pub const UNBUILT: &[Unbuilt] = &[
    Unbuilt { key: "sinks.*.type", values: &["postgres", "nats", "webhook"], instead: "built are file and stdout" },
    Unbuilt { key: "sinks.*.format", values: &["mrc", "marc-json"], instead: "built are ndjson and marcxml" },
    Unbuilt { key: "sinks.*.compress", values: &["gzip", "zstd"], instead: "leave it out or write \"none\"" },
];

/// The sentence for `value` at `path`, if that is not built yet.
pub(super) fn value(path: &KeyPath, value: &str) -> Option<String> {
    let row =
        UNBUILT.iter().find(|row| path.fits(row.key) && (row.values.is_empty() || row.values.contains(&value)))?;
    Some(match row.values {
        [] => format!("is not built yet; {}", row.instead),
        _ => format!("{value:?} is not built yet; {}", row.instead),
    })
}

/// The sentence for the key `path` whatever its value, if the key is not built yet.
pub(super) fn key(path: &KeyPath) -> Option<String> {
    let row = UNBUILT.iter().find(|row| row.values.is_empty() && path.fits(row.key))?;
    Some(format!("is not built yet; {}", row.instead))
}
