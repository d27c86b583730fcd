//! What was written, key by key: for saying what changed when the configuration is read again.

use std::collections::BTreeMap;

use crate::config::document::{Document, Node, Table, Value};
use crate::secret::Secret;

/// Every key that was written, with its value as it was written. Values that are or may hold a secret are compared and
/// never shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Written(BTreeMap<String, Shown>);

#[derive(Debug, Clone, PartialEq)]
enum Shown {
    Plain(String),
    Hidden(Secret),
}

impl Written {
    pub(super) fn of(document: &Document) -> Self {
        let mut keys = BTreeMap::new();
        collect(&document.root, "", &mut keys);
        Self(keys)
    }

    /// The differences from `before`, one sentence each, in the order of the keys.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let keys: std::collections::BTreeSet<&String> = before.0.keys().chain(self.0.keys()).collect();
        let change = |key: &String| match (before.0.get(key), self.0.get(key)) {
            (Some(before), Some(now)) if before == now => None,
            (Some(Shown::Plain(before)), Some(Shown::Plain(now))) => Some(format!("{key}: {before} is now {now}")),
            (Some(_), Some(_)) => Some(format!("{key}: changed")),
            (Some(Shown::Plain(before)), None) => Some(format!("{key}: {before} is gone")),
            (None, Some(Shown::Plain(now))) => Some(format!("{key}: is now {now}")),
            (Some(Shown::Hidden(_)), None) => Some(format!("{key}: is gone")),
            (None, Some(Shown::Hidden(_))) => Some(format!("{key}: is there now")),
            (None, None) => None,
        };
        keys.into_iter().filter_map(change).collect()
    }
}

fn collect(table: &Table, above: &str, keys: &mut BTreeMap<String, Shown>) {
    for (name, node) in table {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match &node.value {
            // A table that is there says something even when it is empty: a stream is on.
            Value::Table(inner) if !inner.is_empty() => collect(inner, &key, keys),
            value => {
                let text = text(value);
                let shown = if may_hold_secret(name) { Shown::Hidden(Secret::new(text)) } else { Shown::Plain(text) };
                keys.insert(key, shown);
            }
        }
    }
}

/// Keys of secrets, and of addresses in which people put passwords.
fn may_hold_secret(name: &str) -> bool {
    ["secret", "token", "password", "key"].iter().any(|word| name.ends_with(word))
        || ["url", "proxy", "webhook", "servers"].iter().any(|word| name.ends_with(word))
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Untyped(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::List(nodes) => {
            let texts: Vec<String> = nodes.iter().map(|node: &Node| text(&node.value)).collect();
            format!("[{}]", texts.join(", "))
        }
        Value::Table(table) => {
            let texts: Vec<String> =
                table.iter().map(|(name, node)| format!("{name} = {}", text(&node.value))).collect();
            if texts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", texts.join(", ")) }
        }
        Value::Datetime | Value::Huge => "(not a value)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn written(text: &str) -> Written {
        let (document, problems) = Document::parse(Path::new("x.toml"), text);
        assert_eq!(problems, []);
        Written::of(&document)
    }

    #[test]
    fn each_key_that_changed_is_told_and_no_secret_is() {
        let before = written("[sierra]\nclient_key = \"k1\"\n[streams.bibs]\n[retry]\ncap = \"30s\"\nbase = \"1s\"\n");
        let after = written("[sierra]\nclient_key = \"k2\"\n[streams.items]\n[retry]\ncap = \"1m\"\nbase = \"1s\"\n");
        assert_eq!(
            after.changes_since(&before),
            [
                "retry.cap: \"30s\" is now \"1m\"",
                "sierra.client_key: changed",
                "streams.bibs: {} is gone",
                "streams.items: is now {}",
            ]
        );
        assert!(after.changes_since(&after).is_empty());
        assert!(!format!("{after:?}").contains("k2"));
    }
}
