//! NDJSON files of one stream: appended under their final names, in whole lines.
//!
//! What is confirmed is synced, so after a crash only lines that nobody confirmed can be torn; they are cut off at
//! the next opening and come again. The manifest tells up to where a file was known to be whole.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::batch::StreamBatch;
use super::disk;
use super::loss::Loss;
use super::manifest::{FileEntry, Manifest, first_seq};
use crate::record::Stream;
use crate::sink::FileSettings;
use crate::sink::error::SinkFault;
use crate::sink::event::EventOp;
use crate::sync::Seq;

const EXTENSION: &str = "ndjson";

/// The files of one stream, the last of which may be growing.
pub(super) struct Lines {
    directory: PathBuf,
    stream: Stream,
    growing: Option<Growing>,
    highest: Seq,
}

struct Growing {
    path: PathBuf,
    file: File,
    entry: FileEntry,
    /// Over what is in the file; `None` after a reopening, until somebody asks.
    checksum: Option<Sha256>,
}

impl Lines {
    /// Opens the files of `stream` below `root`: cuts a torn tail, brings the manifest up to date and finds out what
    /// is held.
    pub(super) fn open(
        root: &Path,
        stream: Stream,
        manifest: &mut Manifest,
        now: Timestamp,
    ) -> Result<Self, SinkFault> {
        let directory = root.join(stream.name());
        let mut files: Vec<(Seq, String)> = disk::names(&directory)?
            .into_iter()
            .filter_map(|name| Some((first_seq(&name, EXTENSION)?, name)))
            .collect();
        files.sort();
        let newest = files.last().map(|(first, _)| *first);
        let mut lines = Self { directory, stream, growing: None, highest: Seq::ZERO };
        for (first, name) in files {
            let path = lines.directory.join(&name);
            let known = manifest.entry(&entry_path(stream, &name)).cloned();
            let length = disk::length(&path)?.unwrap_or(0);
            if known.as_ref().is_some_and(|known| known.complete && known.bytes == length) {
                continue;
            }
            let fresh = || empty_entry(stream, &name, first, now);
            let known_last = known.as_ref().and_then(|known| known.last_seq);
            let entry = examine(&path, length, known.unwrap_or_else(fresh))?;
            if Some(first) == newest && entry.last_seq < known_last {
                // Confirmed lines are gone. Redelivered ones must not be passed over as held.
                manifest.lower(stream, entry.last_seq.unwrap_or(Seq::ZERO));
            }
            lines.adopt(path, entry, Some(first) == newest, manifest)?;
        }
        lines.highest = manifest.highest(stream);
        Ok(lines)
    }

    /// The highest seq held.
    pub(super) fn highest(&self) -> Seq {
        self.highest
    }

    /// The growing file, if there is one: the manifest may lag behind it.
    pub(super) fn growing(&self) -> Option<&FileEntry> {
        self.growing.as_ref().map(|growing| &growing.entry)
    }

    /// The growing file as a loss, if it is gone or shorter than it was left.
    pub(super) fn loss(&self) -> Result<Option<Loss>, SinkFault> {
        let Some(Growing { path, entry, .. }) = &self.growing else { return Ok(None) };
        let present = disk::length(path)?;
        let changes = entry.upserts + entry.deletes;
        Ok(present.is_none_or(|present| present < entry.bytes).then(|| Loss {
            path: entry.path.clone(),
            stream: self.stream,
            changes,
            bytes: entry.bytes,
            present,
        }))
    }

    /// Whether the growing file is still where it was and as long as it was left.
    pub(super) fn is_untouched(&self) -> bool {
        let untouched = |growing: &Growing| disk::is_untouched(&growing.file, &growing.path, growing.entry.bytes);
        self.growing.as_ref().is_none_or(untouched)
    }

