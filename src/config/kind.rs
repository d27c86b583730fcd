//! The kinds of value that keys take: how each is read, what is said when it cannot be, and its JSON Schema.

mod amount;
mod choice;
mod list;
mod number;
mod text;

pub(super) use amount::{DurationIn, RateIn, SizeIn};
pub(super) use choice::{OneOf, Switch};
pub(super) use list::ListOf;
pub(super) use number::{IntegerIn, NumberIn};
pub(super) use text::{DirectoryPath, FilePath, Text, TextAs};

use serde_json::json;

use crate::config::document::Value;
use crate::config::problem::Place;

/// A kind of value.
pub(super) trait Kind {
    /// What a good value becomes.
    type Read;

    /// Reads `value`.
    ///
    /// # Errors
    /// Each thing that is wrong with it: more than one in a list.
    fn read(&self, value: &Value) -> Result<Self::Read, Vec<Wrong>>;

    /// The JSON Schema of the value as written in the file.
    fn schema(&self) -> serde_json::Value;

    /// A default, given as it would stand in an environment variable, as JSON.
    fn literal(&self, default: &str) -> serde_json::Value {
        json!(default)
    }
}

/// Why a value does not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The element of a list; `None` for the value itself.
    pub(super) place: Option<Place>,
    /// The text that was read, to look it up among what is not built.
    pub(super) text: Option<String>,
    /// What is wrong.
    pub(super) message: String,
    /// What would be right.
    pub(super) hint: String,
}

impl Wrong {
    /// `value` has the wrong type.
    fn kind(value: &Value, hint: &str) -> Vec<Self> {
        let message = format!("{} does not fit here", value.noun());
        vec![Self { place: None, text: None, message, hint: hint.to_owned() }]
    }

    /// `text` has the right type and is wrong all the same.
    fn text(text: &str, message: String, hint: String) -> Vec<Self> {
        vec![Self { place: None, text: Some(text.to_owned()), message, hint }]
    }
}

/// A value as shown in messages: quoted and at most 60 characters. Never called for secrets.
fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}
