//! Error bodies: Sierra's envelope, its wrapped form, the OAuth form, and plain text that begins `ErrorCode(`.
//!
//! Reading an error body never fails and never costs much: what is too large, too deep or not understood is simply
//! no error body.

use std::fmt;

use serde_json::value::RawValue;

use super::wire::RawObject;

/// A larger body is no error message.
const MAX_BYTES: usize = 64 * 1024;
/// What an error body said. Texts are foreign: quote them only through `Scrubber`.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct ApiError {
    /// Sierra's code; a number or a string on the wire.
    pub(super) code: Option<i64>,
    /// Whether the body repeats an HTTP status, as Sierra's envelope does.
    pub(super) has_http_status: bool,
    /// `name`, or OAuth's `error`.
    pub(super) name: Option<String>,
    /// `description`, or OAuth's `error_description`.
    pub(super) description: Option<String>,
}

impl ApiError {
    /// Reads an error body of any known form.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(body.get(..body.len().min(MAX_BYTES))?).ok()?.trim_start();
        if text.starts_with("ErrorCode(") {
            return Some(Self { name: Some(text.to_owned()), ..Self::default() });
        }
        if body.len() > MAX_BYTES || !text.starts_with('{') {
            return None;
        }
        let object = serde_json::from_str::<RawObject<'_>>(text).ok()?;
        let error = Self::of(&object, true);
        if error == Self::default() { None } else { Some(error) }
    }

    /// Takes what is understood; a wrong type in one key costs that key alone.
    fn of(object: &RawObject<'_>, may_unwrap: bool) -> Self {
        let mut error = Self::default();
        for (key, value) in object.iter() {
            match key {
                "code" => error.code = integer(value),
                "httpStatus" => error.has_http_status = integer(value).is_some(),
                "name" | "error" => error.name = error.name.or(text(value)),
                "description" | "error_description" => error.description = error.description.or(text(value)),
                "ErrorCodes" if may_unwrap => {
                    if let Some(inner) = wrapped(value) {
                        return Self::of(&inner, false);
                    }
                }
                _ => {}
            }
        }
        error
    }

    /// Name and description, to be looked at by `resilience`.
    pub(super) fn texts(&self) -> (Option<&str>, Option<&str>) {
        (self.name.as_deref(), self.description.as_deref())
    }

    /// Name and description as one text, to be quoted.
    pub(super) fn text(&self) -> Option<String> {
        match (self.name.as_deref(), self.description.as_deref()) {
            (Some(name), Some(description)) if name != description => Some(format!("{name}: {description}")),
            (Some(text), _) | (None, Some(text)) => Some(text.to_owned()),
            (None, None) => None,
        }
    }
}

impl fmt::Debug for ApiError {
    /// The code alone: texts may echo headers or name a patron.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ApiError").field("code", &self.code).finish_non_exhaustive()
    }
}

/// An integer, or a string that holds one: Sierra's `code` comes both ways.
pub(super) fn integer(value: &RawValue) -> Option<i64> {
    serde_json::from_str::<i64>(value.get()).ok().or_else(|| text(value)?.trim().parse().ok())
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str::<String>(value.get()).ok().filter(|text| !text.trim().is_empty())
}

/// The value of `ErrorCodes`: an object, or a list whose first object counts.
fn wrapped(value: &RawValue) -> Option<RawObject<'_>> {
    let object = |value| serde_json::from_str::<RawObject<'_>>(value).ok();
    object(value.get()).or_else(|| {
        let list = serde_json::from_str::<Vec<&RawValue>>(value.get()).ok()?;
        object(list.first()?.get())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Option<ApiError> {
        ApiError::read(body.as_bytes())
    }

    #[test]
    fn every_known_form_of_error_body_is_read() {
        let sierra = read(
            r#"{"code":123,"specificCode":0,"httpStatus":401,"name":"Unauthorized","description":"invalid_grant"}"#,
        )
        .expect("reads");
        assert_eq!((sierra.code, sierra.has_http_status), (Some(123), true));
        assert_eq!(sierra.text().as_deref(), Some("Unauthorized: invalid_grant"));
        let oauth = read(r#"{"error":"No grant_type specified","error_description":null}"#).expect("reads");
        assert_eq!((oauth.code, oauth.text().as_deref()), (None, Some("No grant_type specified")));
        for wrapped in [
            r#"{"ErrorCodes":{"code":"107","name":"Record not found"}}"#,
            r#"{"ErrorCodes":[{"code":107,"name":"Record not found"},{"code":1}]}"#,
        ] {
            assert!(read(wrapped).expect("reads").code == Some(107), "{wrapped}");
        }
        assert_eq!(read(r#"{"code":"-1"}"#).expect("reads").code, Some(-1));
        assert!(read("ErrorCode(code=107, name=x)").expect("reads").code.is_none());
    }

    #[test]
    fn what_is_no_error_body_is_none_and_never_a_panic() {
        let deep = format!("{{\"code\":{}1{}}}", "[".repeat(100_000 / 4), "]".repeat(100_000 / 4));
        let huge = format!("{{\"code\":107,\"x\":\"{}\"}}", "y".repeat(MAX_BYTES));
        let nested = r#"{"ErrorCodes":{"ErrorCodes":{"code":107}}}"#;
        for body in ["", "  ", "<html>404</html>", "[]", "{}", "{", "107", r#"{"code":[107]}"#, nested, &deep, &huge] {
            assert_eq!(read(body), None, "{}", body.get(..20).unwrap_or(body));
        }
        assert_eq!(ApiError::read(b"{\"code\":107,\"x\":\"\xff\"}"), None);
    }

    /// BR-035: an error body may name a patron.
    #[test]
    fn debug_shows_the_code_and_no_text() {
        let error = read(r#"{"code":108,"name":"canary","description":"canary"}"#).expect("reads");
        assert_eq!(format!("{error:?}"), "ApiError { code: Some(108), .. }");
    }
}
