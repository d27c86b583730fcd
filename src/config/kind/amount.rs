//! Amounts with a unit: durations, sizes and rates. A number without its unit is refused, never guessed.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::json;

use super::{Kind, Wrong, shown};
use crate::config::document::Value;

/// A duration such as `30s`, within a range given the same way.
pub(in crate::config) struct DurationIn(pub(in crate::config) RangeInclusive<&'static str>);

impl Kind for DurationIn {
    type Read = Duration;

    fn read(&self, value: &Value) -> Result<Duration, Vec<Wrong>> {
        let milliseconds = read_amount(value, &DURATIONS, &self.0, "\"30s\", \"5m\", \"1h\" or \"250ms\"")?;
        Ok(Duration::from_millis(milliseconds))
    }

    fn schema(&self) -> serde_json::Value {
        schema(&DURATIONS, &self.0)
    }
}

/// A size in bytes such as `256MiB`, within a range given the same way.
pub(in crate::config) struct SizeIn(pub(in crate::config) RangeInclusive<&'static str>);

impl Kind for SizeIn {
    type Read = u64;

    fn read(&self, value: &Value) -> Result<u64, Vec<Wrong>> {
        read_amount(value, &SIZES, &self.0, "\"256MiB\" or \"2GiB\"")
    }

    fn schema(&self) -> serde_json::Value {
        schema(&SIZES, &self.0)
    }
}

/// A rate such as `10/s`, read as the time between two calls; within a range given the same way, slowest first.
pub(in crate::config) struct RateIn(pub(in crate::config) RangeInclusive<&'static str>);

impl Kind for RateIn {
    /// Calls per hour.
    type Read = u64;

    fn read(&self, value: &Value) -> Result<u64, Vec<Wrong>> {
        read_amount(value, &RATES, &self.0, "\"10/s\" or \"600/m\"")
    }

    fn schema(&self) -> serde_json::Value {
        schema(&RATES, &self.0)
    }
}

/// A family of units: what it is called and what each unit is worth in the smallest.
struct Units {
    noun: &'static str,
    units: &'static [(&'static str, u64)],
}

const DURATIONS: Units =
    Units { noun: "duration", units: &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)] };

const SIZES: Units = Units {
    noun: "size",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
};

/// In calls per hour, so that every unit is whole.
const RATES: Units = Units { noun: "rate", units: &[("/s", 3_600), ("/m", 60), ("/h", 1)] };

fn read_amount(
    value: &Value,
    family: &Units,
    range: &RangeInclusive<&'static str>,
    examples: &str,
) -> Result<u64, Vec<Wrong>> {
    let hint =
        format!("write a {} in quotes such as {examples}, from {} to {}", family.noun, range.start(), range.end());
    let (Value::Text(text) | Value::Untyped(text)) = value else { return Err(Wrong::kind(value, &hint)) };
    let amount = parse(text, family).map_err(|message| Wrong::text(text, message, hint.clone()))?;
    let bound = |text: &str| parse(text, family).expect("the bounds of a range are amounts themselves");
    if (bound(range.start())..=bound(range.end())).contains(&amount) {
        Ok(amount)
    } else {
        Err(Wrong::text(text, format!("{} is out of range", shown(text)), hint))
    }
}

fn parse(text: &str, family: &Units) -> Result<u64, String> {
    let units = || family.units.iter().map(|(unit, _)| *unit).collect::<Vec<_>>().join(", ");
    let (number, unit) = text.split_at(text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len()));
    let unit = unit.trim();
    if number.is_empty() {
        return Err(format!("{} is not a {}", shown(text), family.noun));
    }
    if unit.is_empty() {
        return Err(format!("{} has no unit ({})", shown(text), units()));
    }
    let Some((_, worth)) = family.units.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("{} has an unknown unit (units are {})", shown(text), units()));
    };
    let amount = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*worth));
    amount.ok_or_else(|| format!("{} is too large", shown(text)))
}

fn schema(family: &Units, range: &RangeInclusive<&'static str>) -> serde_json::Value {
    let units: Vec<&str> = family.units.iter().map(|(unit, _)| *unit).collect();
    json!({
        "type": "string",
        "pattern": format!("^[0-9]+ ?({})$", units.join("|")),
        "x-minimum": range.start(),
        "x-maximum": range.end(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duration(text: &str) -> Result<Duration, String> {
        let wrong = |mut wrong: Vec<Wrong>| wrong.remove(0).message;
        DurationIn("0s"..="30d").read(&Value::Text(text.to_owned())).map_err(wrong)
    }

    #[test]
    fn durations_need_a_whole_number_and_a_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("30 s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("60").unwrap_err(), r#""60" has no unit (ms, s, m, h, d)"#);
        assert_eq!(duration("5 minutes").unwrap_err(), r#""5 minutes" has an unknown unit (units are ms, s, m, h, d)"#);
        assert_eq!(duration("1.5h").unwrap_err(), r#""1.5h" has an unknown unit (units are ms, s, m, h, d)"#);
        assert_eq!(duration("soon").unwrap_err(), r#""soon" is not a duration"#);
        assert_eq!(duration("31d").unwrap_err(), r#""31d" is out of range"#);
        assert_eq!(duration("99999999999999999999d").unwrap_err(), r#""99999999999999999999d" is too large"#);
    }

    #[test]
    fn sizes_know_binary_and_decimal_units_and_rates_three_periods() {
        let size = |text: &str| SizeIn("1B"..="1TiB").read(&Value::Text(text.to_owned()));
        assert_eq!((size("256MiB"), size("1kB")), (Ok(268_435_456), Ok(1_000)));
        assert!(size("256mb").is_err());
        let rate = |text: &str| RateIn("1/h"..="1000/s").read(&Value::Text(text.to_owned()));
        assert_eq!((rate("10/s"), rate("600/m")), (Ok(36_000), Ok(36_000)));
        assert!(rate("10").is_err());
    }
}
