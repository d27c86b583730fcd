//! A text, or what somebody's tools made of one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A JSON text, or a number or truth value that stands where a text was expected (BR-023), as text: `1984` for the
/// number, as JSON writes it. Borrowed from the input unless it holds escapes or was no text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scalar<'a>(pub Cow<'a, str>);

impl Scalar<'_> {
    /// The text itself.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl std::ops::Deref for Scalar<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor).map(Scalar)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, a number or a truth value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Cow<'de, str>, E> {
        // Beyond this, digits are lost: a number that long was an identifier.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match serde_json::Number::from_f64(number) {
            Some(written) if number.abs() < EXACT => Ok(Cow::Owned(written.to_string())),
            _ => Err(E::custom("a number of more digits than can be carried")),
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(if value { "true" } else { "false" }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BR-023.
    #[test]
    fn numbers_and_truth_values_are_taken_as_the_texts_they_stand_for() {
        let read = |json: &str| serde_json::from_str::<Scalar<'_>>(json).ok().map(|scalar| scalar.to_string());
        for (json, text) in [
            (r#""a""#, "a"),
            (r#""\u0061\n""#, "a\n"),
            ("1984", "1984"),
            ("-7", "-7"),
            ("18446744073709551615", "18446744073709551615"),
            ("1.5", "1.5"),
            ("2.0", "2.0"),
            ("true", "true"),
            ("false", "false"),
        ] {
            assert_eq!(read(json).as_deref(), Some(text), "{json}");
        }
        for json in ["null", "[]", "{}", "123456789012345678901234567890", "1e300"] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
