//! All that the faults chosen for one call do to it.

use std::time::Duration;

use super::super::api::{Answer, Refusal, Tampering};
use super::super::reply::Delivery;
use super::answers::instead;
use super::fault::Fault;

/// What happens to one call. The default is nothing.
#[derive(Debug, Default)]
pub(crate) struct Meddling {
    /// Names of the faults, for the journal.
    pub(crate) names: Vec<String>,
    /// An answer in place of Sierra's, with headers of its own.
    pub(crate) instead: Option<(Answer, Vec<(String, String)>)>,
    /// What is done to the page while it is made.
    pub(crate) tampering: Tampering,
    /// Whether all tokens die first.
    pub(crate) revokes_tokens: bool,
    /// Another `expires_in`; within, nothing means that it is left out.
    pub(crate) expires_in: Option<Option<String>>,
    /// Whether the body is broken off in the middle.
    pub(crate) breaks_json: bool,
    /// Time added before the first byte.
    pub(crate) delay: Duration,
    /// Whether `Date` is left out.
    pub(crate) drops_date: bool,
    /// By how many seconds `Date` is off.
    pub(crate) date_offset: i64,
    travel: Option<Travel>,
}

#[derive(Debug, Clone, Copy)]
enum Travel {
    As(Delivery),
    CutAt { percent: u8 },
}

impl Meddling {
    /// Adds what one fault does. Of two that want the same thing differently the first one wins.
    pub(super) fn add(&mut self, fault: &Fault, is_reused_connection: bool) {
        match fault {
            Fault::StaleConnection if !is_reused_connection => return,
            Fault::StaleConnection | Fault::Reset => self.travel(Travel::As(Delivery::Reset)),
            Fault::Hang => self.travel(Travel::As(Delivery::Never)),
            Fault::Refuse => self.travel(Travel::As(Delivery::Refused)),
            Fault::CloseAfter => self.travel(Travel::As(Delivery::WholeThenClosed)),
            Fault::Slow { bytes_per_second } => {
                self.travel(Travel::As(Delivery::Slow { bytes_per_second: *bytes_per_second }));
            }
            Fault::Cut { percent } => self.travel(Travel::CutAt { percent: *percent }),
            Fault::Delay { milliseconds } => self.delay += Duration::from_millis(*milliseconds),
            Fault::NoDate => self.drops_date = true,
            Fault::WrongDate { seconds } => self.date_offset = *seconds,
            Fault::RevokeTokens => self.revokes_tokens = true,
            Fault::ExpiresIn { literal } => self.expires_in = Some(literal.clone()),
            Fault::MalformedJson => self.breaks_json = true,
            Fault::EmptyPage => self.tampering.keeps = Some(0),
            Fault::ShortPage { entries } => self.tampering.keeps = Some(*entries),
            Fault::LoopPage => self.tampering.ignores_position = true,
            Fault::ReversedPage => self.tampering.is_reversed = true,
            Fault::Poison { kind, id, code, even_ids } => {
                self.tampering.poison.push((*kind, *id, Refusal::documented(*code), *even_ids));
            }
            Fault::Garbled { kind, id, how } => self.tampering.instead.push((*kind, *id, *how)),
            _ => self.instead = self.instead.take().or_else(|| instead(fault)),
        }
        // Poison and garbled entries are planned for every call and bite few: the journal would name them always.
        if !matches!(fault, Fault::Poison { .. } | Fault::Garbled { .. }) {
            self.names.push(fault.name());
        }
    }

    /// How a body of `length` bytes travels.
    pub(crate) fn delivery(&self, length: usize) -> Delivery {
        match self.travel {
            None => Delivery::Whole,
            Some(Travel::As(delivery)) => delivery,
            Some(Travel::CutAt { percent }) => {
                let after_bytes = length.saturating_mul(usize::from(percent.min(99))) / 100;
                Delivery::Cut { after_bytes }
            }
        }
    }

    /// The faults by name, or nothing.
    pub(crate) fn describe(&self) -> Option<String> {
        (!self.names.is_empty()).then(|| self.names.join(", "))
    }

    fn travel(&mut self, travel: Travel) {
        self.travel.get_or_insert(travel);
    }
}
