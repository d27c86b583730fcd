//! Pseudonyms: the public ids of patrons.

use std::fmt;

/// Stands for one patron: the first 16 bytes of an HMAC-SHA-256 over the record number, under a key that can be
/// rotated. Without the key it matches no record number, though these are few enough to try them all (BR-123).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pseudonym([u8; 16]);

impl Pseudonym {
    /// Wraps the bytes of a pseudonym that was made before.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads the written form: 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        super::key_file::bytes_from_hex(text).map(Self)
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for Pseudonym {
    /// 32 lower-case hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Pseudonym {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pseudonym({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_form_reads_back_and_nothing_else_does() {
        let pseudonym = Pseudonym::from_bytes([0x0f; 16]);
        assert_eq!(pseudonym.to_string(), "0f".repeat(16));
        assert_eq!(Pseudonym::parse(&pseudonym.to_string()), Some(pseudonym));
        for bad in ["", "0f", "zz0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "é0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "1200345"] {
            assert_eq!(Pseudonym::parse(bad), None, "{bad}");
        }
    }
}
