//! Who carries changes to a sink.

use rand::rngs::StdRng;
use tokio::time::Instant;

use super::health::Health;
use super::refusals::Refusals;
use crate::sync::{Seq, Sink, SinkError};

/// The sink itself with what its deliveries have taught.
pub struct Courier {
    pub(in crate::sync) sink: Box<dyn Sink>,
    pub(in crate::sync) health: Health,
    pub(in crate::sync) refusals: Refusals,
    pub(in crate::sync) generator: StdRng,
    pub(in crate::sync) met: Met,
    /// When the sink last said how much it holds.
    pub(in crate::sync) stock_taken: Option<Instant>,
}

/// How far a sink turned out to be when it was first asked, before anything was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It has not answered yet.
    Never,
    /// It answered, and nobody has looked at that yet.
    At(Option<Seq>),
    /// It is known whether it was ahead of the store.
    Judged,
}

impl Courier {
    /// Asks the sink how far it is, unless that was done.
    pub(super) async fn meet(&mut self) -> Result<(), SinkError> {
        if self.met == Met::Never {
            self.met = Met::At(self.sink.highest_seq().await?);
        }
        Ok(())
    }
}
