//! A task that panics is a defect; it must not end the service, nor leave it alive with a dead worker.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::sync::StoreError;
use crate::sync::observer::{Event, SharedObserver};

/// The pause before a task that panicked is started again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two starts.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Runs what `start` gives until it ends by itself, starting it again after every panic. What was in flight is lost
/// with the task; everything it had committed stands, so starting again is what a restart of the process would do.
///
/// # Errors
/// Those of the task itself.
pub(super) async fn supervised<F>(
    task: &str,
    observer: &SharedObserver,
    cancel: &CancellationToken,
    mut start: impl FnMut() -> F,
) -> Result<(), StoreError>
where
    F: Future<Output = Result<(), StoreError>>,
{
    let mut pause = FIRST_PAUSE;
    for restarts in 1_u32.. {
        match AssertUnwindSafe(start()).catch_unwind().await {
            Ok(ended) => return ended,
            // What it says may hold a value of a record: the panic hook has told where it happened.
            Err(_) => observer.observe(&Event::TaskPanicked { task: task.to_owned(), restarts }),
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(()),
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::time::Instant;

    use super::*;
    use crate::sync::observer::Observer;

    #[derive(Default)]
    struct Heard(Mutex<Vec<Event>>);

    impl Observer for Heard {
        fn observe(&self, event: &Event) {
            self.0.lock().expect("unpoisoned").push(event.clone());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_and_told_of() {
        let heard = Arc::new(Heard::default());
        let observer: SharedObserver = heard.clone();
        let (mut starts, began) = (0, Instant::now());
        let cancel = CancellationToken::new();
        let ended = supervised("bibs", &observer, &cancel, || {
            starts += 1;
            let start = starts;
            async move { if start <= 8 { panic!("a defect") } else { Ok(()) } }
        });
        assert!(ended.await.is_ok());
        assert_eq!(starts, 9);
        // 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 seconds of pauses.
        assert_eq!(began.elapsed().as_secs(), 183);
        let last = Event::TaskPanicked { task: "bibs".to_owned(), restarts: 8 };
        assert_eq!(heard.0.lock().expect("unpoisoned").last(), Some(&last));
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_is_not_held_up_by_a_pause() {
        let observer: SharedObserver = Arc::new(Heard::default());
        let cancel = CancellationToken::new();
        cancel.cancel();
        let started = Instant::now();
        let ended = supervised("bibs", &observer, &cancel, || async { panic!("a defect") });
        assert!(ended.await.is_ok());
        assert_eq!(started.elapsed(), Duration::ZERO);
    }
}
