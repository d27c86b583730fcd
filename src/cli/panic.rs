//! What is said when the program has a defect: where, and never with which values.

use std::panic;

use crate::cli::terminal;

/// Replaces the default panic message, which quotes the payload: a record or a secret may be in it.
pub fn install_panic_hook() {
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        if tracing::dispatcher::has_been_set() {
            tracing::error!(event = "panicked", location, "a defect in sierra-sync; please report the location");
        } else {
            terminal::talk(&format!("sierra-sync: a defect at {location}; please report the location"));
        }
    }));
}
