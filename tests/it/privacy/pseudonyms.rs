//! Pseudonyms cannot be turned back by trying every number.

use std::collections::HashSet;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use sierra_sync::privacy::Keyring;
use sierra_sync::record::RecordNumber;

/// Seven digits are ten million numbers: all of them are tried where the hashes are optimised, every 97th elsewhere.
const STEP: usize = if cfg!(debug_assertions) { 97 } else { 1 };

/// BR-123: hashing the whole space of record numbers without the key matches nothing.
#[test]
fn hashing_every_record_number_without_the_key_matches_no_pseudonym() {
    let keyring = Keyring::for_tests(1);
    let numbers: Vec<u64> = (0..10_000_000).step_by(STEP).collect();
    let known: HashSet<[u8; 16]> =
        numbers.iter().step_by(100).map(|number| keyring.pseudonym(RecordNumber::new(*number)).bytes()).collect();
    assert_eq!(known.len(), numbers.len().div_ceil(100), "pseudonyms are unique");

    let stranger = Keyring::for_tests(2);
    for number in &numbers {
        let text = number.to_string();
        let mut keyless = Hmac::<Sha256>::new_from_slice(&[]).expect("any key length");
        keyless.update(text.as_bytes());
        let guesses: [[u8; 16]; 4] = [
            first_half(&Sha256::digest(text.as_bytes())),
            first_half(blake3::hash(text.as_bytes()).as_bytes()),
            first_half(&keyless.finalize().into_bytes()),
            stranger.pseudonym(RecordNumber::new(*number)).bytes(),
        ];
        assert!(guesses.iter().all(|guess| !known.contains(guess)), "{number}");
    }
    // The search is sound: with the key it finds them.
    assert!(known.contains(&keyring.pseudonym(RecordNumber::new(numbers[100])).bytes()));
}

fn first_half(hash: &[u8]) -> [u8; 16] {
    *hash.first_chunk().expect("hashes are longer")
}
