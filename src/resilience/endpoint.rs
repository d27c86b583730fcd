//! The places on Sierra's API that this service talks to, as far as quota and breaker tell them apart.

use serde::{Deserialize, Serialize};

/// One endpoint of the Sierra API. Concurrency, Sierra's own refusals and suspension are kept per endpoint (A19).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// `POST /token`: a session token for the key.
    Token,
    /// `GET /info/token`: describes the token in use; the health check.
    TokenInfo,
    /// `GET /bibs`: the list of bibs.
    Bibs,
    /// `GET /items`: the list of items.
    Items,
    /// `GET /patrons`: the list of patrons.
    Patrons,
    /// `GET /bibs/marc`: asks for a MARC export file.
    BibsMarc,
    /// `GET /bibs/marc/files/{id}`: fetches a MARC export file.
    BibsMarcFile,
}

impl Endpoint {
    /// Every endpoint, in the order of [`Endpoint::index`].
    pub const ALL: [Self; 7] =
        [Self::Token, Self::TokenInfo, Self::Bibs, Self::Items, Self::Patrons, Self::BibsMarc, Self::BibsMarcFile];

    /// The label in logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::TokenInfo => "info/token",
            Self::Bibs => "bibs",
            Self::Items => "items",
            Self::Patrons => "patrons",
            Self::BibsMarc => "bibs/marc",
            Self::BibsMarcFile => "bibs/marc/files",
        }
    }

    /// Whether its good answer shows that Sierra serves records, so that another endpoint's failures are that
    /// endpoint's own. A token call shows no such thing.
    #[must_use]
    pub const fn is_list(self) -> bool {
        matches!(self, Self::Bibs | Self::Items | Self::Patrons)
    }

    /// Whether it can be suspended by itself while the key's breaker stays closed. Without tokens nothing works,
    /// so the token endpoints cannot.
    #[must_use]
    pub const fn can_be_suspended(self) -> bool {
        !matches!(self, Self::Token | Self::TokenInfo)
    }

    /// Its place in [`Endpoint::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One value for each endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerEndpoint<T>([T; Endpoint::ALL.len()]);

impl<T> PerEndpoint<T> {
    /// Makes the value of each endpoint.
    pub fn from_fn(mut make: impl FnMut(Endpoint) -> T) -> Self {
        Self(Endpoint::ALL.map(&mut make))
    }

    /// The value of one endpoint.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "an endpoint's index is its place in an array of that very length")]
    pub fn of(&self, endpoint: Endpoint) -> &T {
        &self.0[endpoint.index()]
    }

    /// The value of one endpoint, to change.
    #[expect(clippy::indexing_slicing, reason = "an endpoint's index is its place in an array of that very length")]
    pub fn of_mut(&mut self, endpoint: Endpoint) -> &mut T {
        &mut self.0[endpoint.index()]
    }

    /// Every endpoint with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Endpoint, &T)> {
        Endpoint::ALL.into_iter().zip(self.0.iter())
    }

    /// Every endpoint with its value, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Endpoint, &mut T)> {
        Endpoint::ALL.into_iter().zip(self.0.iter_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_has_its_own_place_and_name() {
        for (place, endpoint) in Endpoint::ALL.into_iter().enumerate() {
            assert_eq!(endpoint.index(), place);
        }
        let names: std::collections::BTreeSet<_> = Endpoint::ALL.into_iter().map(Endpoint::name).collect();
        assert_eq!(names.len(), Endpoint::ALL.len());
    }
}
