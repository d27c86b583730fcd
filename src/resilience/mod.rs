//! Staying polite, patient and alive: everything between "make this call" and one attempt at it.
//!
//! Layer order, outermost first: wall budget → retry → breaker → quota permit → time-out → one attempt. Each part is a
//! pure state machine that takes time and chance as arguments; thin drivers share it between tasks. [`line::Line`]
//! puts them together. Nothing here knows HTTP beyond headers and statuses, or what is being called.

pub mod backoff;
pub mod breaker;
pub mod deadline;
pub mod endpoint;
pub mod health;
pub mod line;
pub mod quota;
pub mod rate_headers;
pub mod recovery;
pub mod refusal;
pub mod retry;
pub mod retry_tokens;
pub mod settings;
pub mod span;
pub mod spike;
pub mod taxonomy;
pub mod verdict;

pub use backoff::Jitter;
pub use endpoint::{Endpoint, PerEndpoint};
pub use settings::{BreakerSettings, QuotaSettings, RetrySettings};
