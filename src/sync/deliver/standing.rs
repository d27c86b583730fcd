//! How a sink fares: noted here, and kept for the next process.

use std::sync::{MutexGuard, PoisonError};

use super::courier::Courier;
use super::lane::SinkLane;
use crate::failure::Disposition;
use crate::sync::observer::Event;
use crate::sync::report::status::SinkState;
use crate::sync::report::summary::ErrorReport;
use crate::sync::{SinkError, StoreError};

/// How a sink fares, for reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// `None` while all is well.
    pub trouble: Option<SinkState>,
    /// The last failure, until a delivery succeeds.
    pub error: Option<ErrorReport>,
    /// Changes confirmed since the engine was opened.
    pub delivered: u64,
    /// Changes refused for good since the engine was opened.
    pub refused: u64,
}

impl SinkLane {
    pub(super) async fn recovers(&self, courier: &mut Courier) -> Result<(), StoreError> {
        let was_open = courier.health.is_open();
        courier.health.on_success();
        self.stands(None).await?;
        if was_open {
            self.observer.observe(&Event::SinkUp { sink: self.name().into() });
        }
        Ok(())
    }

    pub(super) async fn is_retried(&self, attempt: u32, error: &SinkError) -> Result<(), StoreError> {
        let report = report(error);
        self.stands(Some((SinkState::Retrying, report.clone()))).await?;
        self.observer.observe(&Event::DeliveryRetried { sink: self.name().into(), attempt, error: report });
        Ok(())
    }

    pub(super) async fn goes_down(&self, courier: &mut Courier, error: &SinkError) -> Result<(), StoreError> {
        courier.health.on_refusal();
        self.is_down(error).await
    }

    pub(super) async fn is_down(&self, error: &SinkError) -> Result<(), StoreError> {
        let report = report(error);
        self.stands(Some((SinkState::Open, report.clone()))).await?;
        self.observer.observe(&Event::SinkDown { sink: self.name().into(), error: report });
        Ok(())
    }

    /// Notes how the sink fares, here and for the next process.
    pub(super) async fn stands(&self, trouble: Option<(SinkState, ErrorReport)>) -> Result<(), StoreError> {
        {
            let mut standing = self.stand();
            (standing.trouble, standing.error) = trouble.clone().unzip();
        }
        self.positions.troubled(self.name(), trouble).await
    }

    pub(super) fn stand(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sink's error as people and programs see it.
fn report(error: &SinkError) -> ErrorReport {
    let kind = match error.disposition {
        Disposition::RetryLater { .. } | Disposition::Reauthenticate => "unavailable",
        Disposition::NarrowWindow | Disposition::Quarantine => "refused",
        Disposition::Halt => "stopped",
    };
    ErrorReport {
        kind: kind.into(),
        message: format!("failed to {}", error.message),
        endpoint: None,
        status_code: None,
        code: None,
        correlation_id: None,
        hint: Some(error.hint.clone()),
    }
}
