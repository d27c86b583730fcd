//! Brings messages to a webhook and a dead-man switch: one attempt each, the caller decides when to try again.

use std::error::Error;
use std::time::Duration;

use reqwest::{Client, StatusCode, Url, redirect};

use super::notice::Notice;
use super::settings::{AlertSettings, WebhookSettings};
use super::signature::sign;

/// Whoever listens answers within this time, or is asked again later.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// A connection to those who listen.
#[derive(Debug)]
pub struct Courier {
    client: Client,
    webhook: Option<WebhookSettings>,
    deadman: Option<Url>,
}

/// Why a message was not taken. Holds no address: most have their secret in it.
#[derive(Debug, thiserror::Error)]
pub enum CourierError {
    /// An address cannot be used.
    #[error("use {key}: it is not an http or https address")]
    Address {
        /// The key of the configuration.
        key: &'static str,
    },
    /// There is no TLS.
    #[error("set up TLS for alerts: {cause}")]
    Setup {
        /// The cause beneath.
        cause: String,
    },
    /// Nobody answered.
    #[error("reach {key}: {cause}")]
    Unreached {
        /// The key of the configuration.
        key: &'static str,
        /// The cause beneath.
        cause: String,
    },
    /// The answer was no.
    #[error("get {key} to take it: it answered {status}")]
    Refused {
        /// The key of the configuration.
        key: &'static str,
        /// The answer.
        status: StatusCode,
    },
}

impl Courier {
    /// A courier for the addresses of `settings`. Connects to nobody yet.
    ///
    /// # Errors
    /// When an address is none, or there is no TLS.
    pub fn new(settings: &AlertSettings) -> Result<Self, CourierError> {
        let client = Client::builder()
            .user_agent(concat!("sierra-sync/", env!("CARGO_PKG_VERSION")))
            .timeout(ANSWERS_WITHIN)
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| CourierError::Setup { cause: innermost(&error) })?;
        if let Some(webhook) = &settings.webhook {
            address("alerts.webhook", webhook.url.expose())?;
        }
        let deadman = settings.deadman_url.as_ref().map(|url| address("alerts.deadman_url", url.expose()));
        Ok(Self { client, webhook: settings.webhook.clone(), deadman: deadman.transpose()? })
    }

    /// Whether there is anybody to bring messages to.
    #[must_use]
    pub fn has_webhook(&self) -> bool {
        self.webhook.is_some()
    }

    /// Whether somebody waits for signs of life.
    #[must_use]
    pub fn has_deadman(&self) -> bool {
        self.deadman.is_some()
    }

    /// Brings `notice` to the webhook, signed at `unix_seconds`. Returns once it answered with success: a message may
    /// arrive twice, with the same id.
    ///
    /// # Errors
    /// When it did not; trying again later may help.
    pub async fn bring(&self, notice: &Notice, unix_seconds: i64) -> Result<(), CourierError> {
        const KEY: &str = "alerts.webhook";
        let Some(webhook) = &self.webhook else { return Ok(()) };
        let body = serde_json::to_vec(notice).unwrap_or_default();
        let mut request = self
            .client
            .post(address(KEY, webhook.url.expose())?)
            .header("content-type", "application/json")
            .header("webhook-id", &notice.id)
            .header("webhook-timestamp", unix_seconds);
        if let Some(secret) = &webhook.secret {
            request = request.header("webhook-signature", sign(secret, &notice.id, unix_seconds, &body));
        }
        send(KEY, request.body(body)).await
    }

    /// Tells the dead-man switch that all goes on.
    ///
    /// # Errors
    /// When it did not answer with success.
    pub async fn sign_of_life(&self) -> Result<(), CourierError> {
        let Some(url) = &self.deadman else { return Ok(()) };
        send("alerts.deadman_url", self.client.get(url.clone())).await
    }
}

async fn send(key: &'static str, request: reqwest::RequestBuilder) -> Result<(), CourierError> {
    let answer = request.send().await;
    let answer = answer.map_err(|error| CourierError::Unreached { key, cause: innermost(&error.without_url()) })?;
    let status = answer.status();
    if status.is_success() { Ok(()) } else { Err(CourierError::Refused { key, status }) }
}

fn address(key: &'static str, text: &str) -> Result<Url, CourierError> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or(CourierError::Address { key })
}

/// The cause at the bottom, which says most.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(beneath) = cause.source() {
        cause = beneath;
    }
    cause.to_string()
}
