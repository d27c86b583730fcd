//! What a step of a script does.

use jiff::SignedDuration;
use serde::Deserialize;

use super::super::faults::FaultId;
use super::super::kind::Kind;
use super::super::simulator::Simulator;
use super::super::world::{Life, Oddity, World};
use super::file::FaultPlan;

/// One thing that happens. Records are chosen by chance among the live ones.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Records change.
    Edit {
        /// Which kind.
        kind: Kind,
        /// How many.
        count: usize,
    },
    /// Records change at one second, as in a batch job.
    Batch {
        /// Which kind.
        kind: Kind,
        /// How many.
        count: usize,
    },
    /// Bibs change and no stamp moves.
    EditSilently {
        /// How many.
        count: usize,
    },
    /// Records change now, and readers see it later.
    EditLate {
        /// Which kind.
        kind: Kind,
        /// How many.
        count: usize,
        /// How much later, in seconds.
        seconds: i64,
    },
    /// New records; an item hangs from a bib chosen by chance.
    Create {
        /// Which kind.
        kind: Kind,
        /// How many.
        count: usize,
    },
    /// New bibs with old stamps.
    LoadBackDated {
        /// How many.
        count: usize,
        /// How old, in days.
        days: i64,
    },
    /// Records are hidden.
    Suppress {
        /// Which kind.
        kind: Kind,
        /// How many.
        count: usize,
    },
    /// Visible records are hidden, hidden ones shown.
    ToggleSuppression {
        /// Which kind.
        kind: Kind,
        /// How many.
        count: usize,
    },
    /// Records are deleted.
    Delete {
        /// Which kind.
        kind: Kind,
        /// How many.
        count: usize,
    },
    /// Items move to another bib.
    Move {
        /// How many.
        count: usize,
    },
    /// Items are lent for three weeks.
    Lend {
        /// How many.
        count: usize,
    },
    /// Items are used in the library: only a counter and a stamp move.
    Use {
        /// How many.
        count: usize,
    },
    /// Bibs become odd.
    Plant {
        /// In which way.
        oddity: Oddity,
        /// How many.
        count: usize,
    },
    /// A fault is planned.
    Fault(FaultPlan),
    /// Every token dies.
    RevokeTokens,
    /// Sierra's clock is stepped.
    StepClock {
        /// By how many seconds; forward if positive.
        seconds: i64,
    },
    /// Life goes on like this.
    Live(Life),
}

impl Action {
    /// Does it. A planned fault is returned, so that the script can wait for its end.
    pub(super) fn act(&self, simulator: &mut Simulator) -> Option<FaultId> {
        let world = &mut simulator.world;
        match self {
            Self::Fault(plan) => return Some(simulator.plan(plan.clone())),
            Self::RevokeTokens => simulator.revoke_tokens(),
            Self::StepClock { seconds } => simulator.step_clock(SignedDuration::from_secs(*seconds)),
            Self::Live(life) => world.live(*life),
            Self::Edit { kind, count } | Self::Batch { kind, count } => {
                each(world, *kind, *count, |world, id| world.edit(*kind, id).is_ok())
            }
            Self::EditSilently { count } => {
                each(world, Kind::Bibs, *count, |world, id| world.silently(|world| world.edit_bib(id)).is_ok());
            }
            Self::EditLate { kind, count, seconds } => each(world, *kind, *count, |world, id| {
                world.visibly_after(SignedDuration::from_secs(*seconds), |world| world.edit(*kind, id)).is_ok()
            }),
            Self::Create { kind: Kind::Items, count } => {
                each(world, Kind::Bibs, *count, |world, bib| world.create_item(&[bib]) > 0);
            }
            Self::Create { kind, count } => (0..*count).for_each(|_| {
                world.create(*kind);
            }),
            Self::LoadBackDated { count, days } => {
                let age = SignedDuration::from_hours(24 * days);
                let stamp = world.now().saturating_sub(age).unwrap_or(world.now());
                world.dated(stamp, |world| {
                    (0..*count).for_each(|_| {
                        world.create_bib();
                    })
                });
            }
            Self::Suppress { kind, count } => each(world, *kind, *count, |world, id| world.suppress(*kind, id).is_ok()),
            Self::ToggleSuppression { kind, count } => {
                each(world, *kind, *count, |world, id| world.toggle_suppression(*kind, id).is_ok())
            }
            Self::Delete { kind, count } => each(world, *kind, *count, |world, id| world.delete(*kind, id).is_ok()),
            Self::Move { count } => each(world, Kind::Items, *count, |world, id| {
                let to = world.random_live(Kind::Bibs).unwrap_or_default();
                world.link_item(id, &[to]).is_ok()
            }),
            Self::Lend { count } => each(world, Kind::Items, *count, |world, id| {
                let patron = world.random_live(Kind::Patrons).unwrap_or_default();
                world.check_out(id, patron, 21).is_ok()
            }),
            Self::Use { count } => each(world, Kind::Items, *count, |world, id| world.use_internally(id).is_ok()),
            Self::Plant { oddity, count } => {
                each(world, Kind::Bibs, *count, |world, id| world.plant(id, *oddity).is_ok())
            }
        }
        None
    }
}

/// Acts on `count` live records chosen by chance, the same one perhaps twice; on none when there are none.
fn each(world: &mut World, kind: Kind, count: usize, mut act: impl FnMut(&mut World, u64) -> bool) {
    for _ in 0..count {
        let Some(id) = world.random_live(kind) else { return };
        let acted = act(world, id);
        debug_assert!(acted, "a live record was chosen");
    }
}
