//! The exit codes, for scripts that act on them. They follow `sysexits.h` where it has a word for the case.

use std::net::SocketAddr;
use std::process::ExitCode;

use crate::config::Problems;
use crate::ops::OpsError;
use crate::privacy::KeyFileError;
use crate::simulator::ScenarioError;
use crate::sync::ports::{SinkError, SourceError, SourceErrorKind, StoreError, StoreErrorKind};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: all went well.
    Ok,
    /// 2: the command line or the configuration is wrong; nothing was done.
    Usage,
    /// 3: this run left a gap or set a record aside.
    Incomplete,
    /// 69: Sierra or a sink is not available.
    Unavailable,
    /// 74: the store, or another local file, could not be read or written.
    StoreFailed,
    /// 75: try later: a long quota wait, or another process holds the state.
    TryLater,
    /// 77: Sierra refused the credentials.
    Credentials,
}

impl Exit {
    /// Gravest first: where several apply, the first of these is the process's.
    const PRECEDENCE: [Self; 7] = [
        Self::Usage,
        Self::Credentials,
        Self::StoreFailed,
        Self::Unavailable,
        Self::TryLater,
        Self::Incomplete,
        Self::Ok,
    ];

    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Unavailable => 69,
            Self::StoreFailed => 74,
            Self::TryLater => 75,
            Self::Credentials => 77,
        }
    }

    /// The exit with this number.
    #[must_use]
    pub fn of_code(code: u8) -> Option<Self> {
        Self::PRECEDENCE.into_iter().find(|exit| exit.code() == code)
    }

    /// The one that counts where several apply: the first of 77, 74, 69, 75, 3. None is 0.
    pub fn gravest(exits: impl IntoIterator<Item = Self>) -> Self {
        let exits: Vec<Self> = exits.into_iter().collect();
        Self::PRECEDENCE.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Self::Ok)
    }

    /// The exit of a command that ended with `error`: by the cause that knows best.
    #[must_use]
    pub fn of_error(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_cause).unwrap_or(Self::Unavailable)
    }

    /// The exit of a call to Sierra that failed for good.
    #[must_use]
    pub fn of_source(kind: SourceErrorKind) -> Self {
        match kind {
            SourceErrorKind::Credentials | SourceErrorKind::Stopped => Self::Credentials,
            SourceErrorKind::WaitingQuota { .. } => Self::TryLater,
            SourceErrorKind::Exhausted
            | SourceErrorKind::AskedToWait { .. }
            | SourceErrorKind::CircuitOpen
            | SourceErrorKind::Suspended
            | SourceErrorKind::Narrow
            | SourceErrorKind::Permanent => Self::Unavailable,
        }
    }

    fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if cause.is::<Problems>() || cause.is::<Refused>() || cause.is::<OpsError>() || cause.is::<ScenarioError>() {
            return Some(Self::Usage);
        }
        // Before the system's own answer below it, which stands for local files elsewhere.
        if cause.is::<NotListening>() {
            return Some(Self::Unavailable);
        }
        if let Some(declined) = cause.downcast_ref::<Declined>() {
            return Some(declined.exit);
        }
        if let Some(error) = cause.downcast_ref::<StoreError>() {
            return Some(match error.kind {
                StoreErrorKind::Held { .. } => Self::TryLater,
                StoreErrorKind::NewerFormat
                | StoreErrorKind::Corrupt
                | StoreErrorKind::Io
                | StoreErrorKind::Superseded
                | StoreErrorKind::KeyMissing
                | StoreErrorKind::Exhausted => Self::StoreFailed,
            });
        }
        if let Some(error) = cause.downcast_ref::<SourceError>() {
            return Some(Self::of_source(error.kind));
        }
        if cause.is::<std::io::Error>() || cause.is::<KeyFileError>() {
            return Some(Self::StoreFailed);
        }
        cause.is::<SinkError>().then_some(Self::Unavailable)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The command was understood and is refused: its text says why and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// The process that holds the state would not do it, and said why.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}")]
pub struct Declined {
    /// What it said.
    pub sentence: String,
    /// How it would have ended.
    pub exit: Exit,
}

/// The address that was asked for cannot be served at.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address}; choose another --listen, or port 0 for any that is free")]
pub struct NotListening {
    /// The address.
    pub address: SocketAddr,
    /// The system's answer.
    pub source: std::io::Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_of_several_codes_is_the_first_of_77_74_69_75_3() {
        let all = [Exit::Ok, Exit::Incomplete, Exit::TryLater, Exit::Unavailable, Exit::StoreFailed, Exit::Credentials];
        let mut left = all.to_vec();
        let mut order = Vec::new();
        while !left.is_empty() {
            let gravest = Exit::gravest(left.iter().copied());
            left.retain(|exit| *exit != gravest);
            order.push(gravest.code());
        }
        assert_eq!(order, [77, 74, 69, 75, 3, 0]);
        assert_eq!(Exit::gravest([]), Exit::Ok);
    }

    #[test]
    fn a_store_that_is_held_says_try_later_through_any_context() {
        let kind = StoreErrorKind::Held { holder: "process 7".to_owned() };
        let held = StoreError { kind, message: "open the store".to_owned(), source: None };
        let error = anyhow::Error::new(held).context("failed to read the status");
        assert_eq!(Exit::of_error(&error), Exit::TryLater);
    }
}
