//! An error body that declares itself final: a JSON object with a boolean `"retryable": false` (D1–D5).
//!
//! The verdict can only stop a retry, never start one, and looking for it can neither recurse deeply nor read
//! without bound. It is given bytes that were read anyway: it never asks for a body (D4).

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Larger bodies are not examined: an error that explains itself is short (D5).
pub const LARGEST_EXAMINED: usize = 256 * 1024;

/// Whether the body is a JSON object whose own member `retryable` is the boolean `false`.
///
/// `true`, the string `"false"`, a nested member, malformed JSON and everything else say nothing (D2).
#[must_use]
pub fn forbids_retry(body: &[u8]) -> bool {
    body.len() <= LARGEST_EXAMINED
        && serde_json::from_slice::<TopLevel>(body).is_ok_and(|top| top.retryable == Some(false))
}

struct TopLevel {
    retryable: Option<bool>,
}

impl<'de> Deserialize<'de> for TopLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = TopLevel;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<TopLevel, A::Error> {
                let mut retryable = None;
                while let Some(key) = members.next_key::<std::borrow::Cow<'de, str>>()? {
                    if key == "retryable" {
                        retryable = members.next_value::<MaybeBoolean>()?.0;
                    } else {
                        members.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(TopLevel { retryable })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A boolean, or anything else skipped without recursion.
struct MaybeBoolean(Option<bool>);

impl<'de> Deserialize<'de> for MaybeBoolean {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = MaybeBoolean;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("any value")
            }

            fn visit_bool<E>(self, value: bool) -> Result<MaybeBoolean, E> {
                Ok(MaybeBoolean(Some(value)))
            }

            fn visit_unit<E>(self) -> Result<MaybeBoolean, E> {
                Ok(MaybeBoolean(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<MaybeBoolean, E> {
                Ok(MaybeBoolean(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<MaybeBoolean, E> {
                Ok(MaybeBoolean(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<MaybeBoolean, E> {
                Ok(MaybeBoolean(None))
            }

            fn visit_str<E>(self, _: &str) -> Result<MaybeBoolean, E> {
                Ok(MaybeBoolean(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<MaybeBoolean, A::Error> {
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                Ok(MaybeBoolean(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<MaybeBoolean, A::Error> {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(MaybeBoolean(None))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D1
    #[test]
    fn a_top_level_boolean_false_forbids_the_retry() {
        assert!(forbids_retry(br#"{"retryable":false}"#));
        assert!(forbids_retry(br#" {"code":500,"details":{"retryable":true},"retryable": false ,"more":[1,{}]} "#));
        assert!(forbids_retry(br#"{"retry\u0061ble":false}"#));
    }

    /// D2
    #[test]
    fn everything_else_changes_nothing() {
        let bodies: [&[u8]; 14] = [
            b"",
            b"null",
            b"false",
            b"[{\"retryable\":false}]",
            b"{}",
            b"{\"retryable\":true}",
            b"{\"retryable\":\"false\"}",
            b"{\"retryable\":0}",
            b"{\"retryable\":null}",
            b"{\"retryable\":[false]}",
            b"{\"error\":{\"retryable\":false}}",
            b"{\"retryable\":false",
            b"{\"retryable\":false} trailing",
            b"<html>\xff{\"retryable\":false}</html>",
        ];
        for body in bodies {
            assert!(!forbids_retry(body), "{}", String::from_utf8_lossy(body));
        }
    }

    /// D5: neither depth nor size can hurt, wherever the depth sits.
    #[test]
    fn deep_and_huge_bodies_are_survived() {
        for opening in ["[", "{\"a\":"] {
            let deep = opening.repeat(LARGEST_EXAMINED / opening.len() - 20);
            assert!(!forbids_retry(deep.as_bytes()));
            assert!(!forbids_retry(format!("{{\"retryable\":{deep}").as_bytes()));
        }
        let closed = format!("{{\"deep\":{}{},\"retryable\":false}}", "[".repeat(50_000), "]".repeat(50_000));
        assert!(forbids_retry(closed.as_bytes()), "depth beside the verdict does not hide it");
        let huge = format!("{{\"text\":\"{}\",\"retryable\":false}}", "x".repeat(LARGEST_EXAMINED));
        assert!(!forbids_retry(huge.as_bytes()));
    }
}
