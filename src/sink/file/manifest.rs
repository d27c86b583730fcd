//! The manifest: what is in the directory, for readers to check and for the sink to go on from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::disk;
use super::loss::Loss;
use crate::record::Stream;
use crate::sink::error::SinkFault;
use crate::sync::Seq;

const SCHEMA: u64 = 1;
pub(in crate::sink) const NAME: &str = "manifest.json";
/// Added to a file's name it makes the name of the mark that a reader leaves when it takes the file away.
const MARK: &str = "taken";

/// `manifest.json`. Written whole and atomically, after every delivery run that changed something.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    schema: u64,
    /// The sink's name when it was written.
    pub(super) sink: String,
    /// `ndjson` or `marcxml`.
    pub(super) format: String,
    /// The highest seq held for each stream, in files that readers have taken away too.
    highest_seq: BTreeMap<Stream, Seq>,
    /// For each stream, the changes in files that readers have taken away and said so.
    #[serde(default)]
    taken: BTreeMap<Stream, u64>,
    /// The files that went, or were cut, without a word.
    #[serde(default)]
    lost: Vec<Loss>,
    /// The files that are there, in the order in which they are to be read.
    files: Vec<FileEntry>,
    /// Whether it says something else than what is on the disk.
    #[serde(skip)]
    is_changed: bool,
    /// Marks of readers that can go once the manifest tells the same.
    #[serde(skip)]
    marks: Vec<PathBuf>,
}

/// One file that readers may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry {
    /// Below the sink's directory, with `/`.
    pub(super) path: String,
    pub(super) stream: Stream,
    /// Whether it is finished: otherwise more will be appended to it.
    pub(super) complete: bool,
    pub(super) first_seq: Seq,
    /// `null` when it is not known any more: the manifest was lost.
    pub(super) last_seq: Option<Seq>,
    pub(super) upserts: u64,
    pub(super) deletes: u64,
    /// How many bytes of it this entry describes: all of them unless it is being appended to.
    pub(super) bytes: u64,
    /// Over these bytes.
    pub(super) sha256: String,
    /// When it was begun.
    pub(super) opened: Timestamp,
}

impl Manifest {
    /// An empty manifest.
    pub(super) fn new(sink: &str, format: &str) -> Self {
        Self {
            schema: SCHEMA,
            sink: sink.to_owned(),
            format: format.to_owned(),
            highest_seq: BTreeMap::new(),
            taken: BTreeMap::new(),
            lost: Vec::new(),
            files: Vec::new(),
            is_changed: true,
            marks: Vec::new(),
        }
    }

