//! The simulated Sierra behind the real client, without sockets: what the product does, on paused time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::StdRng;
use sierra_sync::clock::SimClock;
use sierra_sync::marc::{Field, OnIllegal, ReadRecord, Record, marcxml};
use sierra_sync::privacy::Keyring;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::resilience::breaker::{Breaker, SilentBreakerObserver};
use sierra_sync::resilience::line::Line;
use sierra_sync::resilience::quota::{Patience, Quota};
use sierra_sync::resilience::settings::{BreakerSettings, QuotaSettings, RetrySettings};
use sierra_sync::secret::Secret;
use sierra_sync::seed::RootSeed;
use sierra_sync::sierra::{ClientParts, SierraClient, SierraSettings};
use sierra_sync::simulator::{BASE_PATH, Kind, MarcField, MarcValue, SharedSimulator, Simulator, TrueRecord};
use sierra_sync::sync::Source;

use super::library::{Holding, Library};

/// Fixed fields whose change alone is no change: what `hash_ignore` holds by default.
pub(crate) const BIB_IGNORE: [&str; 3] = ["84", "85", "98"];
pub(crate) const ITEM_IGNORE: [&str; 13] =
    ["84", "85", "98", "64", "68", "70", "76", "77", "78", "93", "94", "109", "110"];

/// A simulated Sierra and how it is reached.
#[derive(Clone)]
pub(crate) struct SierraLibrary {
    pub(crate) simulator: SharedSimulator,
    clock: Arc<SimClock>,
    seed: u64,
    /// Records that cannot be expected in any sink, by number: they are set aside.
    pub(crate) spoilt: Arc<Mutex<BTreeSet<(Stream, u64)>>>,
}

impl SierraLibrary {
    pub(crate) fn new(simulator: Simulator, clock: Arc<SimClock>, seed: u64) -> Self {
        let simulator = SharedSimulator::new(simulator, clock.clone());
        Self { simulator, clock, seed, spoilt: Arc::default() }
    }

    fn line(&self, boot: u64) -> Line {
        // Each process draws anew.
        let seed = RootSeed::new(self.seed.wrapping_mul(1000).wrapping_add(boot));
        let retry = RetrySettings { attempt_timeout: Duration::from_secs(60), ..RetrySettings::default() };
        let observer = Arc::new(SilentBreakerObserver);
        let breaker = Breaker::new(BreakerSettings::default(), seed.generator("breaker"), observer);
        let quota = Quota::new(QuotaSettings::default(), seed.generator("quota"));
        Line::new(retry, breaker, Some(quota), seed.generator("retry")).expect("sound settings")
    }
}

impl Library for SierraLibrary {
    type Record = TrueRecord;

    fn source(&self, boot: u64) -> Arc<dyn Source> {
        let (key, secret) = self
            .simulator
            .with(|simulator| (simulator.access.key.clone(), Secret::new(simulator.access.secret.clone())));
        let settings = SierraSettings {
            base_url: format!("https://sierra.test{BASE_PATH}"),
            client_key: key,
            client_secret: secret,
            request_timeout: Duration::from_secs(60),
            local_zone: jiff::tz::TimeZone::UTC,
            ca_file: None,
            proxy: None,
            user_agent: "sierra-sync/simulation".into(),
        };
        let texts = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
        let fields = [
            (Stream::Bibs, texts(&["default", "fixedFields", "varFields", "locations"])),
            (Stream::Items, texts(&["default", "suppressed", "fixedFields", "varFields", "itemType", "copyNo"])),
            (Stream::Patrons, texts(&["default", "suppressed", "homeLibraryCode"])),
        ];
        let parts = ClientParts {
            transport: Arc::new(self.simulator.transport()),
            line: self.line(boot),
            clock: self.clock.clone(),
            boot_number: boot,
            fields: &fields,
            patience: Patience::default(),
            latch: &[],
        };
        Arc::new(SierraClient::start(&settings, parts).expect("a client"))
    }

    fn truth(&self, stream: Stream) -> BTreeMap<String, TrueRecord> {
        let keyring = Keyring::for_tests(super::rig::KEY);
        let spoilt = self.spoilt.lock().unwrap().clone();
        let public = |id: u64| match stream {
            Stream::Patrons => keyring.pseudonym(RecordNumber::new(id)).to_string(),
            _ => id.to_string(),
        };
        let truth = self.simulator.world(|world| world.truth(kind_of(stream)));
        let live = truth.live.into_iter().filter(|(id, _)| !spoilt.contains(&(stream, *id)));
        live.map(|(id, record)| (public(id), record)).collect()
    }

