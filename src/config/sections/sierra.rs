//! `[sierra]`: how Sierra is reached.

use std::time::Duration;

use jiff::tz::TimeZone;
use reqwest::Url;

use crate::config::kind::{DurationIn, FilePath, Text, TextAs};
use crate::config::nearest::nearest;
use crate::config::secrets::{self, SecretKeys};
use crate::config::section::{Section, Written};
use crate::sierra::{BaseUrlError, SierraSettings, checked_base_url};

const BASE_URL: TextAs<String> = TextAs {
    parse: base_url,
    hint: "write the address of the API up to and including its version, such as \
           https://catalog.example.edu/iii/sierra-api/v6; plain http is for loopback only",
    pattern: "^https?://[^/?#@]+/([^?#]+/)?v[0-9]+/?$",
};

const ZONE: TextAs<TimeZone> =
    TextAs { parse: zone, hint: "write an IANA name such as America/New_York", pattern: "^[A-Za-z0-9_+/-]+$" };

const PROXY: TextAs<String> = TextAs {
    parse: proxy,
    hint: "write http://host:port or https://host:port, without credentials",
    pattern: "^https?://[^/?#@]+/?$",
};

const USER_AGENT: TextAs<String> = TextAs {
    parse: |text| match text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        true => Ok(text.to_owned()),
        false => Err("a header cannot hold this".to_owned()),
    },
    hint: "write printable ASCII",
    pattern: "^[ -~]*$",
};

const CLIENT_SECRET: SecretKeys = SecretKeys {
    name: "client_secret",
    file: "client_secret_file",
    about: "A file that holds the client secret and nothing else, readable by no other user. Instead of it: \
            SIERRA_SYNC__SIERRA__CLIENT_SECRET, or the systemd credential sierra.client_secret.",
};

/// What was read of the section.
pub(in crate::config) struct Sierra {
    /// `None` after a problem with something that has no default.
    pub(in crate::config) settings: Option<SierraSettings>,
    /// Time for one attempt: `[retry]` is checked against it even when there are no settings.
    pub(in crate::config) request_timeout: Duration,
}

/// Reads the section.
pub(in crate::config) fn read(root: &mut Section<'_>) -> Sierra {
    let mut section = root.section("sierra", "How Sierra is reached.");
    let base_url = section.required(
        "base_url",
        &BASE_URL,
        "The API's address up to and including its version. Plain http is for loopback only.",
    );
    let client_key = section.required("client_key", &Text, "The API key.");
    let client_secret = match secrets::read(&mut section, &CLIENT_SECRET) {
        Written::Good(secret) => Some(secret),
        Written::Refused => None,
        Written::Absent => {
            let variable = section.key(CLIENT_SECRET.name).variable();
            let hint = format!("set client_secret_file to a file that holds it, or set {variable}");
            section.refuse(CLIENT_SECRET.name, "is missing", hint);
            None
        }
    };
    let request_timeout = section.setting(
        "request_timeout",
        &DurationIn("10ms"..="1h"),
        "60s",
        "Time for one HTTP attempt, from connecting to the last byte.",
    );
    let local_zone =
        section.setting("local_zone", &ZONE, "UTC", "The library's zone, for Sierra's date-only fields: an IANA name.");
    let ca_file =
        section.optional("ca_file", &FilePath, "An extra root certificate, PEM. Verification cannot be switched off.");
    let proxy = section.optional("proxy", &PROXY, "A proxy for all calls to Sierra.");
    let user_agent = section.setting(
        "user_agent",
        &USER_AGENT,
        concat!("sierra-sync/", env!("CARGO_PKG_VERSION")),
        "The User-Agent header.",
    );
    if let Some(path) = ca_file.as_ref().filter(|path| !path.is_file()) {
        section.refuse("ca_file", format!("there is no file {}", path.display()), "give the path of a PEM file");
    }
    section.finish();
    let needed = base_url.zip(client_key).zip(client_secret);
    let settings = needed.map(|((base_url, client_key), client_secret)| SierraSettings {
        base_url,
        client_key,
        client_secret,
        request_timeout,
        local_zone,
        ca_file,
        proxy,
        user_agent,
    });
    Sierra { settings, request_timeout }
}

/// The address without its trailing slash. No message quotes it: it may hold credentials.
fn base_url(text: &str) -> Result<String, String> {
    let base_url = checked_base_url(text).map_err(|error| match error {
        BaseUrlError::Malformed => "is not an absolute http or https URL".to_owned(),
        BaseUrlError::NotEncrypted => {
            "uses plain http to another machine, which would send the secret in the clear".to_owned()
        }
        BaseUrlError::Credentials => "holds a user name or password".to_owned(),
        BaseUrlError::Query => "has a query or fragment".to_owned(),
    })?;
    let version = base_url.rsplit('/').next().and_then(|segment| segment.strip_prefix('v'));
    if version.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())) {
        Ok(base_url)
    } else {
        Err("does not end in the API's version, such as /v6".to_owned())
    }
}

fn proxy(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL ({error})"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or password".to_owned());
    }
    match url.scheme() {
        "http" | "https" => Ok(text.to_owned()),
        other => Err(format!("has the scheme {other:?}")),
    }
}

pub(super) fn zone(text: &str) -> Result<TimeZone, String> {
    TimeZone::get(text).map_err(|_| {
        let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
        let near = nearest(text, names.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"));
        format!("{text:?} is not a known time zone{near}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_https_or_loopback_and_name_a_version() {
        let good = |text: &str| base_url(text).expect(text);
        assert_eq!(good("https://lib.example.edu/iii/sierra-api/v6/"), "https://lib.example.edu/iii/sierra-api/v6");
        assert_eq!(good("http://127.0.0.1:8080/iii/sierra-api/v6"), "http://127.0.0.1:8080/iii/sierra-api/v6");
        assert_eq!(good("http://[::1]:8080/v5"), "http://[::1]:8080/v5");
        assert_eq!(good("http://localhost/iii/sierra-api/v6"), "http://localhost/iii/sierra-api/v6");
        for bad in [
            "lib.example.edu/v6",
            "ftp://lib.example.edu/v6",
            "http://lib.example.edu/iii/sierra-api/v6",
            "http://127.0.0.1.example.edu/v6",
            "https://lib.example.edu/iii/sierra-api",
            "https://lib.example.edu/iii/sierra-api/version6",
            "https://lib.example.edu/iii/sierra-api/v6?limit=1",
            "https://lib.example.edu/v",
        ] {
            assert!(base_url(bad).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn credentials_in_an_address_are_refused_and_not_repeated() {
        for refused in [base_url("https://key:canary@lib.example.edu/v6"), proxy("http://me:canary@proxy:3128")] {
            assert!(!refused.expect_err("it holds a password").contains("canary"));
        }
    }
}
