//! From an entry of a page to what decides and what is emitted: masked, mapped to MARC, hashed.
//!
//! Privacy comes first: nothing here looks at a patron's fields, and items and bibs are masked before anything is
//! made of them. Whatever cannot be mapped is a [`Refused`] entry with its reason, never a silent omission (A14).

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::marc::{self, MarcSettings, marcxml};
use crate::privacy::Policy;
use crate::record::{Bib, Entry, Fields, Item, Live, RawPatron, RecordNumber, Stream, Tombstone};
use crate::sync::content::ContentHasher;
use crate::sync::decide::Seen;
use crate::sync::ledger::days::end_of_day;
use crate::sync::ports::BadEntry;
use crate::sync::route::names_location;
use crate::sync::settings::StreamSettings;
use crate::sync::{Payload, RememberedKey, render};

/// What sealed patron numbers in remembered state are sealed for.
pub const PATRON_NUMBER: &str = "remembered patron";

/// Maps the entries of one stream under one set of settings.
#[derive(Debug)]
pub struct Mapper {
    stream: Stream,
    policy: Arc<Policy>,
    marc: MarcSettings,
    zone: TimeZone,
    locations: Vec<String>,
    hash_ignore: Vec<String>,
}

/// An entry that was understood.
#[derive(Debug)]
pub struct Mapped {
    /// The record number.
    pub number: RecordNumber,
    /// Under which key it is remembered.
    pub key: RememberedKey,
    /// The public id.
    pub id: String,
    /// For patrons: the sealed number.
    pub sealed_id: Vec<u8>,
    /// What was seen, for the decision.
    pub seen: Seen,
    /// What is shown as `updated`.
    pub updated: Option<Timestamp>,
    /// What an upsert carries.
    pub payload: Payload,
}

/// An entry that was not: it goes to the quarantine.
#[derive(Debug)]
pub struct Refused {
    /// The record number, if that much is known.
    pub number: Option<RecordNumber>,
    /// The public id.
    pub id: String,
    /// Why; free of values.
    pub reason: String,
    /// What is left of the entry after masking; never set for patrons.
    pub payload: Option<String>,
}

impl Mapper {
    /// A mapper for the stream of `settings`. `zone` is the library's, for the days of tombstones.
    #[must_use]
    pub fn new(settings: &StreamSettings, policy: Arc<Policy>, marc: MarcSettings, zone: TimeZone) -> Self {
        Self {
            stream: settings.stream,
            policy,
            marc,
            zone,
            locations: settings.locations.clone(),
            hash_ignore: settings.hash_ignore.clone(),
        }
    }

    /// What hashes the records of one page.
    #[must_use]
    pub fn hasher(&self) -> ContentHasher {
        ContentHasher::new(&self.hash_ignore)
    }

    /// Maps one entry of an answer that was asked for every field that decides.
    ///
    /// # Errors
    /// As [`Self::map`], and when such a field is missing from a live entry. Its absence is no value: after a change
    /// of the schema it would else delete, show or unlink by default.
    pub fn admit(&self, entry: Result<Entry, BadEntry>, hasher: &mut ContentHasher) -> Result<Mapped, Refused> {
        let live = match &entry {
            Ok(Entry::Live(live)) => live,
            Ok(Entry::Tombstone(_)) | Err(_) => return self.map(entry, hasher),
        };
        let fields = match live {
            Live::Bib(bib) => &bib.fields,
            Live::Item(item) => &item.fields,
            Live::Patron(patron) => patron.fields(),
        };
        match self.missing(fields) {
            None => self.map(entry, hasher),
            Some(name) => {
                let number = live.id();
                let reason = format!("{name}: not in the answer, although it was asked for");
                Err(Refused { number: Some(number), id: self.public_id(number), reason, payload: None })
            }
        }
    }

    /// Maps one entry.
    ///
    /// # Errors
    /// When it was not decodable, has no MARC, or its MARC cannot be written under the settings.
    pub fn map(&self, entry: Result<Entry, BadEntry>, hasher: &mut ContentHasher) -> Result<Mapped, Refused> {
        match entry {
            Ok(Entry::Tombstone(tombstone)) => Ok(self.tombstone(&tombstone)),
            Ok(Entry::Live(Live::Bib(bib))) => self.bib(*bib, hasher),
            Ok(Entry::Live(Live::Item(item))) => Ok(self.item(*item, hasher)),
            Ok(Entry::Live(Live::Patron(patron))) => Ok(self.patron(&patron, hasher)),
            Err(bad) => Err(self.undecoded(bad)),
        }
    }

    /// The public id of a record of this stream.
    #[must_use]
    pub fn public_id(&self, number: RecordNumber) -> String {
        match self.stream {
            Stream::Bibs | Stream::Items => number.to_string(),
            Stream::Patrons => self.policy.keyring().pseudonym(number).to_string(),
        }
    }

    /// Under which key a record of this stream is remembered.
    #[must_use]
    pub fn key(&self, number: RecordNumber) -> RememberedKey {
        match self.stream {
            Stream::Bibs => RememberedKey::Bib(number),
            Stream::Items => RememberedKey::Item(number),
            Stream::Patrons => RememberedKey::Patron(self.policy.keyring().pseudonym(number).bytes()),
        }
    }

