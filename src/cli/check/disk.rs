//! Whether there is a place for the state and for files, and room in it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{ProbeLine, Tell};
use crate::cli::exit::Exit;
use crate::config::Config;
use crate::sink::SinkSettings;

/// Looks at the state directory and at the directory of each file sink.
pub(super) fn probe(config: &Config, tell: &mut Tell<'_>) {
    for line in state(&config.store.path, config.store.min_free) {
        tell.line(&line);
    }
    for (name, sink) in &config.sinks {
        if let SinkSettings::File(file) = &sink.sink {
            let probe = format!("directory of {name}");
            let line = match writable(&file.path) {
                Ok(_) if file.path.exists() => {
                    ProbeLine::good(&probe, format!("{} can be written to", file.path.display()))
                }
                Ok(existing) => {
                    let (path, existing) = (file.path.display(), existing.display());
                    ProbeLine::good(&probe, format!("{path} can be made in {existing}, and will be by the first run"))
                }
                Err(error) => unwritable(&probe, &file.path, &error, Exit::Unavailable),
            };
            tell.line(&line);
        }
    }
}

fn state(path: &Path, min_free: u64) -> Vec<ProbeLine> {
    let existing = match writable(path) {
        Ok(existing) => existing,
        Err(error) => return vec![unwritable("state", path, &error, Exit::StoreFailed)],
    };
    let mut lines = Vec::new();
    let mode = fs::metadata(path).map(|metadata| metadata.permissions().mode()).unwrap_or(0o700);
    let shown = path.display();
    lines.push(if mode & 0o077 == 0 {
        ProbeLine::good("state", format!("{shown} can be written to"))
    } else {
        let hint = format!("run: chmod 700 {shown}");
        ProbeLine::note("state", format!("{shown} is open to other users of this machine"), hint)
    });
    lines.push(match fs4::available_space(&existing) {
        Ok(free) if free < min_free => {
            let message = format!("{} MiB are free, less than min_free ({} MiB)", free >> 20, min_free >> 20);
            ProbeLine::bad(
                "disk",
                message,
                Some("free some space, or lower state.min_free".to_owned()),
                Exit::StoreFailed,
            )
        }
        Ok(free) => ProbeLine::good("disk", format!("{} MiB are free", free >> 20)),
        Err(error) => {
            let message = format!("the free space at {} is unknown: {error}", existing.display());
            ProbeLine::note("disk", message, "make sure by hand that there is room")
        }
    });
    lines
}

/// The innermost directory of `path` that exists, if files can be made in it. Tried with a file that is removed at
/// once: permission bits alone do not tell of read-only mounts or full disks.
fn writable(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let existing = absolute.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    if !existing.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is not a directory", existing.display())));
    }
    let trial = existing.join(format!(".sierra-sync-check-{}", std::process::id()));
    fs::OpenOptions::new().write(true).create_new(true).open(&trial)?;
    fs::remove_file(&trial)?;
    Ok(existing.to_owned())
}

fn unwritable(probe: &str, path: &Path, error: &io::Error, exit: Exit) -> ProbeLine {
    let message = format!("{} cannot be written to: {error}", path.display());
    let hint = "give this user the right to write there, or name another directory".to_owned();
    ProbeLine::bad(probe, message, Some(hint), exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_way_is_not_a_directory_and_nothing_is_left_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        fs::write(&file, "x").expect("a file");
        assert_eq!(writable(&file.join("below")).map_err(|error| error.kind()), Err(io::ErrorKind::NotADirectory));
        assert_eq!(writable(&directory.path().join("a/b")).expect("its parent exists"), directory.path());
        assert_eq!(fs::read_dir(directory.path()).expect("it is there").count(), 1);
    }

    #[test]
    fn a_state_open_to_others_is_noted_and_too_little_room_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let lines = state(directory.path(), u64::MAX);
        assert_eq!(lines.iter().map(|line| line.ok).collect::<Vec<_>>(), [true, false]);
        assert!(lines[0].hint.as_ref().is_some_and(|hint| hint.contains("chmod 700")));
        assert_eq!(lines[1].exit, Exit::StoreFailed);
    }
}
