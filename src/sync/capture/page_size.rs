//! How many entries to ask for at once: fewer after a page that timed out, all of them again when it goes well.

/// Pages that must go well before more is asked for again.
const CALM: u32 = 8;
/// A page is halved so often before it is taken apart.
const HALVINGS: u32 = 3;

/// The size of the next page.
#[derive(Debug, Clone, Copy)]
pub(in crate::sync) struct PageSize {
    configured: u32,
    halvings: u32,
    good_in_a_row: u32,
}

impl PageSize {
    pub(in crate::sync) fn new(configured: u32) -> Self {
        Self { configured, halvings: 0, good_in_a_row: 0 }
    }

    /// How many entries to ask for; `None` when asking for fewer did not help either.
    pub(in crate::sync) fn limit(&self) -> Option<u32> {
        (self.halvings <= HALVINGS).then(|| (self.configured >> self.halvings).max(1))
    }

    pub(in crate::sync) fn on_failure(&mut self) {
        self.halvings += 1;
        self.good_in_a_row = 0;
    }

    pub(in crate::sync) fn on_success(&mut self) {
        self.good_in_a_row += 1;
        if self.good_in_a_row >= CALM {
            self.halvings = self.halvings.saturating_sub(1);
            self.good_in_a_row = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_halved_three_times_and_grow_back_slowly() {
        let mut size = PageSize::new(2000);
        let mut limits = vec![size.limit()];
        for _ in 0..4 {
            size.on_failure();
            limits.push(size.limit());
        }
        assert_eq!(limits, [Some(2000), Some(1000), Some(500), Some(250), None]);
        let mut size = PageSize::new(2000);
        size.on_failure();
        (0..7).for_each(|_| size.on_success());
        assert_eq!(size.limit(), Some(1000));
        size.on_success();
        assert_eq!(size.limit(), Some(2000));
    }

    #[test]
    fn a_page_is_never_smaller_than_one() {
        let mut size = PageSize::new(3);
        (0..3).for_each(|_| size.on_failure());
        assert_eq!(size.limit(), Some(1));
    }
}
