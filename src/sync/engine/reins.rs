//! How people hold a stream back, or ask it to run at once.

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::sync::report::status::Pause;
use crate::sync::signal;

/// The reins of one stream.
#[derive(Debug)]
pub(super) struct Reins {
    paused: signal::Sender<Option<Pause>>,
    wanted: Notify,
}

impl Reins {
    /// Reins of a stream that is paused or not.
    pub(super) fn new(paused: Option<Pause>) -> Self {
        Self { paused: signal::Sender::new(paused), wanted: Notify::new() }
    }

    /// Who paused the stream, if somebody did.
    pub(super) fn paused(&self) -> Option<Pause> {
        self.paused.get()
    }

    /// Pauses the stream, or lets it go on.
    pub(super) fn set(&self, paused: Option<Pause>) {
        self.paused.set(paused);
    }

    /// Asks for a pass as soon as the stream can make one. Asked again before that, it is one pass.
    pub(super) fn ask(&self) {
        self.wanted.notify_one();
    }

    /// Returns when a pass is asked for.
    pub(super) async fn asked(&self) {
        self.wanted.notified().await;
    }

    /// Returns when the stream is paused.
    pub(super) async fn held(&self) {
        self.paused.subscribe().wait_for(Option::is_some).await;
    }

    /// Returns when the stream is not paused.
    pub(super) async fn free(&self) {
        self.paused.subscribe().wait_for(Option::is_none).await;
    }

    /// Runs `work`, telling it to end early when the stream is paused or `cancel` says so.
    pub(super) async fn under<T>(
        &self,
        cancel: &CancellationToken,
        work: impl AsyncFnOnce(CancellationToken) -> T,
    ) -> T {
        let over = cancel.child_token();
        let told = over.clone();
        let hold = async {
            self.held().await;
            told.cancel();
            std::future::pending().await
        };
        tokio::select! {
            biased;
            done = work(over.clone()) => done,
            never = hold => never,
        }
    }
}
