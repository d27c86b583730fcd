//! What a full outbox means for the sinks whose backlog fills it.

use super::Seq;
use super::settings::WhenFull;

/// From this share of its size on the outbox is reported as filling, in percent.
pub const ALERT_PERCENT: u64 = 80;

/// One sink as far as its backlog matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its name.
    pub name: String,
    /// Everything up to here it has confirmed.
    pub confirmed: Seq,
    /// Whether anything waits for it.
    pub is_behind: bool,
    /// What it asked for in this case.
    pub when_full: WhenFull,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fullness {
    /// How full the outbox is.
    pub percent: u64,
    /// The sinks that are to blame once it is filling: those furthest behind.
    pub filling: Vec<String>,
    /// The sinks that lose their place.
    pub detach: Vec<String>,
    /// Whether capture waits.
    pub hold: bool,
}

/// Judges an outbox of `bytes` whose size is limited to `max_bytes`, given its attached sinks.
///
/// The outbox holds what the sink furthest behind has not confirmed, so that sink is the one that fills it. At 100 %
/// it loses its place if it chose so, and others are looked at again once its backlog is gone; if it chose to hold,
/// everything waits for it.
#[must_use]
pub fn judge(bytes: u64, max_bytes: u64, attached: &[Holder]) -> Fullness {
    let percent = bytes.saturating_mul(100) / max_bytes.max(1);
    let furthest = attached.iter().filter(|sink| sink.is_behind).map(|sink| sink.confirmed).min();
    let to_blame: Vec<&Holder> =
        attached.iter().filter(|sink| sink.is_behind && Some(sink.confirmed) == furthest).collect();
    if percent < ALERT_PERCENT || to_blame.is_empty() {
        return Fullness { percent, ..Fullness::default() };
    }
    let names = |wanted: &dyn Fn(&Holder) -> bool| {
        to_blame.iter().filter(|sink| wanted(sink)).map(|sink| sink.name.clone()).collect::<Vec<_>>()
    };
    let is_full = percent >= 100;
    let hold = is_full && to_blame.iter().any(|sink| sink.when_full == WhenFull::Hold);
    let detach = if is_full && !hold { names(&|sink| sink.when_full == WhenFull::Detach) } else { Vec::new() };
    Fullness { percent, filling: names(&|_| true), detach, hold }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WhenFull::{Detach, Hold};

    fn sink(name: &str, confirmed: u64, is_behind: bool, when_full: WhenFull) -> Holder {
        let confirmed = Seq::new(confirmed).expect("a seq");
        Holder { name: name.into(), confirmed, is_behind, when_full }
    }

    #[test]
    fn below_four_fifths_nothing_happens() {
        let sinks = [sink("slow", 1, true, Detach)];
        assert_eq!(judge(79, 100, &sinks), Fullness { percent: 79, ..Fullness::default() });
        assert_eq!(judge(0, 0, &sinks).percent, 0);
    }

    #[test]
    fn the_sink_furthest_behind_is_named_and_at_last_detached() {
        let sinks = [sink("slow", 1, true, Detach), sink("fast", 9, true, Detach), sink("done", 9, false, Hold)];
        let filling = judge(80, 100, &sinks);
        assert_eq!(
            (filling.filling.as_slice(), filling.detach.len(), filling.hold),
            (&["slow".to_owned()][..], 0, false)
        );
        let full = judge(100, 100, &sinks);
        assert_eq!((full.detach.as_slice(), full.hold), (&["slow".to_owned()][..], false));
    }

    #[test]
    fn a_sink_that_chose_hold_makes_capture_wait_and_keeps_the_others_attached() {
        let sinks = [sink("careful", 1, true, Hold), sink("slow", 1, true, Detach)];
        assert!(judge(120, 100, &sinks).hold);
        assert_eq!(judge(120, 100, &sinks).detach, Vec::<String>::new());
        // Further behind than the careful one: it goes first, and capture need not wait for it.
        let sinks = [sink("careful", 5, true, Hold), sink("slow", 1, true, Detach)];
        assert_eq!((judge(120, 100, &sinks).hold, judge(120, 100, &sinks).detach), (false, vec!["slow".to_owned()]));
    }

    #[test]
    fn without_a_sink_behind_nobody_is_to_blame() {
        assert_eq!(judge(200, 100, &[sink("done", 9, false, Hold)]).filling, Vec::<String>::new());
        assert!(!judge(200, 100, &[]).hold);
    }
}
