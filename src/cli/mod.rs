//! The command line: arguments in, data on stdout, talk on stderr, an exit code out.
//!
//! Every command has a module with its arguments and a `run`. What a command needs beyond the configuration comes
//! from `app`; this module holds no knowledge of Sierra, stores or sinks.

mod answer;
pub mod args;
pub mod backfill;
pub mod breaker;
pub mod check;
pub mod completions;
pub mod convert;
pub mod cursor;
pub mod demo;
mod dispatch;
pub mod exit;
pub mod failure;
pub mod init;
pub mod man;
mod operator;
mod panic;
pub mod pausing;
pub mod quarantine;
pub mod queue;
pub mod reconcile;
pub mod recover;
pub mod run;
pub mod schema;
pub mod simulate;
pub mod status;
pub mod sync;
mod table;
pub mod terminal;
pub mod unbuilt;

pub use dispatch::dispatch;
pub use exit::Exit;
pub use panic::install_panic_hook;
