//! A disk whose power fails: what was synced is there afterwards, and of the rest whatever the disk likes.
//!
//! A recording of a run is played onto it step by step. At any step it can be asked what a machine finds that loses its
//! power there: of every write since the last sync of its file nothing, all, the first part in order, or any 512-byte
//! sectors; and of names that were given since then likewise.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::iter::Peekable;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use rand::RngExt;
use rand::rngs::StdRng;
use sierra_sync::seed::RootSeed;

use super::strace::{self, Call, Step};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// How many losses of power a test tries, and its chance: as the environment says, else `usual` ones from seed 1. Says so;
/// `None`, and says why, where runs cannot be recorded.
pub(crate) fn losses_asked_for(usual: usize) -> Option<(usize, StdRng)> {
    if !strace::works() {
        println!("skipped: strace is not here, or may not trace");
        return None;
    }
    let number = |name: &str, otherwise: usize| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    let (losses, seed) = (number("SIERRA_SYNC_POWER_LOSSES", usual), number("SIERRA_SYNC_POWER_SEED", 1));
    println!("SIERRA_SYNC_POWER_LOSSES={losses} SIERRA_SYNC_POWER_SEED={seed}");
    Some((losses, RootSeed::new(seed as u64).generator("power")))
}

/// The steps of a recording at which the power fails, in order.
pub(crate) fn moments(losses: usize, steps: usize, random: &mut StdRng) -> Peekable<IntoIter<usize>> {
    let mut moments: Vec<usize> = (0..losses).map(|_| random.random_range(0..steps)).collect();
    moments.sort_unstable();
    moments.into_iter().peekable()
}

/// What a file system promises of names and lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// As with a journal (ext4, XFS, btrfs): names survive in the order in which they were given, and any sync makes all
    /// earlier ones durable.
    Journal,
    /// Nothing but what POSIX says: a name is durable when its directory was synced, and a file may be longer than what
    /// was written of it, with zeros in between.
    Posix,
}

/// The disk, as the programs see it and as it is.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    root: PathBuf,
    files: Vec<File>,
    /// What programs see.
    names: Names,
    /// What is surely there after a loss of power.
    durable: Names,
    /// Names given and taken since, in order.
    unsynced: Vec<(usize, Naming)>,
    namings: usize,
    /// So many namings a journal has made durable.
    journalled: usize,
    under_way: HashMap<usize, UnderWay>,
}

type Names = BTreeMap<PathBuf, Entry>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Directory,
    File(usize),
}

#[derive(Debug, Clone)]
enum Naming {
    Give(PathBuf, Entry),
    Take(PathBuf),
    Move(PathBuf, PathBuf),
}

#[derive(Debug, Default)]
struct File {
    durable: Vec<u8>,
    /// Changes since the last sync, in order, by the number of their call.
    unsynced: Vec<(usize, Change)>,
    length: u64,
    next_write: u64,
    /// Whether writes go to the end, wherever anybody reads meanwhile.
    is_appended_to: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: u64, bytes: Vec<u8>, is_done: bool },
    Length(u64),
}

#[derive(Debug)]
enum UnderWay {
    Call(Call),
    /// A sync makes durable what was done when it began.
    Sync {
        path: PathBuf,
        changes: Vec<usize>,
        namings: usize,
    },
}

