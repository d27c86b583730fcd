//! The mistake: whatever has status 404 is an empty page.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sierra_sync::sync::RequestNumber;
use sierra_sync::sync::ports::{Answer, PageQuery, Pulse, Source, SourceError};

pub(super) struct All404IsNothing(pub(super) Arc<dyn Source>);

impl Source for All404IsNothing {
    fn pulse(&self) -> BoxFuture<'_, Result<Pulse, SourceError>> {
        self.0.pulse()
    }

    fn page<'a>(&'a self, query: &'a PageQuery) -> BoxFuture<'a, Result<Answer, SourceError>> {
        Box::pin(async move {
            match self.0.page(query).await {
                Err(error) if error.status_code == Some(404) => {
                    let (sent, answered) = (RequestNumber::default(), RequestNumber::default());
                    Ok(Answer::Nothing { sent, answered, date: None, traffic: error.traffic })
                }
                answer => answer,
            }
        })
    }
}
