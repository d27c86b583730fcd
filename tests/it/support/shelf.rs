//! A small library for tests that must control every moment: records with versions that become visible when told.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use sierra_sync::clock::{Clock, SimClock};
use sierra_sync::record::Stream;
use sierra_sync::sync::window::whole_second;

/// The library.
pub(crate) struct Shelf {
    clock: Arc<SimClock>,
    /// How far Sierra's clock is ahead of the true time.
    pub(crate) server_offset: SignedDuration,
    /// How long after its stamp a change becomes visible.
    pub(crate) commit_lag: SignedDuration,
    /// The library's zone, for `deletedDate`.
    pub(crate) zone: TimeZone,
    /// Whether `updatedDate` queries return tombstones whose last edit lies in the window (Sierra before 2022).
    pub(crate) tombstones_in_updates: bool,
    /// What tombstones say of time.
    pub(crate) tombstones: Tombstones,
    records: BTreeMap<(Stream, u64), Vec<Version>>,
    edits: u64,
}

/// What a tombstone says of time (sierra-api.md §3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tombstones {
    /// The day of the deletion.
    Dated,
    /// Nothing at all.
    Undated,
    /// The day, and the stamp of an edit long before it.
    Stale,
}

/// A record from some moment on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    /// True time at which readers see it.
    pub(crate) visible_at: Timestamp,
    /// `updatedDate`.
    pub(crate) updated: Timestamp,
    /// The local day of its deletion.
    pub(crate) deleted_on: Option<Date>,
    pub(crate) title: String,
    pub(crate) suppressed: bool,
    pub(crate) location: String,
    pub(crate) bib_ids: Vec<u64>,
    /// Whether lists send it without varFields; explicit lists too, if it is `Some(true)`.
    pub(crate) without_marc: Option<bool>,
    /// Whether it cannot be decoded.
    pub(crate) is_garbled: bool,
    /// Whether its own number cannot be read.
    pub(crate) is_nameless: bool,
    /// Fields that are missing in answers.
    pub(crate) hidden: Vec<&'static str>,
}

impl Shelf {
    pub(crate) fn new(clock: Arc<SimClock>) -> Self {
        Self {
            clock,
            server_offset: SignedDuration::ZERO,
            commit_lag: SignedDuration::ZERO,
            zone: TimeZone::UTC,
            tombstones_in_updates: false,
            tombstones: Tombstones::Dated,
            records: BTreeMap::new(),
            edits: 0,
        }
    }

