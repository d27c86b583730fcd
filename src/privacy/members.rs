//! JSON objects and arrays one level deep, with their values as they came.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// The members of `object` in order; `None` when it is not an object.
pub(in crate::privacy) fn members(object: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    serde_json::from_str::<Members<'_>>(object.get()).ok().map(|members| members.0)
}

/// The member `name` of a JSON object; of several the last, as JSON readers do.
pub(in crate::privacy) fn member<'a>(value: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    members(value)?.into_iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The elements of `array`; `None` when it is not an array.
pub(in crate::privacy) fn elements(array: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(array.get()).ok()
}

/// An object of these members, in this order.
pub(in crate::privacy) fn object<V: Serialize>(members: &[(String, V)]) -> Box<RawValue> {
    struct InOrder<'a, V>(&'a [(String, V)]);
    impl<V: Serialize> Serialize for InOrder<'_, V> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
        }
    }
    serde_json::value::to_raw_value(&InOrder(members)).expect("texts and raw values are always JSON")
}

/// An array of these elements.
pub(in crate::privacy) fn array<V: Serialize>(elements: &[V]) -> Box<RawValue> {
    serde_json::value::to_raw_value(elements).expect("raw values are always JSON")
}

/// The text of a JSON string; `None` when it is another kind of value.
pub(in crate::privacy) fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::with_capacity(map.size_hint().unwrap_or(0));
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
