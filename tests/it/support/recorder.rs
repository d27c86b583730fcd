//! A sink that keeps what it is given, as a destination would, and fails when told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sierra_sync::failure::Disposition;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::sync::invariant::{OrderWatch, holds_no_canary};
use sierra_sync::sync::ports::{Held as Stock, Holding as Said};
use sierra_sync::sync::{Change, DeleteReason, Op, Origin, Payload, Seq, Sink, SinkError};

use super::library::{Held, Holding};

/// What a delivery runs into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Try later; nothing arrived.
    Busy,
    /// Everything arrived, but the acknowledgement was lost.
    LostAcknowledgement,
    /// The batch is refused for good.
    Refused,
    /// A person must act.
    Broken,
}

type Script = Box<dyn FnMut(&[Change]) -> Option<Trouble> + Send>;

/// The destination. Clones share it; it survives the crash of whoever delivers.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    held: BTreeMap<(Stream, String), (Seq, Option<Holding>)>,
    order: OrderWatch,
    violations: Vec<String>,
    script: Option<Script>,
    changes: Vec<(String, Op)>,
    unlinked: Vec<(String, Vec<u64>)>,
    deliveries: u64,
    highest: Option<Seq>,
    /// It keeps to itself how far it is.
    cannot_tell: bool,
    canaries: Vec<String>,
    /// Which changes arrived, copies counted once.
    seqs: BTreeMap<Stream, BTreeSet<Seq>>,
    sources: BTreeSet<String>,
    /// How often the next questions go unanswered.
    mute: u32,
}

impl Recorder {
    /// From now on it does not tell how far it is, as standard output cannot.
    pub(crate) fn cannot_tell(&self) {
        self.inner.lock().unwrap().cannot_tell = true;
    }

    /// The destination is emptied behind everybody's back.
    pub(crate) fn empty(&self) {
        let mut inner = self.inner.lock().unwrap();
        inner.held.clear();
        inner.seqs.clear();
        inner.highest = None;
    }

    /// Some of what the destination holds of `stream` goes behind everybody's back.
    pub(crate) fn lose(&self, stream: Stream, count: usize) {
        let mut inner = self.inner.lock().unwrap();
        let gone: BTreeSet<Seq> = inner.seqs.get(&stream).into_iter().flatten().take(count).copied().collect();
        inner.held.retain(|_, (seq, _)| !gone.contains(seq));
        inner.seqs.entry(stream).or_default().retain(|seq| !gone.contains(seq));
    }

    /// It says that it holds changes up to `highest`.
    pub(crate) fn claim(&self, highest: Seq) {
        self.inner.lock().unwrap().highest = Some(highest);
    }

    /// The next `times` questions about what it holds are not answered.
    pub(crate) fn mute(&self, times: u32) {
        self.inner.lock().unwrap().mute = times;
    }

    /// Takes the sources of the changes delivered so far.
    pub(crate) fn sources(&self) -> Vec<Origin> {
        let taken = std::mem::take(&mut self.inner.lock().unwrap().sources);
        taken.iter().map(|source| serde_json::from_str(source).expect("a source")).collect()
    }

    /// From now on `script` decides about every delivery.
    pub(crate) fn script(&self, script: impl FnMut(&[Change]) -> Option<Trouble> + Send + 'static) {
        self.inner.lock().unwrap().script = Some(Box::new(script));
    }

    /// PRV-1: none of these may ever arrive.
    pub(crate) fn plant(&self, canaries: &[String]) {
        self.inner.lock().unwrap().canaries = canaries.to_vec();
    }

    pub(crate) fn behave(&self) {
        self.inner.lock().unwrap().script = None;
    }

    /// What a reader of the destination sees.
    pub(crate) fn holds(&self, stream: Stream) -> Held {
        let inner = self.inner.lock().unwrap();
        let of_stream = inner.held.iter().filter(|((held, _), _)| *held == stream);
        of_stream.filter_map(|((_, id), (_, holding))| Some((id.clone(), holding.clone()?))).collect()
    }

    /// Takes the keys and operations delivered so far, redeliveries included.
    pub(crate) fn delivered(&self) -> Vec<(String, Op)> {
        std::mem::take(&mut self.inner.lock().unwrap().changes)
    }

    /// The records that were ever told to have vanished, by public id.
    pub(crate) fn vanished(&self) -> BTreeSet<(Stream, String)> {
        let inner = self.inner.lock().unwrap();
        let is_vanished = |op: &Op| matches!(op, Op::Delete { reason: DeleteReason::Vanished, .. });
        let told = inner.changes.iter().filter(|(_, op)| is_vanished(op));
        told.filter_map(|(key, _)| {
            let mut parts = key.split('/');
            let (stream, id) = (parts.next()?, parts.next()?);
            Some((Stream::ALL.into_iter().find(|known| known.name() == stream)?, id.to_owned()))
        })
        .collect()
    }

    /// Takes `unlinked_bib_ids` as delivered so far, by item, empty ones left out.
    pub(crate) fn unlinked(&self) -> Vec<(String, Vec<u64>)> {
        std::mem::take(&mut self.inner.lock().unwrap().unlinked)
    }

    pub(crate) fn deliveries(&self) -> u64 {
        self.inner.lock().unwrap().deliveries
    }

