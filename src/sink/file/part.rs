//! One file of a pair, from `.part` to its final name.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::disk;
use crate::record::Stream;
use crate::sink::error::SinkFault;
use crate::sync::Seq;

const XML_START: &[u8] =
    b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<collection xmlns=\"http://www.loc.gov/MARC21/slim\">\n";
const XML_END: &[u8] = b"</collection>\n";

/// What a file of a pair holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    /// A MARCXML collection.
    Records,
    /// Record numbers, one a line.
    Deletions,
}

impl PartKind {
    /// What follows the first seq in the published name.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Records => "xml",
            Self::Deletions => "deletes.txt",
        }
    }

    /// What follows the first seq while it grows.
    pub(super) fn part_extension(self) -> &'static str {
        match self {
            Self::Records => "xml.part",
            Self::Deletions => "deletes.txt.part",
        }
    }

    fn start(self) -> &'static [u8] {
        match self {
            Self::Records => XML_START,
            Self::Deletions => b"",
        }
    }

    /// What an entry ends with and no part of one does: inside a record `<` is escaped.
    fn entry_end(self) -> &'static [u8] {
        match self {
            Self::Records => b"</record>\n",
            Self::Deletions => b"\n",
        }
    }

    fn end(self) -> &'static [u8] {
        match self {
            Self::Records => XML_END,
            Self::Deletions => b"",
        }
    }
}

/// One file of a pair. It is made when the first thing goes into it.
pub(super) struct Part {
    kind: PartKind,
    path: PathBuf,
    published: PathBuf,
    file: Option<File>,
    bytes: u64,
    /// Over what is in the file; `None` after a reopening, until it is published.
    checksum: Option<Sha256>,
}

impl Part {
    /// A part that is not there, or not yet.
    pub(super) fn absent(directory: &Path, first: Seq, kind: PartKind) -> Self {
        Self {
            kind,
            path: directory.join(format!("{first}.{}", kind.part_extension())),
            published: directory.join(format!("{first}.{}", kind.extension())),
            file: None,
            bytes: 0,
            checksum: Some(Sha256::new()),
        }
    }

    /// Its name while it grows.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its published name below the sink's directory.
    pub(super) fn entry_path(&self, stream: Stream) -> String {
        let name = self.published.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        format!("{stream}/{name}")
    }

    /// Appends and syncs `bytes`, the start of the document before the first ones; returns the new length. After an
    /// error the part is cut back, as far as the disk allows, and must be opened anew.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<u64, SinkFault> {
        if bytes.is_empty() {
            return Ok(self.bytes);
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => disk::create(&self.path)?,
        };
        let start: &[u8] = if self.bytes == 0 { self.kind.start() } else { b"" };
        let written = disk::append(&mut file, &self.path, start)
            .and_then(|()| disk::append(&mut file, &self.path, bytes))
            .and_then(|()| disk::sync(&file, &self.path));
        if let Err(fault) = written {
            // Best effort: what stays is longer than the journal tells, and is cut at the next opening.
            file.set_len(self.bytes).ok();
            return Err(fault);
        }
        self.bytes += (start.len() + bytes.len()) as u64;
        if let Some(checksum) = &mut self.checksum {
            checksum.update(start);
            checksum.update(bytes);
        }
        self.file = Some(file);
        Ok(self.bytes)
    }

    /// Whether nobody else moved, cut or wrote to it.
    pub(super) fn is_untouched(&self) -> bool {
        self.file.as_ref().is_none_or(|file| disk::is_untouched(file, &self.path, self.bytes))
    }

    /// Whether `bytes` of it are there.
    pub(super) fn can_hold(&self, bytes: u64) -> Result<bool, SinkFault> {
        Ok(bytes == 0 || disk::length(&self.path)?.is_some_and(|length| length >= bytes))
    }

    /// Goes on with the first `bytes` of what is there, and cuts off the rest.
    pub(super) fn resume(&mut self, bytes: u64) -> Result<(), SinkFault> {
        self.bytes = bytes;
        self.checksum = None;
        match disk::length(&self.path)? {
            None => return Ok(()),
            Some(_) if bytes == 0 => {
                self.checksum = Some(Sha256::new());
                return disk::remove(&self.path);
            }
            Some(present) if present > bytes => disk::cut(&self.path, bytes)?,
            Some(_) => {}
        }
        self.file = Some(disk::reopen(&self.path)?);
        Ok(())
    }

    /// Goes on with a publication that was cut off after `bytes` were whole: the part may have its final name by now,
    /// or a reader may have taken it.
    pub(super) fn resume_publishing(&mut self, bytes: u64) -> Result<(), SinkFault> {
        let is_growing = disk::length(&self.path)?.is_some();
        let whole = if is_growing && !self.can_hold(bytes)? { self.whole_length()? } else { bytes };
        self.resume(whole)
    }

    /// Removes what was never confirmed.
    pub(super) fn discard(&self) -> Result<(), SinkFault> {
        disk::remove(&self.path)
    }

    /// Ends the document, durably. Nothing to do when it has its final name already.
    pub(super) fn end(&mut self) -> Result<(), SinkFault> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let end = self.kind.end();
        let ended = disk::append(file, &self.path, end).and_then(|()| disk::sync(file, &self.path));
        if let Err(fault) = ended {
            file.set_len(self.bytes).ok();
            return Err(fault);
        }
        if let Some(checksum) = &mut self.checksum {
            checksum.update(end);
        }
        Ok(())
    }

    /// Gives the ended document its final name; returns its length and checksum, `None` when there is nothing, or when
    /// a reader took it already.
    pub(super) fn publish(&mut self) -> Result<Option<(u64, String)>, SinkFault> {
        if self.bytes == 0 {
            return Ok(None);
        }
        if self.file.take().is_some() {
            disk::publish(&self.path, &self.published)?;
        }
        let Some(length) = disk::length(&self.published)? else { return Ok(None) };
        let checksum = match self.checksum.take() {
            Some(checksum) => checksum,
            None => disk::checksum(&self.published, length)?,
        };
        Ok(Some((length, disk::checksum_text(&checksum))))
    }

    /// The lines of what is there: the record numbers of a list.
    pub(super) fn lines(&self) -> Result<HashSet<String>, SinkFault> {
        if self.bytes == 0 {
            return Ok(HashSet::new());
        }
        let text = disk::read(&self.path)?;
        Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
    }

    /// How much of what is there is whole, when nothing else tells.
    pub(super) fn whole_length(&self) -> Result<u64, SinkFault> {
        if !disk::starts_with(&self.path, self.kind.start())? {
            return Ok(0);
        }
        let mut whole = 0;
        disk::for_each_line(&self.path, |line, end| {
            if line.ends_with(self.kind.entry_end()) {
                whole = end;
            }
        })?;
        Ok(whole)
    }

    /// Length, checksum and number of entries of the published file.
    pub(super) fn describe_published(&self) -> Result<(u64, String, u64), SinkFault> {
        let (mut length, mut count) = (0, 0);
        disk::for_each_line(&self.published, |line, end| {
            length = end;
            count += u64::from(line.ends_with(self.kind.entry_end()));
        })?;
        let checksum = disk::checksum(&self.published, length)?;
        Ok((length, disk::checksum_text(&checksum), count))
    }
}
