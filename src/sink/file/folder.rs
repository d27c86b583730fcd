//! The directory of a file sink: one lane a stream, the manifest, and the lock that keeps others out.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::batch::{Batch, StreamBatch};
use super::collection::Collection;
use super::disk;
use super::lines::Lines;
use super::lock::Lock;
use super::loss::{self, Loss};
use super::manifest::Manifest;
use crate::record::Stream;
use crate::sink::error::SinkFault;
use crate::sink::{FileFormat, FileSettings};
use crate::sync::Seq;
use crate::sync::ports::{Held, Holding};

/// An open directory. Everything here blocks. After an error it is dropped and opened anew: opening repairs what a
/// crash or a full disk left, so there is one way back and not two.
pub(super) struct Folder {
    settings: FileSettings,
    lanes: BTreeMap<Stream, Lane>,
    manifest: Manifest,
    /// Held as long as the directory is open; the system lets go of it when the process ends, however it ends.
    _lock: Lock,
}

enum Lane {
    Lines(Box<Lines>),
    Collection(Box<Collection>),
}

impl Folder {
    /// Opens the directory, which is made if need be, and repairs what is torn.
    pub(super) fn open(name: &str, settings: &FileSettings, now: Timestamp) -> Result<Self, SinkFault> {
        let root = &settings.path;
        disk::make_directory(root)?;
        let lock = Lock::acquire(root)?;
        let format = format_name(settings.format);
        let mut manifest = Manifest::read(root)?.unwrap_or_else(|| Manifest::new(name, format));
        if manifest.format != format {
            if !manifest.is_empty() {
                return Err(SinkFault::OtherFormat { path: root.clone(), found: manifest.format, wanted: format });
            }
            manifest = Manifest::new(name, format);
        }
        manifest.sink = name.to_owned();
        let mut folder = Self { settings: settings.clone(), lanes: BTreeMap::new(), manifest, _lock: lock };
        for stream in Stream::ALL {
            folder.look_at(stream, now)?;
        }
        folder.manifest.write(root)?;
        Ok(folder)
    }

    /// Writes what of `batch` is not held yet; it is durable when this returns.
    pub(super) fn deliver(&mut self, batch: &Batch, now: Timestamp) -> Result<(), SinkFault> {
        for (stream, changes) in batch {
            self.append(*stream, changes, now)?;
        }
        Ok(())
    }

    /// Finishes files that are old, and brings the manifest up to date.
    pub(super) fn settle(&mut self, now: Timestamp) -> Result<(), SinkFault> {
        let Self { settings, lanes, manifest, .. } = self;
        for lane in lanes.values_mut() {
            match lane {
                Lane::Lines(lines) => lines.settle(settings, manifest, now)?,
                Lane::Collection(collection) => collection.settle(settings, manifest, now)?,
            }
        }
        manifest.write(&settings.path)
    }

    /// Publishes everything that is open.
    pub(super) fn close(mut self, now: Timestamp) -> Result<(), SinkFault> {
        for lane in self.lanes.values_mut() {
            if let Lane::Collection(collection) = lane {
                collection.publish_growing(&mut self.manifest)?;
            }
        }
        self.settle(now)
    }

    /// The highest seq held in any stream.
    pub(super) fn highest(&self) -> Option<Seq> {
        let lanes = self.lanes.values().map(|lane| match lane {
            Lane::Lines(lines) => lines.highest(),
            Lane::Collection(collection) => collection.highest(),
        });
        lanes.chain([self.manifest.highest_of_all()]).max().filter(|seq| *seq > Seq::ZERO)
    }

    /// Looks at the files again: what is held now, and what is gone of what was held `before`.
    pub(super) fn holding(&mut self, before: Option<&Held>, now: Timestamp) -> Result<Holding, SinkFault> {
        for stream in Stream::ALL {
            if !self.is_untouched(stream) || !self.manifest.is_true(&self.settings.path, stream)? {
                self.look_at(stream, now)?;
            }
        }
        match before {
            Some(before) => self.manifest.recall_taken(&before.taken),
            // Whoever begins to count now has taken note of what was gone before.
            None => self.manifest.forget_lost(),
        }
        let held = self.held();
        let missing = before.and_then(|before| self.missing(before, &held));
        Ok(Holding { held: Some(held), missing })
    }

