//! Text in JSON, borrowed where it can be.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::marc::read::Damage;
use crate::record::surrogate;

/// A JSON string that points into the input unless it holds escapes. `Cow<str>` itself always copies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::marc) struct Text<'a>(pub(in crate::marc) Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Parses one JSON value with `parse`; if that fails, once more with unpaired surrogates replaced.
pub(in crate::marc) fn parse_lenient<T>(
    bytes: &[u8],
    mut parse: impl FnMut(&str) -> Result<T, serde_json::Error>,
) -> Result<T, Damage> {
    let text = std::str::from_utf8(bytes).map_err(|_| Damage::Json { what: "it is not UTF-8".to_owned() })?;
    match parse(text) {
        Ok(parsed) => Ok(parsed),
        Err(error) => match surrogate::replace_unpaired(text) {
            (Cow::Owned(repaired), _) => parse(&repaired).map_err(|error| damage(&error)),
            (Cow::Borrowed(_), _) => Err(damage(&error)),
        },
    }
}

/// serde_json's own messages quote values, which may be anybody's: only the place is told.
fn damage(error: &serde_json::Error) -> Damage {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        // One of serde's own words, which quotes a key of ours.
        serde_json::error::Category::Data if error.to_string().starts_with("duplicate field") => {
            Damage::Json { what: format!("a key stands twice, at line {line} column {column} of it") }
        }
        serde_json::error::Category::Data => {
            Damage::Json { what: format!("a value of another type than expected at line {line} column {column} of it") }
        }
        _ => Damage::Json { what: format!("malformed at line {line} column {column} of it") },
    }
}
