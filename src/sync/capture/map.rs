//! From an entry of a page to what decides and what is emitted: masked, mapped to MARC, hashed.
//!
//! Privacy comes first: nothing here looks at a patron's fields, and items and bibs are masked before anything is
//! made of them. Whatever cannot be mapped is a [`Refused`] entry with its reason, never a silent omission (A14).

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::value::RawValue;

use super::content;
use crate::marc::{self, MarcSettings, marcxml};
use crate::privacy::Policy;
use crate::record::{Bib, Entry, Fields, Item, Live, RawPatron, RecordNumber, Stream, Tombstone};
use crate::sync::decide::Seen;
use crate::sync::ledger::days::end_of_day;
use crate::sync::locations::Locations;
use crate::sync::ports::BadEntry;
use crate::sync::settings::StreamSettings;
use crate::sync::{Payload, RememberedKey};

/// What sealed patron numbers in remembered state are sealed for.
pub const PATRON_NUMBER: &str = "remembered patron";

/// Maps the entries of one stream under one set of settings.
#[derive(Debug)]
pub struct Mapper {
    stream: Stream,
    policy: Arc<Policy>,
    marc: MarcSettings,
    zone: TimeZone,
    locations: Locations,
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
            locations: Locations::new(&settings.locations),
            hash_ignore: settings.hash_ignore.clone(),
        }
    }

    /// Maps one entry.
    ///
    /// # Errors
    /// When it was not decodable, has no MARC, or its MARC cannot be written under the settings.
    pub fn map(&self, entry: Result<Entry, BadEntry>) -> Result<Mapped, Refused> {
        match entry {
            Ok(Entry::Tombstone(tombstone)) => Ok(self.tombstone(&tombstone)),
            Ok(Entry::Live(Live::Bib(bib))) => self.bib(*bib),
            Ok(Entry::Live(Live::Item(item))) => self.item(*item),
            Ok(Entry::Live(Live::Patron(patron))) => Ok(self.patron(&patron)),
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

    fn tombstone(&self, tombstone: &Tombstone) -> Mapped {
        let updated = tombstone.deleted_on.and_then(|day| end_of_day(day, &self.zone));
        self.mapped(tombstone.id, Seen::Tombstone { deleted_on: tombstone.deleted_on }, updated, Payload::Nothing)
    }

    fn bib(&self, mut bib: Bib) -> Result<Mapped, Refused> {
        self.policy.mask_bib(&mut bib);
        let Some(var_fields) = bib.var_fields.take() else {
            return Err(self.refused(bib.id, super::NO_MARC.to_owned(), &bib.fields));
        };
        let (record, losses) = match marc::from_sierra(bib.id, &var_fields, &self.marc) {
            Ok(mapped) => mapped,
            Err(error) => return Err(self.refused(bib.id, format!("failed to map it to MARC: {error}"), &bib.fields)),
        };
        let marcxml = marcxml::to_string(&record);
        bib.fields.remove("marc");
        let without_marc = var_fields.iter().filter(|field| !marc::is_carried(field)).count();
        content::keep_unmarked_var_fields(&mut bib.fields, without_marc);
        let hash = content::hash_bib(bib.suppressed, &bib.fields, &self.hash_ignore, &marcxml);
        let in_scope = self.locations.hold(bib.locations.iter().map(String::as_str));
        let seen = Seen::Live { updated: bib.updated, hash, suppressed: bib.suppressed, in_scope };
        let payload = Payload::Bib { record: content::object(&bib.fields), marcxml, losses, locations: bib.locations };
        Ok(self.mapped(bib.id, seen, bib.updated, payload))
    }

    fn item(&self, mut item: Item) -> Result<Mapped, Refused> {
        self.policy.mask_item(&mut item);
        let hash = content::hash_item(item.suppressed, &item.bib_ids, &item.fields, &self.hash_ignore);
        let in_scope = self.locations.hold(item.location.iter().map(String::as_str));
        let seen = Seen::Live { updated: item.updated, hash, suppressed: item.suppressed, in_scope };
        let record = content::object(&item.fields);
        let payload = Payload::Item { record, bib_ids: item.bib_ids, location: item.location };
        Ok(self.mapped(item.id, seen, item.updated, payload))
    }

    fn patron(&self, patron: &RawPatron) -> Mapped {
        let masked = self.policy.mask_patron(patron);
        let hash = content::hash_patron(patron.suppressed(), masked.get(), self.policy.keyring());
        let (updated, suppressed) = (patron.updated(), patron.suppressed());
        let seen = Seen::Live { updated, hash, suppressed, in_scope: true };
        self.mapped(patron.id(), seen, updated, Payload::Patron(masked))
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

    fn refused(&self, number: RecordNumber, reason: String, masked: &Fields) -> Refused {
        let payload: Box<RawValue> = content::object(masked);
        Refused { number: Some(number), id: self.public_id(number), reason, payload: Some(payload.get().to_owned()) }
    }
}
