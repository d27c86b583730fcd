//! The configuration as it was written: a tree of values, each knowing its place.
//!
//! Nothing is judged here. serde would stop at the first value it does not like; keeping the tree lets `section` list
//! every problem at once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::path::KeyPath;
use crate::config::problem::{Place, Problem};

/// The whole configuration before it is checked: the file with overrides laid over it.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) root: Table,
    file: Option<PathBuf>,
    /// Where values of the file stood that overrides have replaced.
    replaced: BTreeMap<KeyPath, Place>,
}

/// A table: its keys in alphabetical order.
pub(super) type Table = BTreeMap<String, Node>;

/// A value with its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) key_place: Place,
    pub(super) place: Place,
    pub(super) value: Value,
}

/// A value as it was written.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A text in quotes.
    Text(String),
    /// An integer, in decimal.
    Integer(i64),
    /// A number with a point.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A TOML date or time: no key takes one.
    Datetime,
    /// An integer beyond 64 bits.
    Huge,
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Table),
    /// A text from the environment or a flag: read by the type of its key.
    Untyped(String),
}

impl Document {
    /// A document without a file.
    pub(super) fn empty() -> Self {
        Self { root: Table::new(), file: None, replaced: BTreeMap::new() }
    }

    /// Reads `text`, the content of `file`. What could be read is kept; what could not is in the problems.
    pub(super) fn parse(file: &Path, text: &str) -> (Self, Vec<Problem>) {
        let lines = Lines::new(file, text);
        let (table, errors) = DeTable::parse_recoverable(text);
        let problems = errors.iter().map(|error| Problem {
            place: lines.place(error.span().unwrap_or_default()),
            key: None,
            message: format!("not TOML: {}", error.message().replace('\n', ", ")),
            hint: None,
        });
        let (root, file) = (lines.table(table.get_ref()), Some(file.to_owned()));
        (Self { root, file, replaced: BTreeMap::new() }, problems.collect())
    }

    /// The value at `path`, if there is one.
    pub(super) fn node(&self, path: &KeyPath) -> Option<&Node> {
        let (last, parents) = path.segments().split_last()?;
        let mut table = &self.root;
        for key in parents {
            match table.get(key).map(|node| &node.value) {
                Some(Value::Table(inner)) => table = inner,
                _ => return None,
            }
        }
        table.get(last)
    }

    /// Where to point when `path` is wrong: its value; when it is missing, the innermost table of the file. A table that
    /// an override made is not to blame for what it does not hold.
    pub(super) fn place(&self, path: &KeyPath) -> Place {
        if let Some(node) = self.node(path) {
            return node.place.clone();
        }
        let segments = path.segments();
        let enclosing = (1..segments.len()).rev().map(|length| segments.get(..length).unwrap_or_default());
        let found = enclosing.map(|keys| self.node(&keys.iter().fold(KeyPath::root(), |path, key| path.child(key))));
        let mut places = found.flatten().map(|node| node.place.clone());
        let in_file = places.find(|place| matches!(place, Place::File { .. }));
        in_file.unwrap_or_else(|| Place::Missing { path: self.file.clone() })
    }

    /// Where in the file the value stood that an override replaced at `path`.
    pub(super) fn replaced(&self, path: &KeyPath) -> Option<&Place> {
        self.replaced.get(path)
    }

    /// Puts `value` at `path`, making the tables above it. A value in the way is replaced.
    pub(super) fn set(&mut self, path: &KeyPath, place: &Place, value: Value) {
        let Some((last, parents)) = path.segments().split_last() else { return };
        let mut table = &mut self.root;
        for key in parents {
            let fresh = || Node { key_place: place.clone(), place: place.clone(), value: Value::Table(Table::new()) };
            let node = table.entry(key.clone()).or_insert_with(fresh);
            if !matches!(node.value, Value::Table(_)) {
                *node = fresh();
            }
            let Value::Table(inner) = &mut node.value else { return };
            table = inner;
        }
        let node = Node { key_place: place.clone(), place: place.clone(), value };
        if let Some(before) = table.insert(last.clone(), node)
            && matches!(before.place, Place::File { .. })
        {
            self.replaced.insert(path.clone(), before.place);
        }
    }
}

impl Value {
    /// Reads one TOML value out of an override, e.g. `["bibs", "items"]`. `None` when it is none.
    pub(super) fn from_override(text: &str, place: &Place) -> Option<Self> {
        let value = DeValue::parse(text).ok()?;
        Some(OneLine(place).value(value.get_ref()))
    }

    /// What kind of value it is, for messages: never the value itself, which may be a secret.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Untyped(_) => "a text",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number with a point",
            Self::Boolean(_) => "true or false",
            Self::Datetime => "a date or time",
            Self::Huge => "an integer beyond 64 bits",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Turns spans into places.
trait Places {
    fn place(&self, span: Range<usize>) -> Place;

    fn table(&self, table: &DeTable<'_>) -> Table {
        let entries = table.iter().map(|(key, value)| {
            let mut node = self.node(value);
            node.key_place = self.place(key.span());
            (key.get_ref().to_string(), node)
        });
        entries.collect()
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let place = self.place(value.span());
        Node { key_place: place.clone(), place, value: self.value(value.get_ref()) }
    }

    fn value(&self, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => {
                i64::from_str_radix(integer.as_str(), integer.radix()).map_or(Value::Huge, Value::Integer)
            }
            DeValue::Float(float) => float.as_str().parse().map_or(Value::Huge, Value::Float),
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(_) => Value::Datetime,
            DeValue::Array(array) => Value::List(array.iter().map(|value| self.node(value)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        }
    }
}

/// The places of a file.
struct Lines<'t> {
    file: &'t Path,
    text: &'t str,
}

impl<'t> Lines<'t> {
    fn new(file: &'t Path, text: &'t str) -> Self {
        Self { file, text }
    }
}

impl Places for Lines<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Place::File { path: self.file.to_owned(), line, column }
    }
}

/// The place of an override: the same for all of it.
struct OneLine<'p>(&'p Place);

impl Places for OneLine<'_> {
    fn place(&self, _: Range<usize>) -> Place {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        let (document, problems) = Document::parse(Path::new("x.toml"), text);
        assert_eq!(problems, []);
        document
    }

    #[test]
    fn every_syntax_error_is_reported_with_its_place() {
        let (_, problems) = Document::parse(Path::new("x.toml"), "a = \nb = 1\nb = 2\nc = \"open\n");
        let places: Vec<String> = problems.iter().map(|problem| problem.place.to_string()).collect();
        assert_eq!(places, ["x.toml:1:5", "x.toml:3:1", "x.toml:4:10"]);
    }

    #[test]
    fn columns_count_characters_and_missing_keys_point_to_their_table() {
        let document = document("[\"é\"]\n\"ü\" = \"ö\" \n");
        let path = KeyPath::root().child("é");
        assert_eq!(document.place(&path.child("ü")).to_string(), "x.toml:2:7");
        assert_eq!(document.place(&path.child("missing")).to_string(), "x.toml:1:1");
        assert_eq!(document.place(&KeyPath::dotted("nowhere")).to_string(), "x.toml");
    }

    #[test]
    fn an_override_makes_the_tables_above_it() {
        let mut document = document("state = 3\n");
        document.set(&KeyPath::dotted("state.path"), &Place::Flag, Value::Untyped("./elsewhere".into()));
        let node = document.node(&KeyPath::dotted("state.path")).expect("it was set");
        assert!(matches!(&node.value, Value::Untyped(text) if text == "./elsewhere"));
    }
}
