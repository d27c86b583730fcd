//! The store as tasks use it: calls that may block on a disk leave the runtime's threads alone.

use std::sync::Arc;

use super::ports::{Store, StoreError, StoreErrorKind};

/// A shared store. Calls to one that never blocks run in place, so that a simulation stays single-threaded and
/// repeats itself.
#[derive(Clone)]
pub struct StoreHandle(Arc<dyn Store>);

impl StoreHandle {
    /// Wraps `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// Runs `work` with the store. Once begun it runs to its end, also when the caller is dropped meanwhile: a commit
    /// is never torn by a shutdown.
    ///
    /// # Errors
    /// Those of `work`, and when the runtime is shutting down.
    pub async fn call<T, E>(&self, work: impl FnOnce(&dyn Store) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        if !self.0.blocks() {
            return work(self.0.as_ref());
        }
        let store = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || work(store.as_ref())).await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => {
                    let message = "reach the store: the runtime is shutting down";
                    Err(StoreError::new(StoreErrorKind::Io, message).caused_by(error).into())
                }
            },
        }
    }
}
