//! The path of a key, as people write it: `sinks.archive.path`.

use std::fmt;

/// A dotted key path.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// The path of the whole document.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// The path `a.b.c` of plain keys.
    #[must_use]
    pub fn dotted(path: &str) -> Self {
        Self(path.split('.').map(str::to_owned).collect())
    }

    /// This path with `key` below it.
    #[must_use]
    pub fn child(&self, key: &str) -> Self {
        let mut segments = self.0.clone();
        segments.push(key.to_owned());
        Self(segments)
    }

    /// The keys from the outside in.
    #[must_use]
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// Whether this path fits `pattern`, a dotted path in which `*` stands for any one key.
    #[must_use]
    pub fn fits(&self, pattern: &str) -> bool {
        let mut expected = pattern.split('.');
        let all = self.0.iter().all(|segment| expected.next().is_some_and(|key| key == "*" || key == segment));
        all && expected.next().is_none()
    }

    /// The environment variable that overrides this key.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{}{}", super::env::PREFIX, self.0.join("__").to_uppercase())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_str(".")?;
            }
            let bare = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
            if !segment.is_empty() && segment.chars().all(bare) {
                formatter.write_str(segment)?;
            } else {
                write!(formatter, "{segment:?}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_key_by_key() {
        let path = KeyPath::dotted("sinks.archive.path");
        assert!(path.fits("sinks.*.path"));
        assert!(!path.fits("sinks.*"));
        assert!(!path.fits("sinks.*.path.more"));
        assert!(!path.fits("sinks.other.path"));
    }

    #[test]
    fn odd_keys_are_shown_quoted() {
        assert_eq!(KeyPath::dotted("sinks").child("my archive").to_string(), r#"sinks."my archive""#);
    }
}
