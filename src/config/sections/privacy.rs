//! `[privacy]`: what may leave this program about people.

use std::collections::BTreeMap;

use crate::config::kind::{DurationIn, FilePath, ListOf, OneOf, TextAs};
use crate::config::section::Section;
use crate::config::sections::streams::fixed_field;
use crate::privacy::{FieldRule, MarcDrop, PolicyError, PrivacySettings};

/// Sierra's patron fields (sierra-api.md §3.4).
pub(in crate::config) const PATRON_FIELDS: [&str; 26] = [
    "id",
    "updatedDate",
    "createdDate",
    "deletedDate",
    "deleted",
    "suppressed",
    "names",
    "barcodes",
    "expirationDate",
    "birthDate",
    "emails",
    "patronType",
    "patronCodes",
    "homeLibraryCode",
    "homeLibrary",
    "message",
    "blockInfo",
    "autoBlockInfo",
    "addresses",
    "phones",
    "uniqueIds",
    "moneyOwed",
    "pMessage",
    "langPref",
    "fixedFields",
    "varFields",
];

/// What names or reaches a person: passing it on is hardly meant.
const IDENTIFYING: [&str; 11] = [
    "names",
    "barcodes",
    "birthDate",
    "emails",
    "message",
    "addresses",
    "phones",
    "uniqueIds",
    "moneyOwed",
    "fixedFields",
    "varFields",
];

const MARC_FIELD: TextAs<String> = TextAs {
    parse: marc_field,
    hint: "write a tag with x for any digit and, if meant, a subfield: \"909\", \"95x\", \"590$x\"",
    pattern: "^[0-9][0-9x]{2}(\\$[a-z0-9])?$",
};

const FIXED_FIELD: TextAs<String> =
    TextAs { parse: fixed_field, hint: "write its number in quotes, such as \"66\"", pattern: "^[0-9]{1,3}$" };

const FIELD_TAG: TextAs<String> = TextAs {
    parse: |text| match text.chars().count() == 1 && text != " " {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not a field tag")),
    },
    hint: "write Sierra's one-character tag, such as \"v\"",
    pattern: "^.$",
};

const RULE: OneOf<FieldRule> = OneOf(&[
    ("pass", FieldRule::Pass),
    ("mask", FieldRule::Mask),
    ("hmac", FieldRule::Hmac),
    ("drop", FieldRule::Drop),
]);

/// Reads the section.
pub(in crate::config) fn read(root: &mut Section<'_>) -> PrivacySettings {
    let mut section = root.section("privacy", "What may leave this program about people.");
    let key_file = section.optional(
        "key_file",
        &FilePath,
        "The key file of pseudonyms and sealed values; empty means one is made in <state>/keys, mode 0600.",
    );
    let retention = section.setting(
        "retention",
        &DurationIn("1s"..="3650d"),
        "30d",
        "How long values derived from patrons are kept.",
    );
    let marc_drop =
        section.setting("marc_drop", &ListOf(MARC_FIELD), "[]", "MARC fields to leave out, such as 909, 95x, 590$x.");
    let item_fixed_drop = section.setting(
        "item_fixed_drop",
        &ListOf(FIXED_FIELD),
        r#"["66", "67"]"#,
        "Fixed fields of items to leave out, by number; 66 and 67 are patron record numbers.",
    );
    let item_var_keep = section.setting(
        "item_var_keep",
        &ListOf(FIELD_TAG),
        r#"["v", "c"]"#,
        "Field tags of item varFields that may pass; all others are left out.",
    );
    let mut patrons = section.section("patrons", "Patron records.");
    let fields = patrons.section(
        "fields",
        "What happens to each patron field: pass, mask, hmac or drop. What is not named is dropped.",
    );
    let patron_fields = read_fields(fields);
    patrons.finish();
    section.finish();
    PrivacySettings { key_file, retention, marc_drop, item_fixed_drop, item_var_keep, patron_fields }
}

/// The defaults with what is written laid over them: a default is taken back by naming the field, with `drop`.
fn read_fields(mut section: Section<'_>) -> BTreeMap<String, FieldRule> {
    let mut rules = BTreeMap::new();
    for name in PATRON_FIELDS {
        let default = DEFAULT_FIELDS.iter().find(|(field, _)| *field == name).map_or("drop", |(_, rule)| *rule);
        let rules_of = if name == "id" { &ID_RULE } else { &RULE };
        let rule = section.setting(name, rules_of, default, "");
        if rule == FieldRule::Pass && IDENTIFYING.contains(&name) {
            let message = "tells who a patron is, and would leave this program in the clear";
            section.warn(name, message, "use \"hmac\", \"mask\" or \"drop\" unless every sink may know");
        }
        rules.insert(name.to_owned(), rule);
    }
    rules.retain(|_, rule| *rule != FieldRule::Drop);
    section.finish();
    rules
}

/// What is let through unless the file says otherwise; all else is dropped.
const DEFAULT_FIELDS: &[(&str, &str)] =
    &[("id", "hmac"), ("patronType", "pass"), ("homeLibraryCode", "pass"), ("expirationDate", "pass")];

/// What may be done with a patron's record number: it never passes, a pseudonym stands for it.
const ID_RULE: OneOf<FieldRule> =
    OneOf(&[("hmac", FieldRule::Hmac), ("mask", FieldRule::Mask), ("drop", FieldRule::Drop)]);

fn marc_field(text: &str) -> Result<String, String> {
    match MarcDrop::new(&[text]) {
        Ok(_) => Ok(text.to_owned()),
        Err(PolicyError::MarcDrop { pattern, reason }) => Err(format!("{pattern:?} is not a pattern: {reason}")),
        Err(error) => Err(error.to_string()),
    }
}
