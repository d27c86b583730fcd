//! Tokens: who may have one, for how long, and what it allows (`sierra-api.md` §1).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};

use super::super::json::{Object, push_array};
use super::super::kind::Kind;
use super::super::switches::{ExpiredToken, Switches};
use super::answer::Answer;
use super::refusal::Refusal;
use super::request::{ApiRequest, Route, parameters};
use crate::seed::RootSeed;

/// The one API key that this server knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The key.
    pub key: String,
    /// Its secret. Not a real one: it opens nothing but this simulator.
    pub secret: String,
    /// How long a token lives; 3,600 s by default in Sierra too.
    pub token_lifetime: Duration,
    /// What the key's roles allow.
    pub permissions: BTreeSet<Permission>,
}

impl Default for Access {
    fn default() -> Self {
        use Permission::{
            BibsList, BibsRead, BibsReadMarc, InfoTokenRead, ItemsList, ItemsRead, PatronsList, PatronsRead,
        };
        Self {
            key: "simulator-key".into(),
            secret: "simulator-secret".into(),
            token_lifetime: Duration::from_secs(3_600),
            permissions: BTreeSet::from([
                BibsList,
                BibsRead,
                BibsReadMarc,
                InfoTokenRead,
                ItemsList,
                ItemsRead,
                PatronsList,
                PatronsRead,
            ]),
        }
    }
}

impl Access {
    /// The same key without everything that concerns patrons: the narrowest that bibs and items need.
    #[must_use]
    pub fn without_patrons(mut self) -> Self {
        self.permissions.remove(&Permission::PatronsList);
        self.permissions.remove(&Permission::PatronsRead);
        self
    }
}

/// A permission, named as token info names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// List bibs.
    BibsList,
    /// Read one bib.
    BibsRead,
    /// Read MARC: one record and exports.
    BibsReadMarc,
    /// Change bibs: more than a sync needs.
    BibsWrite,
    /// List items.
    ItemsList,
    /// Read one item.
    ItemsRead,
    /// Change items: more than a sync needs.
    ItemsWrite,
    /// List patrons.
    PatronsList,
    /// Read one patron.
    PatronsRead,
    /// Change patrons: more than a sync needs.
    PatronsWrite,
    /// Read token info.
    InfoTokenRead,
}

impl Permission {
    /// The name in token info.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BibsList => "Bibs_List",
            Self::BibsRead => "Bibs_Read",
            Self::BibsReadMarc => "Bibs_Read_Marc",
            Self::BibsWrite => "Bibs_Write",
            Self::ItemsList => "Items_List",
            Self::ItemsRead => "Items_Read",
            Self::ItemsWrite => "Items_Write",
            Self::PatronsList => "Patrons_List",
            Self::PatronsRead => "Patrons_Read",
            Self::PatronsWrite => "Patrons_Write",
            Self::InfoTokenRead => "Info_Token_Read",
        }
    }

    fn role(self) -> &'static str {
        match self {
            Self::BibsList | Self::BibsRead | Self::BibsReadMarc => "Bibs Read",
            Self::BibsWrite => "Bibs Write",
            Self::ItemsList | Self::ItemsRead => "Items Read",
            Self::ItemsWrite => "Items Write",
            Self::PatronsList | Self::PatronsRead => "Patrons Read",
            Self::PatronsWrite => "Patrons Write",
            Self::InfoTokenRead => "Token Info Read",
        }
    }
}

/// All tokens ever given out.
#[derive(Debug)]
pub(crate) struct Tokens {
    seed: RootSeed,
    expiries: BTreeMap<String, Timestamp>,
    issued: u64,
}

impl Tokens {
    pub(crate) fn new(seed: RootSeed) -> Self {
        Self { seed, expiries: BTreeMap::new(), issued: 0 }
    }

    /// How many tokens were given out.
    pub(crate) fn issued(&self) -> u64 {
        self.issued
    }

    /// Ends every token given out so far, as a restart of the server does.
    pub(crate) fn revoke_all(&mut self) {
        self.expiries.clear();
    }

    /// Ends every token but the one given out last.
    pub(crate) fn keep_latest(&mut self) {
        let start = self.latest_start();
        self.expiries.retain(|token, _| token.starts_with(&start));
    }

    fn latest_start(&self) -> String {
        format!("sim{:04}-", self.issued)
    }

