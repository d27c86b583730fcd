//! The type of values that privacy has passed.

/// A value that went through the allow-list. Only this module's parent can make one.
#[derive(Debug, Clone)]
pub struct Masked<T>(T);

impl<T> Masked<T> {
    /// Wraps a value that has been masked. Visible in `privacy` only.
    #[expect(dead_code, reason = "made by the mask")]
    pub(in crate::privacy) fn new(value: T) -> Self {
        Self(value)
    }

    /// Reads the masked value.
    #[must_use]
    pub fn get(&self) -> &T {
        &self.0
    }
}
