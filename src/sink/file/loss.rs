//! What of the directory is gone although nobody said that it was taken.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::Stream;

/// Files named in one sentence; the others are counted.
const NAMED: usize = 3;

/// One file that is gone, or shorter than it was. It stands in the manifest until somebody who counts what the sink
/// holds begins anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Loss {
    /// Below the sink's directory, with `/`.
    pub(super) path: String,
    pub(super) stream: Stream,
    /// Changes that were in it when it was whole.
    pub(super) changes: u64,
    /// Its length then.
    pub(super) bytes: u64,
    /// Its length when that was noticed; `None` when there was no such file.
    pub(super) present: Option<u64>,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, changes, bytes, .. } = self;
        match self.present {
            Some(present) => write!(formatter, "{path} is {} bytes shorter than it was", bytes.saturating_sub(present)),
            None => write!(formatter, "{path} is gone ({changes} changes, {bytes} bytes)"),
        }
    }
}

/// Names `losses`, the first few of them one by one; empty when there are none.
pub(super) fn named(losses: &[&Loss]) -> String {
    let mut parts: Vec<String> = losses.iter().take(NAMED).map(ToString::to_string).collect();
    match losses.len().saturating_sub(NAMED) {
        0 => {}
        1 => parts.push("1 more file is gone or shorter".into()),
        more => parts.push(format!("{more} more files are gone or shorter")),
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_files_are_named_and_the_rest_is_counted() {
        let loss = |n: u64| Loss {
            path: format!("bibs/{n}.ndjson"),
            stream: Stream::Bibs,
            changes: n,
            bytes: n * 100,
            present: (n == 2).then_some(150),
        };
        let losses: Vec<Loss> = (1..=5).map(loss).collect();
        let first = |count: usize| named(&losses.iter().take(count).collect::<Vec<_>>());
        assert_eq!(first(0), "");
        assert_eq!(
            first(2),
            "bibs/1.ndjson is gone (1 changes, 100 bytes), bibs/2.ndjson is 50 bytes shorter than it was"
        );
        assert!(first(5).ends_with("300 bytes), 2 more files are gone or shorter"), "{}", first(5));
        assert!(first(4).ends_with(", 1 more file is gone or shorter"), "{}", first(4));
    }
}
