//! An answer before headers are put on it.

/// What an endpoint answers when it does not refuse.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The status, 200 unless said otherwise.
    pub(crate) status: u16,
    /// The media type.
    pub(crate) content_type: &'static str,
    /// The body.
    pub(crate) body: Vec<u8>,
    /// How many records it carries.
    pub(crate) entries: usize,
    /// How many of them asked for a computation that takes Sierra long.
    pub(crate) slow_entries: usize,
}

/// What Sierra calls its JSON.
pub(crate) const JSON: &str = "application/json;charset=UTF-8";

impl Answer {
    /// A JSON body under 200.
    pub(crate) fn json(body: String) -> Self {
        Self { status: 200, content_type: JSON, body: body.into_bytes(), entries: 0, slow_entries: 0 }
    }

    /// Carries this many records.
    pub(crate) fn counting(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// Carries this many expensive values.
    pub(crate) fn costing(mut self, slow_entries: usize) -> Self {
        self.slow_entries = slow_entries;
        self
    }
}
