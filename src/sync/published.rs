//! Published watermarks: up to when a sink holds everything.
//!
//! A stream's watermark says what is *captured*; what a sink can show follows it as the sink confirms (BR-071,
//! BR-114). While a window closes, the last seq issued is noted beside the new watermark: whoever has confirmed that
//! seq holds everything before the watermark. Other streams commit meanwhile, so the noted seq may lie a little high,
//! never low.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use super::Seq;
use crate::record::Stream;

/// Notes kept for one stream; beyond that every second one is forgotten, which only makes a sink that is far behind
/// catch up in larger steps.
const KEPT: usize = 512;

/// Which seq stands for which watermark.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    by_stream: BTreeMap<Stream, VecDeque<(Timestamp, Seq)>>,
}

impl Marks {
    /// Notes that everything of `stream` before `watermark` has a seq of at most `seq`.
    pub fn note(&mut self, stream: Stream, watermark: Timestamp, seq: Seq) {
        let marks = self.by_stream.entry(stream).or_default();
        if marks.back().is_some_and(|(last, _)| *last >= watermark) {
            return;
        }
        if let Some((last, _)) = marks.back_mut().filter(|(_, at)| *at == seq) {
            *last = watermark;
            return;
        }
        marks.push_back((watermark, seq));
        if marks.len() > KEPT {
            let mut keep = false;
            marks.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }

    /// The watermark of `stream` that a sink which has confirmed `seq` has reached, as far as it is noted.
    #[must_use]
    pub fn reached(&self, stream: Stream, seq: Seq) -> Option<Timestamp> {
        let marks = self.by_stream.get(&stream)?;
        marks.iter().rev().find(|(_, at)| *at <= seq).map(|(watermark, _)| *watermark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).expect("a timestamp")
    }

    fn seq(value: u64) -> Seq {
        Seq::new(value).expect("a seq")
    }

    /// BR-071: the published watermark covers confirmed windows only.
    #[test]
    fn a_sink_publishes_the_last_watermark_whose_changes_it_confirmed() {
        let mut marks = Marks::default();
        marks.note(Stream::Bibs, at(1), seq(10));
        marks.note(Stream::Bibs, at(2), seq(20));
        marks.note(Stream::Items, at(3), seq(25));
        let reached: Vec<_> = [9, 10, 19, 20, 99].map(|n| marks.reached(Stream::Bibs, seq(n))).into();
        assert_eq!(reached, [None, Some(at(1)), Some(at(1)), Some(at(2)), Some(at(2))]);
        assert_eq!(marks.reached(Stream::Patrons, seq(99)), None);
    }

    #[test]
    fn a_window_without_changes_moves_the_last_mark() {
        let mut marks = Marks::default();
        marks.note(Stream::Bibs, at(1), seq(10));
        marks.note(Stream::Bibs, at(2), seq(10));
        marks.note(Stream::Bibs, at(1), seq(30));
        assert_eq!(marks.reached(Stream::Bibs, seq(10)), Some(at(2)));
        assert_eq!(marks.reached(Stream::Bibs, seq(30)), Some(at(2)));
    }

    #[test]
    fn marks_stay_few_however_long_a_sink_is_paused() {
        let mut marks = Marks::default();
        for n in 1..5000 {
            marks.note(Stream::Bibs, at(n), seq(n.unsigned_abs()));
        }
        assert!(marks.by_stream[&Stream::Bibs].len() <= KEPT + 1);
        assert_eq!(marks.reached(Stream::Bibs, seq(4999)), Some(at(4999)));
        assert!(marks.reached(Stream::Bibs, seq(2500)).is_some_and(|reached| reached <= at(2500)));
    }
}
