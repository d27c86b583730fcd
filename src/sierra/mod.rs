//! The typed client of the Sierra REST API.

mod api_error;
mod base_url;
mod decode;
mod envelope;
mod fields;
mod page;
mod query;
mod scrub;
pub mod settings;
mod surrogate;
pub mod transport;
mod wire;

pub use decode::{DecodedPage, decode_entry, decode_page};
pub use envelope::InvalidBody;
pub use settings::SierraSettings;
