//! The outbox against the simplest thing that could be one: a vector.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sierra_sync::record::Stream;
use sierra_sync::sync::ports::{SinkPosition, Store};
use sierra_sync::sync::{Change, Seq};

use super::changes::{bib_holding, deleted, patron, position, positions, shown, slice};
use super::subject::Subject;

const SINKS: [&str; 3] = ["archive", "search", "people"];

/// One step. Places in the order are given as a share of what was issued, so that they stay sensible when shrunk.
#[derive(Debug, Clone)]
enum Step {
    Commit(Vec<Kind>),
    Confirm { sink: usize, share: f64 },
    Set { sink: usize, attached: bool, streams: Vec<Stream>, share: f64 },
    Remove { sink: usize },
    Drop { shares: Vec<f64> },
    Raise { by: u64 },
    Reopen,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Bib { length: usize },
    Deleted(Stream),
    Patron,
    Reload { sink: usize },
}

/// What an outbox is, at its simplest.
#[derive(Debug, Default)]
struct Model {
    held: Vec<Change>,
    issued: Vec<Seq>,
    sinks: BTreeMap<String, SinkPosition>,
}

impl Model {
    fn waits_for<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Change> {
        let sink = &self.sinks[name];
        self.held.iter().filter(move |change| {
            sink.attached
                && change.seq > sink.confirmed
                && sink.streams.contains(&change.stream)
                && change.only_for.as_deref().is_none_or(|only| only == name)
        })
    }

    fn trim(&mut self) {
        let needed = self.sinks.keys().filter_map(|name| self.waits_for(name).next()).map(|change| change.seq).min();
        self.held.retain(|change| needed.is_some_and(|needed| change.seq >= needed));
    }

    fn positions(&self) -> BTreeMap<String, SinkPosition> {
        let counted = |(name, sink): (&String, &SinkPosition)| {
            let pending = self.waits_for(name).count() as u64;
            let oldest_pending = self.waits_for(name).next().map(|change| change.captured);
            (name.clone(), SinkPosition { pending, oldest_pending, ..sink.clone() })
        };
        self.sinks.iter().map(counted).collect()
    }

    fn place(&self, share: f64) -> Seq {
        let index = (share * self.issued.len() as f64) as usize;
        index.checked_sub(1).map_or(Seq::ZERO, |index| self.issued[index])
    }
}

fn apply(subject: &mut Subject, model: &mut Model, step: &Step) {
    match step {
        Step::Commit(kinds) => {
            let changes: Vec<_> = kinds.iter().enumerate().map(|(index, kind)| change(index as u64, *kind)).collect();
            let seqs = subject.store().commit(slice(changes.clone())).unwrap();
            assert!(seqs.is_sorted_by(|earlier, later| earlier < later));
            assert!(seqs.first().is_none_or(|first| model.issued.last().is_none_or(|last| first > last)));
            model.issued.extend(&seqs);
            model.held.extend(changes.into_iter().zip(seqs).map(|(change, seq)| Change { seq, ..change }));
        }
        Step::Confirm { sink, share } => {
            let Some(before) = model.sinks.get(SINKS[*sink]).cloned() else { return };
            let confirmed = model.place(*share).max(before.confirmed);
            set(subject, model, SINKS[*sink], SinkPosition { confirmed, ..before });
        }
        Step::Set { sink, attached, streams, share } => {
            let confirmed = model.place(*share);
            set(subject, model, SINKS[*sink], SinkPosition { attached: *attached, ..position(confirmed, streams) });
        }
        Step::Remove { sink } => {
            subject.store().remove_sink(SINKS[*sink]).unwrap();
            model.sinks.remove(SINKS[*sink]);
            model.trim();
        }
        Step::Drop { shares } => {
            let dropped: Vec<_> = shares.iter().map(|share| model.place(*share)).collect();
            model.held.retain(|change| !dropped.contains(&change.seq));
            let mut dropping = slice(Vec::new());
            dropping.dropped = dropped;
            subject.store().commit(dropping).unwrap();
        }
        Step::Raise { by } => {
            let last = subject.store().last_seq().unwrap();
            subject.store().raise_seq(Seq::new(last.value() + by).unwrap()).unwrap();
        }
        Step::Reopen => subject.reopen(),
    }
}

