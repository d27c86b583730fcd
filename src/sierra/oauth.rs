//! One token call: OAuth2 client credentials as Sierra takes them.
//!
//! The `oauth2` crate writes the question and reads the grant; sending is ours. Two things are done differently from
//! RFC 6749 because Sierra does them differently: key and secret go into the Basic header as they are, not form-encoded
//! first (sierra-api.md §1.2), and the grant's lifetime may be missing or nonsense.

use std::cell::Cell;
use std::time::Duration;

use base64::Engine;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use oauth2::basic::{
    BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse, BasicTokenType,
};
use oauth2::{
    AccessToken, Client, ClientId, ClientSecret, EndpointNotSet, EndpointSet, RefreshToken, Scope,
    StandardRevocableToken, TokenResponse, TokenUrl,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::api_error::integer;
use super::token::Life;
use crate::secret::Secret;

/// The key and its secret, ready to be presented.
pub(super) struct Credential {
    client: SierraOauth,
    /// `Basic …`, marked sensitive.
    header: HeaderValue,
    /// The part after `Basic `, for the scrubber.
    encoded: Secret,
}

type SierraOauth = Client<
    BasicErrorResponse,
    Grant,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

/// A token as it came.
#[derive(Debug)]
pub(super) struct Granted {
    /// The token.
    pub(super) value: Secret,
    /// How long it lives.
    pub(super) life: Life,
}

impl Credential {
    /// Prepares the credential for the token endpoint at `token_url`; `None` when that is no URL.
    pub(super) fn new(token_url: String, client_key: &str, client_secret: &Secret) -> Option<Self> {
        let encoded =
            base64::engine::general_purpose::STANDARD.encode(format!("{client_key}:{}", client_secret.expose()));
        let mut header = HeaderValue::from_str(&format!("Basic {encoded}")).ok()?;
        header.set_sensitive(true);
        let client = Client::new(ClientId::new(client_key.to_owned()))
            .set_client_secret(ClientSecret::new(client_secret.expose().to_owned()))
            .set_token_uri(TokenUrl::new(token_url).ok()?);
        Some(Self { client, header, encoded: Secret::new(encoded) })
    }

    /// What a scrubber must know.
    pub(super) fn encoded(&self) -> Secret {
        self.encoded.clone()
    }

    /// The question: a request to be sent as it is.
    pub(super) fn question(&self) -> http::Request<Bytes> {
        let written = Cell::new(None);
        let keep = |request: oauth2::HttpRequest| {
            written.set(Some(request));
            Err::<oauth2::HttpResponse, _>(NotSentYet)
        };
        // Always an error: nothing is sent, which is the point.
        let _unsent = self.client.exchange_client_credentials().request(&keep);
        let mut request = written.take().unwrap_or_default().map(Bytes::from);
        request.headers_mut().insert(header::AUTHORIZATION, self.header.clone());
        request
    }

    /// The token in an answer, if it holds one. What any other answer means is judged elsewhere, by Sierra's habits.
    pub(super) fn read(&self, answer: &http::Response<Bytes>) -> Option<Granted> {
        let give = |_: oauth2::HttpRequest| Ok::<_, NotSentYet>(rewritten(answer));
        let grant = self.client.exchange_client_credentials().request(&give).ok()?;
        let token = grant.access_token.secret();
        // One that no header can carry is none: the calls would go without it, and the key would be blamed.
        let can_be_sent = !token.is_empty() && HeaderValue::from_str(token).is_ok();
        can_be_sent.then(|| grant.into())
    }
}

/// Stands for the answer while there is only the question.
#[derive(Debug, thiserror::Error)]
#[error("not sent yet")]
struct NotSentYet;

/// The answer as the crate wants it: 200 for any success, and no content type to be strict about.
fn rewritten(answer: &http::Response<Bytes>) -> oauth2::HttpResponse {
    let mut by_the_book = http::Response::new(answer.body().to_vec());
    *by_the_book.status_mut() = if answer.status().is_success() { StatusCode::OK } else { answer.status() };
    by_the_book
}

/// The body of a grant. Serialising it shows no token: the crate asks for the trait and never uses it here.
#[derive(Debug, Deserialize, Serialize)]
struct Grant {
    #[serde(skip_serializing)]
    access_token: AccessToken,
    #[serde(skip, default = "bearer")]
    token_type: BasicTokenType,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
}

fn bearer() -> BasicTokenType {
    BasicTokenType::Bearer
}

/// Seconds as a number or a string of digits; anything else is as good as missing.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Box::<RawValue>::deserialize(deserializer)?;
    let whole = integer(&value).and_then(|seconds| u64::try_from(seconds).ok());
    Ok(whole.or_else(|| {
        let seconds = serde_json::from_str::<f64>(value.get()).ok()?;
        Duration::try_from_secs_f64(seconds).ok().map(|duration| duration.as_secs())
    }))
}

