//! `reconcile`: a whole stream compared with what is known of it.

use clap::Args;
use clap::value_parser;

use crate::app;
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::sync::StreamName;
use crate::cli::table::counted;
use crate::cli::{dispatch, terminal};
use crate::record::Stream;
use crate::sync::sweep::{ReconcileOrder, ReconcileReport};

/// What `reconcile` takes.
#[derive(Debug, Clone, Args)]
pub struct ReconcileArgs {
    /// The stream
    #[arg(value_enum, value_name = "STREAM")]
    pub stream: StreamName,
    /// Reads whole records and compares their content: finds edits that left no stamp, and costs as much as a load
    #[arg(long)]
    pub deep: bool,
    /// Reads what differs again and emits it, and tells sinks of records that are gone; else it only counts
    #[arg(long)]
    pub repair: bool,
    /// Concludes nothing when more than this share of all records did not come
    #[arg(long, value_name = "PERCENT", default_value_t = ReconcileOrder::MAX_MISSING, value_parser = value_parser!(u8).range(0..=100))]
    pub max_missing: u8,
    /// Sits out long quota waits instead of ending with exit code 75
    #[arg(long)]
    pub wait: bool,
}

/// Runs the command: the report is the last thing on stdout, as text or as one line of JSON.
///
/// # Errors
/// When the command line or the configuration is wrong, or nothing could be done at all.
pub async fn run(args: ReconcileArgs, global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    let ReconcileArgs { stream, deep, repair, max_missing, wait } = args;
    let order = ReconcileOrder { stream: stream.into(), deep, repair, max_missing, wait_for_quota: wait };
    let (found, exit) = app::reconcile(config, &order).await?;
    terminal::data(&if global.json { serde_json::to_string(&found)? } else { page(&found, &order) })?;
    Ok(exit)
}

fn page(found: &ReconcileReport, order: &ReconcileOrder) -> String {
    let ReconcileReport { checked, drift, missing, repaired, stopped } = found;
    let stream: Stream = order.stream;
    let mut lines = vec![match (drift, missing) {
        (0, 0) => format!("{stream}: {} compared, and all agree.", counted(*checked, "record", "records")),
        _ => format!(
            "{stream}: {} compared; {}; {}.",
            counted(*checked, "record", "records"),
            counted(*drift, "differs from what is known", "differ from what is known"),
            counted(*missing, "is known and did not come", "are known and did not come"),
        ),
    }];
    if order.repair && drift + missing > 0 {
        lines.push(format!("{} put right.", counted(*repaired, "record was", "records were")));
    }
    if let Some(why) = stopped {
        lines.push(format!("Not concluded: {why}."));
    } else if !order.repair && drift + missing > 0 {
        let deep = if order.deep { " --deep" } else { "" };
        lines.push(format!("Nothing was changed: `sierra-sync reconcile {stream}{deep} --repair` puts it right."));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_what_was_found_and_what_to_do() {
        let order = ReconcileOrder::scheduled(Stream::Bibs, false);
        let looking = ReconcileOrder { repair: false, deep: true, ..order };
        let found = ReconcileReport { checked: 2000, drift: 3, missing: 1, repaired: 4, stopped: None };
        let told = page(&found, &order);
        assert_eq!(told.lines().last(), Some("4 records were put right."));
        assert!(told.starts_with("bibs: 2,000 records compared; 3 differ from what is known; 1 is known"), "{told}");
        assert!(page(&found, &looking).ends_with("`sierra-sync reconcile bibs --deep --repair` puts it right."));
        let stopped = ReconcileReport { stopped: Some("too many".into()), ..found.clone() };
        assert!(page(&stopped, &order).ends_with("Not concluded: too many."));
        let agree = ReconcileReport { checked: 1, ..ReconcileReport::default() };
        assert_eq!(page(&agree, &order), "bibs: 1 record compared, and all agree.");
    }

    #[test]
    fn programs_get_one_object() {
        let found = ReconcileReport { checked: 7, ..ReconcileReport::default() };
        let json = serde_json::to_string(&found).expect("JSON");
        assert_eq!(json, r#"{"checked":7,"drift":0,"missing":0,"repaired":0,"stopped":null}"#);
    }
}
