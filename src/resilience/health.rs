//! Drives the breaker's health checks: waits until one is due and quota allows it, then asks once (B7).

use std::convert::Infallible;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use super::breaker::ProbeTarget;
use super::endpoint::Endpoint;
use super::line::Line;
use super::quota::{Class, Patience, Quota, Quoted, Waiter};
use super::retry::Answer;
use super::taxonomy::{Decision, Mark};

/// A whole health check, its token call included, takes no longer. Well below the breaker's lease, and short enough
/// that an outage in which calls hang is soon noticed to be over.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the other side how it is.
pub trait HealthCheck: Send {
    /// Checks `target` once, without retries. Every request goes through `pass`. Returns [`Mark::Healthy`] when the
    /// other side works, whatever it thinks of the request (a 404 with code 107, a 400, a 401 with a fresh token);
    /// [`Mark::Neutral`] when nothing was learnt (a 429, a pass that was refused). Dropping the future cancels it.
    fn check(&mut self, target: ProbeTarget, pass: &ProbePass<'_>) -> impl Future<Output = Mark> + Send;
}

/// Runs the health checks of a line for ever. Dropping the future ends it; a check on its way counts as neutral.
///
/// While the key's gate is closed the check waits without taking the slot: the open time does not grow, and nothing
/// escalates, since only checks that failed do that.
pub async fn run_health_checks(line: &Line, check: &mut impl HealthCheck) -> Infallible {
    loop {
        let target = line.breaker().wait_until_probe_due().await;
        if let Some(quota) = line.quota() {
            quota.wait_until_open(endpoint_of(target)).await;
        }
        let Some(lease) = line.breaker().try_probe() else { continue };
        let pass = ProbePass { quota: line.quota(), has_sent: AtomicBool::new(false) };
        let mark = match timeout(TIMEOUT, check.check(lease.target(), &pass)).await {
            Ok(mark) => mark,
            Err(_) if pass.has_sent.load(Ordering::Relaxed) => Mark::Failed,
            Err(_) => Mark::Neutral,
        };
        lease.report(mark);
    }
}

/// The right to send requests past an open breaker, but not past the quota.
#[derive(Debug)]
pub struct ProbePass<'a> {
    quota: Option<&'a Quota>,
    has_sent: AtomicBool,
}

impl ProbePass<'_> {
    /// Takes quota and makes one attempt. `None` when the quota does not allow it now.
    pub async fn send<T, E>(
        &self,
        endpoint: Endpoint,
        attempt: impl Future<Output = Answer<T, E>> + Send,
    ) -> Option<Answer<T, E>> {
        let permit = match self.quota {
            None => None,
            Some(quota) => {
                let mut waiter = Waiter::new(endpoint, Class::Incremental);
                Some(quota.acquire(&mut waiter, &mut Patience::none()).await.ok()?)
            }
        };
        self.has_sent.store(true, Ordering::Relaxed);
        let answer = attempt.await;
        if let Some(permit) = permit {
            let quoted = match &answer.result {
                Err(failure) if failure.decision == Decision::Throttled => Quoted::Throttled,
                Err(failure) => match failure.decision {
                    Decision::Refused(wait) => Quoted::Refused(wait),
                    _ => Quoted::Served,
                },
                Ok(_) => Quoted::Served,
            };
            permit.answered(&answer.facts, quoted);
        }
        Some(answer)
    }
}

/// What an answer to a health check says about the other side.
#[must_use]
pub fn mark_of<T, E>(answer: &Answer<T, E>) -> Mark {
    match &answer.result {
        Ok(_) => Mark::Healthy,
        Err(failure) => failure.decision.mark_under(answer.status),
    }
}

fn endpoint_of(target: ProbeTarget) -> Endpoint {
    match target {
        ProbeTarget::Health => Endpoint::TokenInfo,
        ProbeTarget::Endpoint(endpoint) => endpoint,
    }
}
