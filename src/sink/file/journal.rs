//! The journal beside a growing MARCXML collection: what of it is whole.
//!
//! XML has no place for a seq, so each batch is followed by one line here, written after the batch itself is synced
//! and synced before the batch is confirmed. After a crash the last sound line tells how long the files were then;
//! what is longer was never confirmed and is cut off.

use std::fs::File;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::disk;
use crate::sink::error::SinkFault;
use crate::sync::Seq;

const HEADER: &str = "sierra-sync-journal 1 ";
const PUBLISHING: &str = "publishing\n";

/// How far a pair of files is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Commit {
    /// The last change that it holds.
    pub(super) last: Seq,
    /// The length of the collection, without its end tag; 0 when there is none.
    pub(super) xml_bytes: u64,
    /// The length of the list of deletions; 0 when there is none.
    pub(super) deletes_bytes: u64,
    /// The records in the collection.
    pub(super) upserts: u64,
    /// The numbers in the list.
    pub(super) deletes: u64,
}

/// A journal that is being written.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Begins a journal for a pair begun at `opened`.
    pub(super) fn begin(path: PathBuf, opened: Timestamp) -> Result<Self, SinkFault> {
        let mut file = disk::create(&path)?;
        disk::append(&mut file, &path, format!("{HEADER}{opened}\n").as_bytes())?;
        disk::sync(&file, &path)?;
        Ok(Self { path, file })
    }

    /// Goes on with a journal whose sound part is `length` bytes long.
    pub(super) fn resume(path: PathBuf, length: u64) -> Result<Self, SinkFault> {
        if disk::length(&path)?.is_some_and(|present| present > length) {
            disk::cut(&path, length)?;
        }
        let file = disk::reopen(&path)?;
        Ok(Self { path, file })
    }

    /// Writes one line; what it tells is durable when this returns.
    pub(super) fn commit(&mut self, commit: &Commit) -> Result<(), SinkFault> {
        disk::append(&mut self.file, &self.path, line(commit).as_bytes())?;
        disk::sync(&self.file, &self.path)
    }

    /// Notes, durably, that the files are about to get their final names: from then on a reader may take them away.
    pub(super) fn publishing(&mut self) -> Result<(), SinkFault> {
        disk::append(&mut self.file, &self.path, PUBLISHING.as_bytes())?;
        disk::sync(&self.file, &self.path)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// What a journal tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// When the pair was begun; `None` when not even the header is whole.
    pub(super) opened: Option<Timestamp>,
    /// The sound lines, each with the length of the journal up to its end.
    pub(super) commits: Vec<(Commit, u64)>,
    /// Whether the files may have got their final names since the last commit.
    pub(super) is_publishing: bool,
}

/// Reads a journal, however torn.
pub(super) fn read(path: &Path) -> Result<Told, SinkFault> {
    Ok(parse(&disk::read(path)?))
}

fn parse(text: &[u8]) -> Told {
    let mut told = Told { opened: None, commits: Vec::new(), is_publishing: false };
    let mut length = 0;
    for piece in text.split_inclusive(|byte| *byte == b'\n') {
        let Some(line) = piece.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok()) else { break };
        length += piece.len() as u64;
        if told.opened.is_none() {
            told.opened = line.strip_prefix(HEADER).and_then(|opened| opened.parse().ok());
            if told.opened.is_none() {
                break;
            }
            continue;
        }
        if piece == PUBLISHING.as_bytes() {
            told.is_publishing = true;
            break;
        }
        match parse_line(line) {
            Some(commit) => told.commits.push((commit, length)),
            None => break,
        }
    }
    told
}

fn line(commit: &Commit) -> String {
    let Commit { last, xml_bytes, deletes_bytes, upserts, deletes } = commit;
    let told = format!("{last} {xml_bytes} {deletes_bytes} {upserts} {deletes}");
    let check = crc32fast::hash(told.as_bytes());
    format!("{told} {check:08x}\n")
}

fn parse_line(line: &str) -> Option<Commit> {
    let (told, check) = line.rsplit_once(' ')?;
    if check.len() != 8 || u32::from_str_radix(check, 16).ok()? != crc32fast::hash(told.as_bytes()) {
        return None;
    }
    let mut numbers = told.split(' ').map(|number| number.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let (last, xml_bytes, deletes_bytes, upserts, deletes) = (next()?, next()?, next()?, next()?, next()?);
    let commit = Commit { last: Seq::new(last)?, xml_bytes, deletes_bytes, upserts, deletes };
    if numbers.next().is_some() { None } else { Some(commit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(last: u64) -> Commit {
        Commit { last: Seq::new(last).unwrap(), xml_bytes: last * 10, deletes_bytes: 3, upserts: 2, deletes: 1 }
    }

    #[test]
    fn a_journal_cut_anywhere_tells_its_whole_lines_and_no_others() {
        let text = format!("{HEADER}2026-01-05T10:00:03Z\n{}{}", line(&commit(7)), line(&commit(12)));
        let whole = parse(text.as_bytes());
        assert_eq!(whole.commits.iter().map(|(commit, _)| *commit).collect::<Vec<_>>(), [commit(7), commit(12)]);
        assert_eq!(whole.commits.last().map(|(_, length)| *length), Some(text.len() as u64));
        for cut in 0..text.len() {
            let told = parse(&text.as_bytes()[..cut]);
            let lines = text[..cut].matches('\n').count();
            assert_eq!(told.commits.len(), lines.saturating_sub(1), "cut at {cut}");
            assert_eq!(told.opened.is_some(), lines > 0, "cut at {cut}");
        }
    }

    #[test]
    fn a_line_with_a_wrong_byte_ends_what_is_believed() {
        let good = line(&commit(7));
        for index in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[index] ^= 1;
            let mut text = format!("{HEADER}2026-01-05T10:00:03Z\n").into_bytes();
            text.extend_from_slice(&bad);
            text.extend_from_slice(line(&commit(12)).as_bytes());
            assert_eq!(parse(&text).commits, [], "byte {index}");
        }
    }
}
