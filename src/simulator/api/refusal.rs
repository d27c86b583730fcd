//! Sierra's error bodies: `{"code","specificCode","httpStatus","name","description"?}` in that order.

use super::super::json::Object;

/// An error answer in Sierra's own envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// Sierra's code.
    pub code: u16,
    /// The name that goes with it.
    pub name: String,
    /// What is wrong, when Sierra says so; a plain "not found" says nothing more.
    pub description: Option<String>,
}

impl Refusal {
    /// The error that Sierra documents under `code`, with the documented status; unknown codes come as 500.
    #[must_use]
    pub fn documented(code: u16) -> Self {
        let (status, name, description) = match code {
            101 => (400, "Invalid argument", None),
            102 => (500, "Number format error", None),
            103 => (500, "Null pointer", None),
            104 => (501, "Not implemented", None),
            105 => (400, "Required parameter missing", None),
            106 => (400, "Parameter not recognized", None),
            107 => (404, "Record not found", None),
            108 => (400, "Invalid parameter", None),
            109 => (500, "Invalid configuration", None),
            111 => (500, "Data service error", None),
            112 => (500, "Database access error", None),
            113 => (401, "Unauthorized", Some("Invalid or missing authorization header")),
            114 => (403, "SSL required", None),
            115 => (400, "Invalid JSON", None),
            116 => (403, "Forbidden", None),
            117 => (503, "API disabled", None),
            118 => (503, "API not in access tier", None),
            119 => (500, "Client not unique", None),
            120 => (401, "Unauthorized", Some("invalid_token")),
            121 => (400, "Invalid authorization scheme", None),
            123 => (401, "Unauthorized", Some("invalid_grant")),
            126 => (400, "Request validation failed", None),
            127 => (401, "Unauthorized", Some("unauthorized_client")),
            130 => (400, "Bad JSON/XML syntax", None),
            132 => (500, "XCirc error", Some("XCirc error : not available")),
            133 => (409, "Multiple records found", None),
            135 => (
                500,
                "External Process Failed",
                Some("External Process Failed : bib2Marc process failed, No records exported"),
            ),
            _ => (500, "Internal server error", None),
        };
        Self { status, code, name: name.into(), description: description.map(Into::into) }
    }

    /// The same error, saying more.
    #[must_use]
    pub fn saying(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The same error under another status, as gateways and releases differ.
    #[must_use]
    pub fn under(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Sierra's own throttle (`sierra-api.md` §6): the numeric code is not known from public sources, so this one is
    /// free for the caller's choice of status; the text carries the minutes.
    #[must_use]
    pub fn rate_exceeded(status: u16, minutes: &str) -> Self {
        Self {
            status,
            code: 138,
            name: "Rate exceeded for endpoint".into(),
            description: Some(format!("Rate exceeded for endpoint : Please wait {minutes} minutes before retrying")),
        }
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> String {
        let mut out = String::new();
        let mut object = Object::open(&mut out);
        object.display("code", self.code);
        object.display("specificCode", 0);
        object.display("httpStatus", self.status);
        object.string("name", &self.name);
        if let Some(description) = &self.description {
            object.string("description", description);
        }
        object.close();
        out
    }

    /// The rendering that some get who do not ask for JSON (`sierra-api.md` §5.3).
    #[must_use]
    pub fn plain_text(&self) -> String {
        let Self { status, code, name, description } = self;
        let description = description.as_deref().unwrap_or_default();
        format!("ErrorCode(code={code}, specificCode=0, httpStatus={status}, name={name}, description={description})")
    }
}
