//! Dates as HTTP writes them.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

/// `Mon, 05 Jan 2026 10:00:00 GMT`.
pub(crate) fn http_date(stamp: Timestamp) -> String {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&stamp).expect("years of the simulation have four digits")
}
