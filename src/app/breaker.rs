//! `breaker`: what a person says to the breaker of the API key: to the process that holds the state, or to the state.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, SharedClock, SystemClock};
use crate::config::Config;
use crate::resilience::breaker::{BreakerSnapshot, OpenReason};
use crate::resilience::line::Line;
use crate::sierra::{read_breaker_snapshot, shown_breaker, write_breaker_snapshot};
use crate::store::BreakerHold;
use crate::sync::ports::Snapshot;
use crate::sync::report::status::BreakerStatus;
use crate::sync::{Store, StoreError};

use super::actions::{self, Action, Operator};
use super::assembly::{self, Assembly, Reach, Wishes};
use super::desk::{self, Question};

/// What is to become of the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerOrder {
    /// No call goes to Sierra, for so long or until somebody says otherwise.
    Open {
        /// For how long.
        lasts: Option<Duration>,
    },
    /// Calls go again, once a health check has passed; the outage is not forgotten.
    Close,
    /// Every outage is over: suspended endpoints and the credential latch with it.
    Reset,
}

impl BreakerOrder {
    const fn name(self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Close => "close",
            Self::Reset => "reset",
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BreakerReport {
    /// Version of this shape: 1.
    pub schema: u32,
    /// `open`, `close` or `reset`.
    pub action: String,
    /// When.
    pub at: Timestamp,
    /// Who, as far as it is known.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Until when it holds, where it ends by itself.
    pub until: Option<Timestamp>,
    /// Whether anything is different now.
    pub changed: bool,
    /// Whether the credential latch was lifted.
    pub latch_lifted: bool,
    /// The breaker as it stands now.
    pub breaker: BreakerStatus,
}

/// Carries `order` out, by the process that holds the state if there is one, else on the state that the next process
/// takes up; and keeps it in the history. Asks Sierra nothing.
///
/// # Errors
/// When the process that holds the state does not answer, or on any storage error.
pub async fn breaker(config: &Config, order: BreakerOrder, operator: &Operator) -> anyhow::Result<BreakerReport> {
    let clock: SharedClock = Arc::new(SystemClock);
    let store = match assembly::open_store(config, &clock, Reach::Everything, None).await {
        Ok(opened) => opened.store,
        Err(held) if desk::is_held(&held) => {
            return desk::hand_over(config, &Question::Breaker { order, operator: operator.clone() }, held).await;
        }
        Err(error) => return Err(error),
    };
    let at = clock.now();
    let wishes = Wishes::usual();
    wishes.chronicle.watch(&store);
    let line = assembly::line(config, &wishes, store.as_ref(), at)?;
    let lift = || {
        let was_closed = store.snapshot(Snapshot::Latch)?.is_some_and(|latch| !latch.is_empty());
        if was_closed {
            store.save_snapshot(Snapshot::Latch, &[])?;
        }
        Ok(was_closed)
    };
    // A breaker that was closed and has had no health check yet is kept as closed, and taken up as one that is due.
    let kept = store.snapshot(Snapshot::Breaker)?.and_then(|bytes| read_breaker_snapshot(&bytes));
    let before = kept.unwrap_or_else(|| line.breaker().snapshot(at));
    let place = Place { store: store.as_ref(), state: &config.store.path };
    Ok(carry_out(&line, &before, &place, at, order, operator, lift)?)
}

/// Carries `order` out in the process that holds the state.
///
/// # Errors
/// On any storage error.
pub(super) fn by_the_holder(
    assembly: &Assembly,
    order: BreakerOrder,
    operator: &Operator,
) -> Result<BreakerReport, StoreError> {
    let (client, store) = (&assembly.client, assembly.store.as_ref());
    let lift = || {
        let was_closed = !client.latch_snapshot().is_empty();
        client.reset_breaker();
        store.save_snapshot(Snapshot::Latch, &client.latch_snapshot())?;
        Ok(was_closed)
    };
    let (line, at) = (client.line(), SystemClock.now());
    let place = Place { store, state: &assembly.state };
    carry_out(line, &line.breaker().snapshot(at), &place, at, order, operator, lift)
}

/// Where what a person says is kept.
struct Place<'a> {
    store: &'a dyn Store,
    /// The directory of the state.
    state: &'a Path,
}

/// `before` is how the breaker stood; `lift` lifts the credential latch and returns whether it was closed.
fn carry_out(
    line: &Line,
    before: &BreakerSnapshot,
    &Place { store, state }: &Place<'_>,
    at: Timestamp,
    order: BreakerOrder,
    operator: &Operator,
    lift: impl FnOnce() -> Result<bool, StoreError>,
) -> Result<BreakerReport, StoreError> {
    let mut latch_lifted = false;
    match order {
        BreakerOrder::Open { lasts } => {
            line.breaker().hold(operator.by.as_deref(), operator.reason_or_none(), lasts);
        }
        BreakerOrder::Close => line.breaker().close(),
        BreakerOrder::Reset => {
            line.breaker().reset();
            latch_lifted = lift()?;
        }
    }
    let after = line.breaker().snapshot(at);
    let hold = hold_of(&after);
    // Heard too early it keeps `check` from calling, heard too late it would not.
    hold.as_ref().map_or(Ok(()), |hold| hold.keep(state))?;
    store.save_snapshot(Snapshot::Breaker, &write_breaker_snapshot(&after))?;
    if hold.is_none() {
        BreakerHold::take_back(state)?;
    }
    let changed = matches!(order, BreakerOrder::Open { .. }) || is_different(before, &after) || latch_lifted;
    let until = after.outage.as_ref().filter(|outage| outage.held).and_then(|outage| outage.next_probe);
    let Operator { by, reason } = operator.clone();
    let (action, outcome) = (order.name().to_owned(), outcome(before, changed, latch_lifted));
    let command = format!("breaker {action}");
    actions::note(store, Action { at, command, by: by.clone(), reason: reason.clone(), until, outcome })?;
    let breaker = shown_breaker(&after);
    Ok(BreakerReport { schema: 1, action, at, by, reason, until, changed, latch_lifted, breaker })
}

/// What people did by command, the oldest first.
///
/// # Errors
/// When the process that holds the state does not answer, or on any storage error.
pub async fn breaker_history(config: &Config) -> anyhow::Result<Vec<Action>> {
    let clock: SharedClock = Arc::new(SystemClock);
    match assembly::open_store(config, &clock, Reach::Look, None).await {
        Ok(opened) => Ok(actions::all(opened.store.as_ref())?),
        Err(held) if desk::is_held(&held) => desk::hand_over(config, &Question::BreakerHistory, held).await,
        Err(error) => Err(error),
    }
}

/// What a person said and still holds.
fn hold_of(breaker: &BreakerSnapshot) -> Option<BreakerHold> {
    let outage = breaker.outage.as_ref().filter(|outage| outage.held)?;
    let (by, reason) = match &outage.reason {
        OpenReason::Operator { by, reason } => (by.clone(), reason.clone()),
        other => (None, other.to_string()),
    };
    Some(BreakerHold { by, reason, until: outage.next_probe })
}

/// Closed circuits that still come back from an outage are the same to a person as closed ones.
fn is_different(before: &BreakerSnapshot, after: &BreakerSnapshot) -> bool {
    before.state != after.state || !before.suspended_endpoints().eq(after.suspended_endpoints())
}

fn outcome(before: &BreakerSnapshot, changed: bool, latch_lifted: bool) -> String {
    let was = match &shown_breaker(before).reason {
        Some(reason) => format!("it was open: {reason}"),
        None => "it was closed".to_owned(),
    };
    let latch = if latch_lifted { "; the credential latch was lifted" } else { "" };
    let nothing = if changed { "" } else { "; nothing changed" };
    format!("{was}{latch}{nothing}")
}
