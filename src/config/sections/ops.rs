//! `[ops]` and `[alerts]`: where the service is watched and when it calls for help.

use std::net::SocketAddr;

use crate::config::kind::{DurationIn, TextAs};
use crate::config::secrets::{self, SecretKeys};
use crate::config::section::{Section, Written};
use crate::ops::alert::{AlertSettings, WebhookSettings};
use crate::ops::settings::OpsSettings;
use crate::secret::Secret;

const LISTEN: TextAs<SocketAddr> = TextAs {
    parse: |text| text.parse().map_err(|_| format!("{text:?} is not an address and port")),
    hint: "write an IP address and a port, such as 127.0.0.1:9470 or [::1]:9470; port 0 takes a free one",
    pattern: "^.+:[0-9]{1,5}$",
};

const TOKEN: SecretKeys = SecretKeys {
    name: "token",
    file: "token_file",
    about: "A file that holds the bearer token of the ops endpoint: needed for actions, and for any address but \
            loopback. Instead of it: SIERRA_SYNC__OPS__TOKEN, or the systemd credential ops.token.",
};

/// An address that is itself a secret with most services, so that no message quotes it.
const SECRET_URL: TextAs<Option<Secret>> = TextAs {
    parse: secret_url,
    hint: "write an https address; plain http is for loopback only",
    pattern: "^(https?://[^/?#@]+(/.*)?)?$",
};

const WEBHOOK_SECRET: SecretKeys = SecretKeys {
    name: "secret",
    file: "secret_file",
    about: "A file that holds the key with which notices to the webhook are signed (Standard Webhooks). Instead of it: \
            SIERRA_SYNC__ALERTS__SECRET, or the systemd credential alerts.secret.",
};

/// Reads `[ops]`.
pub(in crate::config) fn read(root: &mut Section<'_>) -> OpsSettings {
    let mut section = root.section("ops", "The ops endpoint: health, status, metrics, dashboard.");
    let listen = section.setting(
        "listen",
        &LISTEN,
        "127.0.0.1:9470",
        "Where the ops endpoint listens. Any address but loopback needs a token.",
    );
    let (token, is_refused) = match secrets::read(&mut section, &TOKEN) {
        Written::Good(token) => (Some(token), false),
        Written::Absent => (None, false),
        Written::Refused => (None, true),
    };
    if !listen.ip().is_loopback() && token.is_none() && !is_refused {
        let hint = "set token_file, or listen on 127.0.0.1";
        section.refuse("listen", "other machines could reach this address, and there is no token", hint);
    }
    section.finish();
    OpsSettings { listen, token }
}

/// Reads `[alerts]`.
pub(in crate::config) fn read_alerts(root: &mut Section<'_>) -> AlertSettings {
    let mut section = root.section("alerts", "When the service calls for help.");
    let url = section.setting(
        "webhook",
        &SECRET_URL,
        "",
        "Where notices go besides the log, as JSON by POST (schemas/alert.json); chat services find a `text` in it.",
    );
    let secret = match secrets::read(&mut section, &WEBHOOK_SECRET) {
        Written::Good(secret) => Some(secret),
        Written::Absent | Written::Refused => None,
    };
    if url.is_none() && secret.is_some() && !section.reading().is_refused(&section.key("webhook")) {
        section.warn("secret_file", "signs nothing, since there is no webhook", "set webhook, or leave this out");
    }
    let deadman_url = section.setting(
        "deadman_url",
        &SECRET_URL,
        "",
        "Asked for (GET) every minute while all goes on, and after each `sync` that did its work: whoever listens \
         there calls for help when it stops.",
    );
    let stale_after = section.setting(
        "stale_after",
        &DurationIn("1s"..="30d"),
        "30m",
        "A stream is stale when its lag is longer by this than its own interval or cron explains.",
    );
    section.finish();
    AlertSettings { webhook: url.map(|url| WebhookSettings { url, secret }), deadman_url, stale_after }
}

fn secret_url(text: &str) -> Result<Option<Secret>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let url = reqwest::Url::parse(text).map_err(|error| format!("is not an address ({error})"))?;
    let is_loopback = match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
            address.is_ok_and(|address| address.is_loopback())
        }
        None => return Err("names no host".to_owned()),
    };
    match url.scheme() {
        "https" => Ok(Some(Secret::new(text.to_owned()))),
        "http" if is_loopback => Ok(Some(Secret::new(text.to_owned()))),
        "http" => Err("uses plain http to another machine, where others could read it".to_owned()),
        _ => Err("is neither http nor https".to_owned()),
    }
}
