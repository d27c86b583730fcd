//! A line with a call whose answers a test writes down, and a recorder of what the layer tells.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderMap;
use sierra_sync::resilience::breaker::{Breaker, BreakerEvent, BreakerObserver};
use sierra_sync::resilience::endpoint::Endpoint;
use sierra_sync::resilience::line::Line;
use sierra_sync::resilience::quota::{Class, Quota, QuotaSnapshot};
use sierra_sync::resilience::rate_headers::RateFacts;
use sierra_sync::resilience::retry::{
    Answer, Attempt, Call, CallContext, Ended, Failure, RetryEvent, RetryEventKind, RetryObserver,
};
use sierra_sync::resilience::settings::{BreakerSettings, QuotaSettings, RetrySettings};
use sierra_sync::resilience::taxonomy::{Decision, Evidence};
use sierra_sync::seed::RootSeed;
use tokio::time::sleep;

/// One answer of a stand-in server.
#[derive(Debug, Clone, Default)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: &'static str,
    pub(super) latency: Duration,
}

impl Reply {
    pub(super) fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    pub(super) fn body(mut self, body: &'static str) -> Self {
        self.body = body;
        self
    }

    pub(super) fn after(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// The answer as a client would hand it to the loop.
    pub(super) fn into_answer(self) -> Answer<u16, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            headers.insert(name, value.parse().expect("a header value"));
        }
        let json: serde_json::Value = serde_json::from_str(self.body).unwrap_or_default();
        let evidence = Evidence {
            status: Some(self.status),
            code: json.get("code").and_then(serde_json::Value::as_i64),
            name: json.get("name").and_then(serde_json::Value::as_str),
            description: json.get("description").and_then(serde_json::Value::as_str),
            body: self.body.as_bytes(),
        };
        let result = match self.status {
            200 => Ok(200),
            status => Err(Failure { decision: Decision::of(&evidence), error: format!("status {status}") }),
        };
        Answer { status: Some(self.status), facts: RateFacts::read(&headers), result }
    }
}

/// A call to a stand-in server: a function from the number of the send to the reply.
pub(super) struct Scripted<F> {
    pub(super) reply: F,
    pub(super) sends: u32,
    pub(super) renewals: u32,
    pub(super) trials: u32,
}

impl<F: FnMut(u32) -> Reply + Send> Scripted<F> {
    pub(super) fn new(reply: F) -> Self {
        Self { reply, sends: 0, renewals: 0, trials: 0 }
    }
}

impl<F: FnMut(u32) -> Reply + Send> Call for Scripted<F> {
    type Value = u16;
    type Error = String;

    async fn prepare(&mut self, renew: bool) -> Result<(), Box<Ended<String>>> {
        self.renewals += u32::from(renew);
        Ok(())
    }

    async fn send(&mut self, attempt: Attempt) -> Answer<u16, String> {
        self.sends += 1;
        self.trials += u32::from(attempt.trial);
        let reply = (self.reply)(self.sends);
        sleep(reply.latency).await;
        reply.into_answer()
    }

    fn overdue(&mut self, attempt: Attempt) -> String {
        format!("no answer within {:?}", attempt.timeout)
    }
}

/// A step of a loop, kept.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    pub(super) kind: RetryEventKind,
    pub(super) status_code: Option<u16>,
    pub(super) attempt: u32,
    pub(super) delay: Duration,
    pub(super) computed_jitter: Option<Duration>,
    pub(super) honored_retry_after: bool,
    pub(super) elapsed: Duration,
    pub(super) rate_limit_remaining: Option<u32>,
    pub(super) correlation_id: String,
}

/// Keeps everything that it hears.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) steps: Mutex<Vec<Recorded>>,
    pub(super) transitions: Mutex<Vec<BreakerEvent>>,
}

impl Recorder {
    pub(super) fn steps(&self) -> Vec<Recorded> {
        self.steps.lock().expect("no test panics while recording").clone()
    }

    pub(super) fn transitions(&self) -> Vec<BreakerEvent> {
        self.transitions.lock().expect("no test panics while recording").clone()
    }
}

impl RetryObserver for Recorder {
    fn on_retry_event(&self, event: &RetryEvent<'_>) {
        let recorded = Recorded {
            kind: event.kind,
            status_code: event.status_code,
            attempt: event.attempt,
            delay: event.delay,
            computed_jitter: event.computed_jitter,
            honored_retry_after: event.honored_retry_after,
            elapsed: event.elapsed,
            rate_limit_remaining: event.rate_limit_remaining,
            correlation_id: event.correlation_id.to_owned(),
        };
        self.steps.lock().expect("no test panics while recording").push(recorded);
    }
}

impl BreakerObserver for Recorder {
    fn on_breaker_event(&self, event: &BreakerEvent) {
        self.transitions.lock().expect("no test panics while recording").push(event.clone());
    }
}

/// A line to a stand-in Sierra.
pub(super) struct Bench {
    pub(super) line: Line,
    pub(super) recorder: Arc<Recorder>,
}

impl Bench {
    pub(super) fn seeded(seed: u64) -> Self {
        Self::with(seed, RetrySettings::default(), QuotaSettings::default())
    }

    /// A line that takes up what an earlier process knew of the quota.
    pub(super) fn restored(seed: u64, kept: &QuotaSnapshot, date: jiff::Timestamp) -> Self {
        let quota = Quota::new(QuotaSettings::default(), RootSeed::new(seed).generator("quota"));
        quota.restore(kept, date);
        Self::of(seed, RetrySettings::default(), quota, BreakerSettings::default())
    }

    pub(super) fn with(seed: u64, retry: RetrySettings, quota: QuotaSettings) -> Self {
        Self::with_breaker(seed, retry, quota, BreakerSettings::default())
    }

    pub(super) fn with_breaker(
        seed: u64,
        retry: RetrySettings,
        quota: QuotaSettings,
        breaker: BreakerSettings,
    ) -> Self {
        let quota = Quota::new(quota, RootSeed::new(seed).generator("quota"));
        Self::of(seed, retry, quota, breaker)
    }

    fn of(seed: u64, retry: RetrySettings, quota: Quota, breaker: BreakerSettings) -> Self {
        let seed = RootSeed::new(seed);
        let recorder = Arc::new(Recorder::default());
        let breaker = Breaker::new(breaker, seed.generator("breaker"), recorder.clone());
        let line = Line::new(retry, breaker, Some(quota), seed.generator("retry")).expect("sound settings");
        Self { line, recorder }
    }

    pub(super) fn quota(&self) -> &Quota {
        self.line.quota().expect("a line to Sierra has a quota")
    }

    /// Makes one call to `endpoint`.
    pub(super) async fn call<F: FnMut(u32) -> Reply + Send>(
        &self,
        endpoint: Endpoint,
        call: &mut Scripted<F>,
    ) -> Result<sierra_sync::resilience::retry::Success<u16>, Box<Ended<String>>> {
        self.line.call(&context(endpoint), call, self.recorder.as_ref()).await
    }
}

pub(super) fn context(endpoint: Endpoint) -> CallContext {
    CallContext::sierra(endpoint, Class::Incremental, Arc::from("call-7"))
}
