//! What the engine reports: the status document and the summary of a pass, exactly as users see them in JSON.

pub mod status;
pub mod summary;

pub use status::StatusReport;
pub use summary::PassSummary;
