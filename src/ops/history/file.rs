//! The file of samples: one a line, behind a checksum.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{COARSE_KEPT, Sample};

/// A file with more lines is written anew.
const LONGEST: usize = 2 * COARSE_KEPT;
/// No more of a file is read: a day is about 300 kB.
const MOST_BYTES: u64 = 8 << 20;

/// Where the samples are kept.
#[derive(Debug)]
pub(super) struct HistoryFile {
    path: PathBuf,
    lines: usize,
    /// Whether the last write failed, which was said then.
    is_failing: bool,
}

impl HistoryFile {
    /// The file at `path`. It is written anew at the first occasion, without what has become of no use.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), lines: usize::MAX, is_failing: false }
    }

    /// Every sample that can be read, in order. A file that cannot be read has none.
    pub(super) fn read(&self) -> Vec<Sample> {
        let Ok(file) = File::open(&self.path) else { return Vec::new() };
        let lines = BufReader::new(file.take(MOST_BYTES)).split(b'\n').map_while(Result::ok);
        let mut samples: Vec<Sample> = lines.filter_map(|line| parse(&line)).collect();
        samples.sort_by_key(|sample| sample.at);
        samples.dedup_by_key(|sample| sample.at);
        samples
    }

    /// Whether it is time to write it anew.
    pub(super) fn is_long(&self) -> bool {
        self.lines > LONGEST
    }

    /// Adds `samples`.
    pub(super) fn append(self, samples: &[Sample]) -> Self {
        if samples.is_empty() {
            return self;
        }
        let written =
            open(&self.path, OpenOptions::new().append(true)).and_then(|mut file| file.write_all(&text(samples)));
        let lines = self.lines.saturating_add(samples.len());
        Self { lines, ..self }.told(written)
    }

    /// Puts `samples` in the place of what is there.
    pub(super) fn rewrite(self, samples: &[Sample]) -> Self {
        let fresh = self.path.with_extension("new");
        let written = open(&fresh, OpenOptions::new().write(true).truncate(true))
            .and_then(|mut file| file.write_all(&text(samples)))
            .and_then(|()| fs::rename(&fresh, &self.path));
        Self { lines: samples.len(), ..self }.told(written)
    }

    fn told(self, written: io::Result<()>) -> Self {
        if let Err(error) = &written
            && !self.is_failing
        {
            let path = self.path.display();
            tracing::warn!(event = "history_not_kept", "failed to keep the dashboard's history in {path}: {error}");
        }
        Self { is_failing: written.is_err(), ..self }
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.create(true).mode(0o600).open(path)
}

fn text(samples: &[Sample]) -> Vec<u8> {
    let mut text = Vec::new();
    for sample in samples {
        let Ok(line) = serde_json::to_string(sample) else { continue };
        text.extend_from_slice(format!("{:08x} {line}\n", crc32fast::hash(line.as_bytes())).as_bytes());
    }
    text
}

fn parse(line: &[u8]) -> Option<Sample> {
    let (sum, line) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    (crc32fast::hash(line.as_bytes()) == sum).then(|| serde_json::from_str(line).ok())?
}
