//! The type of values that privacy has passed.

use serde_json::value::RawValue;

use super::{Keyring, SealError};

/// What sealed patron records are sealed for.
const PURPOSE: &str = "masked patron";

/// A value that went through the allow-list. Only `privacy` can make one, so whatever takes a `Masked` value takes
/// nothing else (PRV-1).
#[derive(Debug, Clone)]
pub struct Masked<T>(T);

impl<T> Masked<T> {
    /// Wraps a value that has been masked. Visible in `privacy` only.
    pub(in crate::privacy) fn new(value: T) -> Self {
        Self(value)
    }

    /// Reads the masked value.
    #[must_use]
    pub fn get(&self) -> &T {
        &self.0
    }
}

impl Masked<Box<RawValue>> {
    /// Seals the value, as the store keeps it: even masked, it is derived from a person's record.
    #[must_use]
    pub fn seal(&self, keyring: &Keyring) -> Vec<u8> {
        keyring.seal(PURPOSE, self.0.get().as_bytes())
    }

    /// Opens what [`Masked::seal`] made. Nothing but masked values is ever sealed for this purpose, so what opens is
    /// masked.
    ///
    /// # Errors
    /// When no key fits, or the bytes are not a sealed masked value.
    pub fn open(keyring: &Keyring, sealed: &[u8]) -> Result<Self, SealError> {
        let plain = keyring.open(PURPOSE, sealed)?;
        let text = String::from_utf8(plain).map_err(|_| SealError::Malformed)?;
        RawValue::from_string(text).map(Self::new).map_err(|_| SealError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_masked_value_opens_as_it_was_and_only_with_its_key() {
        let keyring = Keyring::for_tests(1);
        let masked = Masked::new(RawValue::from_string(r#"{"patronType":15}"#.to_owned()).unwrap());
        let sealed = masked.seal(&keyring);
        assert_eq!(Masked::open(&keyring, &sealed).unwrap().get().get(), masked.get().get());
        assert_eq!(Masked::open(&Keyring::for_tests(2), &sealed).unwrap_err(), SealError::NoKeyFits);
        assert_eq!(Masked::open(&keyring, &keyring.seal(PURPOSE, b"{")).unwrap_err(), SealError::Malformed);
    }
}
