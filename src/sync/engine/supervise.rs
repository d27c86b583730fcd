//! A task that panics is a defect; it must not end the service, nor leave it alive with a dead worker.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::clock::SharedClock;
use crate::sync::observer::{Event, SharedObserver};
use crate::sync::report::status::TaskRestarts;

/// The pause before a task that panicked is started again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two starts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Starts tasks again that panic, and remembers which did, for the status and the metrics.
pub struct Supervisor {
    observer: SharedObserver,
    clock: SharedClock,
    restarts: Mutex<BTreeMap<String, TaskRestarts>>,
}

impl Supervisor {
    /// One that tells `observer` of every panic.
    #[must_use]
    pub fn new(observer: SharedObserver, clock: SharedClock) -> Self {
        Self { observer, clock, restarts: Mutex::default() }
    }

    /// Runs what `start` gives until it ends by itself, starting it again after every panic. What was in flight is lost
    /// with the task; everything it had committed stands, so starting again is what a restart of the process would do.
    /// `task` comes from a closed set but for names of sinks.
    ///
    /// # Errors
    /// Those of the task itself.
    pub async fn run<F, E>(&self, task: &str, cancel: &CancellationToken, mut start: impl FnMut() -> F) -> Result<(), E>
    where
        F: Future<Output = Result<(), E>>,
    {
        let mut pause = FIRST_PAUSE;
        loop {
            match AssertUnwindSafe(start()).catch_unwind().await {
                Ok(ended) => return ended,
                // What it says may hold a value of a record: the panic hook has told where it happened.
                Err(_) => self.note(task),
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(()),
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The tasks that were started again, by name.
    #[must_use]
    pub fn restarts(&self) -> BTreeMap<String, TaskRestarts> {
        self.restarts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, task: &str) {
        let last = self.clock.now();
        let times = {
            let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
            let noted = restarts.entry(task.to_owned()).or_insert(TaskRestarts { times: 0, last });
            noted.times += 1;
            noted.last = last;
            noted.times
        };
        self.observer.observe(&Event::TaskPanicked { task: task.to_owned(), restarts: times });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::*;
    use crate::clock::{Clock, SimClock};
    use crate::sync::StoreError;
    use crate::sync::observer::Observer;

    #[derive(Default)]
    struct Heard(Mutex<Vec<Event>>);

    impl Observer for Heard {
        fn observe(&self, event: &Event) {
            self.0.lock().expect("unpoisoned").push(event.clone());
        }
    }

    fn supervisor() -> (Supervisor, Arc<Heard>, Arc<SimClock>) {
        let clock = Arc::new(SimClock::starting_at("2026-01-05T10:00:00Z".parse().expect("a timestamp")));
        let heard = Arc::new(Heard::default());
        (Supervisor::new(heard.clone(), clock.clone()), heard, clock)
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_counted_and_told_of() {
        let (supervisor, heard, clock) = supervisor();
        let (mut starts, began) = (0, Instant::now());
        let cancel = CancellationToken::new();
        let ended = supervisor.run("stream bibs", &cancel, || {
            starts += 1;
            let start = starts;
            async move { if start <= 8 { panic!("a defect") } else { Ok::<(), StoreError>(()) } }
        });
        assert!(ended.await.is_ok());
        assert_eq!(starts, 9);
        // 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 seconds of pauses.
        assert_eq!(began.elapsed().as_secs(), 183);
        let last = Event::TaskPanicked { task: "stream bibs".to_owned(), restarts: 8 };
        assert_eq!(heard.0.lock().expect("unpoisoned").last(), Some(&last));
        let restarts = supervisor.restarts();
        let noted = restarts.get("stream bibs").expect("it was started again");
        assert_eq!((restarts.len(), noted.times), (1, 8));
        assert_eq!(clock.now().duration_since(noted.last).as_secs(), 60, "the pause after the last one");
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_is_not_held_up_by_a_pause() {
        let (supervisor, ..) = supervisor();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let started = Instant::now();
        let ended = supervisor.run("stream bibs", &cancel, || async { panic!("a defect") });
        assert!(Result::<(), StoreError>::is_ok(&ended.await));
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}
