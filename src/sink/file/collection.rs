//! MARCXML files of one stream: pairs of a collection of records and a list of deleted record numbers.
//!
//! A pair grows as `.part` files beside a journal and is published by renaming. Whoever reads published pairs in
//! order, the collection first and then its list, ends with what Sierra holds: a record that comes back after its
//! deletion begins a new pair, so a list never speaks of something newer than itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::batch::{Encoded, StreamBatch};
use super::disk;
use super::journal::{self, Commit, Journal};
use super::loss::Loss;
use super::manifest::{FileEntry, Manifest, first_seq};
use super::part::{Part, PartKind};
use crate::record::Stream;
use crate::sink::FileSettings;
use crate::sink::error::SinkFault;
use crate::sync::Seq;

const JOURNAL: &str = "journal.part";

/// The pairs of one stream, the last of which may be growing.
pub(super) struct Collection {
    directory: PathBuf,
    stream: Stream,
    growing: Option<Pair>,
    highest: Seq,
}

/// A growing pair.
struct Pair {
    first: Seq,
    opened: Timestamp,
    journal: Journal,
    whole: Commit,
    records: Part,
    deletions: Part,
    /// The numbers in the list: an upsert of one of them begins a new pair.
    deleted: HashSet<String>,
}

impl Collection {
    /// Opens the pairs of `stream` below `root`: goes on with one that was growing, completes a publication that was
    /// cut off, and finds out what is held.
    pub(super) fn open(root: &Path, stream: Stream, manifest: &mut Manifest) -> Result<Self, SinkFault> {
        let directory = root.join(stream.name());
        let mut collection = Self { directory, stream, growing: None, highest: Seq::ZERO };
        let names = disk::names(&collection.directory)?;
        let with = |extension: &'static str| {
            let mut found: Vec<Seq> = names.iter().filter_map(|name| first_seq(name, extension)).collect();
            found.sort();
            found
        };
        let journals = with(JOURNAL);
        for first in &journals {
            if let Some(pair) = collection.resume(*first, manifest)? {
                manifest.raise(stream, pair.whole.last);
                if let Some(older) = collection.growing.replace(pair) {
                    collection.publish(older, manifest)?;
                }
            }
        }
        for kind in [PartKind::Records, PartKind::Deletions] {
            for first in with(kind.part_extension()).into_iter().filter(|first| !journals.contains(first)) {
                collection.salvage(kind, first, manifest)?;
            }
            for first in with(kind.extension()) {
                collection.list(kind, first, manifest)?;
            }
        }
        collection.highest = manifest.highest(stream);
        Ok(collection)
    }

    /// The highest seq held, published or not.
    pub(super) fn highest(&self) -> Seq {
        self.highest
    }

    /// The changes in the growing pair.
    pub(super) fn growing_changes(&self) -> u64 {
        self.growing.as_ref().map_or(0, |pair| pair.whole.upserts + pair.whole.deletes)
    }

    /// The growing pair as a loss, if one of its files is gone or shorter than it was left.
    pub(super) fn loss(&self) -> Result<Option<Loss>, SinkFault> {
        let Some(pair) = &self.growing else { return Ok(None) };
        for (part, bytes, changes) in [
            (&pair.records, pair.whole.xml_bytes, pair.whole.upserts),
            (&pair.deletions, pair.whole.deletes_bytes, pair.whole.deletes),
        ] {
            if !part.can_hold(bytes)? {
                let (path, present) = (part.entry_path(self.stream), disk::length(part.path())?);
                return Ok(Some(Loss { path: format!("{path}.part"), stream: self.stream, changes, bytes, present }));
            }
        }
        Ok(None)
    }

    /// Whether the growing files are still where they were and as long as they were left.
    pub(super) fn is_untouched(&self) -> bool {
        let untouched = |pair: &Pair| pair.records.is_untouched() && pair.deletions.is_untouched();
        self.growing.as_ref().is_none_or(untouched)
    }

    /// Appends what is not held yet; it is durable when this returns. After an error the lane must be opened anew.
    pub(super) fn append(
        &mut self,
        batch: &StreamBatch,
        settings: &FileSettings,
        manifest: &mut Manifest,
        now: Timestamp,
    ) -> Result<(), SinkFault> {
        self.settle(settings, manifest, now)?;
        let mut waiting = Waiting::default();
        let held = self.highest;
        for (change, bytes) in batch.each_after(held) {
            let comes_back = !change.is_delete
                && (waiting.deleted.contains(&change.id)
                    || self.growing.as_ref().is_some_and(|pair| pair.deleted.contains(&change.id)));
            if comes_back {
                self.write(std::mem::take(&mut waiting), now)?;
                self.publish_growing(manifest)?;
            }
            waiting.take(change, bytes);
        }
        self.write(waiting, now)?;
        if self.growing.as_ref().is_some_and(|pair| pair.bytes() >= settings.rotate_size) {
            self.publish_growing(manifest)?;
        }
        Ok(())
    }

    /// Publishes the growing pair if it is old.
    pub(super) fn settle(
        &mut self,
        settings: &FileSettings,
        manifest: &mut Manifest,
        now: Timestamp,
    ) -> Result<(), SinkFault> {
        let is_old = self.growing.as_ref().is_some_and(|pair| settings.is_old(pair.opened, now));
        if is_old { self.publish_growing(manifest) } else { Ok(()) }
    }

    /// Publishes the growing pair, if there is one, whatever its size and age.
    pub(super) fn publish_growing(&mut self, manifest: &mut Manifest) -> Result<(), SinkFault> {
        match self.growing.take() {
            Some(pair) => self.publish(pair, manifest),
            None => Ok(()),
        }
    }

    fn write(&mut self, waiting: Waiting, now: Timestamp) -> Result<(), SinkFault> {
        let (Some(first), Some(last)) = (waiting.first, waiting.last) else { return Ok(()) };
        let mut pair = match self.growing.take() {
            Some(pair) => pair,
            None => self.begin(first, now)?,
        };
        pair.append(waiting, last)?;
        self.growing = Some(pair);
        self.highest = last;
        Ok(())
    }

    fn begin(&self, first: Seq, now: Timestamp) -> Result<Pair, SinkFault> {
        disk::make_directory(&self.directory)?;
        let journal = Journal::begin(self.directory.join(format!("{first}.{JOURNAL}")), now)?;
        Ok(Pair {
            first,
            opened: now,
            journal,
            whole: Commit { last: first, xml_bytes: 0, deletes_bytes: 0, upserts: 0, deletes: 0 },
            records: Part::absent(&self.directory, first, PartKind::Records),
            deletions: Part::absent(&self.directory, first, PartKind::Deletions),
            deleted: HashSet::new(),
        })
    }

    /// Goes on with the pair of a journal: `None` when nothing of it was ever confirmed, or when it was being
    /// published and now is.
    fn resume(&self, first: Seq, manifest: &mut Manifest) -> Result<Option<Pair>, SinkFault> {
        let path = self.directory.join(format!("{first}.{JOURNAL}"));
        let told = journal::read(&path)?;
        let mut records = Part::absent(&self.directory, first, PartKind::Records);
        let mut deletions = Part::absent(&self.directory, first, PartKind::Deletions);
        if told.is_publishing
            && let (Some((whole, _)), Some(opened)) = (told.commits.last().copied(), told.opened)
        {
            // All of it stays: were the note cut off again, a crash here would look like files that got lost.
            let journal = Journal::resume(path, u64::MAX)?;
            records.resume_publishing(whole.xml_bytes)?;
            deletions.resume_publishing(whole.deletes_bytes)?;
            let pair = Pair { first, opened, journal, whole, records, deletions, deleted: HashSet::new() };
            self.publish(pair, manifest)?;
            return Ok(None);
        }
        let fits = |commit: &Commit| -> Result<bool, SinkFault> {
            Ok(records.can_hold(commit.xml_bytes)? && deletions.can_hold(commit.deletes_bytes)?)
        };
        let mut sound = None;
        for (commit, length) in told.commits.iter().rev() {
            if fits(commit)? {
                sound = Some((*commit, *length));
                break;
            }
            tracing::error!(
                event = "sink_file_shortened",
                path = %path.display(),
                last_seq = commit.last.value(),
                "a file of a sink is shorter than it was: records that were delivered are gone; \
                 `sierra-sync status` tells how to load the sink again"
            );
        }
        let (Some((whole, length)), Some(opened)) = (sound, told.opened) else {
            records.discard()?;
            deletions.discard()?;
            disk::remove(&path)?;
            return Ok(None);
        };
        records.resume(whole.xml_bytes)?;
        deletions.resume(whole.deletes_bytes)?;
        let deleted = deletions.lines()?;
        let journal = Journal::resume(path, length)?;
        Ok(Some(Pair { first, opened, journal, whole, records, deletions, deleted }))
    }

    /// Gives both files their names: the collection first, so that whoever sees the list can see the collection.
    /// Cut off anywhere, the next opening goes on from the journal, which is removed last.
    fn publish(&self, mut pair: Pair, manifest: &mut Manifest) -> Result<(), SinkFault> {
        pair.records.end()?;
        pair.deletions.end()?;
        pair.journal.publishing()?;
        for (part, upserts, deletes) in
            [(&mut pair.records, pair.whole.upserts, 0), (&mut pair.deletions, 0, pair.whole.deletes)]
        {
            if let Some((bytes, sha256)) = part.publish()? {
                manifest.put(FileEntry {
                    path: part.entry_path(self.stream),
                    stream: self.stream,
                    complete: true,
                    first_seq: pair.first,
                    last_seq: Some(pair.whole.last),
                    upserts,
                    deletes,
                    bytes,
                    sha256,
                    opened: pair.opened,
                });
            }
        }
        manifest.raise(self.stream, pair.whole.last);
        if let Some(root) = self.directory.parent() {
            manifest.write(root)?;
        }
        disk::remove(pair.journal.path())
    }

    /// Publishes what is whole of a part without a journal: somebody removed that, and its content may be confirmed.
    /// What was not confirmed comes again later, in a pair that is read later.
    fn salvage(&self, kind: PartKind, first: Seq, manifest: &mut Manifest) -> Result<(), SinkFault> {
        let mut part = Part::absent(&self.directory, first, kind);
        let whole = part.whole_length()?;
        tracing::warn!(
            event = "sink_part_without_journal",
            path = %part.path().display(),
            bytes = whole,
            "a growing file of a sink lost its journal; what is whole of it is published"
        );
        if whole == 0 {
            return part.discard();
        }
        part.resume(whole)?;
        part.end()?;
        part.publish()?;
        self.list(kind, first, manifest)
    }

    /// Enters a published file that the manifest does not know: the manifest was lost.
    fn list(&self, kind: PartKind, first: Seq, manifest: &mut Manifest) -> Result<(), SinkFault> {
        let part = Part::absent(&self.directory, first, kind);
        let path = part.entry_path(self.stream);
        if manifest.entry(&path).is_some() {
            return Ok(());
        }
        let (bytes, sha256, count) = part.describe_published()?;
        let (upserts, deletes) = match kind {
            PartKind::Records => (count, 0),
            PartKind::Deletions => (0, count),
        };
        let opened = Timestamp::UNIX_EPOCH;
        let stream = self.stream;
        manifest.raise(stream, first);
        manifest.put(FileEntry {
            path,
            stream,
            complete: true,
            first_seq: first,
            last_seq: None,
            upserts,
            deletes,
            bytes,
            sha256,
            opened,
        });
        Ok(())
    }
}