    /// Appends what is not held yet; it is durable when this returns. After an error nothing of `batch` is visible,
    /// as far as the disk allows, and the lane must be opened anew.
    pub(super) fn append(
        &mut self,
        batch: &StreamBatch,
        settings: &FileSettings,
        manifest: &mut Manifest,
        now: Timestamp,
    ) -> Result<(), SinkFault> {
        let (bytes, changes) = batch.after(self.highest);
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return Ok(()) };
        self.finish_if(|entry| settings.is_old(entry.opened, now), manifest)?;
        let mut growing = match self.growing.take() {
            Some(growing) => growing,
            None => self.begin(first.seq, now)?,
        };
        let written = disk::append(&mut growing.file, &growing.path, bytes)
            .and_then(|()| disk::sync(&growing.file, &growing.path));
        if let Err(fault) = written {
            growing.take_back();
            return Err(fault);
        }
        let deletes = changes.iter().filter(|change| change.is_delete).count() as u64;
        growing.entry.bytes += bytes.len() as u64;
        growing.entry.deletes += deletes;
        growing.entry.upserts += changes.len() as u64 - deletes;
        growing.entry.last_seq = Some(last.seq);
        if let Some(checksum) = &mut growing.checksum {
            checksum.update(bytes);
        }
        self.highest = last.seq;
        self.growing = Some(growing);
        self.finish_if(|entry| entry.bytes >= settings.rotate_size, manifest)
    }

    /// Finishes the growing file if it is old, and enters it into the manifest as it is now.
    pub(super) fn settle(
        &mut self,
        settings: &FileSettings,
        manifest: &mut Manifest,
        now: Timestamp,
    ) -> Result<(), SinkFault> {
        self.finish_if(|entry| settings.is_old(entry.opened, now), manifest)?;
        if let Some(growing) = &mut self.growing {
            growing.enter(manifest)?;
        }
        Ok(())
    }

    fn begin(&self, first: Seq, now: Timestamp) -> Result<Growing, SinkFault> {
        disk::make_directory(&self.directory)?;
        let name = format!("{first}.{EXTENSION}");
        let path = self.directory.join(&name);
        let file = disk::create(&path)?;
        let entry = empty_entry(self.stream, &name, first, now);
        Ok(Growing { path, file, entry, checksum: Some(Sha256::new()) })
    }

    fn finish_if(&mut self, is_ripe: impl Fn(&FileEntry) -> bool, manifest: &mut Manifest) -> Result<(), SinkFault> {
        if let Some(mut growing) = self.growing.take_if(|growing| is_ripe(&growing.entry)) {
            growing.entry.complete = true;
            growing.enter(manifest)?;
        }
        Ok(())
    }

    fn adopt(
        &mut self,
        path: PathBuf,
        mut entry: FileEntry,
        is_newest: bool,
        manifest: &mut Manifest,
    ) -> Result<(), SinkFault> {
        if entry.last_seq.is_none() {
            // It was made and never filled: its name would tell a wrong first seq.
            manifest.forget(&entry.path);
            return disk::remove(&path);
        }
        entry.complete = !is_newest;
        let file = disk::reopen(&path)?;
        // What a crash left unsynced counts as held from now on.
        disk::sync(&file, &path)?;
        let mut growing = Growing { path, file, entry, checksum: None };
        growing.enter(manifest)?;
        if is_newest {
            self.growing = Some(growing);
        }
        Ok(())
    }
}

impl Growing {
    fn enter(&mut self, manifest: &mut Manifest) -> Result<(), SinkFault> {
        if manifest.entry(&self.entry.path).is_some_and(|present| {
            (present.bytes, present.complete, present.last_seq)
                == (self.entry.bytes, self.entry.complete, self.entry.last_seq)
        }) {
            return Ok(());
        }
        let checksum = match self.checksum.take() {
            Some(checksum) => checksum,
            None => disk::checksum(&self.path, self.entry.bytes)?,
        };
        self.entry.sha256 = disk::checksum_text(&checksum);
        self.checksum = Some(checksum);
        manifest.put(self.entry.clone());
        Ok(())
    }

    /// Takes back what was appended last. Best effort: what stays is cut at the next opening.
    fn take_back(self) {
        if self.entry.bytes == 0 {
            disk::remove(&self.path).ok();
        } else {
            self.file.set_len(self.entry.bytes).ok();
        }
    }
}

fn entry_path(stream: Stream, name: &str) -> String {
    format!("{stream}/{name}")
}

fn empty_entry(stream: Stream, name: &str, first: Seq, now: Timestamp) -> FileEntry {
    FileEntry {
        path: entry_path(stream, name),
        stream,
        complete: false,
        first_seq: first,
        last_seq: None,
        upserts: 0,
        deletes: 0,
        bytes: 0,
        sha256: String::new(),
        opened: now,
    }
}

/// Reads on from where `known` ends, line by line, and cuts the file before the first line that is torn, is not an
/// event, or does not go up in seq.
fn examine(path: &Path, length: u64, known: FileEntry) -> Result<FileEntry, SinkFault> {
    #[derive(Deserialize)]
    struct Place {
        seq: Seq,
        op: EventOp,
    }
    let failed = |source: io::Error| SinkFault::Io { action: "read", path: path.to_owned(), source };
    let mut entry = known;
    if entry.bytes > length {
        tracing::error!(
            event = "sink_file_shortened",
            path = %path.display(),
            missing_bytes = entry.bytes - length,
            "a file of a sink is shorter than it was: lines that were delivered are gone; `sierra-sync status` tells \
             how to load the sink again"
        );
        entry = FileEntry { bytes: 0, upserts: 0, deletes: 0, last_seq: None, ..entry };
    }
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(entry.bytes)).map_err(failed)?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 || line.last() != Some(&b'\n') {
            break;
        }
        let Ok(place) = serde_json::from_slice::<Place>(&line) else { break };
        if entry.last_seq.is_some_and(|last| place.seq <= last) {
            break;
        }
        match place.op {
            EventOp::Upsert => entry.upserts += 1,
            EventOp::Delete => entry.deletes += 1,
        }
        entry.last_seq = Some(place.seq);
        entry.bytes += read as u64;
    }
    if entry.bytes < length {
        tracing::warn!(
            event = "sink_tail_cut",
            path = %path.display(),
            bytes = length - entry.bytes,
            "a file of a sink ended in lines that were not confirmed; they are cut off and delivered again"
        );
        disk::cut(path, entry.bytes)?;
    }
    Ok(entry)
}
