//! The envelope of every value in sled: a version byte, a checksum, the payload.
//!
//! sled checks what it reads from disk, but not that a value is the one we wrote under that key, and a half-recovered
//! page is silent. The checksum covers version and payload (CRC-32: four bytes are what the size budget allows).

use super::codec::Damaged;

/// The version written by this program.
pub(super) const VERSION: u8 = 1;

/// Bytes that the envelope adds to a payload.
pub(super) const OVERHEAD: usize = 5;

/// Why a value cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Cut, altered or not ours.
    Damaged,
    /// Written by a newer program.
    Newer(u8),
}

impl From<Damaged> for Unreadable {
    fn from(_: Damaged) -> Self {
        Self::Damaged
    }
}

/// Wraps `payload`.
pub(super) fn wrap(payload: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(payload.len() + OVERHEAD);
    value.push(VERSION);
    value.extend_from_slice(&checksum(VERSION, payload).to_be_bytes());
    value.extend_from_slice(payload);
    value
}

/// Checks `value` and gives its payload.
pub(super) fn open(value: &[u8]) -> Result<&[u8], Unreadable> {
    let (version, rest) = value.split_first().ok_or(Unreadable::Damaged)?;
    let (sum, payload) = rest.split_first_chunk::<4>().ok_or(Unreadable::Damaged)?;
    if checksum(*version, payload) != u32::from_be_bytes(*sum) {
        return Err(Unreadable::Damaged);
    }
    match *version {
        VERSION => Ok(payload),
        newer if newer > VERSION => Err(Unreadable::Newer(newer)),
        _ => Err(Unreadable::Damaged),
    }
}

fn checksum(version: u8, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[version]);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_and_any_cut_is_noticed() {
        let value = wrap(b"payload");
        assert_eq!(open(&value), Ok(&b"payload"[..]));
        for bit in 0..value.len() * 8 {
            let mut flipped = value.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&flipped), Err(Unreadable::Damaged), "bit {bit}");
        }
        for length in 0..value.len() {
            assert_eq!(open(&value[..length]), Err(Unreadable::Damaged), "{length} bytes");
        }
    }

    #[test]
    fn a_newer_version_is_told_apart_from_damage() {
        let mut value = vec![VERSION + 1];
        value.extend_from_slice(&checksum(VERSION + 1, b"x").to_be_bytes());
        value.push(b'x');
        assert_eq!(open(&value), Err(Unreadable::Newer(VERSION + 1)));
    }
}
