//! Remembered states, packed: ten million of them are kept for ever.
//!
//! Key: the record number, eight bytes big-endian; a patron's pseudonym, sixteen. Payload of a live record:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | flags |
//! | 5 | `updated`, seconds from 1970, signed, big-endian; absent without its flag |
//! | 16 | content hash |
//! | 8 | request number when sent |
//! | 1–3 | answered − sent, zigzag varint; up to ten bytes for what no engine writes |
//! | 38–42 | patrons: sealed record number |
//!
//! With key and envelope at most 46 bytes a bib or item and 96 a patron.

use jiff::Timestamp;

use super::codec::{Damaged, Reader, Writer};
use super::trees::Tree;
use crate::record::{RecordNumber, Stream};
use crate::sync::remembered::RememberedState;
use crate::sync::{Remembered, RememberedKey, RequestNumber};

const TOMBSTONE: u8 = 1;
const SUPPRESSED: u8 = 1 << 1;
const FILTERED: u8 = 1 << 2;
const EMITTED: u8 = 1 << 3;
const DATED: u8 = 1 << 4;

/// The tree that holds the states of `stream`.
pub(super) fn tree(stream: Stream) -> Tree {
    match stream {
        Stream::Bibs => Tree::Bibs,
        Stream::Items => Tree::Items,
        Stream::Patrons => Tree::Patrons,
    }
}

/// The key within its tree.
pub(super) fn key(key: &RememberedKey) -> Vec<u8> {
    match key {
        RememberedKey::Bib(number) | RememberedKey::Item(number) => number.value().to_be_bytes().to_vec(),
        RememberedKey::Patron(pseudonym) => pseudonym.to_vec(),
    }
}

/// Reads a key of the tree of `stream`.
pub(super) fn decode_key(stream: Stream, bytes: &[u8]) -> Result<RememberedKey, Damaged> {
    let mut reader = Reader::new(bytes);
    let key = match stream {
        Stream::Bibs => RememberedKey::Bib(RecordNumber::new(u64::from_be_bytes(reader.array()?))),
        Stream::Items => RememberedKey::Item(RecordNumber::new(u64::from_be_bytes(reader.array()?))),
        Stream::Patrons => RememberedKey::Patron(reader.array()?),
    };
    reader.end()?;
    Ok(key)
}

/// Packs a state. Fractions of seconds are cut from `updated`: Sierra's stamps have none.
pub(super) fn encode(remembered: &Remembered) -> Vec<u8> {
    let Remembered { state, sent, answered, sealed_id } = remembered;
    let mut writer = Writer::new();
    match *state {
        RememberedState::Live { updated, hash, suppressed, filtered } => {
            let flags = flag(suppressed, SUPPRESSED) | flag(filtered, FILTERED) | flag(updated.is_some(), DATED);
            writer.byte(flags);
            if let Some(updated) = updated {
                let [_, _, _, seconds @ ..] = crate::sync::window::whole_second(updated).as_second().to_be_bytes();
                writer.raw(&seconds);
            }
            writer.hash(hash);
        }
        RememberedState::Tombstone { deleted_on, emitted } => {
            writer.byte(TOMBSTONE | flag(emitted, EMITTED) | flag(deleted_on.is_some(), DATED));
            if let Some(day) = deleted_on {
                writer.date(day);
            }
        }
    }
    writer.raw(&sent.0.to_be_bytes()).signed(answered.0.wrapping_sub(sent.0).cast_signed()).raw(sealed_id);
    writer.finish()
}

/// Unpacks a state.
pub(super) fn decode(bytes: &[u8]) -> Result<Remembered, Damaged> {
    let mut reader = Reader::new(bytes);
    let flags = reader.byte()?;
    let has = |bit: u8| flags & bit != 0;
    let state = if has(TOMBSTONE) {
        let deleted_on = if has(DATED) { Some(reader.date()?) } else { None };
        RememberedState::Tombstone { deleted_on, emitted: has(EMITTED) }
    } else {
        let updated = if has(DATED) { Some(seconds(reader.array()?)?) } else { None };
        RememberedState::Live { updated, hash: reader.hash()?, suppressed: has(SUPPRESSED), filtered: has(FILTERED) }
    };
    let sent = u64::from_be_bytes(reader.array()?);
    let answered = sent.wrapping_add(reader.signed()?.cast_unsigned());
    let sealed_id = reader.rest().to_vec();
    Ok(Remembered { state, sent: RequestNumber(sent), answered: RequestNumber(answered), sealed_id })
}

fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// Forty bits hold every second that a [`Timestamp`] can name.
fn seconds([a, b, c, d, e]: [u8; 5]) -> Result<Timestamp, Damaged> {
    let sign = if a & 0x80 == 0 { 0 } else { 0xff };
    let seconds = i64::from_be_bytes([sign, sign, sign, a, b, c, d, e]);
    Timestamp::from_second(seconds).map_err(|_| Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::privacy::Keyring;
    use crate::store::disk::envelope;
    use crate::sync::ContentHash;

    fn live(updated: Option<i64>, sent: u64, answered: u64, sealed_id: Vec<u8>) -> Remembered {
        Remembered {
            state: RememberedState::Live {
                updated: updated.map(|second| Timestamp::from_second(second).expect("in range")),
                hash: ContentHash([0xa5; 16]),
                suppressed: true,
                filtered: true,
            },
            sent: RequestNumber(sent),
            answered: RequestNumber(answered),
            sealed_id,
        }
    }

    fn stored_size(stored_under: &RememberedKey, remembered: &Remembered) -> usize {
        key(stored_under).len() + envelope::OVERHEAD + encode(remembered).len()
    }

    #[test]
    fn a_bib_or_item_takes_at_most_48_bytes_and_a_patron_96() {
        // A boot number of 2²³ and a million requests in flight are beyond what any service sees.
        let (sent, answered) = ((1 << 63) + (1 << 39), (1 << 63) + (1 << 39) + 1_000_000);
        let latest = Timestamp::MAX.as_second();
        let bib = RememberedKey::Bib(RecordNumber::new(999_999_999_999_999_999));
        assert!(stored_size(&bib, &live(Some(latest), sent, answered, Vec::new())) <= 48);

        let keyring = Keyring::for_tests(1);
        let sealed = keyring.seal_number("remembered", RecordNumber::new(999_999_999_999_999_999));
        let patron = RememberedKey::Patron([7; 16]);
        assert!(stored_size(&patron, &live(Some(latest), sent, answered, sealed)) <= 96);
    }

    proptest! {
        #[test]
        fn any_state_round_trips(
            seconds in proptest::option::of(Timestamp::MIN.as_second()..=Timestamp::MAX.as_second()),
            sent: u64,
            answered: u64,
            sealed_id in proptest::collection::vec(any::<u8>(), 0..48),
        ) {
            let state = live(seconds, sent, answered, sealed_id);
            prop_assert_eq!(decode(&encode(&state)), Ok(state));
        }

        #[test]
        fn any_tombstone_round_trips(day in proptest::option::of(-3_000_000_i32..3_000_000), emitted: bool, sent: u64) {
            let epoch = jiff::civil::date(1970, 1, 1);
            let deleted_on = day.and_then(|day| epoch.checked_add(jiff::Span::new().days(day)).ok());
            let state = Remembered {
                state: RememberedState::Tombstone { deleted_on, emitted },
                sent: RequestNumber(sent),
                answered: RequestNumber(sent.wrapping_add(1)),
                sealed_id: Vec::new(),
            };
            prop_assert_eq!(decode(&encode(&state)), Ok(state));
        }
    }

    #[test]
    fn keys_sort_as_numbers_do() {
        let numbers = [0, 1, 255, 256, 65_536, 999_999_999_999_999_999];
        let keys: Vec<_> = numbers.map(|number| key(&RememberedKey::Item(RecordNumber::new(number)))).into();
        assert!(keys.is_sorted());
        assert_eq!(decode_key(Stream::Items, &keys[3]), Ok(RememberedKey::Item(RecordNumber::new(256))));
        assert_eq!(decode_key(Stream::Patrons, &keys[3]), Err(Damaged));
    }
}
