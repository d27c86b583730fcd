//! The one global order: which seq comes next.

use crate::sync::ports::StoreErrorKind;
use crate::sync::{Seq, StoreError};

/// The last seq issued, and the floor beneath which none is issued any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) last: Seq,
    pub(super) floor: Seq,
}

impl Order {
    /// Raises the floor; a lower one than before changes nothing.
    pub(super) fn raise(&mut self, floor: Seq) {
        self.floor = self.floor.max(floor);
    }

    /// Issues the next `count` seqs.
    ///
    /// # Errors
    /// [`StoreErrorKind::Exhausted`] when they would pass [`Seq::MAX`]: no reader of JSON could hold them.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<Seq>, StoreError> {
        let first = (self.last.value() + 1).max(self.floor.value());
        let mut issued = Vec::with_capacity(count);
        for offset in 0..count {
            let value = u64::try_from(offset).ok().and_then(|offset| first.checked_add(offset));
            let seq = value.and_then(Seq::new).ok_or_else(|| {
                let message = format!("give {count} changes a place in the order: none is left after {}", self.last);
                StoreError::new(StoreErrorKind::Exhausted, message)
            })?;
            issued.push(seq);
        }
        if let Some(last) = issued.last() {
            self.last = *last;
        }
        Ok(issued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(value: u64) -> Seq {
        Seq::new(value).expect("a seq")
    }

    #[test]
    fn the_next_seq_follows_the_last_and_is_not_below_the_floor() {
        let mut order = Order { last: seq(4), floor: Seq::ZERO };
        assert_eq!(order.take(2).expect("room"), [seq(5), seq(6)]);
        order.raise(seq(100));
        order.raise(seq(50));
        assert_eq!(order.last, seq(6), "a floor is not a seq that was issued");
        assert_eq!(order.take(2).expect("room"), [seq(100), seq(101)]);
        assert_eq!(order.take(0).expect("room"), []);
        assert_eq!(order.take(1).expect("room"), [seq(102)]);
    }

    #[test]
    fn nothing_is_issued_beyond_what_json_readers_hold() {
        let mut order = Order { last: Seq::ZERO, floor: Seq::MAX };
        assert_eq!(order.take(2).expect_err("no room for two").kind, StoreErrorKind::Exhausted);
        assert_eq!(order.take(1).expect("room for one"), [Seq::MAX]);
        assert_eq!(order.take(1).expect_err("no room").kind, StoreErrorKind::Exhausted);
    }
}
