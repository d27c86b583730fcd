//! Reading a table key by key: typed values out, every problem noted, what was asked for remembered.
//!
//! A key is declared once, where it is read: its name, kind, default and meaning. From the same declaration follow
//! the check of the file, the reading of overrides, the search for near names and the JSON Schema, so that none of
//! them can drift from the others.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::config::document::{Document, Node, Table, Value};
use crate::config::env::Environment;
use crate::config::kind::{Kind, Wrong};
use crate::config::nearest::nearest;
use crate::config::path::KeyPath;
use crate::config::problem::{Place, Problem, Warning};
use crate::config::unbuilt;

/// One reading of a configuration: what is read and what is found on the way.
pub(super) struct Reading<'d> {
    pub(super) document: &'d Document,
    pub(super) environment: &'d Environment,
    pub(super) problems: RefCell<Vec<Problem>>,
    pub(super) warnings: RefCell<Vec<Warning>>,
    pub(super) described: RefCell<Vec<Described>>,
}

/// A key as it was declared, for the JSON Schema. In its path `*` stands for a name that people choose.
#[derive(Debug, Clone)]
pub(super) struct Described {
    pub(super) path: KeyPath,
    pub(super) schema: serde_json::Value,
    pub(super) default: Option<serde_json::Value>,
    pub(super) required: bool,
    pub(super) about: String,
}

/// A table being read. Call [`Section::finish`] at the end: it reports the keys that nobody asked for.
pub(super) struct Section<'r> {
    reading: &'r Reading<'r>,
    path: KeyPath,
    pattern: KeyPath,
    table: Option<&'r Table>,
    asked: BTreeSet<&'static str>,
    unnamed: BTreeSet<&'static str>,
}

/// What is written under a key.
pub(super) enum Written<T> {
    /// Nothing, or an empty text.
    Absent,
    /// Something that does not do; the problem is noted.
    Refused,
    /// A value.
    Good(T),
}

impl<'d> Reading<'d> {
    pub(super) fn of(document: &'d Document, environment: &'d Environment) -> Self {
        Self {
            document,
            environment,
            problems: RefCell::default(),
            warnings: RefCell::default(),
            described: RefCell::default(),
        }
    }

    /// The whole document as a section.
    pub(super) fn root(&self) -> Section<'_> {
        Section {
            reading: self,
            path: KeyPath::root(),
            pattern: KeyPath::root(),
            table: Some(&self.document.root),
            asked: BTreeSet::new(),
            unnamed: BTreeSet::new(),
        }
    }

    /// Notes that the value at `path` is wrong, or missing.
    pub(super) fn refuse(&self, path: &KeyPath, message: impl Into<String>, hint: impl Into<String>) {
        let place = self.document.place(path);
        let (key, message, hint) = (Some(path.clone()), message.into(), Some(hint.into()));
        self.problems.borrow_mut().push(Problem { place, key, message, hint });
    }

    /// Whether a problem with `path` is noted already.
    pub(super) fn is_refused(&self, path: &KeyPath) -> bool {
        self.problems.borrow().iter().any(|problem| problem.key.as_ref() == Some(path))
    }

    /// Notes that the values work and are hardly meant.
    pub(super) fn warn(&self, path: &KeyPath, message: impl Into<String>, hint: impl Into<String>) {
        let warning = Warning { key: path.clone(), message: message.into(), hint: hint.into() };
        self.warnings.borrow_mut().push(warning);
    }
}

impl<'r> Section<'r> {
    /// The value of `name`, or `default`, which is written as in an environment variable. After a problem the default
    /// stands in, so that reading goes on.
    pub(super) fn setting<K: Kind>(&mut self, name: &'static str, kind: &K, default: &str, about: &str) -> K::Read {
        self.describe(name, kind.schema(), Some(kind.literal(default)), false, about);
        let read = self.node(name).and_then(|node| self.read(name, kind, node));
        read.unwrap_or_else(|| match kind.read(&Value::Untyped(default.to_owned())) {
            Ok(value) => value,
            Err(wrong) => unreachable!("the default of {name} is not valid: {wrong:?}"),
        })
    }

