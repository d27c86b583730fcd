//! What a fault does to a page while it is made: order, gaps, single bad entries.

use super::super::faults::Garble;
use super::super::kind::Kind;
use super::super::world::Slot;
use super::refusal::Refusal;

/// Changes to one page. The default changes nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tampering {
    /// The lower and upper bound of `id` are ignored: the page begins at the beginning, for ever.
    pub(crate) ignores_position: bool,
    /// The entries come in descending order.
    pub(crate) is_reversed: bool,
    /// All but this many entries are withheld.
    pub(crate) keeps: Option<usize>,
    /// Records that break any page that holds them: the error, and whether even a page of numbers breaks.
    pub(crate) poison: Vec<(Kind, u64, Refusal, bool)>,
    /// Entries that are served in another form.
    pub(crate) instead: Vec<(Kind, u64, Garble)>,
}

impl Tampering {
    /// Applies what concerns the order and number of entries.
    pub(crate) fn rearrange<R>(&self, entries: &mut Vec<(u64, &Slot<R>)>) {
        if let Some(keeps) = self.keeps {
            entries.truncate(keeps);
        }
        if self.is_reversed {
            entries.reverse();
        }
    }

    /// The error of the first poison record among `ids`.
    pub(crate) fn poisoned_by(
        &self,
        kind: Kind,
        ids: impl Iterator<Item = u64> + Clone,
        only_ids: bool,
    ) -> Option<Refusal> {
        let bites = |(of, poison, _, even_ids): &&(Kind, u64, Refusal, bool)| {
            *of == kind && (!only_ids || *even_ids) && ids.clone().any(|id| id == *poison)
        };
        self.poison.iter().find(bites).map(|(_, _, refusal, _)| refusal.clone())
    }

    /// Writes the spoiled form of an entry, if it has one.
    pub(crate) fn push_instead<R>(&self, kind: Kind, id: u64, slot: &Slot<R>, out: &mut String) -> bool {
        let found = self.instead.iter().find(|(of, bad, _)| *of == kind && *bad == id);
        if let Some((_, _, garble)) = found {
            garble.push(kind, id, slot.stamps(), out);
        }
        found.is_some()
    }
}
