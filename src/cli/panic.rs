//! What is said when the program has a defect: where, and never with which values.

use std::panic;

use crate::cli::terminal;

/// Where the code of the state database lies.
const STATE_DATABASE: &str = "/sled-";

/// Replaces the default panic message, which quotes the payload: a record or a secret may be in it.
pub fn install_panic_hook() {
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        if panic.location().is_some_and(|location| location.file().contains(STATE_DATABASE)) {
            // It panics over damage, which is caught and told as such where it was met.
            tracing::debug!(event = "state_database_panicked", location, "the state database gave up");
        } else if tracing::dispatcher::has_been_set() {
            tracing::error!(event = "panicked", location, "a defect in sierra-sync; please report the location");
        } else {
            terminal::talk(&format!("sierra-sync: a defect at {location}; please report the location"));
        }
    }));
}
