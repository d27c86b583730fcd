//! Links from a record to people: members that name a patron, a hold or a checkout, and URLs of these.
//!
//! Sierra's public documentation puts none into bibs and items beyond fixed fields 66 and 67 (sierra-api.md §3.4),
//! but sites and later versions add members. What looks like such a link is taken out whole; what merely mentions
//! the words in a text, as `ON HOLDSHELF` does, stays.

use serde_json::value::RawValue;

use super::members::{array, elements, members, object, string};

/// Parts of a member's name, in lower case without `_` and `-`, that say its value is about a person.
const PERSONAL: [&str; 13] = [
    "patron",
    "borrower",
    "checkout",
    "checkedout",
    "cardholder",
    "requester",
    "requestor",
    "requestedby",
    "recalledby",
    "loanedto",
    "circhistory",
    "readinghistory",
    "hold",
];

/// Names that hold one of the parts above and are about no one: a count, a flag, the holdings of a serial.
const IMPERSONAL: [&str; 5] = ["holdcount", "forhold", "holdings", "holdingids", "holdingcount"];

/// Members of bibs and items that Sierra documents as texts, numbers, flags and dates about the record itself
/// (sierra-api.md §3.2, §3.3): nobody need look into them.
const TEXTS: [&str; 21] = [
    "id",
    "updatedDate",
    "createdDate",
    "deletedDate",
    "deleted",
    "suppressed",
    "available",
    "title",
    "author",
    "normTitle",
    "normAuthor",
    "publishYear",
    "catalogDate",
    "isbn",
    "issn",
    "barcode",
    "callNumber",
    "itemType",
    "copyNo",
    "copies",
    "holdCount",
];

/// Documented members of other kinds whose names say nothing about people. They come with every record, and looking a
/// name through takes as long as looking its value through.
const PLAIN_NAMES: [&str; 9] =
    ["lang", "materialType", "bibLevel", "country", "locations", "location", "orders", "status", "bibIds"];

/// Parts of a URL that lead to a person.
const PATHS: [&str; 3] = ["patrons/", "holds/", "checkouts/"];

/// The first four letters of every personal part and path.
const BEGINNINGS: [&[u8; 4]; 10] =
    [b"patr", b"borr", b"chec", b"card", b"requ", b"reca", b"loan", b"circ", b"read", b"hold"];

/// How deep a value is looked into. What lies deeper is taken out: nobody has looked at it.
const DEPTH_LIMIT: usize = 32;

/// What is left of a value.
#[derive(Debug)]
pub(in crate::privacy) enum Pruned {
    /// All of it: it leads to no one.
    Whole,
    /// This much.
    Part(Box<RawValue>),
    /// Nothing.
    Nothing,
}

/// Takes links to people out of the member `name` with `value`.
pub(in crate::privacy) fn prune(name: &str, value: &RawValue) -> Pruned {
    let is_text = !value.get().starts_with(['{', '[']);
    if TEXTS.contains(&name) && is_text {
        return Pruned::Whole;
    }
    if !PLAIN_NAMES.contains(&name) && names_a_person(name) {
        return Pruned::Nothing;
    }
    if is_beyond_doubt(value.get()) { Pruned::Whole } else { prune_value(value, 0) }
}

fn prune_value(value: &RawValue, depth: usize) -> Pruned {
    if depth > DEPTH_LIMIT {
        return Pruned::Nothing;
    }
    match value.get().bytes().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => prune_object(value, depth),
        Some(b'[') => prune_array(value, depth),
        Some(b'"') => match string(value) {
            Some(text) if !is_personal_url(&text) => Pruned::Whole,
            _ => Pruned::Nothing,
        },
        _ => Pruned::Whole,
    }
}

fn prune_object(value: &RawValue, depth: usize) -> Pruned {
    let Some(members) = members(value) else { return Pruned::Nothing };
    let count = members.len();
    let mut is_whole = true;
    let mut kept: Vec<(String, Box<RawValue>)> = Vec::with_capacity(count);
    for (name, value) in members {
        let pruned = if names_a_person(&name) { Pruned::Nothing } else { prune_value(value, depth + 1) };
        match pruned {
            Pruned::Whole => kept.push((name, value.to_owned())),
            Pruned::Part(part) => {
                is_whole = false;
                kept.push((name, part));
            }
            Pruned::Nothing => {}
        }
    }
    if is_whole && kept.len() == count { Pruned::Whole } else { Pruned::Part(object(&kept)) }
}

