//! A Sierra by script: for each path a list of answers, the last of which is repeated for ever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use sierra_sync::clock::SimClock;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::resilience::breaker::{Breaker, SilentBreakerObserver};
use sierra_sync::resilience::line::Line;
use sierra_sync::resilience::quota::{Patience, Quota};
use sierra_sync::resilience::settings::{BreakerSettings, QuotaSettings, RetrySettings};
use sierra_sync::secret::Secret;
use sierra_sync::seed::RootSeed;
use sierra_sync::sierra::transport::{SendOptions, Transport, TransportError, TransportErrorKind};
use sierra_sync::sierra::{ClientParts, SierraClient, SierraSettings};
use sierra_sync::sync::ports::{CallClass, FieldSet, PageFilter, PageQuery};
use tokio::time::Instant;

pub(super) const KEY: &str = "canary-key";
pub(super) const SECRET: &str = "canary-secret";
/// Every token begins with it.
pub(super) const TOKEN: &str = "canary-token-";
/// What a call finds nothing by.
pub(super) const NOTHING: &str = r#"{"code":107,"specificCode":0,"httpStatus":404,"name":"Record not found"}"#;

/// What is done about one request.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// A session token that lives so many seconds; each is new.
    Token(u64),
    Fail(TransportErrorKind),
    Hang,
    /// Waits, then does that.
    After(Duration, Box<Self>),
    /// Does the one for the token of this number and the other for every other token.
    ForToken(u64, Box<Self>, Box<Self>),
}

pub(super) fn answer(status: u16, body: &str) -> Act {
    Act::Answer { status, headers: Vec::new(), body: body.to_owned() }
}

pub(super) fn with_header(act: Act, name: &'static str, value: &str) -> Act {
    match act {
        Act::Answer { status, mut headers, body } => {
            headers.push((name, value.to_owned()));
            Act::Answer { status, headers, body }
        }
        other => other,
    }
}

/// A page of live records with these numbers.
pub(super) fn page(ids: &[u64]) -> Act {
    let entries: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}","deleted":false}}"#)).collect();
    answer(200, &format!(r#"{{"total":{},"start":0,"entries":[{}]}}"#, ids.len(), entries.join(",")))
}

/// A request as it was seen.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) at: Instant,
    /// Below the base, query included.
    pub(super) path: String,
    pub(super) authorization: Option<String>,
    pub(super) fresh_connection: bool,
}

#[derive(Default)]
pub(super) struct Script {
    acts: Mutex<HashMap<&'static str, Vec<Act>>>,
    seen: Mutex<Vec<Seen>>,
    tokens: Mutex<u64>,
}

impl Script {
    /// Grants tokens for an hour, and has nothing else.
    pub(super) fn new() -> Self {
        Self::default().on("token", [Act::Token(3600)])
    }

    /// What happens to requests of `path`, in order; replaces what was said before.
    pub(super) fn on(self, path: &'static str, acts: impl IntoIterator<Item = Act>) -> Self {
        self.change(path, acts);
        self
    }

    pub(super) fn change(&self, path: &'static str, acts: impl IntoIterator<Item = Act>) {
        let mut acts: Vec<Act> = acts.into_iter().collect();
        acts.reverse();
        self.acts.lock().expect("not poisoned").insert(path, acts);
    }

    /// Everything that was asked.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("not poisoned").clone()
    }

    /// What was asked of `path`.
    pub(super) fn seen_of(&self, path: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.path.split('?').next() == Some(path)).collect()
    }

    pub(super) fn count(&self, path: &str) -> usize {
        self.seen_of(path).len()
    }

    fn next(&self, path: &str) -> Act {
        let mut acts = self.acts.lock().expect("not poisoned");
        let acts = acts.get_mut(path).unwrap_or_else(|| panic!("nothing is scripted for {path}"));
        if acts.len() > 1 { acts.pop() } else { acts.last().cloned() }.expect("at least one act")
    }

    async fn act(&self, act: Act) -> Result<http::Response<Bytes>, TransportError> {
        match act {
            Act::Answer { status, headers, body } => {
                let mut response = http::Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                Ok(response.body(Bytes::from(body)).expect("an answer"))
            }
            Act::Token(seconds) => {
                let number = {
                    let mut tokens = self.tokens.lock().expect("not poisoned");
                    *tokens += 1;
                    *tokens
                };
                let body =
                    format!(r#"{{"access_token":"{TOKEN}{number}","token_type":"bearer","expires_in":{seconds}}}"#);
                Ok(http::Response::new(Bytes::from(body)))
            }
            Act::Fail(kind) => Err(TransportError { kind, detail: None }),
            Act::Hang => std::future::pending().await,
            Act::ForToken(..) => unreachable!("chosen when the request was seen"),
            Act::After(wait, then) => {
                tokio::time::sleep(wait).await;
                Box::pin(self.act(*then)).await
            }
        }
    }
}

