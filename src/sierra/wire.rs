//! The JSON shapes of Sierra, as they stand on the wire. Everything borrows from the body; nothing is interpreted.
//!
//! A page is split in one pass into the keys and raw values of its entries. Values that this program does not read are
//! never decoded, so an odd one costs nothing and a deeply nested one cannot exhaust the stack: serde_json skips raw
//! values without recursion.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON object as its keys and raw values, in order, duplicates included.
#[derive(Debug, Default)]
pub(super) struct RawObject<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawObject<'a> {
    /// The keys and values in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = RawObject<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawObject<'de>, A::Error> {
                members(map)
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// The top level of an answer: `entries`, and what marks an error dressed as a success.
#[derive(Debug, Default)]
pub(super) struct WirePage<'a> {
    /// `entries`, when the key is there.
    pub(super) entries: Option<WireEntries<'a>>,
    /// `code`, when it is there and not null.
    pub(super) code: Option<&'a RawValue>,
    /// Whether `total` is a number above 0.
    pub(super) has_total: bool,
    /// Whether `httpStatus` is there and not null.
    pub(super) has_http_status: bool,
}

fn is_above_0(total: &RawValue) -> bool {
    total.get().trim_matches('"').trim().parse::<u64>().is_ok_and(|total| total > 0)
}

/// The value of `entries`.
#[derive(Debug)]
pub(super) enum WireEntries<'a> {
    /// An array.
    List(Vec<WireEntry<'a>>),
    /// Anything else.
    NotAList,
}

/// One element of `entries`.
#[derive(Debug)]
pub(super) enum WireEntry<'a> {
    /// An object, as it should be.
    Object(RawObject<'a>),
    /// Anything else.
    NotAnObject,
}

impl<'de: 'a, 'a> Deserialize<'de> for WirePage<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PageVisitor;
        impl<'de> Visitor<'de> for PageVisitor {
            type Value = WirePage<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WirePage<'de>, A::Error> {
                let mut page = WirePage::default();
                while let Some(Key(key)) = map.next_key()? {
                    match key.as_ref() {
                        "entries" if page.entries.is_some() => return Err(A::Error::duplicate_field("entries")),
                        "entries" => page.entries = Some(map.next_value()?),
                        "code" => page.code = map.next_value::<Option<&'de RawValue>>()?,
                        "total" => page.has_total = is_above_0(map.next_value::<&'de RawValue>()?),
                        "httpStatus" => page.has_http_status = map.next_value::<Option<IgnoredAny>>()?.is_some(),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(page)
            }
        }
        deserializer.deserialize_map(PageVisitor)
    }
}

/// Implements the scalar methods of a [`Visitor`] that takes any value.
macro_rules! visit_scalars {
    ($value:expr) => {
        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok($value)
        }
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok($value)
        }
    };
}

impl<'de: 'a, 'a> Deserialize<'de> for WireEntries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = WireEntries<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of entries")
            }

            visit_scalars!(WireEntries::NotAList);

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireEntries<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(WireEntries::NotAList)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<WireEntries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element()? {
                    entries.push(entry);
                }
                Ok(WireEntries::List(entries))
            }
        }
        deserializer.deserialize_any(EntriesVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WireEntry<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntryVisitor;
        impl<'de> Visitor<'de> for EntryVisitor {
            type Value = WireEntry<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an entry")
            }

            visit_scalars!(WireEntry::NotAnObject);

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<WireEntry<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(WireEntry::NotAnObject)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WireEntry<'de>, A::Error> {
                members(map).map(WireEntry::Object)
            }
        }
        deserializer.deserialize_any(EntryVisitor)
    }
}

fn members<'de, A: MapAccess<'de>>(mut map: A) -> Result<RawObject<'de>, A::Error> {
    // An entry has about a dozen keys by default and twice that with every field named.
    let mut members = Vec::with_capacity(24);
    while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
        members.push((key, value));
    }
    Ok(RawObject(members))
}

/// A key, borrowed unless it holds an escape. (`Cow<str>` alone would always be copied.)
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_split_without_looking_into_its_values() {
        let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
        let json = format!(r#"{{"total":1,"x":{deep},"entries":[{{"id":1,"a\n":{deep}}},7,null,[{deep}],"x"]}}"#);
        let page: WirePage<'_> = serde_json::from_str(&json).expect("splits");
        let Some(WireEntries::List(entries)) = page.entries else { panic!("no list") };
        let WireEntry::Object(first) = &entries[0] else { panic!("no object") };
        assert_eq!(first.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["id", "a\n"]);
        assert!(entries[1..].iter().all(|entry| matches!(entry, WireEntry::NotAnObject)));
        assert!(page.code.is_none() && !page.has_http_status);
    }

    #[test]
    fn marks_of_an_error_are_seen_and_null_ones_are_not() {
        let page: WirePage<'_> = serde_json::from_str(r#"{"code":"-1","httpStatus":200}"#).expect("splits");
        assert!(page.code.is_some() && page.has_http_status && page.entries.is_none());
        let page: WirePage<'_> =
            serde_json::from_str(r#"{"code":null,"httpStatus":null,"entries":{}}"#).expect("splits");
        assert!(page.code.is_none() && !page.has_http_status);
        assert!(matches!(page.entries, Some(WireEntries::NotAList)));
        assert!(serde_json::from_str::<WirePage<'_>>(r#"{"entries":[],"entries":[]}"#).is_err());
    }
}
