//! The late sweep: whole records of the last two days once more, through ordinary capture.

use super::due::late_window;
use super::run::{Running, Sweeps};
use crate::sync::capture::error::WalkError;
use crate::sync::observer::Event;
use crate::sync::{LedgerRow, Pass, Span, StoreError};

impl Sweeps<'_> {
    /// Runs the late sweep that is owed, else a new one.
    pub(super) async fn late(&self, running: &mut Running) -> Result<(), StoreError> {
        let (rows, now) = (self.rows().await?, self.lane.clock.now());
        let owed = rows.iter().find(|row| row.pass == Pass::LateSweep && self.is_tried(row, now)).cloned();
        let mut row = match (owed, late_window(&rows)) {
            (Some(row), _) => row,
            (None, Some(window)) => {
                let id = self.lane.store.call(|store| store.next_row_id()).await?;
                LedgerRow::opened(id, self.lane.stream(), Pass::LateSweep, Span::Time(window), now)
            }
            (None, None) => return Ok(()),
        };
        loop {
            let before = running.tally.entries.changed;
            let walked = self.lane.walk(&mut row, &mut running.tally, self.cancel).await;
            let found = running.tally.entries.changed - before;
            if found > 0 {
                self.lane.observer.observe(&Event::LateFound { stream: self.lane.stream(), count: found });
            }
            match walked {
                Ok(()) => return self.lane.close_row(row).await,
                Err(WalkError::Store(error)) => return Err(error),
                Err(error) => {
                    if !self.goes_on_after(&error, &mut row, running).await? {
                        return Ok(());
                    }
                }
            }
        }
    }
}
