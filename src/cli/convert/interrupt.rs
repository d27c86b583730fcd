//! What a signal leaves behind: nothing.

use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::output;

/// From now on SIGINT, SIGTERM and SIGHUP take the half-written output file away before they end the process, with 128
/// and their number as its exit code. Where signals cannot be had they end it as they always do.
pub(super) fn leave_nothing_behind() {
    let Ok(runtime) = Builder::new_current_thread().enable_io().build() else { return };
    let signals = {
        let _entered = runtime.enter();
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        kinds.map(signal)
    };
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else { return };
    // Converting knows no waiting in which to look for signals: it may sit in a read for hours.
    thread::spawn(move || {
        let kind = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = terminate.recv() => SignalKind::terminate(),
                _ = hangup.recv() => SignalKind::hangup(),
            }
        });
        output::abandon();
        std::process::exit(128 + kind.as_raw_value());
    });
}
