//! The engine: windows, capture, delivery; and the ports through which it sees the outside.
//!
//! `sync` does not know HTTP, sled or SQL: it owns the traits [`Source`], [`Store`] and [`Sink`], and the adapters
//! implement them.

pub mod backfill;
pub mod backpressure;
pub mod capture;
pub mod change;
pub mod clock_guard;
pub mod content;
pub mod cursor;
pub mod decide;
pub mod deliver;
pub mod engine;
pub mod exit;
pub mod fullness;
pub mod invariant;
pub mod ledger;
pub mod meaning;
pub mod observer;
pub mod pause;
pub mod ports;
pub mod positions;
pub mod published;
pub mod rebuild;
pub mod remembered;
pub mod render;
pub mod report;
pub mod route;
pub mod runs;
pub mod schedule;
pub mod seq;
pub mod settings;
pub mod signal;
pub mod silence;
pub mod store_handle;
pub mod sweep;
pub mod timekeeper;
pub mod window;

pub use change::{Change, ContentHash, DeleteReason, Op, Origin, Payload};
pub use content::ContentHasher;
pub use engine::{Engine, EngineError, EngineParts, SyncOptions};
pub use ledger::{LedgerRow, Pass, RowState, Span};
pub use pause::Pausable;
pub use ports::{Sink, SinkError, Source, SourceError, Store, StoreError};
pub use remembered::{Remembered, RememberedKey, RequestNumber};
pub use runs::{Run, RunKind};
pub use seq::Seq;
pub use window::Window;
