//! Values that must never be printed: client secrets, tokens, keys.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// A secret text. `Debug` is redacted, there is no `Display` and no `Serialize`, and it is wiped on drop.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps `value`, which is moved in and not copied.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(SecretString::from(value))
    }

    /// Reads the secret. Call this only where it is put on the wire or into a cipher.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl PartialEq for Secret {
    /// Compares in constant time for equal lengths.
    fn eq(&self, other: &Self) -> bool {
        let (left, right) = (self.expose().as_bytes(), other.expose().as_bytes());
        left.len() == right.len() && left.iter().zip(right).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

impl Eq for Secret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing_of_the_secret() {
        assert_eq!(format!("{:?}", Secret::new("hunter2-canary".into())), "Secret(…)");
    }
}
