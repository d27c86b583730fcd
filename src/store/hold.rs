//! An operator's word that no call may go to Sierra, in `<state>/hold` beside the database.
//!
//! The breaker itself is in the store, and decides. This file is for whoever must heed the word without opening the
//! store, which only one process can, and which writes: `check`.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::holder::write_private;
use crate::sync::StoreError;
use crate::sync::ports::StoreErrorKind;

const NAME: &str = "hold";

/// An operator's word that no call may go to Sierra.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerHold {
    /// Who said so, as far as it is known.
    pub by: Option<String>,
    /// Why.
    pub reason: String,
    /// Until when it holds; `None` until the breaker is closed.
    pub until: Option<Timestamp>,
}

impl BreakerHold {
    /// The word that stands for `state` at `now`, if there is one. Writes nothing.
    ///
    /// # Errors
    /// When it cannot be read: nobody knows then whether calls may go.
    pub fn of(state: &Path, now: Timestamp) -> Result<Option<Self>, StoreError> {
        let path = state.join(NAME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(failed("read", &path, error)),
        };
        let hold: Self = serde_json::from_slice(&bytes).map_err(|error| failed("understand", &path, error.into()))?;
        // One that has run out is over, also where nobody took it away.
        Ok(Some(hold).filter(|hold| hold.until.is_none_or(|until| until > now)))
    }

    /// Keeps it for `state`, in place of an earlier one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, state: &Path) -> Result<(), StoreError> {
        let path = state.join(NAME);
        let written = serde_json::to_vec(self).map_err(io::Error::from).and_then(|text| write_private(&path, &text));
        written.map_err(|error| failed("write", &path, error))
    }

    /// Takes back what stands for `state`.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn take_back(state: &Path) -> Result<(), StoreError> {
        let path = state.join(NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", &path, error)),
            _ => Ok(()),
        }
    }
}

fn failed(what: &str, path: &Path, error: io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Io, format!("{what} {}", path.display())).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_stands_until_it_runs_out_or_is_taken_back_and_is_never_guessed() {
        let state = tempfile::tempdir().expect("a directory");
        let (state, now) = (state.path(), Timestamp::UNIX_EPOCH);
        let later = |seconds| Timestamp::from_second(seconds).expect("a date");
        assert_eq!(BreakerHold::of(state, now).expect("none"), None);
        let hold = BreakerHold { by: Some("ann".into()), reason: "upgrade".into(), until: Some(later(60)) };
        hold.keep(state).expect("written");
        assert_eq!(BreakerHold::of(state, later(59)).expect("legible"), Some(hold.clone()));
        assert_eq!(BreakerHold::of(state, later(60)).expect("legible"), None);
        BreakerHold { until: None, ..hold }.keep(state).expect("written");
        assert!(BreakerHold::of(state, later(1_000_000)).expect("legible").is_some());
        BreakerHold::take_back(state).expect("there");
        BreakerHold::take_back(state).expect("gone already");
        assert_eq!(BreakerHold::of(state, now).expect("none"), None);
        fs::write(state.join(NAME), "{\"by\":").expect("written");
        assert!(BreakerHold::of(state, now).is_err());
    }
}
