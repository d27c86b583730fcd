//! Entries that are hard or impossible to decode.

use serde::Deserialize;

use super::super::json::{Object, push_stamp};
use super::super::kind::Kind;
use super::super::world::Stamps;

/// How an entry is spoiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Garble {
    /// Only `id` is there: allowed, and to be accepted (BR-021).
    OnlyId,
    /// Blank and placeholder values: allowed, and to be accepted (BR-021).
    Blank,
    /// Fields of the wrong type; the number is readable (BR-020).
    WrongTypes,
    /// No `id`.
    NoId,
    /// `null` instead of an object.
    Null,
    /// An escape that no Unicode text can hold: half a surrogate pair (BR-083). Strict readers give up the page.
    LoneSurrogate,
    /// JSON that ends in the middle of the entry and goes on after it.
    BrokenJson,
}

impl Garble {
    /// Writes the spoiled entry.
    pub(crate) fn push(self, kind: Kind, id: u64, stamps: &Stamps, out: &mut String) {
        let quote = if kind == Kind::Patrons { "" } else { "\"" };
        let id = format!("{quote}{id}{quote}");
        match self {
            Self::Null => return out.push_str("null"),
            Self::BrokenJson => return out.push_str(&format!("{{\"id\":{id},\"title\":\"unfinished")),
            _ => {}
        }
        let mut entry = Object::open(out);
        if self != Self::NoId {
            entry.display("id", id);
        }
        match self {
            Self::OnlyId | Self::Null | Self::BrokenJson => {}
            Self::Blank => {
                push_stamp(entry.key("updatedDate"), stamps.updated);
                for (key, json) in BLANKS {
                    entry.key(key).push_str(json);
                }
            }
            Self::WrongTypes => {
                entry.display("updatedDate", 20_260_105);
                for (key, json) in WRONG_TYPES {
                    entry.key(key).push_str(json);
                }
            }
            Self::NoId => push_stamp(entry.key("updatedDate"), stamps.updated),
            Self::LoneSurrogate => {
                push_stamp(entry.key("updatedDate"), stamps.updated);
                entry.key("title").push_str(r#""half a pair: \ud83d""#);
            }
        }
        entry.close();
    }
}

const BLANKS: [(&str, &str); 8] = [
    ("deleted", "false"),
    ("suppressed", "false"),
    ("title", r#""""#),
    ("author", r#""""#),
    ("lang", r#"{"code":"   "}"#),
    ("materialType", r#"{"code":"-  ","value":""}"#),
    ("fixedFields", r#"{"30":{"label":"","value":"-"},"31":{"value":"-"}}"#),
    ("varFields", "[]"),
];

const WRONG_TYPES: [(&str, &str); 4] =
    [("deleted", r#""perhaps""#), ("bibIds", "17"), ("fixedFields", "[]"), ("varFields", r#"{"245":"a title"}"#)];