    /// The value of `name`; `None` when it is absent or an empty text, or after a problem.
    pub(super) fn optional<K: Kind>(&mut self, name: &'static str, kind: &K, about: &str) -> Option<K::Read> {
        match self.written(name, kind, about) {
            Written::Good(value) => Some(value),
            Written::Absent | Written::Refused => None,
        }
    }

    /// What is written under `name`, which may be absent or an empty text.
    pub(super) fn written<K: Kind>(&mut self, name: &'static str, kind: &K, about: &str) -> Written<K::Read> {
        let mut schema = kind.schema();
        if let Some(form) = schema.as_object_mut().and_then(|schema| schema.remove("pattern")) {
            let form = form.as_str().unwrap_or_default().to_owned();
            schema = serde_json::json!({"type": "string", "pattern": format!("^$|{form}")});
        }
        self.describe(name, schema, Some(serde_json::json!("")), false, about);
        match self.node(name).filter(|node| !is_empty(node)) {
            None => Written::Absent,
            Some(node) => self.read(name, kind, node).map_or(Written::Refused, Written::Good),
        }
    }

    /// The value of `name`, which must be there; `None` after a problem.
    pub(super) fn required<K: Kind>(&mut self, name: &'static str, kind: &K, about: &str) -> Option<K::Read> {
        self.describe(name, kind.schema(), None, true, about);
        match self.node(name) {
            Some(node) if !is_empty(node) => self.read(name, kind, node),
            node => {
                let message = if node.is_some() { "is empty" } else { "is missing" };
                let variable = self.key(name).variable();
                self.refuse(name, message, format!("write it in the file or set {variable}"));
                None
            }
        }
    }

