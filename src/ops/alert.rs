//! Calls for help: what is wrong is told once, with the command that repairs it, reminded of once a day, and taken back
//! when it is over.
//!
//! Everything follows from the status document, so that a person who looks sees the same truth as one who is called.
//! `finding` says what the status shows, `book` decides what is told and when, `courier` brings it to a webhook and
//! `watch` drives them. None of them looks at Sierra.

mod active;
mod book;
mod cause;
mod courier;
mod finding;
mod notice;
mod settings;
mod signature;
mod watch;

pub use active::ActiveAlerts;
pub use book::AlertBook;
pub use cause::{Cause, Severity};
pub use courier::{Courier, CourierError};
pub use finding::{Finding, findings};
pub use notice::{Notice, NoticeKind};
pub use settings::{AlertSettings, WebhookSettings};
pub use signature::sign;
pub use watch::{AlertMemory, Watch};
