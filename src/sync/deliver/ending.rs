//! When a lane's run ends.

use tokio_util::sync::CancellationToken;

use crate::sync::signal;

/// When a lane's run ends.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Whether it is asked for from the start, and not only by a shutdown. Once it is, a run ends when nothing waits and
    /// capture has ended, or the sink is paused, detached, or does not take deliveries.
    pub when_drained: bool,
    /// Turns `true` when capture has ended.
    pub captured: signal::Receiver<bool>,
    /// The shutdown: what is captured is still delivered…
    pub asked: CancellationToken,
    /// …but not beyond this moment. The rest stays queued.
    pub too_late: CancellationToken,
}

impl Ending {
    /// Whether the run is to end once nothing waits.
    pub(super) fn is_wanted(&self) -> bool {
        self.when_drained || self.asked.is_cancelled()
    }

    pub(super) fn has_capture_ended(&self) -> bool {
        self.captured.get()
    }
}
