//! A request taken apart: which endpoint, which parameters.

use bytes::Bytes;
use serde::Deserialize;

use super::super::kind::Kind;

/// What a request is counted under. Faults, limits and the journal name endpoints by these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// `POST /token`.
    Token,
    /// `GET /info/token`.
    TokenInfo,
    /// `GET /bibs`.
    Bibs,
    /// `GET /items`.
    Items,
    /// `GET /patrons`.
    Patrons,
    /// `GET /bibs/{id}`.
    Bib,
    /// `GET /items/{id}`.
    Item,
    /// `GET /patrons/{id}`.
    Patron,
    /// `GET /bibs/{id}/marc`.
    BibMarc,
    /// `GET /bibs/marc`, the first phase of an export.
    MarcExport,
    /// `GET` and `DELETE /bibs/marc/files/{id}`.
    MarcFile,
    /// Anything else.
    Unknown,
}

impl Endpoint {
    /// The list endpoint of a kind.
    #[must_use]
    pub fn list(kind: Kind) -> Self {
        match kind {
            Kind::Bibs => Self::Bibs,
            Kind::Items => Self::Items,
            Kind::Patrons => Self::Patrons,
        }
    }

    /// Whether it serves pages of records.
    #[must_use]
    pub fn is_list(self) -> bool {
        matches!(self, Self::Bibs | Self::Items | Self::Patrons)
    }
}

/// Where a request leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Token,
    TokenInfo,
    List(Kind),
    One(Kind, u64),
    BibMarc(u64),
    MarcExport,
    MarcFile(u64),
    /// `DELETE /bibs/marc`.
    MarcFiles,
    /// A path that ends in something that is no record number.
    BadNumber(Kind),
    Unknown,
}

impl Route {
    pub(crate) fn endpoint(self) -> Endpoint {
        match self {
            Self::Token => Endpoint::Token,
            Self::TokenInfo => Endpoint::TokenInfo,
            Self::List(kind) => Endpoint::list(kind),
            Self::One(Kind::Bibs, _) | Self::BadNumber(Kind::Bibs) => Endpoint::Bib,
            Self::One(Kind::Items, _) | Self::BadNumber(Kind::Items) => Endpoint::Item,
            Self::One(Kind::Patrons, _) | Self::BadNumber(Kind::Patrons) => Endpoint::Patron,
            Self::BibMarc(_) => Endpoint::BibMarc,
            Self::MarcExport => Endpoint::MarcExport,
            Self::MarcFile(_) | Self::MarcFiles => Endpoint::MarcFile,
            Self::Unknown => Endpoint::Unknown,
        }
    }
}

/// A request as the API reads it.
#[derive(Debug)]
pub(crate) struct ApiRequest<'a> {
    pub(crate) http: &'a http::Request<Bytes>,
    pub(crate) route: Route,
    /// Decoded query parameters in the order they came.
    pub(crate) parameters: Vec<(String, String)>,
}

impl<'a> ApiRequest<'a> {
    /// Takes `http` apart; `base` is the path below which the API lives, such as `/iii/sierra-api/v6`.
    pub(crate) fn read(http: &'a http::Request<Bytes>, base: &str) -> Self {
        let path = http.uri().path();
        let route = path.strip_prefix(base).map_or(Route::Unknown, |rest| route(http.method(), rest));
        Self { http, route, parameters: parameters(http.uri().query().unwrap_or_default()) }
    }

    /// The value of a parameter; the first one counts.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    }

    /// A header as text.
    pub(crate) fn header(&self, name: http::header::HeaderName) -> Option<&str> {
        self.http.headers().get(name).and_then(|value| value.to_str().ok())
    }
}

fn route(method: &http::Method, path: &str) -> Route {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let kind = |name: &str| Kind::ALL.into_iter().find(|kind| kind.path() == name);
    match (method.as_str(), segments.as_slice()) {
        ("POST", ["token"]) => Route::Token,
        ("GET", ["info", "token"]) => Route::TokenInfo,
        ("GET", ["bibs", "marc"]) => Route::MarcExport,
        ("DELETE", ["bibs", "marc"]) => Route::MarcFiles,
        ("GET" | "DELETE", ["bibs", "marc", "files", id]) => id.parse().map_or(Route::Unknown, Route::MarcFile),
        ("GET", ["bibs", id, "marc"]) => id.parse().map_or(Route::BadNumber(Kind::Bibs), Route::BibMarc),
        ("GET", [name]) => kind(name).map_or(Route::Unknown, Route::List),
        ("GET", [name, id]) => match (kind(name), id.parse()) {
            (Some(kind), Ok(id)) => Route::One(kind, id),
            (Some(kind), Err(_)) => Route::BadNumber(kind),
            (None, _) => Route::Unknown,
        },
        _ => Route::Unknown,
    }
}

/// Splits and decodes a query string or a form.
pub(crate) fn parameters(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
        .collect()
}

/// Undoes percent encoding; a plus is a space, as in any servlet container.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let hex = |digit: Option<u8>| digit.and_then(|digit| char::from(digit).to_digit(16));
        match (byte, hex(ahead.next()), hex(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = ahead;
            }
            (b'+', ..) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_commas_and_colons_may_be_encoded_or_not() {
        let plain = parameters("updatedDate=[2024-01-01T00:00:00Z,2024-01-02T00:00:00Z]");
        let encoded = parameters("updatedDate=%5B2024-01-01T00%3A00%3A00Z%2C2024-01-02T00%3a00%3a00Z%5D");
        assert_eq!(plain, encoded);
    }

    #[test]
    fn a_plus_is_a_space_and_a_broken_escape_stays() {
        assert_eq!(
            parameters("a=1+2&b=%2&c=%zz&d"),
            [("a", "1 2"), ("b", "%2"), ("c", "%zz"), ("d", "")].map(|(n, v)| (n.to_owned(), v.to_owned()))
        );
    }
}
