//! Compression of bodies. sled's own would clash with our zstd, and would not see that a value is sealed.

use std::sync::{Mutex, PoisonError};

use zstd::bulk::{Compressor, Decompressor};

use super::codec::Damaged;
use super::error;
use crate::sync::StoreError;

/// The fastest of zstd's regular levels: the queue is written and read once, and speed is the bottleneck.
const LEVEL: i32 = 1;

/// Below this many bytes compression gains nothing.
const WORTH_IT: usize = 200;

/// Compressors and decompressors that are not in use: making one costs more than a small body.
#[derive(Default)]
pub(super) struct Squeeze {
    compressors: Mutex<Vec<Compressor<'static>>>,
    decompressors: Mutex<Vec<Decompressor<'static>>>,
}

impl Squeeze {
    /// `plain` compressed, or `None` when that is not shorter.
    pub(super) fn squeeze(&self, plain: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if plain.len() < WORTH_IT {
            return Ok(None);
        }
        let idle = self.compressors.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let squeezed = idle.map_or_else(|| Compressor::new(LEVEL), Ok).and_then(|mut compressor| {
            let squeezed = compressor.compress(plain)?;
            self.compressors.lock().unwrap_or_else(PoisonError::into_inner).push(compressor);
            Ok(squeezed)
        });
        let squeezed = squeezed.map_err(|error| error::io("compress a change", error))?;
        Ok((squeezed.len() < plain.len()).then_some(squeezed))
    }

    /// The `plain_bytes` bytes that were squeezed into `squeezed`.
    pub(super) fn expand(&self, squeezed: &[u8], plain_bytes: u64) -> Result<Vec<u8>, Damaged> {
        let capacity = usize::try_from(plain_bytes).map_err(|_| Damaged)?;
        let idle = self.decompressors.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decompressor = idle.map_or_else(Decompressor::new, Ok).map_err(|_| Damaged)?;
        let plain = decompressor.decompress(squeezed, capacity).map_err(|_| Damaged)?;
        self.decompressors.lock().unwrap_or_else(PoisonError::into_inner).push(decompressor);
        if plain.len() == capacity { Ok(plain) } else { Err(Damaged) }
    }
}

impl std::fmt::Debug for Squeeze {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Squeeze")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_squeezed_expands_again_and_what_does_not_shrink_is_left_alone() {
        let squeeze = Squeeze::default();
        let plain = b"<subfield code=\"a\">".repeat(50);
        let squeezed = squeeze.squeeze(&plain).expect("compresses").expect("shrinks");
        assert!(squeezed.len() * 5 < plain.len());
        let length = u64::try_from(plain.len()).expect("small");
        assert_eq!(squeeze.expand(&squeezed, length), Ok(plain));
        assert_eq!(squeeze.expand(&squeezed, length - 1), Err(Damaged));
        assert_eq!(squeeze.expand(&squeezed, length + 1), Err(Damaged));
        assert_eq!(squeeze.expand(&squeezed[1..], length), Err(Damaged));
        assert_eq!(squeeze.squeeze(&[0; WORTH_IT - 1]).expect("no error"), None);
    }
}
