//! A limit on how much of the input may be taken before something whole has come of it.

use std::io::{self, BufRead, Read};

/// Passes input through and fails when more than `limit` bytes are taken without a [`Bounded::renew`] between: the XML
/// parser holds every event in memory, and a hostile file can make one of any size.
#[derive(Debug)]
pub(super) struct Bounded<R> {
    input: R,
    limit: u64,
    taken: u64,
    /// Where the allowance began.
    mark: u64,
}

impl<R> Bounded<R> {
    pub(super) fn new(input: R, limit: u64) -> Self {
        Self { input, limit, taken: 0, mark: 0 }
    }

    /// Grants another `limit` bytes from here on.
    pub(super) fn renew(&mut self) {
        self.mark = self.taken;
    }

    /// How many bytes were taken in all.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether the limit is what made the last read fail.
    pub(super) fn is_spent(&self) -> bool {
        self.taken - self.mark > self.limit
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.is_spent() {
            return Err(io::Error::other("a single part of the input is too large"));
        }
        self.input.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.taken += bytes as u64;
        self.input.consume(bytes);
    }
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let bytes = available.len().min(target.len());
        if let (Some(target), Some(available)) = (target.get_mut(..bytes), available.get(..bytes)) {
            target.copy_from_slice(available);
        }
        self.consume(bytes);
        Ok(bytes)
    }
}
