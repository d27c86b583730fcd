//! `demo`: the main job on this machine, with nothing to set up.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::app::{self, DemoPlan, DemoReport};
use crate::cli::args::Global;
use crate::cli::exit::Exit;
use crate::cli::terminal;

/// What `demo` takes.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Total time, load and comparison included, such as 60s or 5m; at least 20s
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = time)]
    pub lasts: Duration,
    /// Live bibs at the start, with one and a half times as many items [default: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub bibs: Option<u32>,
    /// The number from which the library and its life follow
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Runs the command. Ends well only if every output agrees with the library.
///
/// # Errors
/// When the demo cannot be set up, or the store fails.
pub async fn run(args: DemoArgs, global: &Global) -> anyhow::Result<Exit> {
    let plan =
        DemoPlan { lasts: args.lasts, bibs: args.bibs.and_then(|bibs| usize::try_from(bibs).ok()), seed: args.seed };
    let is_quiet = global.quiet;
    let say = move |line: &str| {
        if !is_quiet {
            terminal::talk(line);
        }
    };
    let report = app::demo(&plan, Arc::new(say)).await?;
    let text = if global.json { serde_json::to_string(&report)? } else { page(&report) };
    terminal::data(&text)?;
    Ok(if report.ok { Exit::Ok } else { Exit::Incomplete })
}

fn page(report: &DemoReport) -> String {
    let DemoReport { live, deleted, compared, differences, requests, elapsed_seconds, .. } = report;
    let verdict = if *differences == 0 {
        let shown = if report.ok { "" } else { " But the breaker did not open, or nothing waited in the queue." };
        format!("The outputs agree with the library.{shown}")
    } else {
        let examples: Vec<String> = report.examples.iter().map(|example| format!("\n  {example}")).collect();
        format!("The outputs DIFFER from the library in {differences} places:{}", examples.concat())
    };
    let left = match report.steps_left {
        0 => String::new(),
        left => format!("\nThere was no time for {left} steps of the script; give more with --for."),
    };
    format!(
        "{verdict}\n{live} live records, {deleted} deleted, {compared} comparisons; {requests} requests in \
         {elapsed_seconds:.1} s; up to {} entries waited in the durable queue.{left}\nSee ./sierra-sync-demo/ for what \
         was written.",
        report.most_queued
    )
}

/// Whole seconds or minutes: `60s`, `5m`, or bare seconds.
fn time(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let seconds = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit));
    match seconds {
        Some(seconds) if (20..=86_400).contains(&seconds) => Ok(Duration::from_secs(seconds)),
        Some(_) => Err("must be from 20s to 1440m".to_owned()),
        None => Err("write seconds or minutes, such as 60s or 5m".to_owned()),
    }
}
