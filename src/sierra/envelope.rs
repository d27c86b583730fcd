//! What an answer is: a page, Sierra's own "nothing", or a failure, whatever its status pretends (A5).
//!
//! A success is a 2xx *and* a JSON object *and* an array `entries` *and* no top-level `code` or `httpStatus`
//! (sierra-api.md §5.3). "Nothing" is a 404 with code 107 or a success whose array is empty; `answer` puts the two
//! together, and a failure can never become one. A 204 is an empty body under a success status: Sierra gives it to writes
//! alone, so on a list it is somebody else's answer (A5).

use super::wire::{WireEntries, WireEntry, WirePage};

/// What a list answer holds.
#[derive(Debug)]
pub(super) enum Opened<'a> {
    /// At least one entry.
    Entries(Vec<WireEntry<'a>>),
    /// An empty array.
    Nothing,
}

/// Why a body under a success status is not a page. Such an answer is a failure dressed as success: it never counts
/// as a page, moves nothing, and is asked for again (A5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBody {
    /// No body at all, or white space (BR-033).
    #[error("the body is empty")]
    Empty,
    /// Not UTF-8, which JSON must be.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// A page for people: a proxy, a login form, an error page.
    #[error("the body is an HTML page")]
    Html,
    /// Sierra's textual rendering of an error.
    #[error("the body is an error in text form")]
    ErrorText,
    /// The JSON ends too early.
    #[error("the JSON is cut short")]
    Truncated,
    /// Not JSON, or JSON with a syntax error.
    #[error("the body is not well-formed JSON")]
    Malformed,
    /// JSON, and no object.
    #[error("the JSON is not an object")]
    NotAnObject,
    /// An error envelope, `{"code":"-1"}` among them.
    #[error("the body is an error object with a success status")]
    ErrorObject,
    /// No `entries`: `{}`, `{"total":0}` (BR-041).
    #[error("the object has no entries")]
    NoEntries,
    /// `entries` is not an array.
    #[error("the entries are not a list")]
    EntriesNotAList,
    /// No entries beside a `total` that says there are some.
    #[error("the list of entries is empty although their total is not 0")]
    Contradiction,
    /// An answer of the export that names no file of ours.
    #[error("the object names no export file")]
    NoFile,
    /// An export file that does not begin with the length of a record.
    #[error("the body is not MARC")]
    NotMarc,
    /// An export file with fewer records than were exported, or with a last one that is cut short.
    #[error("the file holds fewer records than were exported")]
    MissingRecords,
    /// An answer of the token endpoint without `access_token`.
    #[error("the body holds no access token")]
    NoToken,
}

/// The body as text.
pub(super) fn text(body: &[u8]) -> Result<&str, InvalidBody> {
    std::str::from_utf8(body).map_err(|_| InvalidBody::NotUtf8)
}

/// Opens the body of a list answer that has a success status.
pub(super) fn open_page(text: &str) -> Result<Opened<'_>, InvalidBody> {
    let page: WirePage<'_> = serde_json::from_str(text).map_err(|error| why_not_json(text, &error))?;
    if page.code.is_some() || page.has_http_status {
        return Err(InvalidBody::ErrorObject);
    }
    match page.entries {
        None => Err(InvalidBody::NoEntries),
        Some(WireEntries::NotAList) => Err(InvalidBody::EntriesNotAList),
        Some(WireEntries::List(entries)) if entries.is_empty() && page.has_total => Err(InvalidBody::Contradiction),
        Some(WireEntries::List(entries)) if entries.is_empty() => Ok(Opened::Nothing),
        Some(WireEntries::List(entries)) => Ok(Opened::Entries(entries)),
    }
}

fn why_not_json(text: &str, error: &serde_json::Error) -> InvalidBody {
    let start = text.trim_start();
    match start.bytes().next() {
        None => InvalidBody::Empty,
        Some(b'<') => InvalidBody::Html,
        Some(_) if start.starts_with("ErrorCode(") => InvalidBody::ErrorText,
        Some(_) if error.is_eof() => InvalidBody::Truncated,
        Some(b'{') => InvalidBody::Malformed,
        Some(_) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => InvalidBody::NotAnObject,
        Some(_) => InvalidBody::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A5, BR-041, BR-054, BR-067: every disguise of a failure, and the two shapes of a page.
    #[test]
    fn only_an_object_with_a_list_of_entries_is_a_page() {
        let table: [(&str, Result<usize, InvalidBody>); 21] = [
            (r#"{"total":50,"start":0,"entries":[{"id":1}]}"#, Ok(1)),
            (r#"{"entries":[{"id":1},{"id":2}],"total":"2"}"#, Ok(2)),
            (r#"{"start":0,"entries":[]}"#, Ok(0)),
            (r#"{"total":0}"#, Err(InvalidBody::NoEntries)),
            ("{}", Err(InvalidBody::NoEntries)),
            (r#"{"entries":null}"#, Err(InvalidBody::EntriesNotAList)),
            (r#"{"entries":{}}"#, Err(InvalidBody::EntriesNotAList)),
            ("", Err(InvalidBody::Empty)),
            (" \r\n", Err(InvalidBody::Empty)),
            (r#"{"code":"-1"}"#, Err(InvalidBody::ErrorObject)),
            (r#"{"code":-1,"entries":[]}"#, Err(InvalidBody::ErrorObject)),
            (r#"{"httpStatus":"404","entries":[{"id":1}]}"#, Err(InvalidBody::ErrorObject)),
            (r#"{"code":107,"httpStatus":404,"name":"Record not found"}"#, Err(InvalidBody::ErrorObject)),
            ("<html><title>Login</title></html>", Err(InvalidBody::Html)),
            ("ErrorCode(code=107)", Err(InvalidBody::ErrorText)),
            (r#"{"total":2,"entries":[{"id":1},{"id""#, Err(InvalidBody::Truncated)),
            ("{", Err(InvalidBody::Truncated)),
            (r#"{"entries":[{"id":1}]}x"#, Err(InvalidBody::Malformed)),
            (r#"{"entries":[{"id":1,}]}"#, Err(InvalidBody::Malformed)),
            ("[]", Err(InvalidBody::NotAnObject)),
            ("not json", Err(InvalidBody::Malformed)),
        ];
        for (body, expected) in table {
            let opened = text(body.as_bytes()).and_then(open_page).map(|opened| match opened {
                Opened::Entries(entries) => entries.len(),
                Opened::Nothing => 0,
            });
            assert_eq!(opened, expected, "{body}");
        }
        assert_eq!(text(b"{\"entries\":[\"\xff\"]}").err(), Some(InvalidBody::NotUtf8));
    }

    /// A page cut anywhere is never a shorter page, and never nothing.
    #[test]
    fn a_page_cut_at_any_byte_is_a_failure() {
        let whole = r#"{"total":2,"start":0,"entries":[{"id":1,"title":"a"},{"id":2}]}"#;
        for end in 0..whole.len() {
            assert!(open_page(&whole[..end]).is_err(), "cut at {end}");
        }
    }
}
