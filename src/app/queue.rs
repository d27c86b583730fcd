//! `queue`: what waits in the durable queue, for whom, and whether it is sound.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::cli::exit::{Exit, Refused};
use crate::ops::control::Reply;
use crate::record::Stream;
use crate::sink::event;
use crate::store::disk::TreeVerified;
use crate::sync::ports::{OutboxEntry, SinkPosition, Store, StoreError};
use crate::sync::report::status::{SinkState, SinkStatus};
use crate::sync::report::summary::ErrorReport;
use crate::sync::{Change, Seq};

use super::assembly::{Assembly, Reach};

/// Entries read at once.
const PAGE: usize = 200;
/// …or about so many bytes of their payloads.
const PAGE_BYTES: usize = 4 << 20;
/// How often it is looked whether a service has drained the queue.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What can be asked about the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "queue", rename_all = "snake_case")]
pub enum QueueQuestion {
    /// What waits, an object a line, in order.
    List(QueueFilter),
    /// One waiting change, as a sink would get it.
    Show {
        /// Its place in the order.
        seq: u64,
    },
    /// Everything that waits, as sinks would get it.
    Export(QueueFilter),
    /// A full reading of the state.
    Verify,
    /// Deliver what waits; an object with what is left by sink.
    Drain,
}

impl QueueQuestion {
    /// What answering it may touch.
    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::List(_) | Self::Show { .. } | Self::Export(_) | Self::Verify => Reach::Look,
            Self::Drain => Reach::Everything,
        }
    }
}

/// Which entries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueFilter {
    /// Only what waits for this sink.
    #[serde(default)]
    pub sink: Option<String>,
    /// Only this stream.
    #[serde(default)]
    pub stream: Option<Stream>,
    /// At most so many.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// One waiting entry, without its payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// Its place in the order.
    pub seq: Seq,
    /// Its idempotency key.
    pub key: String,
    /// The stream.
    pub stream: Stream,
    /// The public id; a patron's pseudonym.
    pub id: String,
    /// `upsert` or `delete`.
    pub op: String,
    /// Its stored size.
    pub bytes: u64,
    /// When it was captured.
    pub captured: jiff::Timestamp,
    /// The sinks that have not confirmed it.
    pub pending: Vec<String>,
    /// `marcxml` when it carries MARCXML, else `json`.
    pub format: String,
}

/// What a full reading of the state found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Whether nothing is wrong.
    pub sound: bool,
    /// The trees of the state.
    pub trees: Vec<VerifiedTree>,
    /// Waiting changes that cannot be read whole.
    pub unreadable_changes: u64,
    /// Entries that wait, counted.
    pub entries: u64,
    /// Their stored size, counted.
    pub bytes: u64,
    /// Entries that wait, as the state keeps count of them.
    pub entries_kept: u64,
    /// Their stored size, as the state keeps count of it.
    pub bytes_kept: u64,
}

/// One tree of the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedTree {
    /// Its name.
    pub tree: String,
    /// How many values it holds.
    pub values: u64,
    /// How many of them are damaged.
    pub damaged: u64,
}

/// What is left after a drain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainReport {
    /// By sink.
    pub sinks: BTreeMap<String, SinkLeft>,
}

/// What is left for one sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkLeft {
    /// How it stands.
    pub state: SinkState,
    /// Changes that wait for it.
    pub pending: u64,
    /// Why they wait.
    pub error: Option<ErrorReport>,
}

/// Answers `question` from the state of `assembly`.
/// `serving` is whether a service delivers by itself.
pub(super) async fn answer(
    assembly: &Assembly,
    serving: bool,
    question: &QueueQuestion,
    reply: &Reply,
) -> anyhow::Result<Exit> {
    let store = Arc::clone(&assembly.store);
    match question {
        QueueQuestion::List(filter) => {
            let mut waiting = Waiting::of(store, filter)?;
            while let Some(page) = waiting.next_page().await? {
                for (entry, pending) in page {
                    reply.data(serde_json::to_string(&shown(&entry, pending))?).await;
                }
            }
        }
        QueueQuestion::Export(filter) => {
            let mut waiting = Waiting::of(Arc::clone(&store), filter)?;
            while let Some(page) = waiting.next_page().await? {
                for (entry, _) in page {
                    if let Some(change) = read(&store, entry.seq).await? {
                        reply.data(line(&change)?).await;
                    }
                }
            }
        }
        QueueQuestion::Show { seq } => {
            let change = match Seq::new(*seq) {
                Some(seq) => read(&store, seq).await?,
                None => None,
            };
            let Some(change) = change else {
                let sentence = format!("nothing waits under seq {seq}; `sierra-sync queue list` shows what does");
                return Err(Refused(sentence).into());
            };
            reply.data(line(&change)?).await;
        }
        QueueQuestion::Verify => return verify(assembly, reply).await,
        QueueQuestion::Drain => return drain(assembly, serving, reply).await,
    }
    Ok(Exit::Ok)
}