    /// `POST /token`. An empty body passes for the documented form, as it does in practice. `expires_in` overrides
    /// what the reply says of the token's life.
    ///
    /// # Errors
    /// 401 for a wrong key or secret, 400 for another grant.
    pub(crate) fn grant(
        &mut self,
        access: &Access,
        request: &ApiRequest<'_>,
        now: Timestamp,
        expires_in: Option<&Option<String>>,
    ) -> Result<Answer, Refusal> {
        let header = request.header(http::header::AUTHORIZATION).ok_or_else(|| Refusal::documented(113))?;
        let encoded = header.strip_prefix("Basic ").ok_or_else(|| Refusal::documented(121))?;
        let expected = STANDARD.encode(format!("{}:{}", access.key, access.secret));
        if encoded != expected {
            return Err(Refusal::documented(127));
        }
        let form = parameters(std::str::from_utf8(request.http.body()).unwrap_or_default());
        if let Some((_, grant)) = form.iter().find(|(name, _)| name == "grant_type")
            && grant != "client_credentials"
        {
            return Err(Refusal::documented(126).saying("unsupported_grant_type"));
        }
        self.issued += 1;
        let digest = blake3::hash(format!("{}.{}", self.seed.value(), self.issued).as_bytes());
        let token = format!("{}{}", self.latest_start(), digest.to_hex());
        let lifetime = SignedDuration::try_from(access.token_lifetime).unwrap_or(SignedDuration::MAX);
        self.expiries.insert(token.clone(), now.saturating_add(lifetime).unwrap_or(Timestamp::MAX));
        let mut out = String::new();
        let mut object = Object::open(&mut out);
        object.string("access_token", &token);
        object.string("token_type", "bearer");
        match expires_in {
            None => object.display("expires_in", access.token_lifetime.as_secs()),
            Some(Some(literal)) => object.key("expires_in").push_str(literal),
            Some(None) => {}
        }
        object.close();
        Ok(Answer::json(out))
    }

    /// Checks that a request carries a living token that allows it. Returns how long the token still lives.
    ///
    /// # Errors
    /// 401 for a missing, unknown or expired token; 403 with code 116 for a missing role.
    pub(crate) fn check(
        &self,
        access: &Access,
        switches: &Switches,
        request: &ApiRequest<'_>,
        now: Timestamp,
    ) -> Result<SignedDuration, Refusal> {
        let header = request.header(http::header::AUTHORIZATION).ok_or_else(|| Refusal::documented(113))?;
        let token = header.strip_prefix("Bearer ").ok_or_else(|| Refusal::documented(113))?;
        let left = self.expiries.get(token).map(|expiry| expiry.duration_since(now));
        let Some(left) = left.filter(|left| left.is_positive()) else {
            return Err(Refusal::documented(match switches.expired_token {
                ExpiredToken::InvalidGrant => 123,
                ExpiredToken::BadHeader => 113,
                ExpiredToken::InvalidToken => 120,
            }));
        };
        match needed(request.route, request.http.method()) {
            Some(permission) if !access.permissions.contains(&permission) => Err(Refusal::documented(116)),
            _ => Ok(left),
        }
    }
}

fn needed(route: Route, method: &http::Method) -> Option<Permission> {
    match route {
        Route::Token | Route::Unknown => None,
        Route::TokenInfo => Some(Permission::InfoTokenRead),
        Route::List(Kind::Bibs) => Some(Permission::BibsList),
        Route::List(Kind::Items) => Some(Permission::ItemsList),
        Route::List(Kind::Patrons) => Some(Permission::PatronsList),
        Route::One(Kind::Bibs, _) | Route::BadNumber(Kind::Bibs) => Some(Permission::BibsRead),
        Route::One(Kind::Items, _) | Route::BadNumber(Kind::Items) => Some(Permission::ItemsRead),
        Route::One(Kind::Patrons, _) | Route::BadNumber(Kind::Patrons) => Some(Permission::PatronsRead),
        // The bulk delete of all files was refused to a key that may only read; one's own file may go.
        Route::MarcFiles if method == http::Method::DELETE => Some(Permission::BibsWrite),
        Route::BibMarc(_) | Route::MarcExport | Route::MarcFile(_) | Route::MarcFiles => Some(Permission::BibsReadMarc),
    }
}

/// `GET /info/token` (vendor documentation, tokenInfoObject).
pub(crate) fn info(access: &Access, left: SignedDuration) -> Answer {
    let mut roles: BTreeMap<&str, Vec<Permission>> = BTreeMap::new();
    for permission in &access.permissions {
        roles.entry(permission.role()).or_default().push(*permission);
    }
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.string("keyId", &access.key);
    object.string("grantType", "client_credentials");
    object.string("authorizationScheme", "Bearer");
    object.display("expiresIn", left.as_secs());
    push_array(object.key("roles"), &roles, |out, (name, permissions)| {
        let mut role = Object::open(out);
        role.string("name", name);
        role.display("tokenLifetime", access.token_lifetime.as_secs());
        role.strings("permissions", permissions.iter().map(|permission| permission.name()));
        role.close();
    });
    object.close();
    Answer::json(out)
}