    fn held(&mut self) -> Held {
        let taken = self.manifest.taken().clone();
        let count = |stream: Stream| {
            let (besides, growing) = match self.lanes.get(&stream) {
                Some(Lane::Lines(lines)) => {
                    let growing = lines.growing();
                    let changes = growing.map_or(0, |entry| entry.upserts + entry.deletes);
                    (growing.map(|entry| entry.path.as_str()), changes)
                }
                Some(Lane::Collection(collection)) => (None, collection.growing_changes()),
                None => (None, 0),
            };
            let listed = self.manifest.changes(stream, besides);
            (stream, listed + growing + taken.get(&stream).copied().unwrap_or(0))
        };
        let changes = Stream::ALL.into_iter().map(count).filter(|(_, changes)| *changes > 0).collect();
        let gone = self.manifest.lost().iter().map(|loss| loss.path.clone()).collect();
        Held { changes, taken, gone }
    }

    /// What is gone, as the end of a sentence. New changes may make up for lost ones in number, but not for lost files.
    fn missing(&mut self, before: &Held, now: &Held) -> Option<String> {
        let lacking: Vec<(Stream, u64, u64)> = before
            .changes
            .iter()
            .map(|(stream, before)| (*stream, *before, now.changes.get(stream).copied().unwrap_or(0)))
            .filter(|(_, before, now)| now < before)
            .collect();
        let counts: Vec<String> = lacking
            .iter()
            .map(|(stream, before, now)| format!("{} of {before} changes of {stream}", before - now))
            .collect();
        let is_news = |loss: &&Loss| before.changes.contains_key(&loss.stream) && !before.gone.contains(&loss.path);
        let lost = self.manifest.lost().iter().filter(is_news);
        let lost: Vec<_> = lost.collect();
        let what = if counts.is_empty() { "changes".to_owned() } else { counts.join(" and ") };
        let place = self.settings.path.display();
        match loss::named(&lost) {
            files if !files.is_empty() => Some(format!("{what} in {place}: {files}")),
            _ if !counts.is_empty() => Some(format!("{what} in {place}")),
            _ => None,
        }
    }

    fn append(&mut self, stream: Stream, changes: &StreamBatch, now: Timestamp) -> Result<(), SinkFault> {
        if !self.lanes.contains_key(&stream) || !self.is_untouched(stream) {
            self.open_lane(stream, now)?;
        }
        let Self { settings, lanes, manifest, .. } = self;
        match lanes.get_mut(&stream) {
            Some(Lane::Lines(lines)) => lines.append(changes, settings, manifest, now),
            Some(Lane::Collection(collection)) => collection.append(changes, settings, manifest, now),
            None => Ok(()),
        }
    }

    fn is_untouched(&self, stream: Stream) -> bool {
        match self.lanes.get(&stream) {
            Some(Lane::Lines(lines)) => lines.is_untouched(),
            Some(Lane::Collection(collection)) => collection.is_untouched(),
            None => true,
        }
    }

    /// Notes what is gone of what grows in `stream`: once its lane is opened anew, nobody knows any more.
    fn note_loss(&mut self, stream: Stream) -> Result<(), SinkFault> {
        let loss = match self.lanes.get(&stream) {
            Some(Lane::Lines(lines)) => lines.loss()?,
            Some(Lane::Collection(collection)) => collection.loss()?,
            None => None,
        };
        loss.into_iter().for_each(|loss| self.manifest.lose(loss));
        Ok(())
    }

    /// Opens the lane of `stream` if there is anything of it, and finds out what is gone.
    fn look_at(&mut self, stream: Stream, now: Timestamp) -> Result<(), SinkFault> {
        if self.settings.path.join(stream.name()).exists() {
            return self.open_lane(stream, now);
        }
        self.note_loss(stream)?;
        self.lanes.remove(&stream);
        self.manifest.sort_out(&self.settings.path, stream, self.settings.format == FileFormat::Marcxml)
    }

    fn open_lane(&mut self, stream: Stream, now: Timestamp) -> Result<(), SinkFault> {
        self.note_loss(stream)?;
        let (root, manifest) = (&self.settings.path, &mut self.manifest);
        manifest.sort_out(root, stream, self.settings.format == FileFormat::Marcxml)?;
        let lane = match self.settings.format {
            FileFormat::Ndjson => Lane::Lines(Box::new(Lines::open(root, stream, manifest, now)?)),
            FileFormat::Marcxml => Lane::Collection(Box::new(Collection::open(root, stream, manifest)?)),
        };
        self.lanes.insert(stream, lane);
        Ok(())
    }
}

fn format_name(format: FileFormat) -> &'static str {
    match format {
        FileFormat::Ndjson => "ndjson",
        FileFormat::Marcxml => "marcxml",
    }
}
