//! One root seed, one labelled random generator per component.
//!
//! A component never conjures randomness: it is handed a generator made here, so that a seed replays a whole run.

use rand::SeedableRng;
use rand::rngs::StdRng;

/// The number from which every random choice of a run follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootSeed(u64);

impl RootSeed {
    /// A chosen seed: simulations, tests and `--seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed from the operating system, for the service itself.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system for randomness")]
    pub fn from_system() -> Self {
        Self(rand::random())
    }

    /// The number itself, to print so that a run can be replayed.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }

    /// A generator for the component called `label`; the same seed and label always give the same sequence.
    #[must_use]
    pub fn generator(self, label: &str) -> StdRng {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0.to_le_bytes());
        hasher.update(label.as_bytes());
        StdRng::from_seed(*hasher.finalize().as_bytes())
    }
}

/// Thirty-two bytes for a new key, from the operating system's randomness.
///
/// Never from a [`RootSeed`]: that one is printed so that a run can be replayed, and has 64 bits only.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system for randomness")]
pub fn key_material() -> [u8; 32] {
    rand::random()
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn same_seed_and_label_repeat_and_other_labels_differ() {
        let draw = |seed: u64, label: &str| RootSeed::new(seed).generator(label).next_u64();
        assert_eq!(draw(7, "retry"), draw(7, "retry"));
        assert_ne!(draw(7, "retry"), draw(7, "quota"));
        assert_ne!(draw(7, "retry"), draw(8, "retry"));
    }
}
