//! What people did by command, and why: kept with the state, so that whoever looks later can see it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::sync::Store;
use crate::sync::ports::{Snapshot, StoreError};

/// So many are kept; the oldest give way.
const KEPT: usize = 200;
/// Words of people are cut to so many characters.
const LONGEST_WORDS: usize = 200;
/// Names are cut to so many.
const LONGEST_NAME: usize = 60;

/// Who acts, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Said")]
pub struct Operator {
    /// The name, as far as it is known.
    pub by: Option<String>,
    /// The reason that was given.
    pub reason: Option<String>,
}

/// What a client of the control socket says.
#[derive(Deserialize)]
struct Said {
    by: Option<String>,
    reason: Option<String>,
}

impl From<Said> for Operator {
    fn from(Said { by, reason }: Said) -> Self {
        Self::new(by.as_deref(), reason.as_deref())
    }
}

impl Operator {
    /// `reason` and a name that comes from outside, without characters that cannot be seen or turn the direction of what
    /// follows, and cut to 200 and 60 characters: both are shown on terminals, in logs and on the dashboard.
    #[must_use]
    pub fn new(by: Option<&str>, reason: Option<&str>) -> Self {
        let words = |text: Option<&str>, longest: usize| text.and_then(|text| words(text, longest));
        Self { by: words(by, LONGEST_NAME), reason: words(reason, LONGEST_WORDS) }
    }

    /// The reason, or that none was given.
    #[must_use]
    pub fn reason_or_none(&self) -> &str {
        self.reason.as_deref().unwrap_or("no reason given")
    }
}

fn words(text: &str, longest: usize) -> Option<String> {
    let visible = text.chars().filter(|at| !is_invisible(*at));
    let plain: String = visible.map(|at| if at.is_control() { ' ' } else { at }).take(longest).collect();
    Some(plain.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Whether `at` has no shape of its own: marks and overrides of direction, zero widths, separators of lines that no
/// terminal knows, tags.
fn is_invisible(at: char) -> bool {
    matches!(
        at,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
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
        let sent = serde_json::json!({"by": "x".repeat(500)}).to_string();
        let sent = serde_json::from_str::<Operator>(&sent).expect("plain");
        assert_eq!(sent.by.map(|by| by.len()), Some(60));
        assert_eq!(Operator::new(Some(""), Some("\t")), Operator::default());
    }

    /// Whichever way they come: on the command line, from the dashboard, through the socket.
    #[test]
    fn words_of_people_turn_nothing_round_and_hide_nothing() {
        let (by, reason) = ("ann\u{202e}", "\u{2066}up\u{200b}grade\u{2028}to\u{feff}night\u{61c}\u{e0041}");
        let plain = Operator { by: Some("ann".to_owned()), reason: Some("upgradetonight".to_owned()) };
        assert_eq!(Operator::new(Some(by), Some(reason)), plain);
        let sent = serde_json::json!({"by": by, "reason": reason}).to_string();
        assert_eq!(serde_json::from_str::<Operator>(&sent).expect("plain"), plain);
        assert_eq!(Operator::new(Some("Zoë 馬 שרה"), None).by.as_deref(), Some("Zoë 馬 שרה"));
    }
}
