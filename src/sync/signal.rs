//! A value that tasks wait to see changed.
//!
//! It is tokio's `watch` with one difference: whoever waits is woken in the order in which they began to wait. `watch`
//! spreads its waiters by chance, so that two sinks that hear of the same change would take turns as they like, and a
//! simulation could not be repeated by its seed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The one who changes the value.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// One who waits for changes. A clone has seen what the original has seen.
#[derive(Debug, Clone)]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    version: u64,
    value: T,
}

/// A value and the first one who waits for its changes.
pub fn channel<T: Clone>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

impl<T: Clone> Sender<T> {
    /// A value that nobody waits for yet.
    pub fn new(value: T) -> Self {
        Self(Arc::new(Shared { state: Mutex::new(State { version: 0, value }), changed: Notify::new() }))
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> T {
        self.0.lock().value.clone()
    }

    /// Changes the value. Everybody who waits is woken, also when it is the same as before.
    pub fn set(&self, value: T) {
        self.change(|it| *it = value);
    }

    /// The same in place.
    pub fn change(&self, change: impl FnOnce(&mut T)) {
        {
            let mut state = self.0.lock();
            state.version += 1;
            change(&mut state.value);
        }
        self.0.changed.notify_waiters();
    }

    /// One more who waits: for what changes from now on.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { shared: Arc::clone(&self.0), seen: self.0.lock().version }
    }
}

impl<T: Clone> Receiver<T> {
    /// The value.
    #[must_use]
    pub fn get(&self) -> T {
        self.shared.lock().value.clone()
    }

    /// The value, which then counts as seen.
    #[must_use]
    pub fn see(&mut self) -> T {
        let state = self.shared.lock();
        self.seen = state.version;
        state.value.clone()
    }

    /// Returns once the value has changed since it was last seen; that counts as seen then. Cancel safe.
    pub async fn changed(&mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let changed = shared.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let version = shared.lock().version;
            if version != self.seen {
                self.seen = version;
                return;
            }
            changed.await;
        }
    }

    /// Returns once the value is as wanted.
    pub async fn wait_for(&mut self, is_wanted: impl Fn(&T) -> bool) {
        while !is_wanted(&self.see()) {
            self.changed().await;
        }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_before_somebody_waits_is_not_missed() {
        let (sender, mut receiver) = channel(1);
        sender.set(2);
        receiver.changed().await;
        assert_eq!((receiver.get(), sender.get()), (2, 2));
        let soon = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(soon, receiver.changed()).await.is_err(), "seen");
        assert!(tokio::time::timeout(soon, sender.subscribe().changed()).await.is_err(), "was there before");
        sender.change(|value| *value += 1);
        assert_eq!(receiver.see(), 3);
        receiver.wait_for(|value| *value == 3).await;
    }

    /// However often it is tried: those who wait go on in their order.
    #[tokio::test(start_paused = true)]
    async fn whoever_waits_is_woken_in_order() {
        for _ in 0..50 {
            let (sender, receiver) = channel(0);
            let heard = Arc::new(Mutex::new(Vec::new()));
            let mut tasks = tokio::task::JoinSet::new();
            for number in 0..6 {
                let (mut receiver, heard) = (receiver.clone(), Arc::clone(&heard));
                tasks.spawn(async move {
                    receiver.changed().await;
                    heard.lock().expect("nobody panicked").push(number);
                });
            }
            tokio::task::yield_now().await;
            sender.set(1);
            tasks.join_all().await;
            assert_eq!(*heard.lock().expect("nobody panicked"), [0, 1, 2, 3, 4, 5]);
        }
    }
}