    /// The number of a remembered record: part of the key, or sealed beside it. `None` when it cannot be opened.
    #[must_use]
    pub fn number(&self, key: &RememberedKey, sealed_id: &[u8]) -> Option<RecordNumber> {
        match key {
            RememberedKey::Bib(number) | RememberedKey::Item(number) => Some(*number),
            RememberedKey::Patron(_) => self.policy.keyring().open_number(PATRON_NUMBER, sealed_id).ok(),
        }
    }

    /// A hash under the installation's key: tells texts that may hold patrons' numbers apart without holding them.
    #[must_use]
    pub fn keyed_hash(&self, parts: &[&[u8]]) -> [u8; 16] {
        self.policy.keyring().keyed_hash(parts)
    }

    fn tombstone(&self, tombstone: &Tombstone) -> Mapped {
        let updated = tombstone.deleted_on.and_then(|day| end_of_day(day, &self.zone));
        self.mapped(tombstone.id, Seen::Tombstone { deleted_on: tombstone.deleted_on }, updated, Payload::Nothing)
    }

    fn bib(&self, mut bib: Bib, hasher: &mut ContentHasher) -> Result<Mapped, Refused> {
        self.policy.mask_bib(&mut bib);
        let Some(var_fields) = bib.var_fields.as_deref() else {
            return Err(self.refused(&bib, super::NO_MARC.to_owned()));
        };
        let (record, losses) = match marc::from_sierra(bib.id, var_fields, &self.marc) {
            Ok(mapped) => mapped,
            Err(error) => return Err(self.refused(&bib, format!("failed to map it to MARC: {error}"))),
        };
        let marcxml = marcxml::to_string(&record);
        // Sierra's own rendering says the same again, in another form.
        bib.fields.remove("marc");
        let hash = hasher.bib(&bib, &record);
        let in_scope = self.is_inside(&bib.locations);
        let seen = Seen::Live { updated: bib.updated, hash, suppressed: bib.suppressed, in_scope };
        let record = render::bib_record(&bib);
        let payload = Payload::Bib { record, marcxml, losses, locations: bib.locations };
        Ok(self.mapped(bib.id, seen, bib.updated, payload))
    }

    fn item(&self, mut item: Item, hasher: &mut ContentHasher) -> Mapped {
        self.policy.mask_item(&mut item);
        let hash = hasher.item(&item);
        let in_scope = self.is_inside(item.location.as_slice());
        let seen = Seen::Live { updated: item.updated, hash, suppressed: item.suppressed, in_scope };
        let record = render::item_record(&item);
        let payload = Payload::Item { record, bib_ids: item.bib_ids, location: item.location };
        self.mapped(item.id, seen, item.updated, payload)
    }

    fn patron(&self, patron: &RawPatron, hasher: &mut ContentHasher) -> Mapped {
        let masked = self.policy.mask_patron(patron);
        let (updated, suppressed) = (patron.updated(), patron.suppressed());
        let hash = hasher.patron(&masked, suppressed, self.policy.keyring());
        let seen = Seen::Live { updated, hash, suppressed, in_scope: true };
        self.mapped(patron.id(), seen, updated, Payload::Patron(masked))
    }

    /// What a live entry lacks of the fields that decide what becomes of the record.
    fn missing(&self, fields: &Fields) -> Option<&'static str> {
        let of_locations = (!self.locations.is_empty()).then_some(match self.stream {
            Stream::Bibs => "locations",
            Stream::Items | Stream::Patrons => "location",
        });
        let needed = match self.stream {
            Stream::Bibs => [Some("suppressed"), of_locations, None],
            Stream::Items => [Some("suppressed"), of_locations, Some("bibIds")],
            Stream::Patrons => [Some("suppressed"), None, None],
        };
        let is_there = |name: &str| fields.get(name).is_some_and(|value| value.get() != "null");
        needed.into_iter().flatten().find(|name| !is_there(name))
    }

    /// Whether a record with these location codes is in the configured set; without one it is in no set but the whole.
    fn is_inside(&self, codes: &[String]) -> bool {
        self.locations.is_empty() || codes.iter().any(|code| names_location(&self.locations, code))
    }

    fn mapped(&self, number: RecordNumber, seen: Seen, updated: Option<Timestamp>, payload: Payload) -> Mapped {
        let keyring = self.policy.keyring();
        let (key, id, sealed_id) = match self.stream {
            Stream::Bibs => (RememberedKey::Bib(number), number.to_string(), Vec::new()),
            Stream::Items => (RememberedKey::Item(number), number.to_string(), Vec::new()),
            Stream::Patrons => {
                let pseudonym = keyring.pseudonym(number);
                let sealed = keyring.seal_number(PATRON_NUMBER, number);
                (RememberedKey::Patron(pseudonym.bytes()), pseudonym.to_string(), sealed)
            }
        };
        Mapped { number, key, id, sealed_id, seen, updated, payload }
    }

    fn undecoded(&self, bad: BadEntry) -> Refused {
        let masked = bad.payload.and_then(|payload| self.policy.mask_undecoded(self.stream, &payload));
        Refused {
            number: bad.id,
            id: bad.id.map_or_else(|| "unknown".into(), |number| self.public_id(number)),
            reason: bad.reason,
            payload: masked.map(|masked| masked.get().to_owned()),
        }
    }

    fn refused(&self, masked: &Bib, reason: String) -> Refused {
        let payload = serde_json::to_string(&masked.fields).ok();
        Refused { number: Some(masked.id), id: self.public_id(masked.id), reason, payload }
    }
}
