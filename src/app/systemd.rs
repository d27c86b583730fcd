//! What systemd is told, where it listens (`sd_notify(3)`): nothing elsewhere.

use std::time::Duration;

use sd_notify::NotifyState;

/// The service is up.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The service goes on, and how.
pub(super) fn alive(message: &str) {
    tell(&[NotifyState::Watchdog, NotifyState::Status(message)]);
}

/// The configuration is being read again.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// The service ends.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// How long systemd waits for [`alive`] before it kills the service; `None` when it does not.
pub(super) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(event = "systemd_not_told", "failed to notify systemd: {error}");
    }
}
