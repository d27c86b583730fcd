//! The typed client of the Sierra REST API.
//!
//! `client` composes the rest: `query` writes questions, `exchange` sends them, `answer` tells page, nothing and failure
//! apart (with `envelope`, `decode` and `page`), `auth` keeps the token. Retries, quota and breaker are `resilience`'s.
//! This module knows nothing of windows, stores or sinks, and writes nothing to Sierra.

mod answer;
mod api_error;
mod auth;
mod base_url;
mod client;
mod decode;
mod envelope;
mod error;
mod exchange;
mod export;
mod export_file;
mod fields;
mod health;
mod http_transport;
mod known;
mod latch;
mod log;
mod numbers;
mod oauth;
mod page;
mod page_call;
mod poison;
mod pulse;
mod query;
mod scrub;
mod session;
pub mod settings;
mod status;
mod subfields;
mod token;
mod token_call;
pub mod transport;
mod var_fields;
mod wire;

pub use base_url::{BaseUrlError, checked_base_url};
pub use client::{ClientParts, SierraClient};
pub use decode::{DecodedPage, decode_entry, decode_page};
pub use envelope::InvalidBody;
pub use error::SierraClientError;
pub use http_transport::{HttpTransport, HttpTransportError, install_crypto};
pub use pulse::TokenInfo;
pub use query::{MAX_IDS, MAX_LIMIT};
pub use settings::SierraSettings;
pub use status::{read_breaker_snapshot, read_quota_snapshot, shown_breaker, write_breaker_snapshot};
