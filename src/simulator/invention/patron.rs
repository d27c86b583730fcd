//! Invents patrons, every value of them recognisable: a test can look for them where they must not be.

use jiff::civil::Date;
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::names::{GIVEN, PATRON_FAMILY, STREETS};
use super::pick;
use super::words::PLACES;

/// The invented parts of a patron.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// `FAMILY, Given`.
    pub(crate) name: String,
    /// The card's number.
    pub(crate) barcode: String,
    /// Birthday.
    pub(crate) born: Date,
    /// Electronic mail.
    pub(crate) email: String,
    /// Lines of the postal address.
    pub(crate) address: [String; 2],
    /// Telephone.
    pub(crate) phone: String,
    /// A number from the university or the council.
    pub(crate) unique_id: String,
    /// A message that staff see.
    pub(crate) message: String,
}

/// One patron, known by a number that no other patron has.
pub(crate) fn invent_member(rng: &mut StdRng, number: u64) -> Member {
    let (given, family) = (pick(rng, &GIVEN), pick(rng, &PATRON_FAMILY));
    let house = rng.random_range(1..240);
    Member {
        name: format!("{family}, {given}"),
        barcode: format!("2{:013}", 8_800_000 + number),
        born: Date::new(rng.random_range(1935..2016), rng.random_range(1..=12), rng.random_range(1..=28))
            .expect("every month has 28 days"),
        email: format!("{}.{number}@patrons.example.org", family.to_lowercase()),
        address: [format!("{house} {}", pick(rng, &STREETS)), format!("{} ZZ{number}", pick(rng, &PLACES))],
        phone: format!("0700 {:07}", 4_400_000 + number),
        unique_id: format!("uid-{number:08}"),
        message: format!("Ask about umbrella {number} at the desk"),
    }
}
