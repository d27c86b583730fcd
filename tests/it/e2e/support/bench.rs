//! A directory in which the real binary runs, with an environment of its own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::run::{Run, Running};

/// A directory to run the binary in.
pub(crate) struct Bench {
    directory: TempDir,
    variables: BTreeMap<String, String>,
}

/// Every file below a directory with its mode and content: to compare, and to put elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Files(BTreeMap<PathBuf, (u32, Vec<u8>)>);

impl Bench {
    /// An empty directory and an empty environment.
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory"), variables: BTreeMap::new() }
    }

    /// Sets a variable of the environment.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Takes a variable out of the environment.
    pub(crate) fn unset(&mut self, name: &str) -> &mut Self {
        self.variables.remove(name);
        self
    }

    /// A path below the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file below the directory.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("it can be written");
        path
    }

    /// Starts the binary.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Running {
        Running::start(self.directory.path(), &self.variables, arguments)
    }

    /// Starts the binary under what `shell` sets up first, such as limits.
    pub(crate) fn start_under<S: AsRef<OsStr>>(&self, shell: &str, arguments: &[S]) -> Running {
        Running::start_under(shell, self.directory.path(), &self.variables, arguments)
    }

    /// Starts the binary under a tracer, which is given the command that it is to run and ends as that ends.
    pub(crate) fn start_traced<S: AsRef<OsStr>>(&self, tracer: &str, arguments: &[S]) -> Running {
        Running::start_traced(tracer, self.directory.path(), &self.variables, arguments)
    }

    /// An empty directory with the same environment.
    pub(crate) fn another(&self) -> Self {
        Self { variables: self.variables.clone(), ..Self::new() }
    }

    /// Runs the binary to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Run {
        self.start(arguments).ended()
    }

    /// What is below `name` now; nothing when there is nothing.
    pub(crate) fn files(&self, name: &str) -> Files {
        Files::below(&self.path(name))
    }
}

impl Files {
    /// Reads everything below `root`.
    pub(crate) fn below(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut left = vec![PathBuf::new()];
        while let Some(relative) = left.pop() {
            let path = root.join(&relative);
            let Ok(metadata) = fs::metadata(&path) else { continue };
            let content = if metadata.is_dir() {
                let entries = fs::read_dir(&path).expect("it can be listed");
                left.extend(entries.map(|entry| relative.join(entry.expect("it can be listed").file_name())));
                Vec::new()
            } else {
                fs::read(&path).expect("it can be read")
            };
            files.insert(relative, (metadata.permissions().mode(), content));
        }
        Self(files)
    }

    /// Writes everything below `root` as it was.
    pub(crate) fn put(&self, root: &Path) {
        const DIRECTORY: u32 = 0o040_000;
        for (relative, (mode, content)) in &self.0 {
            let path = root.join(relative);
            if mode & DIRECTORY == 0 {
                fs::write(&path, content).expect("it can be written");
            } else {
                fs::create_dir_all(&path).expect("it can be made");
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o7777)).expect("it is ours");
        }
    }

    /// Each file and what is in it.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&Path, &[u8])> {
        self.0.iter().map(|(path, (_, content))| (path.as_path(), content.as_slice()))
    }
}
