//! Invents people, titles and whole descriptions, so that the library is rich and nobody in it is real.
//!
//! Everything is a function of the generator handed in: the same seed invents the same library.

mod bib;
mod content;
mod item;
mod names;
mod patron;
mod person;
mod title;
mod words;

pub(crate) use bib::{Subject, invent_fields};
pub(crate) use content::{reprint, topic};
pub(crate) use item::{invent_holding, invent_note};
pub(crate) use patron::{Member, invent_member};

use rand::RngExt as _;
use rand::rngs::StdRng;

/// One of `choices`, which must not be empty.
pub(crate) fn pick<'a, T>(rng: &mut StdRng, choices: &'a [T]) -> &'a T {
    let position = rng.random_range(0..choices.len());
    choices.get(position).expect("the position was drawn from the slice's own range")
}

/// True in about `percent` of a hundred cases.
pub(crate) fn chance(rng: &mut StdRng, percent: u32) -> bool {
    rng.random_ratio(percent.min(100), 100)
}
