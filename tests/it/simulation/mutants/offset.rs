//! The mistake: pages by offset, which is how many entries the walk had so far.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{Answer, PageQuery, Pulse, Source, SourceError};

pub(super) struct Offset {
    beneath: Arc<dyn Source>,
    /// By stream and filter: entries had so far in the walk that is under way.
    had: Mutex<BTreeMap<(Stream, String), usize>>,
}

impl Offset {
    pub(super) fn over(beneath: Arc<dyn Source>) -> Self {
        Self { beneath, had: Mutex::default() }
    }

    /// The page that begins after `offset` entries of the list as it is now.
    async fn at(&self, query: &PageQuery, offset: usize) -> Result<Answer, SourceError> {
        let mut from_start = PageQuery { after: None, ..query.clone() };
        let mut skipped = 0;
        loop {
            if skipped == offset {
                return self.beneath.page(&from_start).await;
            }
            let left = u32::try_from(offset - skipped).unwrap_or(u32::MAX);
            let step = PageQuery { limit: left.min(2000), ..from_start.clone() };
            match self.beneath.page(&step).await? {
                Answer::Page(page) => {
                    skipped += page.entries.len();
                    from_start.after = Some(page.last_id);
                }
                nothing => return Ok(nothing),
            }
        }
    }
}

impl Source for Offset {
    fn pulse(&self) -> BoxFuture<'_, Result<Pulse, SourceError>> {
        self.beneath.pulse()
    }

    fn page<'a>(&'a self, query: &'a PageQuery) -> BoxFuture<'a, Result<Answer, SourceError>> {
        Box::pin(async move {
            let walk = (query.stream, format!("{:?} {:?}", query.filter, query.until));
            if query.after.is_none() {
                self.had.lock().unwrap().insert(walk.clone(), 0);
            }
            let offset = self.had.lock().unwrap().get(&walk).copied();
            let answer = match offset {
                Some(offset) => self.at(query, offset).await?,
                None => self.beneath.page(query).await?,
            };
            if let (Answer::Page(page), Some(had)) = (&answer, self.had.lock().unwrap().get_mut(&walk)) {
                *had += page.entries.len();
            }
            Ok(answer)
        })
    }
}
