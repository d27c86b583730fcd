//! The ports of the engine: everything it needs from outside, as three traits.

pub mod sink;
pub mod source;
pub mod store;

pub use sink::{Held, Holding, Sink, SinkError};
pub use source::{
    Answer, BadEntry, CallClass, FieldSet, MarcExport, MarcQuery, Page, PageFilter, PageQuery, Pulse, Source,
    SourceError, SourceErrorKind, Traffic,
};
pub use store::{
    NewChange, OutboxEntry, OutboxUsage, QuarantineEntry, QuarantineKey, QuarantineState, SinkPosition, Slice,
    Snapshot, Store, StoreError, StoreErrorKind,
};
