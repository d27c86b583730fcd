//! What the second sink runs into, while the first only stumbles.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use sierra_sync::sync::Change;

use crate::support::Trouble;

/// Kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecondSink {
    /// Most deliveries are put off.
    Slow,
    /// Takes nothing at all until the end.
    Down,
    /// Takes nothing, and the queue has room for little: it loses its place.
    Detached,
    /// Emptied behind everybody's back, half way.
    Emptied,
    /// Acknowledgements are lost again and again.
    Forgetful,
}

impl SecondSink {
    pub(super) const ALL: [Self; 5] = [Self::Slow, Self::Down, Self::Detached, Self::Emptied, Self::Forgetful];

    /// Whether it must be loaded again at the end.
    pub(super) fn loses_its_place(self) -> bool {
        matches!(self, Self::Detached | Self::Emptied)
    }

    /// How its deliveries go.
    pub(super) fn script(self, mut chance: StdRng) -> impl FnMut(&[Change]) -> Option<Trouble> + Send + 'static {
        move |_| {
            let percent = chance.random_range(0..100_u32);
            match self {
                Self::Slow if percent < 70 => Some(Trouble::Busy),
                Self::Down | Self::Detached => Some(if percent < 20 { Trouble::Broken } else { Trouble::Busy }),
                Self::Forgetful if percent < 50 => Some(Trouble::LostAcknowledgement),
                Self::Slow | Self::Forgetful | Self::Emptied => stumble(&mut chance),
            }
        }
    }
}

/// Any sink stumbles now and then.
pub(super) fn stumble(chance: &mut StdRng) -> Option<Trouble> {
    match chance.next_u32() % 14 {
        0 => Some(Trouble::Busy),
        1 => Some(Trouble::LostAcknowledgement),
        _ => None,
    }
}
