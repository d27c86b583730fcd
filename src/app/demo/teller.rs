//! The demo's voice: what the engine and the breaker do, as sentences for a person who watches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::record::Stream;
use crate::resilience::breaker::{BreakerEvent, BreakerObserver, Scope};
use crate::sync::Pass;
use crate::sync::observer::{Event, Observer};

use super::super::chronicle::Chronicle;

/// Says a sentence.
pub(super) type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Tells of loads, changes and breaker, and lets [`Chronicle`] log as it always does.
pub(super) struct Teller {
    say: Say,
    chronicle: Arc<Chronicle>,
    loaded: Mutex<BTreeMap<Stream, u64>>,
    /// Whether the breaker of the key has ever opened.
    pub(super) breaker_opened: AtomicBool,
}

impl Teller {
    /// Tells through `say`, and `chronicle` of everything.
    pub(super) fn new(say: Say, chronicle: Arc<Chronicle>) -> Self {
        Self { say, chronicle, loaded: Mutex::default(), breaker_opened: AtomicBool::new(false) }
    }
}

impl Observer for Teller {
    fn observe(&self, event: &Event) {
        self.chronicle.observe(event);
        match event {
            Event::PageCaptured { stream, pass: Pass::Load, entries, .. } => {
                let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
                let count = loaded.entry(*stream).or_default();
                *count += entries.fetched();
                (self.say)(&format!("  load: {count} {stream}"));
            }
            Event::PageCaptured { stream, entries, changes, .. } if *changes > 0 => {
                let deletes =
                    if entries.deleted > 0 { format!(", {} of them deleted", entries.deleted) } else { String::new() };
                (self.say)(&format!("  captured {changes} changed {stream}{deletes}"));
            }
            _ => {}
        }
    }
}

impl BreakerObserver for Teller {
    fn on_breaker_event(&self, event: &BreakerEvent) {
        self.chronicle.on_breaker_event(event);
        if matches!(event, BreakerEvent::Opened { scope: Scope::Key, .. }) {
            self.breaker_opened.store(true, Ordering::Release);
        }
        match event {
            BreakerEvent::Opened { reason, .. } => (self.say)(&format!("  the breaker opens: {reason}")),
            BreakerEvent::Closed { .. } => (self.say)("  a health check passes: the breaker closes"),
            BreakerEvent::Recovered { .. } => (self.say)("  ten calls went well: the outage is over"),
            BreakerEvent::Reopened { .. } | BreakerEvent::Escalated { .. } => {}
        }
    }
}
