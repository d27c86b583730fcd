//! The policy: what passes of patrons, items and bibs. Made once from the settings, then only applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::fields::ItemRules;
use super::{FieldRule, Keyring, MarcDrop, Masked, PolicyError, PrivacySettings, bib, fields, patron};
use crate::marc;
use crate::record::{Bib, Item, RawPatron, Stream};

/// What may leave this program. Cheap to share; holds no record.
#[derive(Debug)]
pub struct Policy {
    keyring: Arc<Keyring>,
    patron_fields: BTreeMap<String, FieldRule>,
    item: ItemRules,
    marc_drop: MarcDrop,
}

impl Policy {
    /// Checks `settings` and makes the policy.
    ///
    /// # Errors
    /// On the first setting that is refused; [`PrivacySettings::problems`] lists all of them.
    pub fn new(settings: &PrivacySettings, keyring: Arc<Keyring>) -> Result<Self, PolicyError> {
        if let Some(problem) = settings.problems().into_iter().next() {
            return Err(problem);
        }
        let set = |texts: &[String]| texts.iter().map(|text| text.trim().to_owned()).collect::<BTreeSet<_>>();
        Ok(Self {
            keyring,
            patron_fields: settings.patron_fields.clone(),
            item: ItemRules { fixed_drop: set(&settings.item_fixed_drop), var_keep: set(&settings.item_var_keep) },
            marc_drop: MarcDrop::new(&settings.marc_drop)?,
        })
    }

    /// The keys that this policy masks with.
    #[must_use]
    pub fn keyring(&self) -> &Arc<Keyring> {
        &self.keyring
    }

    /// What is left of a patron: the allow-listed top-level fields in Sierra's order, each passed, marked or hashed
    /// as a whole, whatever is nested in it. `id` is the pseudonym. What is not named is dropped, `updatedDate`,
    /// `createdDate`, `deleted` and `suppressed` too: the engine reads those for itself.
    #[must_use]
    pub fn mask_patron(&self, patron: &RawPatron) -> Masked<Box<RawValue>> {
        patron::mask(patron, &self.patron_fields, &self.keyring)
    }

    /// Takes out of an item what leads to people: the fixed fields of `item_fixed_drop` (66 and 67 name patrons), the
    /// varFields that `item_var_keep` does not name, and every link to a patron, hold or checkout.
    pub fn mask_item(&self, item: &mut Item) {
        self.item.mask(item);
        fields::prune_links(&mut item.fields);
    }

    /// Takes out of a bib the MARC fields of `marc_drop`, in its varFields and in Sierra's own rendering `marc`, and
    /// every link to a patron, hold or checkout. Apply it before the bib is mapped to MARC.
    pub fn mask_bib(&self, record: &mut Bib) {
        bib::drop_marc(record, &self.marc_drop);
        fields::prune_links(&mut record.fields);
    }

    /// Takes the fields of `marc_drop` out of a MARC record that did not come as varFields: the second source of
    /// backfills.
    pub fn mask_marc(&self, record: &mut marc::Record) {
        if self.marc_drop.is_empty() {
            return;
        }
        record.retain_fields(|field| !self.marc_drop.drops_field(field.tag().as_str()));
        record.retain_subfields(|tag, subfield| {
            let code = [subfield.code.as_byte()];
            !std::str::from_utf8(&code).is_ok_and(|code| self.marc_drop.drops(tag.as_str(), code))
        });
    }

    /// What is left of an entry that could not be decoded, for the quarantine; `None` for patrons, and for what is
    /// not an object, since nothing can be told apart in it.
    #[must_use]
    pub fn mask_undecoded(&self, stream: Stream, entry: &RawValue) -> Option<Box<RawValue>> {
        fields::mask_undecoded(stream, entry, &self.item, &self.marc_drop)
    }

    /// The MARC fields that are left out.
    #[must_use]
    pub fn marc_drop(&self) -> &MarcDrop {
        &self.marc_drop
    }
}

impl PrivacySettings {
    /// Everything that is wrong with these settings, in the order of the sample file.
    #[must_use]
    pub fn problems(&self) -> Vec<PolicyError> {
        let mut problems: Vec<PolicyError> =
            self.marc_drop.iter().filter_map(|pattern| MarcDrop::new(&[pattern]).err()).collect();
        for text in &self.item_fixed_drop {
            let digits = text.trim();
            if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                problems.push(PolicyError::FixedField { text: text.clone() });
            }
        }
        for text in &self.item_var_keep {
            if text.trim().chars().count() != 1 {
                problems.push(PolicyError::VarField { text: text.clone() });
            }
        }
        if self.patron_fields.get("id") == Some(&FieldRule::Pass) {
            problems.push(PolicyError::RecordNumberPasses);
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_problem_of_the_settings_is_listed() {
        let settings = PrivacySettings {
            key_file: None,
            retention: Duration::from_secs(30 * 86_400),
            marc_drop: vec!["909".to_owned(), "9o9".to_owned(), "590$".to_owned()],
            item_fixed_drop: vec!["66".to_owned(), "PATRON#".to_owned(), String::new()],
            item_var_keep: vec!["v".to_owned(), "vc".to_owned()],
            patron_fields: [("id".to_owned(), FieldRule::Pass)].into(),
        };
        let problems: Vec<String> = settings.problems().iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(problems.join("\n"), @r#"
        privacy.marc_drop: "9o9" is not a pattern: a tag has digits, or x for any digit; expected a tag such as 909, 95x or 9xx, or a subfield such as 590$x
        privacy.marc_drop: "590$" is not a pattern: a subfield code is one character; expected a tag such as 909, 95x or 9xx, or a subfield such as 590$x
        privacy.item_fixed_drop: "PATRON#" is not a fixed field's number; expected digits such as 66
        privacy.item_fixed_drop: "" is not a fixed field's number; expected digits such as 66
        privacy.item_var_keep: "vc" is not a varField's tag; expected one character such as v
        privacy.patrons.fields.id: a patron's record number cannot pass; expected hmac (its pseudonym), mask or drop
        "#);
        assert!(Policy::new(&settings, Arc::new(Keyring::for_tests(1))).is_err());
    }
}
