//! What the engine reports: the status document and the summary of a pass, exactly as users see them in JSON.

mod filling;
pub mod status;
pub mod summary;

pub use filling::Filling;
pub use status::StatusReport;
pub use summary::PassSummary;
