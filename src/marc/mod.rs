//! (stub)

/// (stub, replaced by the MARC module)
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Loss {
    /// What kind of loss.
    pub kind: String,
    /// The field.
    pub field: String,
    /// Detail.
    pub detail: String,
}