impl Pair {
    fn bytes(&self) -> u64 {
        self.whole.xml_bytes + self.whole.deletes_bytes
    }

    fn append(&mut self, waiting: Waiting, last: Seq) -> Result<(), SinkFault> {
        let whole = Commit {
            last,
            xml_bytes: self.records.append(&waiting.records)?,
            deletes_bytes: self.deletions.append(&waiting.deletions)?,
            upserts: self.whole.upserts + waiting.upserts,
            deletes: self.whole.deletes + waiting.deletes,
        };
        self.journal.commit(&whole)?;
        self.whole = whole;
        self.deleted.extend(waiting.deleted);
        Ok(())
    }
}

/// Changes that go into one pair together.
#[derive(Default)]
struct Waiting {
    first: Option<Seq>,
    last: Option<Seq>,
    records: Vec<u8>,
    deletions: Vec<u8>,
    upserts: u64,
    deletes: u64,
    deleted: HashSet<String>,
}

impl Waiting {
    fn take(&mut self, change: &Encoded, bytes: &[u8]) {
        self.first.get_or_insert(change.seq);
        self.last = Some(change.seq);
        if change.is_delete {
            self.deletions.extend_from_slice(bytes);
            self.deletes += 1;
            self.deleted.insert(change.id.clone());
        } else {
            self.records.extend_from_slice(bytes);
            self.upserts += 1;
        }
    }
}