impl Disk {
    /// A disk that holds what is below `root` now, all of it durable. What lies elsewhere is not looked at.
    pub(crate) fn holding(root: &Path) -> Self {
        let mut disk = Self { root: root.to_owned(), ..Self::default() };
        let mut left = vec![root.to_owned()];
        while let Some(path) = left.pop() {
            let entry = if path.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Entry::Directory
            } else {
                let durable = fs::read(&path).unwrap();
                disk.files.push(File { length: durable.len() as u64, durable, ..File::default() });
                Entry::File(disk.files.len() - 1)
            };
            disk.names.insert(path, entry);
        }
        disk.durable = disk.names.clone();
        disk
    }

    /// An empty disk, whose directory `root` is there for good.
    pub(crate) fn empty(root: &Path) -> Self {
        let names = Names::from([(root.to_owned(), Entry::Directory)]);
        Self { root: root.to_owned(), durable: names.clone(), names, ..Self::default() }
    }

    /// Plays one step of a recording.
    pub(crate) fn play(&mut self, step: &Step) {
        match step {
            Step::Begun(number, call) => self.begin(*number, call),
            Step::Done(number, returned) => match self.under_way.remove(number) {
                Some(UnderWay::Sync { path, changes, namings }) => self.synced(&path, &changes, namings),
                Some(UnderWay::Call(call)) => self.end(*number, call, *returned),
                None => {}
            },
            Step::Failed(number) => {
                if let Some(UnderWay::Call(Call::Write { path, .. })) = self.under_way.remove(number)
                    && let Some(file) = self.file(&path)
                {
                    file.unsynced.retain(|(call, _)| call != number);
                }
            }
        }
    }

    /// What is found below the root after a loss of power now, put below `target`.
    pub(crate) fn lose_power(&self, promise: Promise, random: &mut StdRng, target: &Path) {
        let mut names = self.durable.clone();
        let kept = random.random_range(self.journalled..=self.namings);
        for (number, naming) in &self.unsynced {
            let survives = match promise {
                Promise::Journal => *number < kept,
                Promise::Posix => random.random_bool(0.5),
            };
            if survives {
                apply(&mut names, naming);
            }
        }
        for (path, entry) in &names {
            let Ok(below) = path.strip_prefix(&self.root) else { continue };
            // What lies in a directory that is gone cannot be reached.
            let is_reached = target.join(below).parent().is_some_and(Path::is_dir);
            let mode = match entry {
                Entry::Directory if is_reached => {
                    fs::create_dir_all(target.join(below)).unwrap();
                    0o700
                }
                Entry::File(index) if is_reached => {
                    fs::write(target.join(below), self.files[*index].after_loss(promise, random)).unwrap();
                    0o600
                }
                _ => continue,
            };
            fs::set_permissions(target.join(below), fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    fn begin(&mut self, number: usize, call: &Call) {
        let under_way = match call {
            Call::Said(_) => return,
            Call::Sync { path } => {
                let is_done = |change: &Change| !matches!(change, Change::Write { is_done: false, .. });
                let done = self.file(path).map(|file| {
                    file.unsynced.iter().filter(|(_, change)| is_done(change)).map(|(call, _)| *call).collect()
                });
                UnderWay::Sync { path: path.clone(), changes: done.unwrap_or_default(), namings: self.namings }
            }
            Call::Write { path, at, bytes } => {
                let Some(file) = self.file(path) else { return };
                let at = at.unwrap_or(if file.is_appended_to { file.length } else { file.next_write });
                file.unsynced.push((number, Change::Write { at, bytes: bytes.clone(), is_done: false }));
                file.next_write = at + bytes.len() as u64;
                file.length = file.length.max(file.next_write);
                UnderWay::Call(call.clone())
            }
            call => UnderWay::Call(call.clone()),
        };
        self.under_way.insert(number, under_way);
    }

    fn end(&mut self, number: usize, call: Call, returned: u64) {
        match call {
            Call::Open { path, is_made, is_emptied, is_appended_to } => {
                if is_made && !self.names.contains_key(&path) && path.starts_with(&self.root) {
                    self.files.push(File::default());
                    self.name(Naming::Give(path.clone(), Entry::File(self.files.len() - 1)));
                }
                let Some(file) = self.file(&path) else { return };
                if is_emptied && file.length > 0 {
                    file.unsynced.push((number, Change::Length(0)));
                    file.length = 0;
                }
                (file.next_write, file.is_appended_to) = (0, is_appended_to);
            }
            Call::Seek { path } => {
                if let Some(file) = self.file(&path) {
                    file.next_write = returned;
                }
            }
            Call::Write { path, .. } => {
                let Some(file) = self.file(&path) else { return };
                for (call, change) in &mut file.unsynced {
                    if let Change::Write { bytes, is_done, .. } = change
                        && *call == number
                    {
                        bytes.truncate(usize::try_from(returned).unwrap());
                        *is_done = true;
                    }
                }
            }
            Call::Length { path, bytes } => {
                if let Some(file) = self.file(&path) {
                    file.unsynced.push((number, Change::Length(bytes)));
                    file.length = bytes;
                }
            }
            Call::Rename { from, to } if self.names.contains_key(&from) => self.name(Naming::Move(from, to)),
            Call::Remove { path } if self.names.contains_key(&path) => self.name(Naming::Take(path)),
            Call::MakeDirectory { path } if path.starts_with(&self.root) => {
                self.name(Naming::Give(path, Entry::Directory));
            }
            _ => {}
        }
    }

    fn synced(&mut self, path: &Path, changes: &[usize], namings: usize) {
        let Some(entry) = self.names.get(path).copied() else { return };
        if let Entry::File(index) = entry {
            let file = &mut self.files[index];
            let is_synced = |(call, _): &(usize, Change)| changes.contains(call);
            let (done, left): (Vec<_>, Vec<_>) = std::mem::take(&mut file.unsynced).into_iter().partition(is_synced);
            file.unsynced = left;
            done.iter().for_each(|(_, change)| change.apply(&mut file.durable, |_| true));
        }
        self.journalled = self.journalled.max(namings);
        let is_synced = |(number, naming): &(usize, Naming)| *number < namings && naming.is_in(path);
        let (done, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.unsynced).into_iter().partition(is_synced);
        self.unsynced = left;
        done.iter().for_each(|(_, naming)| apply(&mut self.durable, naming));
    }

    fn name(&mut self, naming: Naming) {
        apply(&mut self.names, &naming);
        self.unsynced.push((self.namings, naming));
        self.namings += 1;
    }

    fn file(&mut self, path: &Path) -> Option<&mut File> {
        match self.names.get(path)? {
            Entry::File(index) => self.files.get_mut(*index),
            Entry::Directory => None,
        }
    }
}

impl Naming {
    /// Whether a sync of `directory` is about it.
    fn is_in(&self, directory: &Path) -> bool {
        match self {
            Self::Give(path, _) | Self::Take(path) => path.parent() == Some(directory),
            Self::Move(from, to) => from.parent() == Some(directory) || to.parent() == Some(directory),
        }
    }
}

fn apply(names: &mut Names, naming: &Naming) {
    match naming {
        Naming::Give(path, entry) => {
            names.insert(path.clone(), *entry);
        }
        Naming::Take(path) => {
            names.remove(path);
        }
        Naming::Move(from, to) => {
            let moved: Vec<PathBuf> = names.keys().filter(|path| path.starts_with(from)).cloned().collect();
            for path in moved {
                let Some(entry) = names.remove(&path) else { continue };
                let below = path.strip_prefix(from).unwrap();
                // Joined with nothing a path would end in a slash.
                let place = if below.as_os_str().is_empty() { to.clone() } else { to.join(below) };
                names.insert(place, entry);
            }
        }
    }
}

impl File {
    fn after_loss(&self, promise: Promise, random: &mut StdRng) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let unsynced = self.unsynced.len();
        match random.random_range(0..4) {
            0 => {}
            1 => self.unsynced.iter().for_each(|(_, change)| change.apply(&mut bytes, |_| true)),
            2 => {
                let kept = random.random_range(0..=unsynced);
                self.unsynced.iter().take(kept).for_each(|(_, change)| change.apply(&mut bytes, |_| true));
                if let Some((_, torn)) = self.unsynced.get(kept) {
                    let sectors = random.random_range(0..64);
                    torn.apply(&mut bytes, |sector| sector < sectors);
                }
            }
            _ => {
                let chance = random.random_range(0.0..1.0);
                for (_, change) in &self.unsynced {
                    let is_whole = random.random_bool(0.5);
                    let survives = random.random_bool(chance);
                    change.apply(&mut bytes, |_| if is_whole { survives } else { random.random_bool(chance) });
                }
            }
        }
        if promise == Promise::Posix && random.random_bool(0.5) {
            let length = usize::try_from(self.length).unwrap();
            bytes.resize(length.max(bytes.len()), 0);
        }
        bytes
    }
}

impl Change {
    /// Does it to `bytes`, as far as its sectors are kept; a length as if it were one.
    fn apply(&self, bytes: &mut Vec<u8>, mut is_kept: impl FnMut(usize) -> bool) {
        match self {
            Self::Length(length) => {
                if is_kept(0) {
                    bytes.resize(usize::try_from(*length).unwrap(), 0);
                }
            }
            Self::Write { at, bytes: written, .. } => {
                let at = usize::try_from(*at).unwrap();
                for (sector, piece) in written.chunks(SECTOR).enumerate() {
                    if is_kept(sector) {
                        let (from, to) = (at + sector * SECTOR, at + sector * SECTOR + piece.len());
                        bytes.resize(bytes.len().max(to), 0);
                        bytes[from..to].copy_from_slice(piece);
                    }
                }
            }
        }
    }
}
