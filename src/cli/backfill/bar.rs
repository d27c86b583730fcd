//! The progress bar: on a terminal only, with an end that knows the quota.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::app::BackfillView;
use crate::cli::table::spoken_seconds;

/// A bar on stderr. None where that is no terminal, or nobody wants to hear.
pub(super) fn bar(is_quiet: bool) -> Option<ProgressBar> {
    if is_quiet || !std::io::stderr().is_terminal() {
        return None;
    }
    let style = ProgressStyle::with_template("{spinner} {human_pos} records{msg}");
    let bar = ProgressBar::new_spinner().with_style(style.expect("the template is a constant that parses"));
    Some(bar)
}

/// Shows how far it is.
pub(super) fn show(bar: &ProgressBar, view: BackfillView) {
    if let Some(total) = view.total.filter(|total| bar.length() != Some(*total)) {
        let style = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} records{msg}");
        bar.set_style(style.expect("the template is a constant that parses"));
        bar.set_length(total);
    }
    bar.set_position(view.done);
    bar.set_message(message(view));
}

fn message(view: BackfillView) -> String {
    view.eta_seconds.map_or_else(String::new, |seconds| format!("  ETA {}", spoken_seconds(whole(seconds))))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded to what a u64 holds")]
pub(super) fn whole(seconds: f64) -> u64 {
    seconds.clamp(0.0, 1e15).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_where_it_is_known() {
        let view = |eta_seconds| BackfillView { done: 3, total: Some(9), eta_seconds };
        assert_eq!(message(view(Some(12_000.4))), "  ETA 3 h 20 min");
        assert_eq!(message(view(None)), "");
        assert_eq!([whole(f64::NAN), whole(-1.0), whole(1e300)], [0, 0, 1_000_000_000_000_000]);
    }

    #[test]
    fn a_bar_takes_the_total_once_it_is_known() {
        let bar = ProgressBar::hidden();
        show(&bar, BackfillView { done: 3, total: None, eta_seconds: None });
        assert_eq!((bar.position(), bar.length()), (3, None));
        show(&bar, BackfillView { done: 7, total: Some(20), eta_seconds: Some(5.0) });
        assert_eq!((bar.position(), bar.length(), bar.message().as_str()), (7, Some(20), "  ETA 5 s"));
    }
}
