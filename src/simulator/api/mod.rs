//! Sierra's REST API as a function of the library: a request and the world in, an answer out.
//!
//! Nothing here knows time but what it is told, and nothing here misbehaves by itself: faults, limits and delays are
//! put around it.

mod answer;
mod list;
mod marc;
mod query;
mod refusal;
mod request;
pub(crate) mod serve;
mod tamper;
mod token;

pub use refusal::Refusal;
pub use request::Endpoint;
pub use token::{Access, Permission};

pub(crate) use answer::{Answer, JSON};
pub(crate) use list::{list, one};
pub(crate) use marc::{Exports, single};
pub(crate) use request::{ApiRequest, Route};
pub(crate) use tamper::Tampering;
pub(crate) use token::{Tokens, info};