impl Transport for Script {
    fn send(
        &self,
        request: http::Request<Bytes>,
        options: SendOptions,
    ) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let uri = request.uri().to_string();
        let path = uri.split_once("/v6/").expect("below the base").1.to_owned();
        let act = self.next(path.split('?').next().expect("a path"));
        let authorization = request.headers().get("authorization");
        let authorization = authorization.map(|value| value.to_str().expect("text").to_owned());
        let act = match act {
            Act::ForToken(number, yes, no) => {
                let is_it = authorization.as_ref().is_some_and(|value| *value == format!("Bearer {TOKEN}{number}"));
                if is_it { *yes } else { *no }
            }
            act => act,
        };
        let seen = Seen { at: Instant::now(), path, authorization, fresh_connection: options.fresh_connection };
        self.seen.lock().expect("not poisoned").push(seen);
        Box::pin(async move {
            let attempt = tokio::time::timeout(options.timeout, self.act(act)).await;
            attempt.unwrap_or(Err(TransportError { kind: TransportErrorKind::Timeout, detail: None }))
        })
    }
}

pub(super) fn settings() -> SierraSettings {
    SierraSettings {
        base_url: "https://catalog.example.edu/iii/sierra-api/v6".to_owned(),
        client_key: KEY.to_owned(),
        client_secret: Secret::new(SECRET.to_owned()),
        request_timeout: Duration::from_secs(20),
        local_zone: jiff::tz::TimeZone::UTC,
        ca_file: None,
        proxy: None,
        user_agent: "sierra-sync/test".to_owned(),
    }
}

/// A line without a pace of its own, so that times in tests are those of the rules under test.
pub(super) fn line() -> Line {
    let seed = RootSeed::new(7);
    let retry = RetrySettings { attempt_timeout: Duration::from_secs(20), ..RetrySettings::default() };
    let observer = Arc::new(SilentBreakerObserver);
    let breaker = Breaker::new(BreakerSettings::default(), seed.generator("breaker"), observer);
    let mut quota = QuotaSettings { rate: 1000.0, ..QuotaSettings::default() };
    for (_, concurrency) in quota.concurrency.iter_mut() {
        *concurrency = 32;
    }
    Line::new(retry, breaker, Some(Quota::new(quota, seed.generator("quota"))), seed.generator("retry"))
        .expect("sound settings")
}

/// A client of `script`, with a fresh clock.
pub(super) fn client(script: &Arc<Script>) -> SierraClient {
    client_with(script, line(), &[])
}

pub(super) fn client_with(script: &Arc<Script>, line: Line, latch: &[u8]) -> SierraClient {
    client_of(script, line, latch, &settings())
}

pub(super) fn client_of(script: &Arc<Script>, line: Line, latch: &[u8], settings: &SierraSettings) -> SierraClient {
    let clock = Arc::new(SimClock::starting_at("2026-01-05T10:00:00Z".parse().expect("a date")));
    let parts = ClientParts {
        transport: Arc::clone(script) as Arc<dyn Transport>,
        line,
        clock,
        boot_number: 3,
        fields: &[],
        patience: Patience::default(),
        latch,
    };
    SierraClient::start(settings, parts).expect("a client")
}

/// Every live record of a stream.
pub(super) fn live(stream: Stream) -> PageQuery {
    PageQuery {
        stream,
        filter: PageFilter::Live,
        after: None,
        until: None,
        limit: 2000,
        fields: FieldSet::IdOnly,
        fresh_connection: false,
        class: CallClass::Incremental,
    }
}

pub(super) fn after(query: PageQuery, id: u64) -> PageQuery {
    PageQuery { after: Some(RecordNumber::new(id)), ..query }
}
