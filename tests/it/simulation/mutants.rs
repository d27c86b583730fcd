//! Tests of the suite: four well-known mistakes, each built in on purpose, are each caught.

mod all_404_is_nothing;
mod offset;
mod position_first;
mod strictly_later;

use std::sync::Arc;

use sierra_sync::sync::{Source, Store};

use super::case::{Case, Often};
use super::play::play;
use crate::support::Bends;

/// A mistake must show within so many stories.
const WITHIN: u64 = 8;

/// Whether one of a few stories fails with the mistake, and ends well without it.
fn assert_caught(bends: &Bends, often: Often) {
    let caught = |seed: &u64| play(&Case::telling(*seed, often), bends).is_err();
    let seed = (1..=WITHIN).find(caught).unwrap_or_else(|| panic!("{WITHIN} stories do not notice"));
    play(&Case::telling(seed, often), &Bends::default()).expect("it is the mistake that shows");
}

/// `updatedDate` strictly greater than the last stamp seen: a second edit within that second is lost.
#[test]
fn a_cursor_strictly_after_the_last_stamp_is_caught() {
    assert_caught(
        &Bends::of_source(|source: Arc<dyn Source>| Arc::new(strictly_later::StrictlyLater::over(source))),
        Often::Late,
    );
}

/// Pages by offset: a record that leaves the window meanwhile shifts another one past the reader.
#[test]
fn paging_by_offset_is_caught() {
    assert_caught(
        &Bends::of_source(|source: Arc<dyn Source>| Arc::new(offset::Offset::over(source))),
        Often::Deletions,
    );
}

/// Any 404 is "nothing": a gateway's page ends the window.
#[test]
fn any_404_taken_for_nothing_is_caught() {
    assert_caught(
        &Bends::of_source(|source: Arc<dyn Source>| Arc::new(all_404_is_nothing::All404IsNothing(source))),
        Often::Gateway,
    );
}

/// The position is committed first and the data after it: a death in between loses a page.
#[test]
fn a_position_committed_before_its_data_is_caught() {
    assert_caught(
        &Bends::of_store(|store: Arc<dyn Store>| Arc::new(position_first::PositionFirst(store))),
        Often::Deaths,
    );
}
