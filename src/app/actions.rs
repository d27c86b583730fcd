//! What people did by command, and why: kept with the state, so that whoever looks later can see it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::sync::Store;
use crate::sync::ports::{Snapshot, StoreError};

/// So many are kept; the oldest give way.
const KEPT: usize = 200;
/// Words of people are cut to so many characters.
const LONGEST_WORDS: usize = 200;

/// Who acts, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Operator {
    /// The name, as far as it is known.
    pub by: Option<String>,
    /// The reason that was given.
    pub reason: Option<String>,
}

impl Operator {
    /// `reason` and a name that comes from outside, without control characters and not longer than 200 characters each:
    /// both are shown on terminals and in logs.
    #[must_use]
    pub fn new(by: Option<&str>, reason: Option<&str>) -> Self {
        Self { by: by.and_then(words), reason: reason.and_then(words) }
    }

    /// The reason, or that none was given.
    #[must_use]
    pub fn reason_or_none(&self) -> &str {
        self.reason.as_deref().unwrap_or("no reason given")
    }
}

fn words(text: &str) -> Option<String> {
    let plain: String = text.chars().map(|at| if at.is_control() { ' ' } else { at }).take(LONGEST_WORDS).collect();
    Some(plain.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Something that a person did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// When.
    pub at: Timestamp,
    /// The command, such as `breaker open`.
    pub command: String,
    /// Who, as far as it is known.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Until when it holds, where it ends by itself.
    pub until: Option<Timestamp>,
    /// What came of it, in a few words.
    pub outcome: String,
}

/// Adds `action` to what is kept.
///
/// # Errors
/// On any storage error.
pub(super) fn note(store: &dyn Store, action: Action) -> Result<(), StoreError> {
    let mut actions = all(store)?;
    actions.push(action);
    let surplus = actions.len().saturating_sub(KEPT);
    actions.drain(..surplus);
    let bytes = serde_json::to_vec(&actions).unwrap_or_default();
    store.save_snapshot(Snapshot::Actions, &bytes)
}

/// What is kept, the oldest first. What cannot be read is passed over: it decides nothing.
///
/// # Errors
/// On any storage error.
pub(super) fn all(store: &dyn Store) -> Result<Vec<Action>, StoreError> {
    let bytes = store.snapshot(Snapshot::Actions)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;
    use crate::store::MemoryStore;

    #[test]
    fn the_last_two_hundred_actions_are_kept() {
        let store = MemoryStore::new(Arc::new(SystemClock));
        for number in 0..KEPT + 3 {
            let action = Action {
                at: Timestamp::UNIX_EPOCH,
                command: format!("command {number}"),
                by: None,
                reason: None,
                until: None,
                outcome: "done".to_owned(),
            };
            note(&store, action).expect("written");
        }
        let actions = all(&store).expect("read");
        assert_eq!((actions.len(), actions[0].command.as_str()), (KEPT, "command 3"));
    }

    #[test]
    fn words_of_people_can_be_shown_anywhere() {
        let operator = Operator::new(Some("  \u{1b}[2Jann\n"), Some(&"x".repeat(500)));
        assert_eq!(operator.by.as_deref(), Some("[2Jann"));
        assert_eq!(operator.reason.map(|reason| reason.len()), Some(LONGEST_WORDS));
        assert_eq!(Operator::new(Some(""), Some("\t")), Operator::default());
    }
}
