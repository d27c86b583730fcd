//! The stores under test behind one handle, so that each contract is written down once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sierra_sync::clock::Clock;
use sierra_sync::privacy::Keyring;
use sierra_sync::store::{MemoryStore, SledStore, StoreSettings};
use sierra_sync::sync::Store;
use sierra_sync::sync::ports::{StoreError, StoreErrorKind};
use tempfile::TempDir;
use tokio::time::Instant;

/// The first moment of every test.
pub(crate) const EPOCH: &str = "2026-01-05T10:00:00Z";

/// A clock that stands until it is moved.
#[derive(Debug)]
pub(crate) struct StandingClock(Mutex<Timestamp>);

impl StandingClock {
    pub(crate) fn at_epoch() -> Arc<Self> {
        Arc::new(Self(Mutex::new(EPOCH.parse().unwrap())))
    }

    pub(crate) fn step(&self, by: SignedDuration) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(by).unwrap();
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// One store that can be closed cleanly and opened again.
pub(crate) struct Subject {
    pub name: &'static str,
    pub clock: Arc<StandingClock>,
    kind: Kind,
}

enum Kind {
    Memory(MemoryStore),
    Sled { store: Option<SledStore>, directory: TempDir },
}

impl Subject {
    pub(crate) fn memory() -> Self {
        let clock = StandingClock::at_epoch();
        let store = MemoryStore::new(clock.clone());
        Self { name: "memory", clock, kind: Kind::Memory(store) }
    }

    pub(crate) fn sled() -> Self {
        let clock = StandingClock::at_epoch();
        let directory = tempfile::tempdir().unwrap();
        let store = Some(open_sled(&directory, &clock));
        Self { name: "sled", clock, kind: Kind::Sled { store, directory } }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        match &self.kind {
            Kind::Memory(store) => store,
            Kind::Sled { store, .. } => store.as_ref().unwrap(),
        }
    }

    /// Ends the process and starts the next one.
    pub(crate) fn reopen(&mut self) {
        match &mut self.kind {
            Kind::Memory(store) => *store = store.crash_and_reopen(),
            Kind::Sled { store, directory } => {
                drop(store.take());
                *store = Some(open_sled(directory, &self.clock));
            }
        }
    }
}

/// Runs `check` on a fresh store of each kind.
#[expect(clippy::print_stdout, reason = "a test that fails has to say on which store")]
pub(crate) fn each_store(check: impl Fn(&mut Subject)) {
    for mut subject in [Subject::memory(), Subject::sled()] {
        println!("on the {} store", subject.name);
        check(&mut subject);
    }
}

pub(crate) fn settings(directory: &TempDir) -> StoreSettings {
    StoreSettings {
        path: directory.path().join("state"),
        outbox_max_size: 1 << 31,
        min_free: 1 << 29,
        retention: Duration::from_secs(30 * 24 * 3600),
    }
}

/// Opens what was closed just now. Another test may be about to start a program: until its child is that program, it
/// holds every lock that was let go here meanwhile.
pub(crate) fn once_free<T, E>(mut open: impl FnMut() -> Result<T, E>, is_held: impl Fn(&E) -> bool) -> Result<T, E> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match open() {
            Err(error) if is_held(&error) && Instant::now() < deadline => std::thread::yield_now(),
            opened => return opened,
        }
    }
}

/// Whether this very process is said to hold the state.
pub(crate) fn is_ours(error: &StoreError) -> bool {
    let us = format!("(pid {})", std::process::id());
    matches!(&error.kind, StoreErrorKind::Held { holder } if holder.ends_with(&us))
}

pub(crate) fn open_sled(directory: &TempDir, clock: &Arc<StandingClock>) -> SledStore {
    let open = || SledStore::open(&settings(directory), Arc::new(Keyring::for_tests(1)), clock.clone());
    once_free(open, is_ours).unwrap()
}
