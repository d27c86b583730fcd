//! The checked configuration: whoever holds a [`Config`] need not check anything again.

use std::collections::BTreeMap;

use serde_json::json;

use crate::marc::MarcSettings;
use crate::ops::alert::AlertSettings;
use crate::ops::settings::OpsSettings;
use crate::privacy::PrivacySettings;
use crate::record::Stream;
use crate::resilience::settings::{BreakerSettings, QuotaSettings, RetrySettings};
use crate::sierra::SierraSettings;
use crate::sink::SinkSettings;
use crate::store::StoreSettings;
use crate::sync::meaning::Meanings;
use crate::sync::settings::{RouteSettings, StreamSettings};

/// Everything that was configured, checked, with defaults filled in. `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// How Sierra is reached.
    pub sierra: SierraSettings,
    /// Where state lives.
    pub store: StoreSettings,
    /// The streams that are on, in the order in which they are synced; at least one.
    pub streams: Vec<StreamSettings>,
    /// How much of the grant is used.
    pub quota: QuotaSettings,
    /// How calls are retried.
    pub retry: RetrySettings,
    /// When calls are halted.
    pub breaker: BreakerSettings,
    /// What may leave about people.
    pub privacy: PrivacySettings,
    /// How MARC is made.
    pub marc: MarcSettings,
    /// Where changes go, by name; at least one.
    pub sinks: BTreeMap<String, SinkConfig>,
    /// Where the service is watched.
    pub ops: OpsSettings,
    /// When it calls for help.
    pub alerts: AlertSettings,
}

/// One sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkConfig {
    /// What the engine must know.
    pub route: RouteSettings,
    /// What the sink itself must know.
    pub sink: SinkSettings,
}

impl Config {
    /// The settings of `stream`, if it is on.
    #[must_use]
    pub fn stream(&self, stream: Stream) -> Option<&StreamSettings> {
        self.streams.iter().find(|settings| settings.stream == stream)
    }

    /// A hash of all that shapes the content of `stream`'s events: when it changes, the stream must be loaded again,
    /// since sameness would hide the new settings. Key files do not count, nor does what cannot touch this stream.
    ///
    /// The hash is stored: it must not change with the order in which lists are written, nor between versions.
    #[must_use]
    pub fn settings_hash(&self, stream: Stream) -> SettingsHash {
        let settings = self.stream(stream);
        let sorted = |list: &[String]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list.dedup();
            list
        };
        let of_stream = settings.map(|settings| {
            json!({
                "fields": sorted(&settings.fields),
                "locations": sorted(&settings.locations),
                "hash_ignore": sorted(&settings.hash_ignore),
            })
        });
        let marc = (stream == Stream::Bibs).then(|| json!(self.marc));
        let shape = json!({ "stream": of_stream, "privacy": self.privacy_shape(stream), "marc": marc });
        SettingsHash::of(&shape)
    }

    /// What the events of each stream mean: the hash of its settings, as hexadecimal digits.
    #[must_use]
    pub fn meanings(&self) -> Meanings {
        let hex = |bytes: [u8; 16]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let streams = self.streams.iter().map(|settings| settings.stream);
        streams.map(|stream| (stream, hex(self.settings_hash(stream).bytes()))).collect()
    }

    /// A hash of the part of `[privacy]` that shapes `stream`'s events: pending events captured under another one
    /// must not be delivered any more.
    #[must_use]
    pub fn privacy_hash(&self, stream: Stream) -> SettingsHash {
        SettingsHash::of(&self.privacy_shape(stream))
    }

    fn privacy_shape(&self, stream: Stream) -> serde_json::Value {
        let sorted = |list: &[String]| list.iter().cloned().collect::<std::collections::BTreeSet<_>>();
        match stream {
            Stream::Bibs => json!({ "marc_drop": sorted(&self.privacy.marc_drop) }),
            Stream::Items => json!({
                "item_fixed_drop": sorted(&self.privacy.item_fixed_drop),
                "item_var_keep": sorted(&self.privacy.item_var_keep),
            }),
            Stream::Patrons => json!({ "patron_fields": self.privacy.patron_fields }),
        }
    }
}

/// A hash of settings, for comparing with what was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SettingsHash([u8; 16]);

impl SettingsHash {
    /// The bytes, to be stored.
    #[must_use]
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// Keys of JSON objects are in alphabetical order here, so that equal settings give equal texts.
    fn of(shape: &serde_json::Value) -> Self {
        let hash = blake3::hash(shape.to_string().as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(hash.as_bytes().split_at(16).0);
        Self(bytes)
    }
}
