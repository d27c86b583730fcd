//! The mistake: a window begins one second after the newest stamp that any page of the stream brought.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use sierra_sync::record::{Entry, Stream};
use sierra_sync::sync::Window;
use sierra_sync::sync::ports::{Answer, PageFilter, PageQuery, Pulse, Source, SourceError};

pub(super) struct StrictlyLater {
    beneath: Arc<dyn Source>,
    newest: Mutex<BTreeMap<Stream, Timestamp>>,
}

impl StrictlyLater {
    pub(super) fn over(beneath: Arc<dyn Source>) -> Self {
        Self { beneath, newest: Mutex::default() }
    }

    /// The window of a page that begins a walk, cut; further pages of the walk keep theirs.
    fn cut(&self, query: &PageQuery) -> PageQuery {
        let mut cut = query.clone();
        if let (PageFilter::Updated(window), None) = (&query.filter, query.after)
            && let Some(newest) = self.newest.lock().unwrap().get(&query.stream)
            && let Some(later) = Window::new(*newest + SignedDuration::from_secs(1), window.end())
        {
            cut.filter = PageFilter::Updated(later);
        }
        cut
    }
}

impl Source for StrictlyLater {
    fn pulse(&self) -> BoxFuture<'_, Result<Pulse, SourceError>> {
        self.beneath.pulse()
    }

    fn page<'a>(&'a self, query: &'a PageQuery) -> BoxFuture<'a, Result<Answer, SourceError>> {
        Box::pin(async move {
            let answer = self.beneath.page(&self.cut(query)).await?;
            if let Answer::Page(page) = &answer {
                let stamps = page.entries.iter().filter_map(|entry| match entry.as_ref().ok()? {
                    Entry::Live(live) => live.updated(),
                    Entry::Tombstone(_) => None,
                });
                if let Some(newest) = stamps.max() {
                    let mut seen = self.newest.lock().unwrap();
                    let slot = seen.entry(query.stream).or_insert(newest);
                    *slot = newest.max(*slot);
                }
            }
            Ok(answer)
        })
    }
}
