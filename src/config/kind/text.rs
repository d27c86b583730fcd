//! Texts: free ones, paths, and those with a form of their own.

use std::path::PathBuf;

use serde_json::json;

use super::{Kind, Wrong};
use crate::config::document::Value;

/// Any text.
pub(in crate::config) struct Text;

impl Kind for Text {
    type Read = String;

    fn read(&self, value: &Value) -> Result<String, Vec<Wrong>> {
        match value {
            Value::Text(text) | Value::Untyped(text) => Ok(text.clone()),
            _ => Err(Wrong::kind(value, "write a text in quotes")),
        }
    }

    fn schema(&self) -> serde_json::Value {
        json!({"type": "string"})
    }
}

/// A path, relative to the working directory unless absolute.
pub(in crate::config) struct FilePath;

impl Kind for FilePath {
    type Read = PathBuf;

    fn read(&self, value: &Value) -> Result<PathBuf, Vec<Wrong>> {
        let text = Text.read(value)?;
        if text.contains('\0') {
            let message = "holds a NUL character, which no path can hold".to_owned();
            return Err(Wrong::text(&text, message, "write the path without it".to_owned()));
        }
        Ok(PathBuf::from(text))
    }

    fn schema(&self) -> serde_json::Value {
        json!({"type": "string"})
    }
}

/// The path of a directory that must be named.
pub(in crate::config) struct DirectoryPath;

impl Kind for DirectoryPath {
    type Read = PathBuf;

    fn read(&self, value: &Value) -> Result<PathBuf, Vec<Wrong>> {
        let path = FilePath.read(value)?;
        if path.as_os_str().is_empty() {
            let hint = "name a directory, or leave the key out for the default".to_owned();
            return Err(Wrong::text("", "is empty".to_owned(), hint));
        }
        Ok(path)
    }

    fn schema(&self) -> serde_json::Value {
        json!({"type": "string", "minLength": 1})
    }
}

/// A text with a form of its own.
pub(in crate::config) struct TextAs<T> {
    /// Reads it, or says what is wrong, in a fragment that begins with the fault: `"…" has no version`.
    pub(in crate::config) parse: fn(&str) -> Result<T, String>,
    /// What would be right: `write …`.
    pub(in crate::config) hint: &'static str,
    /// A regular expression that good texts match, for editors; not the check itself.
    pub(in crate::config) pattern: &'static str,
}

impl<T> Kind for TextAs<T> {
    type Read = T;

    fn read(&self, value: &Value) -> Result<T, Vec<Wrong>> {
        let (Value::Text(text) | Value::Untyped(text)) = value else { return Err(Wrong::kind(value, self.hint)) };
        (self.parse)(text).map_err(|message| Wrong::text(text, message, self.hint.to_owned()))
    }

    fn schema(&self) -> serde_json::Value {
        json!({"type": "string", "pattern": self.pattern})
    }
}