fn prune_array(value: &RawValue, depth: usize) -> Pruned {
    let Some(elements) = elements(value) else { return Pruned::Nothing };
    let count = elements.len();
    let mut is_whole = true;
    let mut kept: Vec<Box<RawValue>> = Vec::with_capacity(count);
    for value in elements {
        match prune_value(value, depth + 1) {
            Pruned::Whole => kept.push(value.to_owned()),
            Pruned::Part(part) => {
                is_whole = false;
                kept.push(part);
            }
            Pruned::Nothing => {}
        }
    }
    if is_whole && kept.len() == count { Pruned::Whole } else { Pruned::Part(array(&kept)) }
}

/// Whether a member's name says that its value is about a person.
fn names_a_person(name: &str) -> bool {
    let name: String =
        name.chars().filter(|character| !matches!(character, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect();
    !IMPERSONAL.contains(&name.as_str()) && PERSONAL.iter().any(|part| name.contains(part))
}

fn is_personal_url(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    PATHS.iter().any(|path| {
        text.match_indices(path).any(|(at, _)| {
            let starts_a_segment = at == 0 || text.as_bytes().get(at - 1) == Some(&b'/');
            let leads_on = text.as_bytes().get(at + path.len()).is_some_and(u8::is_ascii_alphanumeric);
            starts_a_segment && leads_on
        })
    })
}

/// A cheap look at the text that clears nearly every value: no personal word, no escape that could hide one.
fn is_beyond_doubt(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr(b'\\', bytes).is_none()
        && !bytes.windows(4).any(|window| {
            window.first().is_some_and(|first| matches!(first | 0x20, b'p' | b'b' | b'c' | b'r' | b'l' | b'h'))
                && BEGINNINGS.iter().any(|beginning| window.eq_ignore_ascii_case(*beginning))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(name: &str, value: &str) -> Option<String> {
        let raw: Box<RawValue> = serde_json::from_str(value).expect("valid JSON");
        match prune(name, &raw) {
            Pruned::Whole => Some(value.to_owned()),
            Pruned::Part(part) => Some(part.get().to_owned()),
            Pruned::Nothing => None,
        }
    }

    #[test]
    fn members_that_name_a_person_go_whatever_they_hold() {
        for name in [
            "patron",
            "patronId",
            "currentPatron",
            "lastBorrower",
            "holds",
            "hold_id",
            "checkouts",
            "checked-out-to",
            "PATRON_RECORD",
            "requestor",
            "circHistory",
        ] {
            assert_eq!(left(name, "1200345"), None, "{name}");
        }
    }

    #[test]
    fn names_that_are_not_looked_through_name_no_one() {
        assert!(!PLAIN_NAMES.into_iter().any(names_a_person));
    }

    #[test]
    fn counts_flags_and_mere_mentions_stay_as_they_came() {
        for (name, value) in [
            ("holdCount", "3"),
            ("callNumber", "\"PATRON SAINTS / holds 12\""),
            ("status", r#"{"code":"!","display":"ON HOLDSHELF","duedate":"2024-04-01T09:00:00Z"}"#),
            ("transitInfo", r#"{ "to": {"code":"main"}, "forHold": true }"#),
            ("callNumber", r#""R\u00e9 12""#),
            ("link", "\"https://example.edu/threshholds/12\""),
            ("holdings", "[1]"),
        ] {
            assert_eq!(left(name, value).as_deref(), Some(value), "{name}");
        }
    }

    #[test]
    fn links_inside_a_value_go_and_the_rest_stays() {
        assert_eq!(
            left("status", r#"{"code":"-","patron":"x","due":[{"a":1,"lastPatron":2}]}"#).as_deref(),
            Some(r#"{"code":"-","due":[{"a":1}]}"#)
        );
        assert_eq!(
            left("self", r#"["https://c.example.edu/iii/v6/Patrons/1200345","https://c.example.edu/iii/v6/items/1"]"#)
                .as_deref(),
            Some(r#"["https://c.example.edu/iii/v6/items/1"]"#)
        );
        assert_eq!(left("self", r#""patrons\/holds\/12""#), None);
        assert_eq!(left("a", r#"{"\u0070atron":1}"#).as_deref(), Some("{}"));
    }

    #[test]
    fn what_is_too_deep_to_look_at_goes() {
        let deep = format!("{}\"patrons/1\"{}", "[".repeat(40), "]".repeat(40));
        assert!(!left("a", &deep).unwrap().contains("patrons"));
        let bottomless = format!("{}\"patron\"{}", "[".repeat(5000), "]".repeat(5000));
        assert!(left("a", &bottomless).is_none_or(|left| left.len() < bottomless.len()));
    }
}
