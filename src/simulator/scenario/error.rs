//! Why a scenario cannot be used.

use std::path::PathBuf;

/// A scenario that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be opened or is no text.
    #[error("read scenario file {}: check the path and its permissions", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The text is no scenario.
    #[error("understand scenario {name}")]
    Parse {
        /// The file or built-in name.
        name: String,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// There is neither such a built-in scenario nor such a file.
    #[error("find scenario {name:?}: it is no file, and the built-in ones are {}", known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// The zone is not in the time zone database.
    #[error("find time zone {name:?}: use an IANA name such as Europe/Oslo")]
    Zone {
        /// The zone asked for.
        name: String,
        /// What the database says.
        source: jiff::Error,
    },
}
