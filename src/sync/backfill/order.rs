//! What a backfill is asked for.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::record::{RecordNumber, Stream};
use crate::sync::Window;

/// A backfill as it is ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillOrder {
    /// The stream.
    pub stream: Stream,
    /// Which of its records.
    pub selection: Selection,
    /// How they are read. It changes nothing about what is emitted, and the same order may go on another way.
    pub via: Via,
    /// Set when one sink alone is to get what says nothing new; what is new goes to every sink in any case.
    pub sink: Option<String>,
    /// Whether records are emitted that did not change.
    pub force: bool,
    /// Whether long quota waits are sat out.
    pub wait_for_quota: bool,
    /// Set when the settings that shape the stream's events changed: what it means once this is complete.
    pub meaning: Option<String>,
}

/// How records are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// By lists of whole records.
    #[default]
    List,
    /// Bibs only: by lists without varFields and Sierra's export of MARC.
    MarcExport,
}

/// Which records. What is given must all hold of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// By number.
    pub numbers: Numbers,
    /// `updatedDate` at this time or later.
    pub since: Option<Timestamp>,
    /// `updatedDate` before this time.
    pub until: Option<Timestamp>,
    /// At one of these locations, each with one trailing `*` allowed; empty means all.
    pub locations: Vec<String>,
}

/// Record numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Numbers {
    /// All of them.
    #[default]
    All,
    /// From one to another, both inclusive; open where absent.
    Range {
        /// The first.
        from: Option<RecordNumber>,
        /// The last.
        to: Option<RecordNumber>,
    },
    /// These, ascending, each once.
    List(Arc<[RecordNumber]>),
}

impl BackfillOrder {
    /// The load of `sink` with the whole of `stream`.
    #[must_use]
    pub fn reload(stream: Stream, sink: &str, wait_for_quota: bool) -> Self {
        Self { sink: Some(sink.to_owned()), ..Self::whole(stream, wait_for_quota) }
    }

    /// The load of every sink with the whole of `stream`, after which its events mean `meaning`.
    #[must_use]
    pub fn resettle(stream: Stream, meaning: &str, wait_for_quota: bool) -> Self {
        Self { meaning: Some(meaning.to_owned()), ..Self::whole(stream, wait_for_quota) }
    }

    fn whole(stream: Stream, wait_for_quota: bool) -> Self {
        let (selection, via) = (Selection::default(), Via::List);
        Self { stream, selection, via, sink: None, force: true, wait_for_quota, meaning: None }
    }

    /// Whether it gives a sink everything: every live record, and every deletion that is remembered.
    #[must_use]
    pub fn is_reload(&self) -> bool {
        self.force && self.sink.is_some() && self.selection.is_whole()
    }

    /// What lets it be tried again, for people. Numbers of patrons are not told.
    #[must_use]
    pub fn again(&self) -> String {
        let Self { stream, selection, via, sink, force, wait_for_quota: _, meaning } = self;
        if meaning.is_some() {
            return "`sierra-sync sync` tries it again".to_owned();
        }
        let mut words = vec![format!("sierra-sync backfill {stream}")];
        match &selection.numbers {
            Numbers::All => {}
            Numbers::List(_) | Numbers::Range { .. } if *stream == Stream::Patrons => {
                return format!("the same `sierra-sync backfill {stream}` tries again what is left");
            }
            Numbers::List(_) => words.push("--ids-file FILE".to_owned()),
            Numbers::Range { from, to } => {
                let end = |end: &Option<RecordNumber>| end.map_or_else(String::new, |end| end.to_string());
                words.push(format!("--ids {}..{}", end(from), end(to)));
            }
        }
        words.extend(selection.since.map(|since| format!("--since {since}")));
        words.extend(selection.until.map(|until| format!("--until {until}")));
        words.extend(selection.locations.iter().map(|location| format!("--location '{location}'")));
        words.extend(sink.iter().map(|sink| format!("--sink {sink}")));
        words.extend(force.then(|| "--force".to_owned()));
        words.extend((*via == Via::MarcExport).then(|| "--via marc-export".to_owned()));
        format!("`{}` tries again what is left", words.join(" "))
    }

    /// What tells this order from others, as text. It may hold record numbers of patrons: to be hashed with a key.
    pub(super) fn signature(&self) -> String {
        let Self { stream, selection, via: _, sink, force, wait_for_quota: _, meaning } = self;
        let Selection { numbers, since, until, locations } = selection;
        let mut locations = locations.clone();
        locations.sort_unstable();
        format!("{stream} {numbers:?} {since:?} {until:?} {locations:?} {sink:?} {force} {meaning:?}")
    }
}

impl Selection {
    /// Whether nothing is left out.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.numbers == Numbers::All && !self.has_times() && self.locations.is_empty()
    }

    /// Whether it selects by `updatedDate`.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    /// The span of `updatedDate`, open ends closed: at the epoch, and right after `now` by Sierra's clock. `None` when
    /// it does not select by it, or nothing can lie inside.
    #[must_use]
    pub fn window(&self, now: Timestamp) -> Option<Window> {
        let just_after = now.checked_add(jiff::SignedDuration::from_secs(1)).unwrap_or(now);
        let window = || Window::new(self.since.unwrap_or(Timestamp::UNIX_EPOCH), self.until.unwrap_or(just_after));
        self.has_times().then(window).flatten()
    }

    /// The first and the last number, open where absent.
    #[must_use]
    pub fn bounds(&self) -> (Option<RecordNumber>, Option<RecordNumber>) {
        match &self.numbers {
            Numbers::All => (None, None),
            Numbers::Range { from, to } => (*from, *to),
            Numbers::List(list) => (list.first().copied(), list.last().copied()),
        }
    }

    /// Whether a record of this number may be selected.
    #[must_use]
    pub fn has(&self, number: RecordNumber) -> bool {
        match &self.numbers {
            Numbers::All => true,
            Numbers::Range { from, to } => from.is_none_or(|from| from <= number) && to.is_none_or(|to| number <= to),
            Numbers::List(list) => list.binary_search(&number).is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_given_again_as_it_was_and_without_numbers_of_patrons() {
        let numbers = Numbers::Range { from: Some(RecordNumber::new(7)), to: None };
        let selection = Selection { numbers, locations: vec!["main*".to_owned()], ..Selection::default() };
        let order = BackfillOrder { selection, ..BackfillOrder::reload(Stream::Bibs, "lines", false) };
        let told =
            "`sierra-sync backfill bibs --ids 7.. --location 'main*' --sink lines --force` tries again what is left";
        assert_eq!(order.again(), told);
        let patrons = BackfillOrder { stream: Stream::Patrons, ..order };
        assert_eq!(patrons.again(), "the same `sierra-sync backfill patrons` tries again what is left");
    }
}
