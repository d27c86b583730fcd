//! One story, told by a number.

use std::time::Duration;

use rand::RngExt;
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{Endpoint, Fault, PlannedFault};
use sierra_sync::store::Step;

use super::fault::{self, KINDS};
use super::trouble::SecondSink;
use crate::support::minutes;

/// What happens in one simulation.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) seed: u64,
    /// Records of the library.
    pub(super) records: usize,
    pub(super) page_size: u32,
    /// How much livelier than a town library.
    pub(super) pace: f64,
    /// How many more deletions than a town library sees at that pace.
    pub(super) deletions: f64,
    /// How late an edit may show, in seconds.
    pub(super) late_seconds: i64,
    /// How long Sierra takes for a call, in milliseconds.
    pub(super) latency_ms: u64,
    /// Whether a nightly job changes most bibs in one second.
    pub(super) has_night: bool,
    /// Whether things happen that no window shows: edits without a stamp, back-dated loads, commits that show an hour
    /// late, deletions without a trace. Only sweeps find them, which then run every day, and days pass.
    pub(super) has_drift: bool,
    pub(super) faults: Vec<(u32, PlannedFault)>,
    pub(super) second: SecondSink,
    pub(super) acts: Vec<Act>,
}

/// A stretch of time and how it ends.
#[derive(Debug)]
pub(super) struct Act {
    pub(super) lasts: Duration,
    /// The process dies at this step, after so many were spared.
    pub(super) dies: Option<(Step, u64)>,
    pub(super) how: How,
}

/// What runs meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// The service.
    Service,
    /// Single passes with pauses, as cron has them.
    Passes,
    /// A person reconciles every stream, whatever is missing.
    Sweeps { deep: bool },
}

impl Case {
    /// The story of `seed`. Seeds that follow each other go through all faults and all troubles in turn.
    pub(super) fn of(seed: u64) -> Self {
        let mut chance = RootSeed::new(seed).generator("case");
        let first = u32::try_from(seed % u64::from(KINDS)).unwrap_or_default();
        let kinds = [first, chance.random_range(0..KINDS), chance.random_range(0..KINDS)];
        let faults = kinds.into_iter().map(|kind| (kind, fault::drawn(kind, &mut chance))).collect();
        let troubles = SecondSink::ALL;
        let second = troubles[usize::try_from(seed).unwrap_or_default() % troubles.len()];
        let has_drift = chance.random_range(0..4) == 0;
        let acts = (0..3).map(|_| Act::drawn(has_drift, &mut chance)).collect();
        Self {
            seed,
            records: chance.random_range(20..70),
            page_size: chance.random_range(3..40),
            pace: chance.random_range(0.5..6.0),
            deletions: 1.0,
            late_seconds: if has_drift { 3_600 } else { 25 },
            latency_ms: 50,
            has_night: chance.random_range(0..4) == 0,
            has_drift,
            faults,
            second,
            acts,
        }
    }
}

/// What happens often in a story that is to show a mistake soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Often {
    /// Lists of bibs are a gateway's page, 404.
    Gateway,
    /// The process dies while it loads.
    Deaths,
    /// Edits show minutes after their stamp.
    Late,
    /// Records are deleted while pages are read, which takes long.
    Deletions,
}

impl Case {
    /// A story of `seed` over a larger library in which records are seldom touched twice, so that what is missed once
    /// stays missed.
    pub(super) fn telling(seed: u64, often: Often) -> Self {
        let mut chance = RootSeed::new(seed).generator("telling case");
        let dies = |number: u64| match often {
            Often::Deaths if number < 2 => Some((Step::OF_A_WRITE[0], 6 + 2 * seed + number)),
            _ => None,
        };
        let act = |number: u64| Act { lasts: minutes(25), dies: dies(number), how: How::Service };
        let page = Fault::Html { status: 404 }.chance(0.4).at(Endpoint::Bibs);
        Self {
            seed,
            records: 400,
            page_size: chance.random_range(5..9),
            pace: 2.0,
            deletions: if often == Often::Deletions { 40.0 } else { 1.0 },
            late_seconds: if often == Often::Late { 400 } else { 25 },
            latency_ms: if often == Often::Deletions { 5_000 } else { 1_000 },
            has_night: false,
            has_drift: false,
            faults: if often == Often::Gateway { vec![(18, page)] } else { Vec::new() },
            second: SecondSink::Slow,
            acts: (0..if often == Often::Deletions { 1 } else { 3 }).map(act).collect(),
        }
    }
}

impl Act {
    fn drawn(has_drift: bool, chance: &mut impl rand::Rng) -> Self {
        let step = Step::OF_A_WRITE[chance.random_range(0..Step::OF_A_WRITE.len())];
        let spared = chance.random_range(0..60);
        let how = match chance.random_range(0..10) {
            0..3 if has_drift => How::Sweeps { deep: chance.random() },
            0..7 => How::Service,
            _ => How::Passes,
        };
        Self {
            lasts: minutes(chance.random_range(5..45)),
            dies: chance.random_bool(0.6).then_some((step, spared)),
            how,
        }
    }
}