    fn agrees(&self, stream: Stream, truth: &TrueRecord, held: &Holding) -> bool {
        let links = if stream == Stream::Items { truth.links == held.bib_ids } else { true };
        let marc = stream != Stream::Bibs || marc_of(&truth.marc) == marc_of_xml(&held.marcxml);
        links && marc && truth.suppressed == held.suppressed && fields_agree(stream, truth, held)
    }

    /// The simulated library lives by itself: `World::live`.
    fn live(&self, _: &mut StdRng) {}

    /// The rules that a client of Sierra must keep, whatever happens: no `offset` ever, `limit` always, every date in
    /// UTC with a `Z` (BR-003, BR-031, BR-037, BR-038), and never more calls at once than configured (A19).
    fn assert_sound(&self, context: &str) {
        self.simulator.with(|simulator| {
            for call in simulator.journal.calls() {
                assert_eq!(call.parameter("offset"), None, "{context}: {call:?}");
                let is_list =
                    call.path.ends_with("/bibs/") || call.path.ends_with("/items/") || call.path.ends_with("/patrons/");
                assert!(!is_list || call.parameter("limit").is_some(), "{context}: {call:?}");
                if let Some(updated) = call.parameter("updatedDate") {
                    let dates: Vec<&str> = updated.trim_matches(['[', ']']).split(',').collect();
                    let sound =
                        |date: &&str| date.len() == 20 && date.ends_with('Z') && date.parse::<Timestamp>().is_ok();
                    assert!(dates.len() == 2 && dates.iter().all(sound), "{context}: {call:?}");
                    assert_eq!(
                        (call.parameter("deleted"), call.parameter("suppressed")),
                        (None, None),
                        "{context}: {call:?}"
                    );
                }
                assert!(call.in_flight <= 2, "{context}: {call:?}");
            }
        });
    }
}

pub(crate) fn kind_of(stream: Stream) -> Kind {
    match stream {
        Stream::Bibs => Kind::Bibs,
        Stream::Items => Kind::Items,
        Stream::Patrons => Kind::Patrons,
    }
}

/// Every field that was delivered says what the library holds, but for those whose change alone is no change.
fn fields_agree(stream: Stream, truth: &TrueRecord, held: &Holding) -> bool {
    let Some(members) = held.record.as_object() else { return false };
    let truth: serde_json::Value = serde_json::from_str(&truth.json).expect("the simulator tells valid JSON");
    members.iter().all(|(name, value)| match (name.as_str(), stream) {
        ("updatedDate" | "varFields" | "id", _) => true,
        ("bibIds", _) => as_set(value) == as_set(&truth[name]),
        ("fixedFields", Stream::Items) => fixed_fields_agree(value, &truth[name], &ITEM_IGNORE),
        ("fixedFields", _) => fixed_fields_agree(value, &truth[name], &BIB_IGNORE),
        _ => *value == truth[name],
    })
}

/// Links are a set: moved away and back, they are the same in another order.
fn as_set(links: &serde_json::Value) -> Option<BTreeSet<&str>> {
    links.as_array()?.iter().map(serde_json::Value::as_str).collect()
}

fn fixed_fields_agree(held: &serde_json::Value, truth: &serde_json::Value, ignored: &[&str]) -> bool {
    let Some(held) = held.as_object() else { return false };
    held.iter().all(|(number, value)| ignored.contains(&number.as_str()) || *value == truth[number])
}

/// Each field as one text, sorted, without the leader: the mapping sorts by tag, and has tests of its own.
fn marc_of(fields: &[MarcField]) -> Vec<String> {
    let text = |field: &MarcField| {
        let value = match &field.value {
            MarcValue::Text(text) => text.clone(),
            MarcValue::Subfields(subfields) => subfields.iter().map(|(code, text)| format!("${code}{text}")).collect(),
        };
        format!("{} {value}", field.tag)
    };
    let mut texts: Vec<String> = fields.iter().filter(|field| field.tag != "LDR").map(text).collect();
    texts.sort_unstable();
    texts
}

fn marc_of_xml(xml: &str) -> Vec<String> {
    let mut record = Record::default();
    let read = marcxml::Reader::new(xml.as_bytes(), OnIllegal::default()).read_into(&mut record);
    assert!(read.is_ok_and(|read| read), "a strict reader takes the MARCXML of an event: {xml}");
    let text = |field: Field<'_>| match field {
        Field::Control { tag, value } => format!("{tag} {value}"),
        Field::Data { tag, subfields, .. } => {
            let parts: String =
                subfields.iter().map(|subfield| format!("${}{}", subfield.code, subfield.value)).collect();
            format!("{tag} {parts}")
        }
    };
    let mut texts: Vec<String> = record.fields().map(text).collect();
    texts.sort_unstable();
    texts
}
