//! Foreign text made fit to be quoted: short, on one line, and free of what we must never show.
//!
//! A server may echo our own headers into its error page (BR-035). Everything of Sierra's that reaches an error, a
//! log line or a hint goes through here.

use std::fmt;

use crate::secret::Secret;

/// The longest text ever quoted, in bytes (design: error texts from Sierra are quoted at most 200 bytes).
pub(super) const MAX_QUOTE_BYTES: usize = 200;

/// What stands where a secret stood.
const REDACTED: &str = "[redacted]";
/// How much of a text is looked at.
const MAX_SCANNED_BYTES: usize = 16 * 1024;
/// Shorter values are not searched for: they would hit half of any text, and no key or token is that short.
const MIN_NEEDLE_BYTES: usize = 4;

/// Knows the values that must not be quoted.
#[derive(Clone, Default)]
pub(super) struct Scrubber {
    needles: Vec<Secret>,
}

impl Scrubber {
    /// A scrubber for these values.
    pub(super) fn new(needles: impl IntoIterator<Item = Secret>) -> Self {
        let mut needles: Vec<Secret> = needles.into_iter().filter(long_enough).collect();
        // A secret that contains another one is replaced first, or its rest would stay.
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.expose().len()));
        Self { needles }
    }

    /// The same scrubber that knows `needles` too: tokens come and go.
    pub(super) fn and(&self, needles: impl IntoIterator<Item = Secret>) -> Self {
        Self::new(self.needles.iter().cloned().chain(needles))
    }

    /// `text` on one line, without secrets and control characters, at most [`MAX_QUOTE_BYTES`] long.
    pub(super) fn quote(&self, text: &str) -> String {
        let mut clean = self.bounded(text).to_owned();
        for needle in &self.needles {
            if clean.contains(needle.expose()) {
                clean = clean.replace(needle.expose(), REDACTED);
            }
        }
        shorten(&one_line(&without_credentials(&clean)))
    }

    /// As [`Scrubber::quote`]; `None` when nothing is left to quote.
    pub(super) fn quote_if_any(&self, text: &str) -> Option<String> {
        Some(self.quote(text)).filter(|quote| !quote.is_empty())
    }

    /// The start of `text`. When the end is cut off, as much as a needle is long goes too: half a secret at the
    /// border would not be recognised.
    fn bounded<'a>(&self, text: &'a str) -> &'a str {
        if text.len() <= MAX_SCANNED_BYTES {
            return text;
        }
        let longest = self.needles.iter().map(|needle| needle.expose().len()).max().unwrap_or(0);
        start_of(text, MAX_SCANNED_BYTES.saturating_sub(longest))
    }
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Scrubber({} values)", self.needles.len())
    }
}

fn long_enough(needle: &Secret) -> bool {
    needle.expose().len() >= MIN_NEEDLE_BYTES
}

/// Replaces whatever follows `Bearer` or `Basic`, known to us or not.
fn without_credentials(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut clean = String::with_capacity(text.len());
    let mut copied = 0;
    while let Some(value) = next_credential(&lower, copied) {
        clean.push_str(text.get(copied..value).unwrap_or_default());
        clean.push_str(REDACTED);
        let rest = text.get(value..).unwrap_or_default();
        copied = value + rest.find(|at: char| at.is_whitespace() || "\"'<>,;".contains(at)).unwrap_or(rest.len());
    }
    clean.push_str(text.get(copied..).unwrap_or_default());
    clean
}

/// Where the first value after `bearer ` or `basic ` starts, from `at` on.
fn next_credential(lower: &str, at: usize) -> Option<usize> {
    let rest = lower.get(at..)?;
    let after = |word: &str| rest.find(word).map(|found| found + word.len());
    let value = [after("bearer "), after("basic ")].into_iter().flatten().min()?;
    let gap = rest.get(value..)?.find(|at: char| at != ' ')?;
    Some(at + value + gap)
}

/// Control characters and runs of white space become one space; so do the marks that turn text around on a terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        let blank = character.is_control() || character.is_whitespace() || is_direction_mark(character);
        if !blank {
            line.push(character);
        } else if !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line.truncate(line.trim_end().len());
    line
}

fn is_direction_mark(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// At most `bytes` of the start of `text`, cut between characters.
fn start_of(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

fn shorten(text: &str) -> String {
    if text.len() <= MAX_QUOTE_BYTES {
        return text.to_owned();
    }
    format!("{}…", start_of(text, MAX_QUOTE_BYTES - '…'.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubber() -> Scrubber {
        Scrubber::new(["canary-secret", "canary-token-0123456789"].map(|text| Secret::new(text.to_owned())))
    }

    /// BR-035: a page that echoes our headers.
    #[test]
    fn secrets_and_unknown_credentials_are_replaced() {
        let echoed = "Authorization: Bearer canary-token-0123456789\nX: canary-secret basic Zm9vOmJhcg==; next";
        assert_eq!(scrubber().quote(echoed), "Authorization: Bearer [redacted] X: [redacted] basic [redacted]; next");
        let more = scrubber().and([Secret::new("third-canary".to_owned())]);
        assert_eq!(more.quote("a third-canary b"), "a [redacted] b");
    }

    #[test]
    fn a_secret_inside_another_secret_leaves_no_rest() {
        let nested = Scrubber::new(["canary", "canary-long-tail"].map(|text| Secret::new(text.to_owned())));
        assert_eq!(nested.quote("x canary-long-tail y"), "x [redacted] y");
    }

    #[test]
    fn control_characters_and_direction_marks_become_one_space() {
        assert_eq!(scrubber().quote("  a\r\n\tb\u{1b}[31m\u{202e}c\u{0}  "), "a b [31m c");
    }

    #[test]
    fn quotes_are_short_and_cut_between_characters() {
        let quote = scrubber().quote(&"é".repeat(500));
        assert!(quote.len() <= MAX_QUOTE_BYTES && quote.ends_with('…'), "{} bytes", quote.len());
        let huge = "x".repeat(MAX_SCANNED_BYTES - 5) + "canary-secret";
        assert!(!scrubber().quote(&huge).contains("canary"));
    }

    #[test]
    fn half_a_secret_at_the_border_of_the_scanned_part_is_not_shown() {
        let fill = "canary-secret".repeat(MAX_SCANNED_BYTES / 13);
        assert!(!scrubber().quote(&(fill + "canary-secret")).contains("canary"));
    }

    #[test]
    fn debug_shows_nothing_of_the_values() {
        assert_eq!(format!("{:?}", scrubber()), "Scrubber(2 values)");
    }
}
