//! Whole numbers and fractions with their ranges.

use std::ops::RangeInclusive;

use serde_json::json;

use super::{Kind, Wrong, shown};
use crate::config::document::Value;

/// A whole number within a range.
pub(in crate::config) struct IntegerIn(pub(in crate::config) RangeInclusive<u32>);

impl Kind for IntegerIn {
    type Read = u32;

    fn read(&self, value: &Value) -> Result<u32, Vec<Wrong>> {
        let hint = match (self.0.start(), self.0.end()) {
            (only, end) if only == end => format!("write {only}"),
            (start, end) => format!("write a whole number from {start} to {end}"),
        };
        let number = match value {
            Value::Integer(number) => Some(*number),
            Value::Untyped(text) => text.trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number else { return Err(Wrong::kind(value, &hint)) };
        let fitting = u32::try_from(number).ok().filter(|number| self.0.contains(number));
        fitting.ok_or_else(|| Wrong::text(&number.to_string(), format!("{number} is out of range"), hint))
    }

    fn schema(&self) -> serde_json::Value {
        json!({"type": "integer", "minimum": self.0.start(), "maximum": self.0.end()})
    }

    fn literal(&self, default: &str) -> serde_json::Value {
        default.parse::<u32>().map_or(serde_json::Value::Null, |number| json!(number))
    }
}

/// A number, with a point or without, within a range.
pub(in crate::config) struct NumberIn(pub(in crate::config) RangeInclusive<f64>);

impl Kind for NumberIn {
    type Read = f64;

    fn read(&self, value: &Value) -> Result<f64, Vec<Wrong>> {
        let hint = format!("write a number from {} to {}", self.0.start(), self.0.end());
        let text = match value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Untyped(text) => text.trim().to_owned(),
            _ => return Err(Wrong::kind(value, &hint)),
        };
        let Ok(number) = text.parse() else {
            return Err(Wrong::text(&text, format!("{} is not a number", shown(&text)), hint));
        };
        if self.0.contains(&number) {
            return Ok(number);
        }
        Err(Wrong::text(&text, format!("{} is out of range", shown(&text).trim_matches('"')), hint))
    }

    fn schema(&self) -> serde_json::Value {
        json!({"type": "number", "minimum": self.0.start(), "maximum": self.0.end()})
    }

    fn literal(&self, default: &str) -> serde_json::Value {
        default.parse::<f64>().map_or(serde_json::Value::Null, |number| json!(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(value: &Value) -> String {
        NumberIn(0.01..=1.0).read(value).unwrap_err().remove(0).message
    }

    #[test]
    fn what_is_no_number_is_called_so_and_not_out_of_range() {
        assert_eq!(message(&Value::Untyped("abc".to_owned())), r#""abc" is not a number"#);
        assert_eq!(message(&Value::Untyped("1.5".to_owned())), "1.5 is out of range");
        assert_eq!(message(&Value::Untyped("NaN".to_owned())), "NaN is out of range");
        assert_eq!(NumberIn(0.01..=1.0).read(&Value::Untyped(" 0.9 ".to_owned())), Ok(0.9));
    }
}
