//! Lists of one kind of value.

use serde_json::json;

use super::{Kind, Wrong};
use crate::config::document::Value;
use crate::config::problem::Place;

/// A list. In an environment variable it is written as in the file, `["a", "b"]`, or with commas, `a,b`.
pub(in crate::config) struct ListOf<K>(pub(in crate::config) K);

impl<K: Kind> Kind for ListOf<K> {
    type Read = Vec<K::Read>;

    fn read(&self, value: &Value) -> Result<Self::Read, Vec<Wrong>> {
        let written;
        let elements: Vec<(Option<Place>, &Value)> = match value {
            Value::List(nodes) => nodes.iter().map(|node| (Some(node.place.clone()), &node.value)).collect(),
            Value::Untyped(text) => {
                written = from_override(text);
                written.iter().map(|value| (None, value)).collect()
            }
            _ => return Err(Wrong::kind(value, "write a list in square brackets, such as [\"a\", \"b\"]")),
        };
        let (mut good, mut wrong) = (Vec::new(), Vec::new());
        for (place, value) in elements {
            match self.0.read(value) {
                Ok(read) => good.push(read),
                Err(all) => wrong.extend(all.into_iter().map(|each| Wrong { place: place.clone(), ..each })),
            }
        }
        if wrong.is_empty() { Ok(good) } else { Err(wrong) }
    }

    fn schema(&self) -> serde_json::Value {
        json!({"type": "array", "items": self.0.schema()})
    }

    fn literal(&self, default: &str) -> serde_json::Value {
        serde_json::from_str(default).unwrap_or_default()
    }
}

fn from_override(text: &str) -> Vec<Value> {
    let bracketed = text.trim_start().starts_with('[').then(|| Value::from_override(text, &Place::Flag)).flatten();
    match bracketed {
        Some(Value::List(nodes)) => nodes.into_iter().map(|node| node.value).collect(),
        _ => text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| Value::Untyped(part.to_owned()))
            .collect(),
    }
}
