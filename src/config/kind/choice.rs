//! Values out of a closed set.

use serde_json::json;

use super::{Kind, Wrong, shown};
use crate::config::document::Value;
use crate::config::nearest::nearest;

/// `true` or `false`.
pub(in crate::config) struct Switch;

impl Kind for Switch {
    type Read = bool;

    fn read(&self, value: &Value) -> Result<bool, Vec<Wrong>> {
        match value {
            Value::Boolean(switch) => Ok(*switch),
            Value::Untyped(text) if text == "true" => Ok(true),
            Value::Untyped(text) if text == "false" => Ok(false),
            _ => Err(Wrong::kind(value, "write true or false, without quotes")),
        }
    }

    fn schema(&self) -> serde_json::Value {
        json!({"type": "boolean"})
    }

    fn literal(&self, default: &str) -> serde_json::Value {
        json!(default == "true")
    }
}

/// One of a few words, each with what it means.
pub(in crate::config) struct OneOf<T: 'static>(pub(in crate::config) &'static [(&'static str, T)]);

impl<T> OneOf<T> {
    fn words(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().map(|(word, _)| *word)
    }
}

impl<T: Clone> Kind for OneOf<T> {
    type Read = T;

    fn read(&self, value: &Value) -> Result<T, Vec<Wrong>> {
        let expected = format!("expected {}", spoken(&self.words().collect::<Vec<_>>()));
        let (Value::Text(text) | Value::Untyped(text)) = value else { return Err(Wrong::kind(value, &expected)) };
        if let Some((_, meaning)) = self.0.iter().find(|(word, _)| word == text) {
            return Ok(meaning.clone());
        }
        let hint = match nearest(text, self.words()) {
            Some(word) if self.0.len() > 2 => format!("did you mean {word:?}? {expected}"),
            _ => expected,
        };
        Err(Wrong::text(text, format!("{} is unknown", shown(text)), hint))
    }

    fn schema(&self) -> serde_json::Value {
        json!({"type": "string", "enum": self.words().collect::<Vec<_>>()})
    }
}

/// `"a"`, `"a" or "b"`, `"a", "b" or "c"`.
fn spoken(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
