//! Invented authors and other people in descriptions.

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::names::{FAMILY, GIVEN, SCRIPT_PEOPLE};
use super::{chance, pick};

/// A person as a heading names them.
#[derive(Debug, Clone)]
pub(super) struct Person {
    /// Family name first: `Doe, Jane`.
    pub(super) heading: String,
    /// Birth and perhaps death, as subfield d writes them; without closing punctuation.
    pub(super) dates: Option<String>,
    /// Given name first, as a statement of responsibility writes it.
    pub(super) spoken: String,
    /// The heading in its own script, when that is not Latin.
    pub(super) original: Option<&'static str>,
}

/// Someone who writes in `language`.
pub(super) fn invent_person(rng: &mut StdRng, language: &str) -> Person {
    let native: Vec<_> = SCRIPT_PEOPLE.iter().filter(|(code, _, _)| *code == language).collect();
    let (heading, spoken, original) = if native.is_empty() {
        let (given, family) = (pick(rng, &GIVEN), pick(rng, &FAMILY));
        let initial =
            if chance(rng, 35) { format!(" {}.", (b'A' + rng.random_range(0..26)) as char) } else { String::new() };
        (format!("{family}, {given}{initial}"), format!("{given}{initial} {family}"), None)
    } else {
        let (_, romanised, original) = pick(rng, &native);
        let spoken = romanised.split_once(", ").map_or_else(|| (*romanised).into(), |(f, g)| format!("{g} {f}"));
        ((*romanised).to_owned(), spoken, Some(*original))
    };
    let born = rng.random_range(1790..1995);
    let dates = match rng.random_range(0..10) {
        0..4 => Some(format!("{born}-")),
        4..7 => Some(format!("{born}-{}", born + rng.random_range(31..90))),
        7 => Some(format!("active {born}")),
        _ => None,
    };
    Person { heading, dates, spoken, original }
}