impl From<Grant> for Granted {
    fn from(grant: Grant) -> Self {
        Self { life: Life::of(grant.expires_in), value: Secret::new(grant.access_token.into_secret()) }
    }
}

impl TokenResponse for Grant {
    type TokenType = BasicTokenType;

    fn access_token(&self) -> &AccessToken {
        &self.access_token
    }

    fn token_type(&self) -> &BasicTokenType {
        &self.token_type
    }

    fn expires_in(&self) -> Option<Duration> {
        self.expires_in.map(Duration::from_secs)
    }

    fn refresh_token(&self) -> Option<&RefreshToken> {
        None
    }

    fn scopes(&self) -> Option<&Vec<Scope>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sierra::token::DEFAULT_LIFE;

    fn credential() -> Credential {
        let secret = Secret::new("s+e/c=r&t canary".to_owned());
        Credential::new("https://host.example/v6/token".to_owned(), "ke+y/1", &secret).expect("a credential")
    }

    fn granted(status: u16, body: &str) -> Option<Granted> {
        let answer = http::Response::builder()
            .status(status)
            .header("content-type", "text/plain")
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .expect("an answer");
        credential().read(&answer)
    }

    /// sierra-api.md §1.2: the documented form, and the credential as it is.
    #[test]
    fn the_question_is_the_documented_form() {
        let request = credential().question();
        assert_eq!(
            (request.method().as_str(), request.uri().to_string().as_str()),
            ("POST", "https://host.example/v6/token")
        );
        assert_eq!(request.body().as_ref(), b"grant_type=client_credentials");
        assert_eq!(request.headers()["content-type"], "application/x-www-form-urlencoded");
        let basic = &request.headers()["authorization"];
        let encoded = base64::engine::general_purpose::STANDARD.encode("ke+y/1:s+e/c=r&t canary");
        assert!(basic.is_sensitive() && basic.to_str().expect("text") == format!("Basic {encoded}"));
        assert!(!format!("{request:?}").contains(&encoded));
    }

    #[test]
    fn grants_are_read_whatever_they_say_of_their_life() {
        let table = [
            (r#"{"access_token":"t","token_type":"bearer","expires_in":300}"#, 300, false),
            (r#"{"access_token":"t","token_type":"bearer","expires_in":"300"}"#, 300, false),
            (r#"{"access_token":"t","token_type":"Bearer","expires_in":300.9}"#, 300, false),
            (r#"{"access_token":"t","token_type":"odd"}"#, DEFAULT_LIFE.as_secs(), true),
            (r#"{"access_token":"t","expires_in":null}"#, DEFAULT_LIFE.as_secs(), true),
            (r#"{"access_token":"t","expires_in":-1}"#, DEFAULT_LIFE.as_secs(), true),
            (r#"{"access_token":"t","expires_in":"soon"}"#, DEFAULT_LIFE.as_secs(), true),
            (r#"{"access_token":"t","expires_in":{}}"#, DEFAULT_LIFE.as_secs(), true),
        ];
        for (body, seconds, is_assumed) in table {
            let granted = granted(200, body).expect("a grant");
            let life = Life { duration: Duration::from_secs(seconds), is_assumed };
            assert_eq!((granted.value.expose(), granted.life), ("t", life), "{body}");
        }
        assert!(granted(201, table[0].0).is_some());
    }

    #[test]
    fn what_holds_no_token_is_no_grant() {
        for (status, body) in [
            (200, ""),
            (200, "{}"),
            (200, r#"{"access_token":""}"#),
            (200, r#"{"access_token":null}"#),
            (200, r#"{"access_token":"t\r\nX-Other: y"}"#),
            (200, r#"{"code":"-1"}"#),
            (200, "<html></html>"),
            (400, r#"{"error":"No grant_type specified","error_description":null}"#),
            (401, r#"{"access_token":"t"}"#),
            (503, ""),
        ] {
            assert!(granted(status, body).is_none(), "{status} {body}");
        }
    }

    /// BR-035.
    #[test]
    fn debug_and_serialised_forms_show_no_token() {
        let grant: Grant = serde_json::from_str(r#"{"access_token":"canary","expires_in":1}"#).expect("a grant");
        assert!(!format!("{grant:?}").contains("canary"));
        assert!(!serde_json::to_string(&grant).expect("writes").contains("canary"));
        assert!(!format!("{:?}", Granted::from(grant)).contains("canary"));
    }
}
