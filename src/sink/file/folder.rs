//! The directory of a file sink: one lane a stream, the manifest, and the lock that keeps others out.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use jiff::Timestamp;

use super::batch::{Batch, StreamBatch};
use super::collection::Collection;
use super::disk;
use super::lines::Lines;
use super::manifest::Manifest;
use crate::record::Stream;
use crate::sink::error::SinkFault;
use crate::sink::{FileFormat, FileSettings};
use crate::sync::Seq;

const LOCK: &str = ".lock";

/// An open directory. Everything here blocks. After an error it is dropped and opened anew: opening repairs what a
/// crash or a full disk left, so there is one way back and not two.
pub(super) struct Folder {
    settings: FileSettings,
    lanes: BTreeMap<Stream, Lane>,
    manifest: Manifest,
    /// Held as long as the directory is open; the system lets go of it when the process ends, however it ends.
    _lock: File,
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
        let lock = lock(root)?;
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
            folder.manifest.forget_taken(root, stream);
            if root.join(stream.name()).exists() {
                folder.open_lane(stream, now)?;
            }
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

    fn append(&mut self, stream: Stream, changes: &StreamBatch, now: Timestamp) -> Result<(), SinkFault> {
        let is_usable = match self.lanes.get(&stream) {
            Some(Lane::Lines(lines)) => lines.is_untouched(),
            Some(Lane::Collection(collection)) => collection.is_untouched(),
            None => false,
        };
        if !is_usable {
            self.open_lane(stream, now)?;
        }
        let Self { settings, lanes, manifest, .. } = self;
        match lanes.get_mut(&stream) {
            Some(Lane::Lines(lines)) => lines.append(changes, settings, manifest, now),
            Some(Lane::Collection(collection)) => collection.append(changes, settings, manifest, now),
            None => Ok(()),
        }
    }

    fn open_lane(&mut self, stream: Stream, now: Timestamp) -> Result<(), SinkFault> {
        let (root, manifest) = (&self.settings.path, &mut self.manifest);
        manifest.forget_taken(root, stream);
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

fn lock(root: &Path) -> Result<File, SinkFault> {
    let path = root.join(LOCK);
    let failed = |source| SinkFault::Io { action: "lock", path: path.clone(), source };
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o640).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SinkFault::Held { path: root.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}
