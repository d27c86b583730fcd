//! What one process can ask another that holds the state.

use serde::{Deserialize, Serialize};

use crate::app::actions::Operator;
use crate::app::assembly::Reach;
use crate::app::backfill::BackfillQuestion;
use crate::app::breaker::BreakerOrder;
use crate::app::cursor::CursorQuestion;
use crate::app::pausing::PauseOrder;
use crate::app::quarantine::QuarantineQuestion;
use crate::app::queue::QueueQuestion;
use crate::app::reconcile::ReconcileQuestion;
use crate::record::Stream;
use crate::sync::Pausable;

/// What can be asked. The names are spoken between processes, which may be of different versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(in crate::app) enum Question {
    /// How everything stands.
    Status,
    /// Something about the durable queue.
    Queue(QueueQuestion),
    /// Something about what was set aside.
    Quarantine(QuarantineQuestion),
    /// A word to the breaker.
    Breaker {
        /// What is to become of it.
        order: BreakerOrder,
        /// Who says so, and why.
        operator: Operator,
    },
    /// A stream or a sink is held back or let go.
    Pausing {
        /// Which of both.
        order: PauseOrder,
        /// What.
        what: Pausable,
        /// Who says so, and why.
        operator: Operator,
    },
    /// A pass as soon as one can be made: for services.
    SyncNow {
        /// Over these streams; none means all.
        streams: Vec<Stream>,
        /// Who says so, and why.
        operator: Operator,
    },
    /// What people did by command.
    BreakerHistory,
    /// Back to work after a stall.
    Recover {
        /// The streams whose smallest pages are asked for.
        streams: Vec<Stream>,
        /// Who says so, and why.
        operator: Operator,
        /// Whether long waits for quota are sat out.
        wait: bool,
    },
    /// Where streams stand, and where they are put.
    Cursor(CursorQuestion),
    /// Records to be read once more. Whoever opens the state does that without asking.
    Backfill(BackfillQuestion),
    /// A stream to be compared. Whoever opens the state does that without asking.
    Reconcile(ReconcileQuestion),
}

impl Question {
    /// What answering it may touch.
    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::Status | Self::BreakerHistory => Reach::Look,
            Self::Queue(question) => question.reach(),
            Self::Quarantine(question) => question.reach(),
            Self::Cursor(question) => question.reach(),
            Self::Breaker { .. }
            | Self::Pausing { .. }
            | Self::SyncNow { .. }
            | Self::Recover { .. }
            | Self::Backfill(_)
            | Self::Reconcile(_) => Reach::Everything,
        }
    }
}
