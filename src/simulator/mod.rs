//! A Sierra look-alike: a seeded library that lives, served through the API with Sierra's quirks and faults.
//!
//! It is a witness. It shares no types with the client beyond the transport, so that a field name that is wrong in
//! the client is not wrong here too; both are held to `fixtures/sierra`. It never talks to a real Sierra.

mod api;
mod dates;
mod faults;
mod hooks;
mod in_process;
mod invention;
mod journal;
mod json;
mod kind;
mod latency;
mod limits;
mod reply;
mod respond;
mod scenario;
mod server;
mod shared;
#[expect(clippy::module_inception, reason = "the module is named for what it holds, as every other one is")]
mod simulator;
mod site;
mod switches;
mod world;

pub use api::{Access, Endpoint, Permission, Refusal};
pub use faults::{Fault, FaultId, Garble, PlannedFault, Unauthorized, When};
pub use in_process::InProcess;
pub use journal::{Call, Journal};
pub use kind::Kind;
pub use latency::Latency;
pub use limits::{Counting, Dialect, EndpointLimit, RateLimit, Reset, RetryAfter};
pub use reply::{Delivery, Reply};
pub use scenario::{Action, FaultPlan, LibraryPlan, Progress, Scenario, ScenarioError, Script, Step, Trigger};
pub use server::Server;
pub use shared::SharedSimulator;
pub use simulator::{Arrival, BASE_PATH, Simulator};
pub use switches::{EmptyExport, ExpiredToken, IdForm, Labels, Nothing, OverLimit, Padding, Switches, Total};
pub use world::{
    Content, LibrarySettings, Life, Manner, MarcField, MarcValue, Night, NoSuchRecord, Oddity, Stamp, TrueRecord,
    Truth, VarField, World,
};
