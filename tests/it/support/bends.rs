//! Mistakes that are built into the engine's surroundings on purpose, to see that they are caught.

use std::sync::Arc;

use sierra_sync::sync::{Source, Store};

type Bend<T> = Arc<dyn Fn(Arc<T>) -> Arc<T> + Send + Sync>;

/// What stands between the engine and its ports. Nothing, usually.
#[derive(Clone, Default)]
pub(crate) struct Bends {
    source: Option<Bend<dyn Source>>,
    store: Option<Bend<dyn Store>>,
}

impl Bends {
    pub(crate) fn of_source(bend: impl Fn(Arc<dyn Source>) -> Arc<dyn Source> + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(bend)), store: None }
    }

    pub(crate) fn of_store(bend: impl Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync + 'static) -> Self {
        Self { source: None, store: Some(Arc::new(bend)) }
    }

    pub(super) fn source(&self, source: Arc<dyn Source>) -> Arc<dyn Source> {
        self.source.as_ref().map_or_else(|| source.clone(), |bend| bend(source.clone()))
    }

    pub(super) fn store(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        self.store.as_ref().map_or_else(|| store.clone(), |bend| bend(store.clone()))
    }
}
