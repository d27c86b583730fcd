//! The `sierra-sync` binary: everything it does is in the library.

use std::process::ExitCode;

use sierra_sync::cli;

fn main() -> ExitCode {
    cli::install_panic_hook();
    cli::dispatch(std::env::args_os())
}