    /// Sierra's `Date`, whole seconds.
    pub(crate) fn server_now(&self) -> Timestamp {
        whole_second(self.clock.now() + self.server_offset)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Puts `count` records on the shelf, last edited long ago, numbered from 1001 with holes.
    pub(crate) fn stock(&mut self, stream: Stream, count: u64) {
        self.stock_from(stream, 1001, count);
    }

    /// The same, numbered from `first`.
    pub(crate) fn stock_from(&mut self, stream: Stream, first: u64, count: u64) {
        let long_ago = self.server_now() - SignedDuration::from_hours(24 * 400);
        for n in 0..count {
            let id = first + n * 3;
            let version = Version {
                visible_at: Timestamp::UNIX_EPOCH,
                updated: long_ago,
                deleted_on: None,
                title: if stream == Stream::Patrons { "home".into() } else { format!("title {id}") },
                suppressed: false,
                location: "main".into(),
                bib_ids: if stream == Stream::Items { vec![1001] } else { Vec::new() },
                without_marc: None,
                is_garbled: false,
                is_nameless: false,
                hidden: Vec::new(),
            };
            self.records.insert((stream, id), vec![version]);
        }
    }

    /// Adds a record; it gets the next number.
    pub(crate) fn add(&mut self, stream: Stream) -> u64 {
        let last = self.records.range((stream, 0)..=(stream, u64::MAX)).next_back().map_or(1000, |((_, id), _)| *id);
        let id = last + 1;
        self.records.insert((stream, id), Vec::new());
        let now = self.server_now();
        let first = Version {
            visible_at: now,
            updated: now,
            deleted_on: None,
            title: String::new(),
            suppressed: false,
            location: "main".into(),
            bib_ids: Vec::new(),
            without_marc: None,
            is_garbled: false,
            is_nameless: false,
            hidden: Vec::new(),
        };
        self.push(stream, id, first, |_| {});
        self.edit(stream, id);
        id
    }

    /// Adds a record with an old stamp, as a load of records from elsewhere does.
    pub(crate) fn add_dated(&mut self, stream: Stream, updated: Timestamp) -> u64 {
        let id = self.add(stream);
        self.change(stream, id, |version| version.updated = updated);
        if let Some(versions) = self.records.get_mut(&(stream, id)) {
            versions.drain(..versions.len() - 1);
        }
        id
    }

    /// Takes the record away, and leaves no tombstone.
    pub(crate) fn vanish(&mut self, stream: Stream, id: u64) {
        self.records.remove(&(stream, id));
    }

    /// A new title and stamp.
    pub(crate) fn edit(&mut self, stream: Stream, id: u64) {
        self.edits += 1;
        // Nothing of a patron's number may stand where a test looks for it.
        let title = match stream {
            Stream::Patrons => format!("home of edit {}", self.edits),
            _ => format!("title {id} edit {}", self.edits),
        };
        self.change(stream, id, |version| version.title = title);
    }

    /// A new stamp alone.
    pub(crate) fn bump(&mut self, stream: Stream, id: u64) {
        self.change(stream, id, |_| {});
    }

    /// Deletes the record: its stamp stays what it was (sierra-api.md §7 item 7).
    pub(crate) fn delete(&mut self, stream: Stream, id: u64) {
        let day = self.zone.to_datetime(self.server_now()).date();
        let Some(last) = self.latest(stream, id) else { return };
        let stamp = last.updated;
        self.push(stream, id, last, |version| {
            version.deleted_on = Some(day);
            version.updated = stamp;
        });
    }

    /// Changes anything, with a new stamp.
    pub(crate) fn change(&mut self, stream: Stream, id: u64, change: impl FnOnce(&mut Version)) {
        let Some(last) = self.latest(stream, id) else { return };
        self.push(stream, id, last, change);
    }

    /// Changes anything and leaves the stamp: Sierra does that too (sierra-api.md §7 item 11).
    pub(crate) fn change_silently(&mut self, stream: Stream, id: u64, change: impl FnOnce(&mut Version)) {
        let Some(last) = self.latest(stream, id) else { return };
        let stamp = last.updated;
        self.push(stream, id, last, |version| {
            change(version);
            version.updated = stamp;
        });
    }

    fn push(&mut self, stream: Stream, id: u64, last: Version, change: impl FnOnce(&mut Version)) {
        let mut next =
            Version { updated: self.server_now(), visible_at: self.now() + self.commit_lag, deleted_on: None, ..last };
        change(&mut next);
        if let Some(versions) = self.records.get_mut(&(stream, id)) {
            // Nothing overtakes an earlier commit of the same record.
            let floor = versions.last().map_or(Timestamp::MIN, |version| version.visible_at);
            next.visible_at = next.visible_at.max(floor);
            versions.push(next);
        }
    }

    fn latest(&self, stream: Stream, id: u64) -> Option<Version> {
        self.records.get(&(stream, id))?.last().cloned()
    }

    /// What readers see now, in order of number.
    pub(crate) fn visible(&self, stream: Stream) -> impl Iterator<Item = (u64, &Version)> {
        let now = self.now();
        self.records.range((stream, 0)..=(stream, u64::MAX)).filter_map(move |((_, id), versions)| {
            versions.iter().rev().find(|version| version.visible_at <= now).map(|version| (*id, version))
        })
    }

    /// The numbers of all records that are not deleted, whether readers see them yet or not.
    pub(crate) fn alive(&self, stream: Stream) -> Vec<u64> {
        let rows = self.records.range((stream, 0)..=(stream, u64::MAX));
        rows.filter(|(_, versions)| versions.last().is_some_and(|version| version.deleted_on.is_none()))
            .map(|((_, id), _)| *id)
            .collect()
    }

    /// What readers see of the live records that can be decoded.
    pub(crate) fn truth(&self, stream: Stream) -> impl Iterator<Item = (u64, &Version)> {
        self.visible(stream)
            .filter(|(_, version)| version.deleted_on.is_none() && !version.is_garbled && !version.is_nameless)
    }

    /// Something happens: mostly edits, now and then the rest.
    pub(crate) fn live(&mut self, streams: &[Stream], generator: &mut StdRng) {
        let stream = streams[generator.random_range(0..streams.len())];
        let alive = self.alive(stream);
        if alive.is_empty() {
            self.add(stream);
            return;
        }
        let id = alive[generator.random_range(0..alive.len())];
        match generator.random_range(0..20_u32) {
            0..8 => self.edit(stream, id),
            8..10 => self.bump(stream, id),
            10 => self.change(stream, id, |version| version.suppressed = !version.suppressed),
            11..13 => self.delete(stream, id),
            13 => {
                self.edit(stream, id);
                self.delete(stream, id);
            }
            14..16 => drop(self.add(stream)),
            16 => self.batch(stream, &alive, generator),
            _ if stream == Stream::Items => {
                let bibs = self.alive(Stream::Bibs);
                let count = generator.random_range(0..3);
                let links = (0..count).filter_map(|_| pick(&bibs, generator)).collect();
                self.change(stream, id, |version| version.bib_ids = links);
            }
            _ => self.edit(stream, id),
        }
    }

    /// A batch job stamps many records with one second (BR-002).
    fn batch(&mut self, stream: Stream, alive: &[u64], generator: &mut impl Rng) {
        let count = alive.len().min(30);
        let start = generator.random_range(0..=alive.len() - count);
        for id in &alive[start..start + count] {
            self.edit(stream, *id);
        }
    }
}

fn pick(numbers: &[u64], generator: &mut impl Rng) -> Option<u64> {
    (!numbers.is_empty()).then(|| numbers[generator.random_range(0..numbers.len())])
}
