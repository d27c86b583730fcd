//! Limits that the server sets: a quota per API key, and Sierra's own throttle per endpoint.

mod dialect;
mod endpoint;
mod quota;

pub use dialect::{Dialect, Reset, RetryAfter};
pub use endpoint::EndpointLimit;
pub use quota::{Counting, RateLimit};

pub(crate) use dialect::headers;
pub(crate) use endpoint::Throttle;
pub(crate) use quota::{Quota, Verdict};
