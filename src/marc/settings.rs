//! The `[marc]` section of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How MARC is made from Sierra's fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MarcSettings {
    /// What stands in field 001.
    pub control_number: ControlNumber,
    /// What happens to characters that XML 1.0 cannot hold.
    pub on_illegal: OnIllegal,
}

/// What stands in field 001.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControlNumber {
    /// What Sierra stores there, often an OCLC number, or nothing.
    #[default]
    Keep,
    /// Sierra's record number as the API and our events write it (`2100417`). A stored 001 moves to 035 $a, with the
    /// stored 003 in brackets before it (`(OCoLC)36165241`).
    Sierra,
}

/// What happens to characters that XML 1.0 cannot hold: U+0000 to U+001F but tab and line ends, U+FFFE, U+FFFF.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnIllegal {
    /// They are left out.
    #[default]
    Drop,
    /// Each becomes U+FFFD.
    Replace,
    /// The record is not converted but set aside.
    Quarantine,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_takes_the_documented_words_and_no_others() {
        let read = |text: &str| toml::from_str::<MarcSettings>(text).ok();
        assert_eq!(read(""), Some(MarcSettings { control_number: ControlNumber::Keep, on_illegal: OnIllegal::Drop }));
        for (words, control_number, on_illegal) in [
            (["keep", "drop"], ControlNumber::Keep, OnIllegal::Drop),
            (["sierra", "replace"], ControlNumber::Sierra, OnIllegal::Replace),
            (["sierra", "quarantine"], ControlNumber::Sierra, OnIllegal::Quarantine),
        ] {
            let [number, illegal] = words;
            let text = format!("control_number = \"{number}\"\non_illegal = \"{illegal}\"");
            assert_eq!(read(&text), Some(MarcSettings { control_number, on_illegal }), "{text}");
        }
        for bad in ["control_number = \"Sierra\"", "on_illegal = \"ignore\"", "control = \"keep\""] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
