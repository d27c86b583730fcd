//! What a run comes to, as one exit code.

use serde::{Deserialize, Serialize};

/// What can be wrong at the end of a run, in the order in which it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Sierra refuses the credential.
    Credentials,
    /// The store failed.
    StoreIo,
    /// Sierra or a sink does not answer or take deliveries.
    Unavailable,
    /// A quota wait is longer than the run was told to sit out, or there is no room for more changes.
    TryLater,
    /// This run leaves something owed.
    Gap,
    /// This run set something aside that was not set aside before.
    NewlyQuarantined,
}

impl Trouble {
    /// The exit code of a run that met only this.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Credentials => 77,
            Self::StoreIo => 74,
            Self::Unavailable => 69,
            Self::TryLater => 75,
            Self::Gap | Self::NewlyQuarantined => 3,
        }
    }
}

/// The exit code of a run: that of the first of its troubles, 0 if there are none.
#[must_use]
pub fn exit_code(troubles: impl IntoIterator<Item = Trouble>) -> u8 {
    troubles.into_iter().min().map_or(0, Trouble::exit_code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Trouble::{Credentials, Gap, NewlyQuarantined, StoreIo, TryLater, Unavailable};

    #[test]
    fn the_first_of_77_74_69_75_3_wins() {
        let table: [(&[Trouble], u8); 9] = [
            (&[], 0),
            (&[Gap], 3),
            (&[NewlyQuarantined], 3),
            (&[Gap, TryLater], 75),
            (&[TryLater, Unavailable], 69),
            (&[Gap, Unavailable], 69),
            (&[Unavailable, StoreIo], 74),
            (&[StoreIo, Credentials], 77),
            (&[NewlyQuarantined, Gap, TryLater, Unavailable, StoreIo, Credentials], 77),
        ];
        for (troubles, expected) in table {
            assert_eq!(exit_code(troubles.iter().copied()), expected, "{troubles:?}");
        }
    }
}
