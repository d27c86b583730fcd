//! `[ops]` and `[alerts]`: where the service is watched and when it calls for help.

use std::net::SocketAddr;

use crate::config::kind::{DurationIn, OneOf, TextAs};
use crate::config::secrets::{self, SecretKeys};
use crate::config::section::{Section, Written};
use crate::ops::settings::{AlertSettings, OpsSettings};

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

/// A key of which only the empty value is built.
const NOT_BUILT: OneOf<()> = OneOf(&[("", ())]);

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
    section.setting("webhook", &NOT_BUILT, "", "Not built yet.");
    section.setting("secret_file", &NOT_BUILT, "", "Not built yet.");
    section.setting("deadman_url", &NOT_BUILT, "", "Not built yet.");
    let stale_after =
        section.setting("stale_after", &DurationIn("1s"..="30d"), "30m", "A stream whose lag is longer is stale.");
    section.finish();
    AlertSettings { stale_after }
}
