//! The typed client of the Sierra REST API.

mod api_error;
mod base_url;
mod decode;
mod envelope;
mod fields;
mod http_transport;
mod latch;
mod oauth;
mod page;
mod query;
mod scrub;
pub mod settings;
mod surrogate;
mod token;
pub mod transport;
mod wire;

pub use base_url::{BaseUrlError, checked_base_url};
pub use decode::{DecodedPage, decode_entry, decode_page};
pub use envelope::InvalidBody;
pub use http_transport::{HttpTransport, HttpTransportError, install_crypto};
pub use settings::SierraSettings;
