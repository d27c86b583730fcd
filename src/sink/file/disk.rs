//! What the file sink does to the disk, with errors that name the place.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::sink::error::SinkFault;

/// Files can be read by the group, so that a loader needs no other rights; never by everybody.
const FILE_MODE: u32 = 0o640;
const DIRECTORY_MODE: u32 = 0o750;

/// Makes a directory and those above it. Fine when it is there.
pub(super) fn make_directory(path: &Path) -> Result<(), SinkFault> {
    let missing: Vec<&Path> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    match DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path) {
        // A directory that a power failure takes back takes everything in it along.
        Ok(()) => missing.into_iter().try_for_each(sync_directory_of),
        Err(_) if path.exists() && !path.is_dir() => Err(SinkFault::NotADirectory { path: path.to_owned() }),
        Err(source) if source.kind() == io::ErrorKind::NotADirectory => {
            Err(SinkFault::NotADirectory { path: path.to_owned() })
        }
        Err(source) => Err(SinkFault::Io { action: "make the directory", path: path.to_owned(), source }),
    }
}

/// Makes a file that must not exist yet, to append to. Its name is durable when this returns.
pub(super) fn create(path: &Path) -> Result<File, SinkFault> {
    let file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
        .map_err(|source| SinkFault::Io { action: "make", path: path.to_owned(), source })?;
    sync_directory_of(path)?;
    Ok(file)
}

/// Opens a file that exists, to append to.
pub(super) fn reopen(path: &Path) -> Result<File, SinkFault> {
    OpenOptions::new().append(true).open(path).map_err(|source| SinkFault::Io {
        action: "open",
        path: path.to_owned(),
        source,
    })
}

/// Appends `bytes`; they are durable once [`sync`] returned.
pub(super) fn append(file: &mut File, path: &Path, bytes: &[u8]) -> Result<(), SinkFault> {
    file.write_all(bytes).map_err(|source| SinkFault::Io { action: "write to", path: path.to_owned(), source })
}

/// Makes what was appended durable.
pub(super) fn sync(file: &File, path: &Path) -> Result<(), SinkFault> {
    file.sync_data().map_err(|source| SinkFault::Io { action: "sync", path: path.to_owned(), source })
}

/// Cuts a file to `length` bytes, durably.
pub(super) fn cut(path: &Path, length: u64) -> Result<(), SinkFault> {
    let failed = |source| SinkFault::Io { action: "cut the torn end of", path: path.to_owned(), source };
    let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    file.set_len(length).map_err(failed)?;
    file.sync_all().map_err(failed)
}

/// Gives a file its final name, durably. Fails rather than replace anything.
pub(super) fn publish(from: &Path, to: &Path) -> Result<(), SinkFault> {
    if to.exists() {
        let source = io::Error::from(io::ErrorKind::AlreadyExists);
        return Err(SinkFault::Io { action: "publish", path: to.to_owned(), source });
    }
    fs::rename(from, to).map_err(|source| SinkFault::Io { action: "publish", path: to.to_owned(), source })?;
    sync_directory_of(to)
}

/// Replaces a file by new content so that readers see the old or the new one, never a part.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), SinkFault> {
    let failed = |source| SinkFault::Io { action: "write", path: path.to_owned(), source };
    let aside = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&aside).map_err(failed)?;
    let written = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&aside, path));
    if let Err(source) = written {
        // Best effort: what stays behind is replaced the next time.
        fs::remove_file(&aside).ok();
        return Err(failed(source));
    }
    sync_directory_of(path)
}

/// Removes a file; fine when it is gone.
pub(super) fn remove(path: &Path) -> Result<(), SinkFault> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(SinkFault::Io { action: "remove", path: path.to_owned(), source })
        }
        Err(_) => Ok(()),
        Ok(()) => sync_directory_of(path),
    }
}

/// The whole file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, SinkFault> {
    fs::read(path).map_err(|source| SinkFault::Io { action: "read", path: path.to_owned(), source })
}

/// Whether the file begins with `start`.
pub(super) fn starts_with(path: &Path, start: &[u8]) -> Result<bool, SinkFault> {
    let failed = |source| SinkFault::Io { action: "read", path: path.to_owned(), source };
    let mut begin = Vec::new();
    File::open(path).map_err(failed)?.take(start.len() as u64).read_to_end(&mut begin).map_err(failed)?;
    Ok(begin == start)
}

/// Shows each line, with its line feed if it has one, and where it ends.
pub(super) fn for_each_line(path: &Path, mut show: impl FnMut(&[u8], u64)) -> Result<(), SinkFault> {
    let failed = |source| SinkFault::Io { action: "read", path: path.to_owned(), source };
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path).map_err(failed)?);
    let (mut line, mut end) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            return Ok(());
        }
        end += read as u64;
        show(&line, end);
    }
}

/// The length of the file, `None` when there is none.
pub(super) fn length(path: &Path) -> Result<Option<u64>, SinkFault> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SinkFault::Io { action: "look at", path: path.to_owned(), source }),
    }
}

/// Whether `path` still names `file` and nobody else wrote to it or cut it.
pub(super) fn is_untouched(file: &File, path: &Path, length: u64) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.ino(), open.dev()) == (named.ino(), named.dev()) && named.len() == length,
        _ => false,
    }
}

/// The names in a directory, none when there is no directory.
pub(super) fn names(directory: &Path) -> Result<Vec<String>, SinkFault> {
    let failed = |source| SinkFault::Io { action: "list", path: directory.to_owned(), source };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        // A name that is not UTF-8 is not one of ours.
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}

/// A running checksum over the first `length` bytes of a file.
pub(super) fn checksum(path: &Path, length: u64) -> Result<Sha256, SinkFault> {
    let failed = |source| SinkFault::Io { action: "read", path: path.to_owned(), source };
    let mut file = File::open(path).map_err(failed)?.take(length);
    let mut hasher = Sha256::new();
    io::copy(&mut file, &mut hasher).map_err(failed)?;
    Ok(hasher)
}

/// The written form of a checksum, as `sha256sum` prints it.
pub(super) fn checksum_text(hasher: &Sha256) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(64);
    for byte in hasher.clone().finalize() {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

fn sync_directory_of(path: &Path) -> Result<(), SinkFault> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory: PathBuf = parent.unwrap_or(Path::new(".")).to_owned();
    File::open(&directory).and_then(|open| open.sync_all()).map_err(|source| SinkFault::Io {
        action: "sync the directory",
        path: directory,
        source,
    })
}
