//! What the client obeys; the configuration layer fills it in.

use std::path::PathBuf;
use std::time::Duration;

use crate::secret::Secret;

/// How Sierra is reached.
#[derive(Debug, Clone)]
pub struct SierraSettings {
    /// Up to and including the version, without a trailing slash: `https://host/iii/sierra-api/v6`. Plain http is
    /// allowed to loopback only.
    pub base_url: String,
    /// The API key.
    pub client_key: String,
    /// Its secret.
    pub client_secret: Secret,
    /// Time for one whole HTTP attempt.
    pub request_timeout: Duration,
    /// The library's zone: Sierra's date-only fields are local (sierra-api.md §7 item 8).
    pub local_zone: jiff::tz::TimeZone,
    /// An extra root certificate.
    pub ca_file: Option<PathBuf>,
    /// A proxy URL.
    pub proxy: Option<String>,
    /// The `User-Agent` header.
    pub user_agent: String,
}