    /// Reads the manifest of `root`; `None` when there is none. One that cannot be read is set aside, since everything
    /// in it but the counts of old files can be found again.
    pub(super) fn read(root: &Path) -> Result<Option<Self>, SinkFault> {
        #[derive(Deserialize)]
        struct Version {
            schema: u64,
        }
        let path = Self::path(root);
        if disk::length(&path)?.is_none() {
            return Ok(None);
        }
        let text = disk::read(&path)?;
        if let Ok(Version { schema }) = serde_json::from_slice(&text)
            && schema > SCHEMA
        {
            return Err(SinkFault::NewerManifest { path, found: schema });
        }
        match serde_json::from_slice(&text) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) => {
                let aside = path.with_extension("json.damaged");
                disk::remove(&aside)?;
                disk::publish(&path, &aside)?;
                tracing::warn!(
                    event = "manifest_set_aside",
                    path = %aside.display(),
                    error = %error,
                    "the manifest of a file sink could not be read; it is rebuilt from the files"
                );
                Ok(None)
            }
        }
    }

    /// Replaces the manifest of `root`, if it says something new.
    pub(super) fn write(&mut self, root: &Path) -> Result<(), SinkFault> {
        if !self.is_changed {
            return Ok(());
        }
        let mut text = serde_json::to_vec_pretty(self).expect("a manifest is always JSON");
        text.push(b'\n');
        disk::replace(&Self::path(root), &text)?;
        self.is_changed = false;
        std::mem::take(&mut self.marks).iter().try_for_each(|mark| disk::remove(mark))
    }

    /// Whether it lists no file.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The entry of a file, by its path below the directory.
    pub(super) fn entry(&self, path: &str) -> Option<&FileEntry> {
        self.files.iter().find(|entry| entry.path == path)
    }

    /// Forgets the files of `stream` that are gone. What readers marked as taken counts as held for ever; the rest is
    /// noted as lost, with the files that are shorter than they were. `lists_anew` says that these are forgotten, too:
    /// they are listed again as they are now.
    pub(super) fn sort_out(&mut self, root: &Path, stream: Stream, lists_anew: bool) -> Result<(), SinkFault> {
        let (of_stream, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.files).into_iter().partition(|entry| entry.stream == stream);
        self.files = others;
        for entry in of_stream {
            let (path, mark) = (root.join(&entry.path), root.join(format!("{}.{MARK}", entry.path)));
            let (changes, present) = (entry.upserts + entry.deletes, disk::length(&path)?);
            match present {
                None if disk::length(&mark)?.is_some() => {
                    *self.taken.entry(stream).or_default() += changes;
                    self.marks.push(mark);
                    self.is_changed = true;
                    continue;
                }
                Some(present) if present >= entry.bytes => {}
                _ => {
                    self.lose(Loss { path: entry.path.clone(), stream, changes, bytes: entry.bytes, present });
                    if present.is_none() || lists_anew {
                        continue;
                    }
                }
            }
            self.files.push(entry);
        }
        self.files.sort_by_key(|entry| (entry.stream, entry.first_seq));
        Ok(())
    }

    /// Notes a loss. Of two that speak of one file the greater counts.
    pub(super) fn lose(&mut self, loss: Loss) {
        self.is_changed = true;
        match self.lost.iter_mut().find(|known| known.path == loss.path) {
            Some(known) if known.bytes >= loss.bytes => {}
            Some(known) => *known = loss,
            None => self.lost.push(loss),
        }
    }

    /// What is lost, without the files that are whole again.
    pub(super) fn lost(&mut self) -> &[Loss] {
        let before = self.lost.len();
        let files = &self.files;
        let is_whole = |loss: &Loss| files.iter().any(|file| file.path == loss.path && file.bytes >= loss.bytes);
        self.lost.retain(|loss| !is_whole(loss));
        self.is_changed |= self.lost.len() != before;
        &self.lost
    }

    /// Forgets what is lost.
    pub(super) fn forget_lost(&mut self) {
        self.is_changed |= !self.lost.is_empty();
        self.lost.clear();
    }

    /// Whether every file of `stream` is there, and no shorter than it was.
    pub(super) fn is_true(&self, root: &Path, stream: Stream) -> Result<bool, SinkFault> {
        for entry in self.files.iter().filter(|entry| entry.stream == stream) {
            if disk::length(&root.join(&entry.path))?.is_none_or(|present| present < entry.bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The changes in the listed files of `stream`, the file at `besides` left out.
    pub(super) fn changes(&self, stream: Stream, besides: Option<&str>) -> u64 {
        let of_stream =
            self.files.iter().filter(|entry| entry.stream == stream && Some(entry.path.as_str()) != besides);
        of_stream.map(|entry| entry.upserts + entry.deletes).sum()
    }

    /// The changes of each stream in files that readers took away.
    pub(super) fn taken(&self) -> &BTreeMap<Stream, u64> {
        &self.taken
    }

    /// Takes over what was known to be taken from a manifest that was lost since.
    pub(super) fn recall_taken(&mut self, taken: &BTreeMap<Stream, u64>) {
        for (stream, changes) in taken {
            let known = self.taken.entry(*stream).or_default();
            self.is_changed |= *known < *changes;
            *known = (*known).max(*changes);
        }
    }

    /// Forgets one file.
    pub(super) fn forget(&mut self, path: &str) {
        let before = self.files.len();
        self.files.retain(|entry| entry.path != path);
        self.is_changed |= self.files.len() != before;
    }

    /// Puts an entry in the place of the one with the same path, or in its place in the order.
    pub(super) fn put(&mut self, entry: FileEntry) {
        self.is_changed = true;
        if let Some(last) = entry.last_seq {
            self.raise(entry.stream, last);
        }
        match self.files.iter_mut().find(|present| present.path == entry.path) {
            Some(present) => *present = entry,
            None => {
                self.files.push(entry);
                self.files.sort_by_key(|entry| (entry.stream, entry.first_seq));
            }
        }
    }

    /// Notes that `seq` is held.
    pub(super) fn raise(&mut self, stream: Stream, seq: Seq) {
        if seq > self.highest(stream) {
            self.highest_seq.insert(stream, seq);
            self.is_changed = true;
        }
    }

    /// Notes that nothing above `seq` is held any more.
    pub(super) fn lower(&mut self, stream: Stream, seq: Seq) {
        self.highest_seq.insert(stream, seq);
        self.is_changed = true;
    }

    /// The highest seq held in any stream, [`Seq::ZERO`] if none.
    pub(super) fn highest_of_all(&self) -> Seq {
        self.highest_seq.values().copied().max().unwrap_or(Seq::ZERO)
    }

    /// The highest seq held for `stream`, [`Seq::ZERO`] if none.
    pub(super) fn highest(&self, stream: Stream) -> Seq {
        self.highest_seq.get(&stream).copied().unwrap_or(Seq::ZERO)
    }

    fn path(root: &Path) -> PathBuf {
        root.join(NAME)
    }
}

/// The number in `<first-seq>.<extension>`.
pub(super) fn first_seq(name: &str, extension: &str) -> Option<Seq> {
    let number = name.strip_suffix(extension)?.strip_suffix('.')?;
    if number.bytes().all(|byte| byte.is_ascii_digit()) { number.parse().ok().and_then(Seq::new) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_have_a_first_seq() {
        assert_eq!(first_seq("17.ndjson", "ndjson"), Seq::new(17));
        assert_eq!(first_seq("17.deletes.txt.part", "deletes.txt.part"), Seq::new(17));
        for name in
            ["ndjson", ".ndjson", "+7.ndjson", "a.ndjson", "17ndjson", "17.xml", "9007199254740992.ndjson", "1 .ndjson"]
        {
            assert_eq!(first_seq(name, "ndjson"), None, "{name}");
        }
    }
}
