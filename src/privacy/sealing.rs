//! Sealed values: XChaCha20-Poly1305 with a nonce derived from what is sealed.
//!
//! Layout: format byte, key hint, 16 bytes of nonce, ciphertext, 16 bytes of tag. The nonce is a keyed hash of purpose
//! and content, so that two different values never share one, whatever the state of any generator; the cipher's 24
//! bytes of nonce are these 16 and eight zeros.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};

use super::SealError;
use super::keyring::DerivedKeys;

const FORMAT: u8 = 1;
const NONCE_BYTES: usize = 16;
const TAG_BYTES: usize = 16;

/// Seals `plain` for `purpose` with `keys`.
pub(in crate::privacy) fn seal(keys: &DerivedKeys, purpose: &str, plain: &[u8]) -> Vec<u8> {
    let nonce = synthetic_nonce(keys, purpose, plain);
    let payload = Payload { msg: plain, aad: purpose.as_bytes() };
    let ciphertext =
        cipher(keys).encrypt(&full_nonce(nonce), payload).expect("plain values are far below the cipher's 256 GiB");
    let mut sealed = Vec::with_capacity(2 + NONCE_BYTES + ciphertext.len());
    sealed.extend_from_slice(&[FORMAT, keys.hint()]);
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(&ciphertext);
    sealed
}

/// Opens `sealed` with whichever of `keys` fits.
pub(in crate::privacy) fn open<'a>(
    keys: impl Iterator<Item = &'a DerivedKeys>,
    purpose: &str,
    sealed: &[u8],
) -> Result<Vec<u8>, SealError> {
    let Some((&version, rest)) = sealed.split_first() else { return Err(SealError::Truncated) };
    match version {
        FORMAT => {}
        0 => return Err(SealError::Malformed),
        newer => return Err(SealError::NewerFormat { version: newer }),
    }
    let Some((&hint, rest)) = rest.split_first() else { return Err(SealError::Truncated) };
    let Some((nonce, ciphertext)) = rest.split_first_chunk::<NONCE_BYTES>() else { return Err(SealError::Truncated) };
    if ciphertext.len() < TAG_BYTES {
        return Err(SealError::Truncated);
    }
    // The tag decides; the hint only spares trying every key.
    keys.filter(|keys| keys.hint() == hint)
        .find_map(|keys| {
            let payload = Payload { msg: ciphertext, aad: purpose.as_bytes() };
            cipher(keys).decrypt(&full_nonce(*nonce), payload).ok()
        })
        .ok_or(SealError::NoKeyFits)
}

fn cipher(keys: &DerivedKeys) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(keys.seal.as_slice().into())
}

fn synthetic_nonce(keys: &DerivedKeys, purpose: &str, plain: &[u8]) -> [u8; NONCE_BYTES] {
    let mut hasher = blake3::Hasher::new_keyed(&keys.nonce);
    hasher.update(&(purpose.len() as u64).to_le_bytes());
    hasher.update(purpose.as_bytes());
    hasher.update(plain);
    let mut nonce = [0; NONCE_BYTES];
    hasher.finalize_xof().fill(&mut nonce);
    nonce
}

fn full_nonce(nonce: [u8; NONCE_BYTES]) -> XNonce {
    let mut full = XNonce::default();
    full.iter_mut().zip(nonce).for_each(|(to, from)| *to = from);
    full
}

#[cfg(test)]
mod tests {
    use super::super::Keyring;
    use super::*;

    #[test]
    fn sealed_values_show_nothing_and_open_only_for_their_purpose() {
        let keyring = Keyring::for_tests(1);
        let sealed = keyring.seal("outbox", b"EXAMPLE, PAT");
        assert_eq!(sealed.len(), 12 + 34);
        assert!(!sealed.windows(3).any(|window| window == b"PAT"));
        assert_eq!(keyring.open("outbox", &sealed).unwrap(), b"EXAMPLE, PAT");
        assert_eq!(keyring.open("ledger", &sealed), Err(SealError::NoKeyFits));
        assert_eq!(Keyring::for_tests(2).open("outbox", &sealed), Err(SealError::NoKeyFits));
    }

    #[test]
    fn any_altered_or_missing_byte_is_noticed() {
        let keyring = Keyring::for_tests(1);
        let sealed = keyring.seal("outbox", b"EXAMPLE, PAT");
        for index in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[index] ^= 1;
            assert!(keyring.open("outbox", &altered).is_err(), "byte {index}");
            assert!(keyring.open("outbox", &sealed[..index]).is_err(), "cut at {index}");
        }
        assert_eq!(keyring.open("outbox", &[2, 0, 0]), Err(SealError::NewerFormat { version: 2 }));
        assert_eq!(keyring.open("outbox", &[]), Err(SealError::Truncated));
    }

    #[test]
    fn different_values_get_different_nonces_and_equal_ones_the_same_seal() {
        let keyring = Keyring::for_tests(1);
        assert_eq!(keyring.seal("a", b"x"), keyring.seal("a", b"x"));
        assert_ne!(keyring.seal("a", b"x")[2..18], keyring.seal("a", b"y")[2..18]);
        assert_ne!(keyring.seal("a", b"x")[2..18], keyring.seal("b", b"x")[2..18]);
    }
}