fn set(subject: &Subject, model: &mut Model, name: &str, position: SinkPosition) {
    subject.store().set_sink_positions(&positions(&[(name, position.clone())])).unwrap();
    model.sinks.insert(name.to_owned(), position);
    model.trim();
}

fn agree(store: &dyn Store, model: &Model) {
    let got = store.outbox_after(Seq::ZERO, usize::MAX, usize::MAX).unwrap();
    assert_eq!(got.iter().map(shown).collect::<Vec<_>>(), model.held.iter().map(shown).collect::<Vec<_>>());
    if let Some(middle) = model.held.get(model.held.len() / 2) {
        let rest = seqs_of(&store.outbox_after(middle.seq, usize::MAX, usize::MAX).unwrap());
        assert_eq!(rest, seqs_of(&model.held[model.held.len() / 2 + 1..]));
    }
    let entries = store.outbox_entries_after(Seq::ZERO, usize::MAX).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), seqs_of(&model.held));
    let usage = store.outbox_usage().unwrap();
    assert_eq!(usage.entries, model.held.len() as u64);
    assert_eq!(usage.bytes, entries.iter().map(|entry| entry.bytes).sum::<u64>());
    assert_eq!(store.sink_positions().unwrap(), model.positions());
    assert_eq!(store.last_seq().unwrap(), model.issued.last().copied().unwrap_or_default());
}

fn seqs_of(changes: &[Change]) -> Vec<Seq> {
    changes.iter().map(|change| change.seq).collect()
}

fn change(index: u64, kind: Kind) -> Change {
    match kind {
        Kind::Bib { length } => bib_holding(index, "<leader/>".repeat(length)),
        Kind::Deleted(stream) => deleted(stream, index),
        Kind::Patron => patron(&format!("{index:032x}"), "north"),
        Kind::Reload { sink } => Change { only_for: Some(SINKS[sink].into()), ..deleted(Stream::Bibs, index) },
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (0_usize..2_000).prop_map(|length| Kind::Bib { length }),
        prop::sample::select(&Stream::ALL[..]).prop_map(Kind::Deleted),
        Just(Kind::Patron),
        (0..SINKS.len()).prop_map(|sink| Kind::Reload { sink }),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let sink = || 0..SINKS.len();
    let streams = || prop::sample::subsequence(&Stream::ALL[..], 0..=3);
    prop_oneof![
        4 => prop::collection::vec(kinds(), 0..12).prop_map(Step::Commit),
        4 => (sink(), 0.0..=1.0).prop_map(|(sink, share)| Step::Confirm { sink, share }),
        2 => (sink(), prop::bool::weighted(0.8), streams(), 0.0..=1.0).prop_map(|(sink, attached, streams, share)| {
            Step::Set { sink, attached, streams, share }
        }),
        1 => sink().prop_map(|sink| Step::Remove { sink }),
        1 => prop::collection::vec(0.0..=1.0, 0..5).prop_map(|shares| Step::Drop { shares }),
        1 => (0_u64..5_000).prop_map(|by| Step::Raise { by }),
        1 => Just(Step::Reopen),
    ]
}

fn run(mut subject: Subject, steps: &[Step]) {
    let mut model = Model::default();
    for step in steps {
        apply(&mut subject, &mut model, step);
        agree(subject.store(), &model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn the_memory_outbox_agrees_with_a_vec_under_any_operations_and_reopens(
        steps in prop::collection::vec(steps(), 0..40)
    ) {
        run(Subject::memory(), &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn the_sled_outbox_agrees_with_a_vec_under_any_operations_and_reopens(
        steps in prop::collection::vec(steps(), 0..40)
    ) {
        run(Subject::sled(), &steps);
    }
}