    /// The table `name`. An absent one reads as empty: every key has its default.
    pub(super) fn section(&mut self, name: &'static str, about: &str) -> Section<'r> {
        self.describe(name, serde_json::json!({"type": "object"}), None, false, about);
        let example = format!("[{}]", self.key(name));
        let table = self.node(name).and_then(|node| self.table(&self.key(name), node, &example));
        self.child(name, name, table)
    }

    /// The table `name` if it is written, even empty.
    pub(super) fn section_if_written(&mut self, name: &'static str, about: &str) -> Option<Section<'r>> {
        let section = self.section(name, about);
        section.table.is_some().then_some(section)
    }

    /// The tables below `name`, whose names people choose.
    pub(super) fn named(&mut self, name: &'static str, example: &str, about: &str) -> Vec<(String, Section<'r>)> {
        let parent = self.section(name, about);
        let mut children = Vec::new();
        for (chosen, node) in parent.table.into_iter().flatten() {
            if let Some(table) = parent.table(&parent.path.child(chosen), node, example) {
                children.push((chosen.clone(), parent.child(chosen, "*", Some(table))));
            }
        }
        children
    }

    /// Whether `name` is written anywhere.
    pub(super) fn is_written(&self, name: &str) -> bool {
        self.node(name).is_some()
    }

    /// The node of `name`, a key that has no place in the file: it counts as asked for and is never suggested.
    pub(super) fn unnamed(&mut self, name: &'static str) -> Option<&'r Node> {
        self.unnamed.insert(name);
        self.node(name)
    }

    /// The reading this section is part of.
    pub(super) fn reading(&self) -> &'r Reading<'r> {
        self.reading
    }

    /// The path of `name` in this section.
    pub(super) fn key(&self, name: &str) -> KeyPath {
        self.path.child(name)
    }

    /// Notes that `name` is wrong.
    pub(super) fn refuse(&self, name: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.reading.refuse(&self.key(name), message, hint);
    }

    /// Notes that the file has a value under `name` that does not belong there, although an override replaces it; tells
    /// whether it has.
    pub(super) fn refuse_replaced(&self, name: &str, message: impl Into<String>, hint: impl Into<String>) -> bool {
        let key = self.key(name);
        let Some(place) = self.reading.document.replaced(&key).cloned() else { return false };
        self.push(Problem { place, key: Some(key), message: message.into(), hint: Some(hint.into()) });
        true
    }

    /// Notes that this section should not be.
    pub(super) fn refuse_itself(&self, message: impl Into<String>, hint: impl Into<String>) {
        self.reading.refuse(&self.path, message, hint);
    }

    /// Notes that `name` works and is hardly meant.
    pub(super) fn warn(&self, name: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.reading.warn(&self.key(name), message, hint);
    }

    /// Reads `node` as `kind`, noting what is wrong under `name`.
    fn read<K: Kind>(&self, name: &str, kind: &K, node: &Node) -> Option<K::Read> {
        match kind.read(&unquoted(&node.value)) {
            Ok(value) => Some(value),
            Err(wrong) => {
                for wrong in wrong {
                    self.note(&self.key(name), node, wrong);
                }
                None
            }
        }
    }

    /// Describes `name` for the JSON Schema.
    fn describe(
        &mut self,
        name: &'static str,
        schema: serde_json::Value,
        default: Option<serde_json::Value>,
        required: bool,
        about: &str,
    ) {
        self.asked.insert(name);
        let path = self.pattern.child(name);
        let described = Described { path, schema, default, required, about: about.to_owned() };
        self.reading.described.borrow_mut().push(described);
    }

    /// Reports every key of the table that nobody asked for. Values are not shown: a misspelt key may hold a secret.
    pub(super) fn finish(self) {
        for (name, node) in self.table.into_iter().flatten() {
            if self.asked.contains(name.as_str()) || self.unnamed.contains(name.as_str()) {
                continue;
            }
            let key = self.key(name);
            let (message, hint) = match unbuilt::key(&key) {
                Some(sentence) => (sentence, None),
                None => ("is not a known key".to_owned(), self.near(name)),
            };
            self.push(Problem { place: node.key_place.clone(), key: Some(key), message, hint });
        }
    }

    fn near(&self, name: &str) -> Option<String> {
        if let Some(near) = nearest(name, self.asked.iter().copied()) {
            return Some(format!("did you mean {near:?}?"));
        }
        let known: Vec<&str> = self.asked.iter().copied().collect();
        Some(format!("known here: {}", known.join(", ")))
    }

    fn note(&self, key: &KeyPath, node: &Node, wrong: Wrong) {
        let place = wrong.place.unwrap_or_else(|| node.place.clone());
        let sentence = wrong.text.and_then(|text| unbuilt::value(key, &text));
        let (message, hint) = match sentence {
            Some(sentence) => (sentence, None),
            None => (wrong.message, Some(wrong.hint)),
        };
        self.push(Problem { place, key: Some(key.clone()), message, hint });
    }

    fn table(&self, key: &KeyPath, node: &'r Node, example: &str) -> Option<&'r Table> {
        if let Value::Table(table) = &node.value {
            return Some(table);
        }
        let message = format!("{} does not fit here", node.value.noun());
        let hint = Some(format!("write a table: {example}"));
        self.push(Problem { place: node.place.clone(), key: Some(key.clone()), message, hint });
        None
    }

    fn child(&self, name: &str, pattern: &str, table: Option<&'r Table>) -> Section<'r> {
        Section {
            reading: self.reading,
            path: self.path.child(name),
            pattern: self.pattern.child(pattern),
            table,
            asked: BTreeSet::new(),
            unnamed: BTreeSet::new(),
        }
    }

    fn node(&self, name: &str) -> Option<&'r Node> {
        self.table.and_then(|table| table.get(name))
    }

    fn push(&self, problem: Problem) {
        self.reading.problems.borrow_mut().push(problem);
    }
}

/// An override may be written in quotes, as in the file. A secret never comes here: its quotes are its own.
fn unquoted(value: &Value) -> Cow<'_, Value> {
    let quoted = match value {
        Value::Untyped(text) if text.starts_with(['"', '\'']) => Value::from_override(text, &Place::Flag),
        _ => None,
    };
    match quoted {
        Some(Value::Text(text)) => Cow::Owned(Value::Untyped(text)),
        _ => Cow::Borrowed(value),
    }
}

fn is_empty(node: &Node) -> bool {
    matches!(&node.value, Value::Text(text) | Value::Untyped(text) if text.is_empty())
}
