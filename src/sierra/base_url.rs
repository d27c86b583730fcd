//! The address of an API, checked once.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use http::Uri;
use http::uri::Scheme;

/// Everything up to and including the version: `https://host/iii/sierra-api/v6`.
///
/// Https always, or plain http to this machine alone: a token must not travel in the clear.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct BaseUrl {
    text: String,
    origin: Origin,
}

/// Where requests go: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    is_https: bool,
    host: String,
    port: u16,
}

/// Why a text is not the address of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// Not an absolute http or https URL.
    #[error("base_url must be an absolute URL such as https://catalog.example.edu/iii/sierra-api/v6")]
    Malformed,
    /// Plain http to another machine.
    #[error("base_url must use https: plain http is allowed to this machine only, since tokens would be readable")]
    NotEncrypted,
    /// A user name or password in the URL.
    #[error("base_url must not hold a user name or password: the key has settings of its own")]
    Credentials,
    /// A query or fragment.
    #[error("base_url must end with the version of the API, without query or fragment")]
    Query,
}

/// Checks the address of an API as the client will, and drops a trailing slash.
///
/// # Errors
/// When the client would refuse it.
pub fn checked_base_url(text: &str) -> Result<String, BaseUrlError> {
    BaseUrl::new(text).map(|base_url| base_url.text)
}

impl BaseUrl {
    /// Checks `text`; a trailing slash is dropped.
    pub(super) fn new(text: &str) -> Result<Self, BaseUrlError> {
        let text = text.trim().trim_end_matches('/');
        if text.contains('#') {
            return Err(BaseUrlError::Query);
        }
        let uri: Uri = text.parse().map_err(|_| BaseUrlError::Malformed)?;
        let origin = Origin::of(&uri).ok_or(BaseUrlError::Malformed)?;
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(BaseUrlError::Credentials);
        }
        if uri.query().is_some() {
            return Err(BaseUrlError::Query);
        }
        if !origin.is_https && !origin.is_loopback() {
            return Err(BaseUrlError::NotEncrypted);
        }
        Ok(Self { text: text.to_owned(), origin })
    }

    /// The address itself.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The address of `path` (without leading slash), query included.
    pub(super) fn join(&self, path: &str) -> Uri {
        // The base was parsed, and callers write paths and queries of safe characters only.
        format!("{}/{path}", self.text).parse().unwrap_or_default()
    }

    /// Where requests go.
    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BaseUrl({})", self.text)
    }
}

impl Origin {
    /// The origin of an absolute http or https URL.
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        let is_https = match uri.scheme()? {
            scheme if *scheme == Scheme::HTTPS => true,
            scheme if *scheme == Scheme::HTTP => false,
            _ => return None,
        };
        let host = uri.host().filter(|host| !host.is_empty())?.to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        Some(Self { is_https, host, port })
    }

    /// Whether requests stay on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        self.host == "localhost"
            || bare.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
            || bare.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_loopback_alone() {
        for text in [
            "https://catalog.example.edu/iii/sierra-api/v6",
            "https://catalog.example.edu:8443/iii/sierra-api/v6/",
            "http://127.0.0.1:9000/v6",
            "http://127.8.8.8/v6",
            "http://localhost:1/v6",
            "http://[::1]:1/v6",
        ] {
            assert!(BaseUrl::new(text).is_ok(), "{text}");
        }
        let table = [
            ("http://catalog.example.edu/v6", BaseUrlError::NotEncrypted),
            ("http://localhost.example.edu/v6", BaseUrlError::NotEncrypted),
            ("http://0.0.0.0/v6", BaseUrlError::NotEncrypted),
            ("https://key:secret@catalog.example.edu/v6", BaseUrlError::Credentials),
            ("https://catalog.example.edu/v6?x=1", BaseUrlError::Query),
            ("https://catalog.example.edu/v6#x", BaseUrlError::Query),
            ("ftp://catalog.example.edu/v6", BaseUrlError::Malformed),
            ("catalog.example.edu/v6", BaseUrlError::Malformed),
            ("/v6", BaseUrlError::Malformed),
            ("", BaseUrlError::Malformed),
        ];
        for (text, expected) in table {
            assert_eq!(BaseUrl::new(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn paths_are_joined_with_one_slash() {
        let base = BaseUrl::new("https://host.example/iii/sierra-api/v6/").expect("a base");
        assert_eq!(base.join("bibs?limit=1").to_string(), "https://host.example/iii/sierra-api/v6/bibs?limit=1");
        assert_eq!(Some(base.origin()), Origin::of(&base.join("token")).as_ref());
    }
}
