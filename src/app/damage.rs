//! A state that is damaged: set aside, with what can be read of it beside it, and a new one begun that owes a rebuild.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::clock::SharedClock;
use crate::privacy::Keyring;
use crate::record::Stream;
use crate::sink::event;
use crate::store::disk::{self, Aside, Salvage, Salvaged};
use crate::store::{SledStore, StoreSettings};
use crate::sync::observer::{Event, SharedObserver};
use crate::sync::ports::{Snapshot, Store, StoreErrorKind};
use crate::sync::{Seq, StoreError};

use super::quarantine;

/// What a new state takes over from the one before: what protects Sierra and the key, and what people did. Everything
/// else comes from Sierra again.
const TAKEN_OVER: [Snapshot; 5] =
    [Snapshot::Breaker, Snapshot::Quota, Snapshot::Latch, Snapshot::Actions, Snapshot::History];

/// Opens the store. One that is damaged is set aside first, and a new one is begun; says where it was set aside, if this
/// opening did that.
///
/// # Errors
/// Those of opening, and of setting aside: a state that is damaged again and again is left as it is.
pub(super) fn open_or_begin_anew(
    settings: &StoreSettings,
    keyring: &Arc<Keyring>,
    clock: &SharedClock,
    observer: &SharedObserver,
) -> Result<(SledStore, Option<String>), StoreError> {
    let open = || SledStore::open(settings, Arc::clone(keyring), Arc::clone(clock));
    let store = match open() {
        Err(why) if why.kind == StoreErrorKind::Corrupt => {
            disk::set_aside(&settings.path, &why, clock.now())?;
            open()?
        }
        opened => opened?,
    };
    // Also after a crash in the midst of this.
    let Some(aside) = disk::owed(&settings.path)? else { return Ok((store, None)) };
    take_over(&store, keyring, &aside)?;
    disk::settled(&settings.path)?;
    let (place, why) = (aside.directory.display().to_string(), aside.damage.why);
    observer.observe(&Event::StateSetAside { place: place.clone(), why });
    Ok((store, Some(place)))
}

/// Whether `error` says that the state is damaged.
pub(super) fn is_damage(error: &anyhow::Error) -> bool {
    kind(error) == Some(&StoreErrorKind::Corrupt)
}

/// What kind of failure of the store `error` is, if it is one.
pub(super) fn kind(error: &anyhow::Error) -> Option<&StoreErrorKind> {
    error.chain().find_map(|cause| cause.downcast_ref::<StoreError>()).map(|error| &error.kind)
}

/// Writes what can be read of the old state beside it, and lets the new one begin where it ended.
fn take_over(store: &SledStore, keyring: &Keyring, aside: &Aside) -> Result<(), StoreError> {
    let mut export = Export::beside(&aside.directory);
    let mut taken_over = Vec::new();
    let salvaged = disk::salvage(&aside.directory.join("db"), keyring, |found| match found {
        Salvaged::Snapshot(name, value) => {
            if TAKEN_OVER.contains(&name) {
                taken_over.push((name, value));
            }
        }
        found => export.add(&found),
    });
    // Whatever a sink holds that cannot tell: no new change may get an older seq.
    let last = salvaged.as_ref().map_or(Seq::ZERO, |salvage| salvage.last).max(aside.last);
    store.raise_seq(last.next())?;
    for (name, value) in taken_over {
        store.save_snapshot(name, &value)?;
    }
    aside.damage.owe_rebuild(store)?;
    export.end(salvaged.as_ref().ok(), &aside.damage.why);
    Ok(())
}

/// What was readable, for people: the new state does not need it, so that no failure to write it keeps that from work.
struct Export {
    changes: io::Result<BufWriter<File>>,
    quarantine: io::Result<BufWriter<File>>,
    report: io::Result<File>,
    counted: Counted,
}

#[derive(Default)]
struct Counted {
    changes: u64,
    quarantined: u64,
    of_patrons: u64,
}

impl Export {
    fn beside(directory: &Path) -> Self {
        let make = |name| {
            let path = directory.join(name);
            OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)
        };
        Self {
            changes: make("changes.ndjson").map(BufWriter::new),
            quarantine: make("quarantine.ndjson").map(BufWriter::new),
            report: make("report.json"),
            counted: Counted::default(),
        }
    }

    fn add(&mut self, found: &Salvaged) {
        let (file, mut line) = match found {
            // What is sealed stays sealed: it lies in the database that was set aside.
            Salvaged::Change(change) if change.stream == Stream::Patrons => return self.counted.of_patrons += 1,
            Salvaged::Quarantined(entry) if entry.stream == Stream::Patrons => return self.counted.of_patrons += 1,
            Salvaged::Change(change) => {
                self.counted.changes += 1;
                let mut line = Vec::new();
                event::append_line(change, &mut line);
                line.pop();
                (&mut self.changes, line)
            }
            Salvaged::Quarantined(entry) => {
                self.counted.quarantined += 1;
                let line = serde_json::to_vec(&quarantine::shown(entry.as_ref().clone(), true)).unwrap_or_default();
                (&mut self.quarantine, line)
            }
            Salvaged::Snapshot(..) => return,
        };
        line.push(b'\n');
        let written = match file {
            Ok(writer) => writer.write_all(&line),
            Err(_) => return,
        };
        if let Err(error) = written {
            *file = Err(error);
        }
    }

    fn end(self, salvage: Option<&Salvage>, why: &str) {
        let Self { changes, quarantine, report, counted } = self;
        let text = serde_json::json!({
            "why": why,
            "is_readable": salvage.is_some(),
            "changes": counted.changes,
            "quarantined": counted.quarantined,
            "of_patrons_not_shown": counted.of_patrons,
            "unreadable": salvage.map(|salvage| salvage.unreadable),
            "last_seq": salvage.map(|salvage| salvage.last),
        });
        let written = [
            changes.and_then(|mut file| file.flush()),
            quarantine.and_then(|mut file| file.flush()),
            report.and_then(|mut file| file.write_all(text.to_string().as_bytes())),
        ];
        if let Some(error) = written.into_iter().find_map(Result::err) {
            tracing::warn!(
                event = "salvage_not_written",
                "what could be read of the damaged state was not written beside it: {error}"
            );
        }
    }
}
