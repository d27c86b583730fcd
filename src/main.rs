//! The `sierra-sync` binary: everything it does is in the library.

use std::process::ExitCode;

use libmimalloc_sys::{mi_option_get, mi_option_set, mi_option_t};
use sierra_sync::cli;

/// A page of 2,000 bibs is half a million small texts, made and dropped by different threads. The system's allocator
/// keeps more of them than this one (254 to 322 MB at the peak of a load against 217) and takes longer. Without
/// transparent huge pages, with which what was given back comes back whole: 268 MB.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3, which the bindings do not name, and its default in milliseconds.
const PURGE_DELAY: mi_option_t = 15;
const PURGE_DELAY_DEFAULT: std::ffi::c_long = 1_000;

/// By default mimalloc keeps freed memory for a second, in which several pages of bibs come and go: 291 MiB at the peak
/// of a load. With 10 ms it is 152 MiB, but what comes back from the system costs a quarter more processor time; with
/// 200 ms it is 227 to 235 MiB for a twentieth to a tenth.
const PURGE_AFTER_MS: std::ffi::c_long = 200;

fn main() -> ExitCode {
    give_memory_back_soon();
    cli::install_panic_hook();
    cli::dispatch(std::env::args_os())
}

/// Leaves the option alone unless it stands at its default: `MIMALLOC_PURGE_DELAY` in the environment goes before, and
/// a later mimalloc may number its options otherwise.
#[expect(unsafe_code, reason = "mimalloc's options can be set by its C functions only")]
fn give_memory_back_soon() {
    // SAFETY: both take any number for an option and any value, may be called at any time after the allocator's first
    // use, and no other thread exists yet.
    unsafe {
        if mi_option_get(PURGE_DELAY) == PURGE_DELAY_DEFAULT {
            mi_option_set(PURGE_DELAY, PURGE_AFTER_MS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "mimalloc's options can be read by its C functions only")]
    fn the_option_still_bears_that_number() {
        // SAFETY: see `give_memory_back_soon`.
        let (before, after) = unsafe {
            let before = mi_option_get(PURGE_DELAY);
            give_memory_back_soon();
            (before, mi_option_get(PURGE_DELAY))
        };
        assert_eq!((before, after), (PURGE_DELAY_DEFAULT, PURGE_AFTER_MS));
    }
}
