//! How this Sierra behaves where Sierras differ (`sierra-api.md` §7.1).

use serde::Deserialize;

/// One choice per quirk. The default is a v6 server as most recently observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Switches {
    /// What `total` counts.
    pub total: Total,
    /// Whether pages carry `start`; v3 did not.
    pub start: bool,
    /// Whether record numbers are texts or integers.
    pub ids: IdForm,
    /// Whether codes are filled up with spaces.
    pub padding: Padding,
    /// What fixed fields are called.
    pub labels: Labels,
    /// The answer when no record lies in a range of ids or of `updatedDate` or `createdDate`.
    pub empty_range: Nothing,
    /// The answer when a query for deleted records finds none.
    pub empty_deletes: Nothing,
    /// The answer when the named bibs have no items.
    pub empty_bib_ids: Nothing,
    /// Whether a query by `updatedDate` also returns tombstones whose last edit lies in the window (v3 did).
    pub tombstones_in_updates: bool,
    /// Whether tombstones carry the `updatedDate` of their last edit, when it is asked for.
    pub stale_tombstone_stamps: bool,
    /// What a `limit` over 2,000 does.
    pub over_limit: OverLimit,
    /// How a token that ran out is refused.
    pub expired_token: ExpiredToken,
    /// Whether a new token ends the earlier ones. Not reported of any server; a client that shares one token among
    /// its workers does not notice.
    pub one_token: bool,
    /// The answer of `/bibs/marc` when a range holds nothing to export.
    pub empty_export: EmptyExport,
    /// Whether a request that does not accept JSON gets errors as text beginning `ErrorCode(`.
    pub plain_text_errors: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            total: Total::PerPage,
            start: true,
            ids: IdForm::AsRecorded,
            padding: Padding::AsRecorded,
            labels: Labels::Recorded,
            empty_range: Nothing::NotFound,
            empty_deletes: Nothing::EmptyPage,
            empty_bib_ids: Nothing::NotFound,
            tombstones_in_updates: false,
            stale_tombstone_stamps: false,
            over_limit: OverLimit::Clamp,
            expired_token: ExpiredToken::InvalidGrant,
            one_token: false,
            empty_export: EmptyExport::ProcessFailed,
            plain_text_errors: false,
        }
    }
}

impl Switches {
    /// A v3 server of 2017: no `start`, tombstones among the updates.
    #[must_use]
    pub fn v3() -> Self {
        Self { start: false, tombstones_in_updates: true, ..Self::default() }
    }
}

/// What `total` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Total {
    /// The entries of this page: every recorded page.
    PerPage,
    /// All matches: what the documentation says.
    AllMatches,
    /// It is left out.
    Absent,
}

/// How record numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdForm {
    /// Texts for bibs and items, integers for patrons.
    AsRecorded,
    /// Texts for all.
    Strings,
    /// Integers for all.
    Integers,
}

/// Where codes are filled up with spaces to their fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Padding {
    /// Countries, locations, and the material in fixed field 30.
    AsRecorded,
    /// There, and item statuses too (`"-  "`, one v5 site).
    Everywhere,
    /// Nowhere.
    Nowhere,
}

/// What the labels of fixed fields say; each site may change them (BR-036).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Labels {
    /// What recorded answers say.
    Recorded,
    /// Something else for each.
    Local,
    /// They are missing.
    Absent,
}

/// How Sierra says that there is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nothing {
    /// 404 with code 107.
    NotFound,
    /// 200 with an empty array, without `total`.
    EmptyPage,
}

/// What a `limit` beyond the ceiling of 2,000 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverLimit {
    /// It is silently 2,000.
    Clamp,
    /// It is refused with 400.
    Refuse,
}

/// How a token that ran out, or was never given, is refused; always with 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiredToken {
    /// Code 123, `invalid_grant`: a v6 production server.
    InvalidGrant,
    /// Code 113: "Invalid or missing authorization header".
    BadHeader,
    /// Code 120, `invalid_token`: as documented.
    InvalidToken,
}

/// How the export to MARC answers for a range without anything to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyExport {
    /// 500 with code 135, "External Process Failed".
    ProcessFailed,
    /// 404 with code 107.
    NotFound,
    /// 200 with `outputRecords` of nought.
    NoOutput,
}
