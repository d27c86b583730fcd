//! The part of a pass that works on a rebuild: first all records, then all deletions.

use jiff::Span as Days;

use super::{Owed, Running};
use crate::record::RecordNumber;
use crate::sync::rebuild::EARLIEST;
use crate::sync::{LedgerRow, Pass, Span, StoreError};

impl Running<'_> {
    /// Walks the sweep of a rebuild, if one is owed.
    pub(super) async fn rebuild_sweep(&mut self) -> Result<(), StoreError> {
        let Some(row) = self.owed_of(Pass::Rebuild).await? else { return Ok(()) };
        let span = Span::Ids { from: RecordNumber::new(1), to: None, pinned: self.bound() };
        self.walk_all(vec![begun_now(row, span)]).await
    }

    /// Walks the deletions of a rebuild, if they are owed and its sweep is done: a record that was deleted before the
    /// sweep came to it must be found here.
    pub(super) async fn rebuild_deletes(&mut self) -> Result<(), StoreError> {
        let rows = self.lane.rows().await?;
        if rows.iter().any(|row| row.pass == Pass::Rebuild && row.is_owed()) {
            return Ok(());
        }
        let Some(row) = self.owed_of(Pass::RebuildDeletes).await? else { return Ok(()) };
        let ahead = Days::new().days(i64::from(self.lane.settings.deleted_overlap_days));
        let today = self.lane.zone.to_datetime(self.order.now).date();
        let span = Span::Days { from: EARLIEST, to: today.saturating_add(ahead) };
        self.walk_all(vec![begun_now(row, span)]).await
    }

    async fn owed_of(&self, pass: Pass) -> Result<Option<LedgerRow>, StoreError> {
        let now = self.lane.clock.now();
        let is_tried = |row: &LedgerRow| match self.order.owed {
            Owed::All => row.is_owed(),
            Owed::Due => row.is_due(now),
        };
        Ok(self.lane.rows().await?.into_iter().find(|row| row.pass == pass && is_tried(row)))
    }
}

/// The row with `span`, unless it was begun: what it covers is then settled.
fn begun_now(row: LedgerRow, span: Span) -> LedgerRow {
    if row.position.is_some() { row } else { LedgerRow { span, ..row } }
}
