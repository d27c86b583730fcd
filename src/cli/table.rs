//! Small aligned tables for people.

/// Rows of cells, padded so that columns align; the last column is not padded. Every line is indented by two
/// spaces; a row without cells is an empty line.
#[must_use]
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Seconds as people say them: `42 s`, `7 min`, `3 h 20 min`, `4 d 2 h`.
#[must_use]
pub(super) fn spoken_seconds(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let with = |whole: u64, unit: &str, rest: u64, rest_unit: &str| match rest {
        0 => format!("{whole} {unit}"),
        rest => format!("{whole} {unit} {rest} {rest_unit}"),
    };
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{minutes} min"),
        7_200..172_800 => with(hours, "h", minutes % 60, "min"),
        _ => with(days, "d", hours % 24, "h"),
    }
}

/// A number with its noun, in the plural where it has one: `1 gap`, `3 gaps`.
#[must_use]
pub(super) fn counted(count: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { singular } else { plural })
}

/// A number with a thin grouping: `1,234,567`.
#[must_use]
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_two_units_at_most() {
        let said: Vec<String> = [0, 119, 120, 7_199, 7_200, 12_000, 172_800, 180_000].map(spoken_seconds).to_vec();
        assert_eq!(said, ["0 s", "119 s", "2 min", "119 min", "2 h", "3 h 20 min", "2 d", "2 d 2 h"]);
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn columns_align_by_characters() {
        let rows = [vec!["é".to_owned(), "x".to_owned()], vec!["long".to_owned(), "y".to_owned()]];
        assert_eq!(aligned(&rows), "  é     x\n  long  y");
    }
}
