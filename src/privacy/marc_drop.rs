//! MARC fields that are left out: local 9xx fields and notes that may name people (A12).

use super::PolicyError;
use crate::record::VarField;

/// The patterns of `marc_drop`, checked. `909` is a field, `95x` ten of them, `590$x` one subfield wherever it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarcDrop(Vec<Pattern>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    /// `None` stands for any digit.
    tag: [Option<u8>; 3],
    subfield: Option<char>,
}

impl MarcDrop {
    /// Reads the patterns.
    ///
    /// # Errors
    /// On the first one that is not a pattern.
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, PolicyError> {
        patterns.iter().map(|pattern| Pattern::parse(pattern.as_ref())).collect::<Result<_, _>>().map(Self)
    }

    /// Whether anything is left out at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the whole field `tag` is left out. Tags are compared as MARC reads them: trimmed and padded with
    /// zeros on the left, as Sierra may store them short (sierra-api.md §4.4).
    #[must_use]
    pub fn drops_field(&self, tag: &str) -> bool {
        self.0.iter().any(|pattern| pattern.subfield.is_none() && pattern.matches(tag))
    }

    /// Whether subfield `code` of field `tag` is left out, alone or with its field.
    #[must_use]
    pub fn drops(&self, tag: &str, code: &str) -> bool {
        self.0.iter().any(|pattern| {
            pattern.matches(tag)
                && pattern.subfield.is_none_or(|subfield| code.trim() == subfield.encode_utf8(&mut [0; 4]))
        })
    }

    /// Whether some subfield of field `tag` is left out.
    #[must_use]
    pub fn touches(&self, tag: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(tag))
    }

    /// Takes out of `field` what is left out. `false` when nothing of the field remains.
    #[must_use]
    pub(in crate::privacy) fn mask(&self, field: &mut VarField) -> bool {
        let Some(tag) = field.marc_tag.clone() else { return true };
        if !self.touches(&tag) {
            return true;
        }
        if self.drops_field(&tag) {
            return false;
        }
        // Content beside or instead of subfields becomes subfield a, and may hold subfields in Sierra's raw form
        // `|xtext`: then what is to go cannot be told apart for certain, and all of it goes.
        if field.content.as_deref().is_some_and(|content| content.contains('|') || self.drops(&tag, "a")) {
            field.content = None;
        }
        field.subfields.retain(|subfield| !self.drops(&tag, &subfield.tag));
        field.content.is_some() || !field.subfields.is_empty()
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, PolicyError> {
        let refuse = |reason| PolicyError::MarcDrop { pattern: text.to_owned(), reason };
        let (tag, subfield) = match text.split_once('$') {
            Some((tag, code)) => (tag, Some(code)),
            None => (text, None),
        };
        let &[a, b, c] = tag.as_bytes() else { return Err(refuse("a tag has three places")) };
        let place = |byte: u8| match byte {
            b'0'..=b'9' => Ok(Some(byte)),
            b'x' | b'X' => Ok(None),
            _ => Err(refuse("a tag has digits, or x for any digit")),
        };
        let tag = [place(a)?, place(b)?, place(c)?];
        let subfield = match subfield {
            None => None,
            Some(code) => {
                let mut characters = code.chars();
                match (characters.next(), characters.next()) {
                    (Some(code), None) if code.is_ascii_graphic() => Some(code),
                    _ => return Err(refuse("a subfield code is one character")),
                }
            }
        };
        if subfield.is_some() && tag.starts_with(&[Some(b'0'), Some(b'0')]) {
            return Err(refuse("control fields 001 to 009 have no subfields"));
        }
        Ok(Self { tag, subfield })
    }

    fn matches(&self, tag: &str) -> bool {
        let tag = tag.trim().as_bytes();
        // `17` is read as `017`.
        let Some(missing) = 3_usize.checked_sub(tag.len()) else { return false };
        let padded = std::iter::repeat_n(b'0', missing).chain(tag.iter().copied());
        !tag.is_empty()
            && self.tag.iter().zip(padded).all(|(place, byte)| match place {
                Some(digit) => *digit == byte,
                None => byte.is_ascii_digit(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Subfield;

    fn field(tag: &str, content: Option<&str>, subfields: &[(&str, &str)]) -> VarField {
        VarField {
            field_tag: "n".into(),
            marc_tag: Some(tag.into()),
            content: content.map(str::to_owned),
            subfields: subfields
                .iter()
                .map(|(tag, content)| Subfield { tag: (*tag).into(), content: (*content).to_owned() })
                .collect(),
            ..VarField::default()
        }
    }

    #[test]
    fn patterns_match_fields_tens_and_subfields() {
        let drop = MarcDrop::new(&["909", "95x", "590$x", "00X"]).unwrap();
        assert!(drop.drops_field("909") && drop.drops_field(" 909 ") && drop.drops("909", "a"));
        assert!(drop.drops_field("950") && drop.drops_field("959") && !drop.drops_field("960"));
        assert!(drop.drops("590", "x") && !drop.drops("590", "a") && !drop.drops_field("590"));
        assert!(drop.drops_field("1") && drop.drops_field("001"), "short tags are padded as MARC reads them");
        assert!(!drop.drops_field("") && !drop.drops_field("9090") && !drop.drops_field("95a"));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_the_reason() {
        for bad in
            ["", "9", "90", "9099", "abc", "9 9", "909$", "909$ab", "$a", "909$é", "001$a", "00x$a", "909$$x", "é9"]
        {
            let error = MarcDrop::new(&["909", bad]).expect_err(bad).to_string();
            assert!(error.contains(&format!("{bad:?}")) && error.contains("expected a tag"), "{error}");
        }
    }

    #[test]
    fn a_field_that_loses_its_last_subfield_goes_and_others_keep_the_rest() {
        let drop = MarcDrop::new(&["590$x"]).unwrap();
        let mut mixed = field("590", None, &[("a", "note"), ("x", "canary"), ("x", "canary")]);
        assert!(drop.mask(&mut mixed));
        assert_eq!(mixed, field("590", None, &[("a", "note")]));
        assert!(!drop.mask(&mut field("590", None, &[("x", "canary")])));
        let mut other = field("591", None, &[("x", "stays")]);
        assert!(drop.mask(&mut other) && other.subfields.len() == 1);
    }

    #[test]
    fn raw_content_in_place_of_subfields_cannot_smuggle_a_dropped_one() {
        let drop = MarcDrop::new(&["590$x"]).unwrap();
        assert!(!drop.mask(&mut field("590", Some("|anote|xcanary"), &[])));
        assert!(drop.mask(&mut field("590", Some("plain note"), &[])));
        assert!(!MarcDrop::new(&["590$a"]).unwrap().mask(&mut field("590", Some("plain note"), &[])));
    }
}