async fn verify(assembly: &Assembly, reply: &Reply) -> anyhow::Result<Exit> {
    let Some(store) = assembly.disk() else {
        reply.talk("there is no state yet, and so nothing to verify").await;
        return Ok(Exit::Ok);
    };
    let verified = tokio::task::spawn_blocking(move || store.verify()).await??;
    let tree =
        |tree: &TreeVerified| VerifiedTree { tree: tree.tree.to_owned(), values: tree.values, damaged: tree.damaged };
    let report = VerifyReport {
        sound: verified.is_sound(),
        trees: verified.trees.iter().map(tree).collect(),
        unreadable_changes: verified.unreadable_changes,
        entries: verified.counted.entries,
        bytes: verified.counted.bytes,
        entries_kept: verified.kept.entries,
        bytes_kept: verified.kept.bytes,
    };
    reply.data(serde_json::to_string(&report)?).await;
    Ok(if report.sound { Exit::Ok } else { Exit::StoreFailed })
}

/// Delivers until nothing waits for a sink that takes deliveries. Beside a service, which delivers by itself, it waits.
async fn drain(assembly: &Assembly, serving: bool, reply: &Reply) -> anyhow::Result<Exit> {
    if !serving {
        assembly.engine.drain(&CancellationToken::new()).await?;
    }
    let sinks = loop {
        let sinks = assembly.status(serving).await?.sinks;
        let may_move = |sink: &SinkStatus| sink.state == SinkState::Ok && sink.pending > 0;
        if !serving || !sinks.values().any(may_move) {
            break sinks;
        }
        sleep(LOOK_AGAIN).await;
    };
    let is_stuck = |sink: &SinkStatus| matches!(sink.state, SinkState::Open | SinkState::Retrying) && sink.pending > 0;
    let exit = if sinks.values().any(is_stuck) { Exit::Unavailable } else { Exit::Ok };
    let left = |(name, sink): (String, SinkStatus)| {
        (name, SinkLeft { state: sink.state, pending: sink.pending, error: sink.error })
    };
    let report = DrainReport { sinks: sinks.into_iter().map(left).collect() };
    reply.data(serde_json::to_string(&report)?).await;
    Ok(exit)
}

/// A walk over what waits.
struct Waiting {
    store: Arc<dyn Store>,
    filter: QueueFilter,
    positions: BTreeMap<String, SinkPosition>,
    after: Seq,
    left: u64,
}

type Waited = (OutboxEntry, Vec<String>);

impl Waiting {
    fn of(store: Arc<dyn Store>, filter: &QueueFilter) -> anyhow::Result<Self> {
        let positions = store.sink_positions()?;
        if let Some(sink) = filter.sink.as_ref().filter(|sink| !positions.contains_key(*sink)) {
            let known: Vec<&str> = positions.keys().map(String::as_str).collect();
            let sentence = format!("no sink is called {sink:?} in this state; there are: {}", known.join(", "));
            return Err(Refused(sentence).into());
        }
        let left = filter.limit.unwrap_or(u64::MAX);
        Ok(Self { store, filter: filter.clone(), positions, after: Seq::ZERO, left })
    }

    /// The next entries that somebody waits for; `None` at the end.
    async fn next_page(&mut self) -> Result<Option<Vec<Waited>>, StoreError> {
        if self.left == 0 {
            return Ok(None);
        }
        let (store, after) = (Arc::clone(&self.store), self.after);
        let entries = off_runtime(move || store.outbox_entries_after(after, PAGE)).await?;
        let Some(last) = entries.last() else { return Ok(None) };
        self.after = last.seq;
        let mut page = Vec::with_capacity(entries.len());
        for entry in entries {
            let pending = self.pending(&entry);
            let is_wanted = self.filter.stream.is_none_or(|stream| stream == entry.stream)
                && self.filter.sink.as_ref().map_or(!pending.is_empty(), |sink| pending.contains(sink));
            if is_wanted && self.left > 0 {
                self.left -= 1;
                page.push((entry, pending));
            }
        }
        Ok(Some(page))
    }

    fn pending(&self, entry: &OutboxEntry) -> Vec<String> {
        let waits = |(name, position): &(&String, &SinkPosition)| entry.is_awaited_by(name, position);
        self.positions.iter().filter(waits).map(|(name, _)| name.clone()).collect()
    }
}

fn shown(entry: &OutboxEntry, pending: Vec<String>) -> QueueEntry {
    let has_marc = entry.stream == Stream::Bibs && entry.op == "upsert";
    QueueEntry {
        seq: entry.seq,
        key: entry.key(),
        stream: entry.stream,
        id: entry.id.clone(),
        op: entry.op.to_owned(),
        bytes: entry.bytes,
        captured: entry.captured,
        pending,
        format: if has_marc { "marcxml" } else { "json" }.to_owned(),
    }
}

async fn read(store: &Arc<dyn Store>, seq: Seq) -> Result<Option<Change>, StoreError> {
    let Some(before) = seq.value().checked_sub(1).and_then(Seq::new) else { return Ok(None) };
    let store = Arc::clone(store);
    let found = off_runtime(move || store.outbox_after(before, 1, PAGE_BYTES)).await?;
    Ok(found.into_iter().find(|change| change.seq == seq))
}

fn line(change: &Change) -> anyhow::Result<String> {
    let mut text = Vec::new();
    event::append_line(change, &mut text);
    text.pop();
    Ok(String::from_utf8(text)?)
}

/// Store calls block; a panic in one goes on here.
pub(super) async fn off_runtime<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
