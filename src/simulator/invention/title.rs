//! Invented titles.

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::words::{FOREIGN_TITLES, PLACES, QUALITIES, SCRIPT_TITLES, THINGS};
use super::{chance, pick};

/// A title in its parts.
#[derive(Debug, Clone)]
pub(super) struct Title {
    /// Title proper, without closing punctuation.
    pub(super) proper: String,
    /// Other title information.
    pub(super) rest: Option<String>,
    /// How many characters to skip when filing.
    pub(super) skip: u8,
    /// The title in its own script with the script's code for subfield 6, when it is not Latin.
    pub(super) original: Option<(&'static str, &'static str)>,
}

/// A title in `language`.
pub(super) fn invent_title(rng: &mut StdRng, language: &str) -> Title {
    let scripted: Vec<_> = SCRIPT_TITLES.iter().filter(|(code, ..)| *code == language).collect();
    if !scripted.is_empty() {
        let (_, script, romanised, original) = pick(rng, &scripted);
        let proper = format!("{romanised} {}", rng.random_range(1..400));
        return Title { proper, rest: None, skip: 0, original: Some((script, original)) };
    }
    if let Some((_, beginnings)) = FOREIGN_TITLES.iter().find(|(code, _)| *code == language) {
        let beginning = pick(rng, beginnings);
        let place = pick(rng, &PLACES);
        let rest = chance(rng, 30).then(|| format!("{} {}", pick(rng, &PLACES), rng.random_range(1820..2024)));
        return match beginning.strip_suffix(" :") {
            Some(proper) => Title { proper: proper.into(), rest: Some((*place).into()), skip: 0, original: None },
            None => Title { proper: format!("{beginning} {place}"), rest, skip: 0, original: None },
        };
    }
    english(rng)
}

fn english(rng: &mut StdRng) -> Title {
    let (quality, thing, place) = (pick(rng, &QUALITIES), pick(rng, &THINGS), pick(rng, &PLACES));
    let other = pick(rng, &THINGS);
    let (proper, skip) = match rng.random_range(0..8) {
        0 => (format!("The {quality} {thing} of {place}"), 4),
        1 => (format!("A field guide to {quality} {thing}"), 2),
        2 => (format!("{} of {place}", capital(thing)), 0),
        3 => (format!("{} & {other}", capital(thing)), 0),
        4 => (format!("An introduction to {quality} {thing}"), 3),
        5 => (format!("{place}, its {thing} and its {other}"), 0),
        6 => (format!("On {quality} {thing}"), 0),
        _ => (format!("{} {thing}", capital(quality)), 0),
    };
    let rest = match rng.random_range(0..6) {
        0 => Some(format!("a history, {}-{}", rng.random_range(1701..1850), rng.random_range(1851..2001))),
        1 => Some(format!("essays on {other} and {}", pick(rng, &THINGS))),
        2 => Some(format!("with a note on the {} {other}", pick(rng, &QUALITIES))),
        3 => Some("a novel".into()),
        _ => None,
    };
    Title { proper, rest, skip, original: None }
}

/// `word` with its first letter large.
pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
