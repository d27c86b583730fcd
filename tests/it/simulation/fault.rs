//! The faults of Sierra and of the network, each often enough to matter and seldom enough to get through.

use jiff::SignedDuration;
use rand::{Rng, RngExt};
use sierra_sync::simulator::{Endpoint, Fault, PlannedFault, Unauthorized, When};

const LISTS: [Endpoint; 3] = [Endpoint::Bibs, Endpoint::Items, Endpoint::Patrons];

/// So many kinds there are.
pub(super) const KINDS: u32 = 45;

/// Most calls are spared.
const OFTEN: f64 = 0.06;
/// What costs a call its whole time, or waits for minutes.
const SELDOM: f64 = 0.015;

/// The fault number `kind`, below [`KINDS`], drawn by `chance`.
pub(super) fn drawn(kind: u32, chance: &mut impl Rng) -> PlannedFault {
    let list = LISTS[chance.random_range(0..LISTS.len())];
    let (after, lasts) = (chance.random_range(1..60), chance.random_range(1..30));
    let span = When::Span { after: SignedDuration::from_mins(after), lasts: SignedDuration::from_mins(lasts) };
    match kind {
        // Answers that are none.
        0 => Fault::EmptyBody.chance(OFTEN),
        1 => Fault::LoneCode.chance(OFTEN).at(list),
        2 => Fault::NoEntries.chance(OFTEN).at(list),
        3 => Fault::ErrorCodeText.chance(OFTEN).at(list),
        4 => Fault::MalformedJson.chance(OFTEN).at(list),
        5 => Fault::Html { status: 200 }.chance(OFTEN),
        6 => raw("application/json", "[]").chance(OFTEN).at(list),
        7 => raw("application/json", "{\"entries\":null}").chance(OFTEN).at(list),
        // Answers that lie.
        8 => Fault::EmptyPage.when(When::Every(7)).at(list),
        9 => Fault::ShortPage { entries: chance.random_range(1..4) }.chance(OFTEN).at(list),
        10 => Fault::LoopPage.chance(OFTEN).at(list),
        11 => Fault::ReversedPage.chance(OFTEN).at(list),
        // Errors by name.
        12 => Fault::error(135).chance(OFTEN).at(list),
        13 => Fault::error(109).chance(OFTEN),
        14 => Fault::error(102).chance(OFTEN).at(list),
        15 => Fault::Error { code: 109, status: Some(200), as_text: true }.chance(OFTEN).at(list),
        // Gateways.
        16 => Fault::Html { status: 502 }.chance(OFTEN),
        17 => Fault::Html { status: 503 }.when(span).at(list),
        18 => Fault::Html { status: 404 }.chance(OFTEN).at(list),
        19 => Fault::Bare { status: 504 }.chance(OFTEN),
        20 => Fault::Bare { status: 404 }.chance(OFTEN).at(list),
        21 => Fault::Bare { status: 408 }.chance(OFTEN),
        22 => Fault::Bare { status: 425 }.chance(OFTEN),
        23 => Fault::Html { status: 503 }.when(span),
        // Tokens.
        24 => Fault::Unauthorized(Unauthorized::InvalidToken).chance(SELDOM).at(list),
        25 => Fault::Unauthorized(Unauthorized::InvalidGrant).chance(SELDOM).at(list),
        26 => Fault::Unauthorized(Unauthorized::Html).chance(SELDOM).at(list),
        27 => Fault::Unauthorized(Unauthorized::Bare).chance(SELDOM).at(list),
        28 => Fault::RevokeTokens.chance(OFTEN),
        29 => Fault::ExpiresIn { literal: expires_in(chance) }.always(),
        // Limits, in every dialect.
        30 => Fault::too_many_requests("0", "20").chance(OFTEN),
        31 => Fault::retry_after("7").chance(OFTEN),
        32 => Fault::retry_after("-5").chance(OFTEN),
        33 => Fault::retry_after("soon").chance(OFTEN),
        34 => Fault::RateExceeded { status: 500, minutes: "2".into() }.chance(SELDOM).at(list),
        35 => Fault::RateExceeded { status: 503, minutes: "0".into() }.chance(SELDOM).at(list),
        // The network.
        36 => Fault::Hang.chance(SELDOM).at(list),
        37 => Fault::Reset.chance(OFTEN),
        38 => Fault::Refuse.when(span),
        39 => Fault::Cut { percent: chance.random_range(0..100) }.chance(OFTEN).at(list),
        40 => Fault::Slow { bytes_per_second: 400 }.chance(SELDOM).at(list),
        41 => Fault::StaleConnection.chance(OFTEN),
        42 => Fault::Delay { milliseconds: chance.random_range(1..90_000) }.chance(SELDOM).at(list),
        // Clocks.
        43 => Fault::NoDate.chance(0.3),
        _ => Fault::WrongDate { seconds: chance.random_range(-7_200..7_200) }.when(span),
    }
}

fn raw(content_type: &str, body: &str) -> Fault {
    Fault::Raw { status: 200, content_type: content_type.into(), headers: Vec::new(), body: body.into() }
}

fn expires_in(chance: &mut impl Rng) -> Option<String> {
    let literals = [None, Some("null"), Some("-5"), Some("\"soon\""), Some("1e9"), Some("0"), Some("\"300\"")];
    literals[chance.random_range(0..literals.len())].map(str::to_owned)
}
