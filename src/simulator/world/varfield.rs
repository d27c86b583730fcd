//! The variable-length fields of a record, in Sierra's shape (`sierra-api.md` §3.1).

use crate::simulator::json::{Object, push_array};

/// One variable-length field: a MARC field, a non-MARC note, or the leader (field tag `_`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarField {
    /// The field group tag: `t` title, `a` author, `_` leader and so on.
    pub field_tag: char,
    /// The MARC tag; non-MARC fields and the leader have none.
    pub marc_tag: Option<String>,
    /// The indicators; only fields with a MARC tag have them.
    pub indicators: Option<[char; 2]>,
    /// What the field says.
    pub content: Content,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A single text: control fields, non-MARC fields, the leader.
    Text(String),
    /// Subfields by their code, in stored order.
    Subfields(Vec<(char, String)>),
}

impl VarField {
    /// A MARC data field without subfields yet; `indicators` are two characters.
    #[must_use]
    pub fn marc(field_tag: char, marc_tag: &str, indicators: &str) -> Self {
        let mut indicators = indicators.chars();
        let mut next = || indicators.next().unwrap_or(' ');
        Self {
            field_tag,
            marc_tag: Some(marc_tag.into()),
            indicators: Some([next(), next()]),
            content: Content::Subfields(Vec::new()),
        }
    }

    /// The same field with one more subfield at its end. A field that holds a text stays as it is.
    #[must_use]
    pub fn with(mut self, code: char, text: impl Into<String>) -> Self {
        if let Content::Subfields(subfields) = &mut self.content {
            subfields.push((code, text.into()));
        }
        self
    }

    /// A MARC control field; recorded ones carry two blank indicators.
    #[must_use]
    pub fn control(field_tag: char, marc_tag: &str, text: impl Into<String>) -> Self {
        Self {
            field_tag,
            marc_tag: Some(marc_tag.into()),
            indicators: Some([' ', ' ']),
            content: Content::Text(text.into()),
        }
    }

    /// A field without a MARC tag: a local note, or the leader when the tag is `_`.
    #[must_use]
    pub fn plain(field_tag: char, text: impl Into<String>) -> Self {
        Self { field_tag, marc_tag: None, indicators: None, content: Content::Text(text.into()) }
    }

    /// Whether this is the MARC field `tag`.
    #[must_use]
    pub fn is(&self, tag: &str) -> bool {
        self.marc_tag.as_deref() == Some(tag)
    }

    /// The text, when the field holds one rather than subfields.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Subfields(_) => None,
        }
    }

    /// The first subfield with this code.
    #[must_use]
    pub fn subfield(&self, code: char) -> Option<&str> {
        match &self.content {
            Content::Text(_) => None,
            Content::Subfields(subfields) => {
                subfields.iter().find(|(candidate, _)| *candidate == code).map(|(_, text)| text.as_str())
            }
        }
    }

    /// Where the field stands among others: by field tag, the leader last, otherwise in stored order.
    #[must_use]
    pub(crate) fn rank(&self) -> char {
        if self.field_tag == '_' { char::MAX } else { self.field_tag }
    }

    /// Appends the field as the API serves it. Absent keys are left out, never null.
    pub(crate) fn push_json(&self, out: &mut String) {
        let mut field = Object::open(out);
        let mut buffer = [0; 4];
        field.string("fieldTag", self.field_tag.encode_utf8(&mut buffer));
        if let Some(tag) = &self.marc_tag {
            field.string("marcTag", tag);
        }
        if let Some([first, second]) = self.indicators {
            field.string("ind1", first.encode_utf8(&mut buffer));
            field.string("ind2", second.encode_utf8(&mut buffer));
        }
        match &self.content {
            Content::Text(text) => field.string("content", text),
            Content::Subfields(subfields) => {
                push_array(field.key("subfields"), subfields, |out, (code, text)| {
                    let mut subfield = Object::open(out);
                    subfield.string("tag", code.encode_utf8(&mut [0; 4]));
                    subfield.string("content", text);
                    subfield.close();
                });
            }
        }
        field.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_written_with_the_recorded_keys() {
        let write = |field: VarField| {
            let mut out = String::new();
            field.push_json(&mut out);
            out
        };
        assert_eq!(
            write(VarField::marc('t', "245", "10").with('a', "Say \"ah\"")),
            r#"{"fieldTag":"t","marcTag":"245","ind1":"1","ind2":"0","subfields":[{"tag":"a","content":"Say \"ah\""}]}"#
        );
        assert_eq!(
            write(VarField::control('o', "001", "ex1")),
            r#"{"fieldTag":"o","marcTag":"001","ind1":" ","ind2":" ","content":"ex1"}"#
        );
        assert_eq!(write(VarField::plain('_', "00000nam")), r#"{"fieldTag":"_","content":"00000nam"}"#);
    }
}