    /// OUT-1: everything committed arrived.
    pub(crate) fn assert_holds_all(&self, committed: &[Seq], context: &str) {
        if let Err(violation) = self.inner.lock().unwrap().order.holds_all(committed.iter().copied()) {
            panic!("{context}: {violation}");
        }
    }

    pub(crate) fn assert_sound(&self, context: &str) {
        let inner = self.inner.lock().unwrap();
        assert!(inner.violations.is_empty(), "{context}: {:?}", inner.violations);
    }
}

impl Inner {
    fn answer(&mut self) -> Result<(), SinkError> {
        if self.mute == 0 {
            return Ok(());
        }
        self.mute -= 1;
        Err(SinkError {
            disposition: Disposition::RetryLater { not_before: None },
            message: "answer as planned".into(),
            hint: "none".into(),
            culprit: None,
            source: None,
        })
    }

    fn take(&mut self, change: &Change) {
        if let Err(violation) = self.order.delivered(change) {
            self.violations.push(violation.to_string());
        }
        self.highest = self.highest.max(Some(change.seq));
        self.seqs.entry(change.stream).or_default().insert(change.seq);
        self.sources.insert(serde_json::to_string(&change.source).expect("a source"));
        self.changes.push((change.key(), change.op));
        if !change.unlinked_bib_ids.is_empty() {
            self.unlinked.push((change.id.clone(), numbers(&change.unlinked_bib_ids)));
        }
        let slot = self.held.entry((change.stream, change.id.clone())).or_insert((Seq::ZERO, None));
        if change.seq > slot.0 {
            *slot = (change.seq, holding(change));
        }
        // Looking for a thousand names in every long record would take most of a simulation's time.
        let is_looked_at = change.stream == Stream::Patrons || self.changes.len().is_multiple_of(37);
        if is_looked_at && let Err(violation) = holds_no_canary("a sink", &said_of(change), &self.canaries) {
            self.violations.push(violation.to_string());
        }
    }
}

impl Sink for Recorder {
    fn deliver<'a>(&'a mut self, batch: &'a [Change]) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let mut inner = self.inner.lock().unwrap();
            inner.deliveries += 1;
            let trouble = inner.script.as_mut().and_then(|script| script(batch));
            if matches!(trouble, None | Some(Trouble::LostAcknowledgement)) {
                batch.iter().for_each(|change| inner.take(change));
            }
            let disposition = match trouble {
                None => return Ok(()),
                Some(Trouble::Busy | Trouble::LostAcknowledgement) => Disposition::RetryLater { not_before: None },
                Some(Trouble::Refused) => Disposition::Quarantine,
                Some(Trouble::Broken) => Disposition::Halt,
            };
            Err(SinkError {
                disposition,
                message: format!("deliver as planned: {trouble:?}"),
                hint: "none".into(),
                culprit: None,
                source: None,
            })
        })
    }

    fn highest_seq(&mut self) -> BoxFuture<'_, Result<Option<Seq>, SinkError>> {
        Box::pin(async move {
            let mut inner = self.inner.lock().unwrap();
            inner.answer()?;
            Ok(inner.highest.filter(|_| !inner.cannot_tell))
        })
    }

    fn holding<'a>(&'a mut self, before: Option<&'a Stock>) -> BoxFuture<'a, Result<Said, SinkError>> {
        Box::pin(async move {
            let mut inner = self.inner.lock().unwrap();
            inner.answer()?;
            let changes: BTreeMap<Stream, u64> =
                inner.seqs.iter().map(|(stream, seqs)| (*stream, seqs.len() as u64)).collect();
            let before = before.map(|before| before.changes.clone()).unwrap_or_default();
            let lacking = before.iter().find(|(stream, count)| changes.get(stream).unwrap_or(&0) < count);
            let missing = lacking.map(|(stream, count)| format!("some of {count} changes of {stream}"));
            Ok(Said { held: Some(Stock { changes, ..Stock::default() }), missing })
        })
    }

    fn settle(&mut self) -> BoxFuture<'_, Result<(), SinkError>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), SinkError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Everything that a change says of its record; seq, hash and times are ours and hold any digits.
fn said_of(change: &Change) -> String {
    format!("{} {:?} {:?}", change.id, change.unlinked_bib_ids, change.payload)
}

fn holding(change: &Change) -> Option<Holding> {
    let (record, marcxml, bib_ids, title) = match &change.payload {
        Payload::Bib { record, marcxml, .. } => (record.get(), marcxml.clone(), Vec::new(), "title"),
        Payload::Item { record, bib_ids, .. } => (record.get(), String::new(), numbers(bib_ids), "callNumber"),
        Payload::Patron(masked) => (masked.get().get(), String::new(), Vec::new(), "homeLibraryCode"),
        Payload::Nothing => return None,
    };
    let record: serde_json::Value = serde_json::from_str(record).expect("a record is JSON");
    let title = record[title].as_str().unwrap_or_default().to_owned();
    Some(Holding { title, suppressed: change.suppressed, bib_ids, record, marcxml })
}

fn numbers(ids: &[RecordNumber]) -> Vec<u64> {
    let mut numbers: Vec<u64> = ids.iter().map(|id| id.value()).collect();
    numbers.sort_unstable();
    numbers
}
