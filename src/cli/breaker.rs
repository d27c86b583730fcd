//! `breaker`: a person holds back all calls to Sierra, or lets them go again.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::app::{self, Action, BreakerOrder, BreakerReport};
use crate::cli::args::Global;
use crate::cli::exit::{Exit, Refused};
use crate::cli::operator::{Consent, OperatorArgs};
use crate::cli::table::spoken_seconds;
use crate::cli::{answer, dispatch, terminal};

/// What `breaker` takes.
#[derive(Debug, Args)]
pub struct BreakerArgs {
    /// What to do
    #[command(subcommand)]
    pub order: Order,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Order {
    /// Lets no call go to Sierra
    Open {
        /// Who says so, and why
        #[command(flatten)]
        operator: OperatorArgs,
        /// For how long, such as 30m, 2h or 1d [default: until it is closed]
        #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
        lasts: Option<Duration>,
    },
    /// Lets calls go again once a health check has passed
    Close(Consent),
    /// Declares every outage over: suspended endpoints and the lock on a refused key too
    Reset(Consent),
    /// Lists what people did, and why
    History,
}

/// Runs the command.
///
/// # Errors
/// When the configuration is wrong, `--yes` is missing, the process that holds the state does not answer, or the store
/// fails.
pub async fn run(args: BreakerArgs, global: &Global) -> anyhow::Result<Exit> {
    let (order, operator) = match &args.order {
        Order::History => return history(global).await,
        Order::Open { operator, lasts } => (BreakerOrder::Open { lasts: *lasts }, operator),
        Order::Close(consent) => (BreakerOrder::Close, meant(consent, "close", CLOSE_MEANS)?),
        Order::Reset(consent) => (BreakerOrder::Reset, meant(consent, "reset", RESET_MEANS)?),
    };
    let config = dispatch::load(global)?;
    let asked = match order {
        BreakerOrder::Open { lasts } => lasts,
        BreakerOrder::Close | BreakerOrder::Reset => None,
    };
    let report = app::breaker(&config, order, &operator.operator()).await?;
    let text = if global.json { serde_json::to_string(&report)? } else { sentence(&report, asked) };
    answer::outcome(global, Exit::Ok, &text)?;
    Ok(Exit::Ok)
}

const CLOSE_MEANS: &str = "lets calls go to Sierra again, whoever stopped them and for whatever reason";
const RESET_MEANS: &str =
    "forgets every outage and suspended endpoint and presents a refused key again, which may lock its account";

fn meant<'a>(consent: &'a Consent, name: &str, means: &str) -> Result<&'a OperatorArgs, Refused> {
    if consent.yes {
        return Ok(&consent.operator);
    }
    Err(Refused(format!("`breaker {name}` {means}; look at `sierra-sync status` first, then say it again with --yes")))
}

async fn history(global: &Global) -> anyhow::Result<Exit> {
    let config = dispatch::load(global)?;
    let actions = app::breaker_history(&config).await?;
    for action in &actions {
        terminal::data(&if global.json { serde_json::to_string(action)? } else { told(action) })?;
    }
    if actions.is_empty() && !global.json {
        terminal::data("Nobody has done anything yet.")?;
    }
    Ok(Exit::Ok)
}

pub(super) fn told(action: &Action) -> String {
    let at = action.at.strftime("%Y-%m-%dT%H:%M:%SZ");
    let by = action.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
    // In quotes: nobody's words can pass for ours.
    let reason = action.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason:?}"));
    let until =
        action.until.map_or_else(String::new, |until| format!(" (until {})", until.strftime("%Y-%m-%dT%H:%M:%SZ")));
    format!("{at} {}{by}{reason}{until}; {}", action.command, action.outcome)
}

/// What came of an order, for people.
pub(crate) fn sentence(report: &BreakerReport, asked: Option<Duration>) -> String {
    let latch = if report.latch_lifted { " The lock on the refused key is lifted." } else { "" };
    match (report.action.as_str(), report.until) {
        ("open", Some(until)) => {
            // As it was asked for: the two times of the report were taken a moment apart.
            let left = || u64::try_from(until.duration_since(report.at).as_millis().saturating_add(500) / 1000);
            let lasts = asked.map_or_else(|| left().unwrap_or(0), |asked| asked.as_secs());
            format!(
                "The breaker is open for {}: no call goes to Sierra before {}.",
                spoken_seconds(lasts),
                until.strftime("%Y-%m-%dT%H:%M:%SZ")
            )
        }
        ("open", None) => {
            "The breaker is open: no call goes to Sierra until `sierra-sync breaker close --yes`.".to_owned()
        }
        (_, _) if !report.changed => "The breaker was closed already: nothing changed.".to_owned(),
        ("close", _) => {
            "Calls go to Sierra again as soon as a health check has passed; the next run makes it.".to_owned()
        }
        _ => format!("Every outage is forgotten: calls go to Sierra again.{latch}"),
    }
}

/// A whole number with its unit: seconds, minutes, hours or days, up to a year.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let seconds = units
        .into_iter()
        .find_map(|(unit, worth)| text.strip_suffix(unit)?.trim().parse::<u64>().ok()?.checked_mul(worth));
    match seconds {
        Some(seconds) if (1..=366 * 86_400).contains(&seconds) => Ok(Duration::from_secs(seconds)),
        Some(_) => Err("must be from 1s to 366d".to_owned()),
        None => Err("write a number with its unit, such as 90s, 30m, 2h or 1d".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_people_cannot_pass_for_an_action() {
        let action = Action {
            at: jiff::Timestamp::UNIX_EPOCH,
            command: "pause --stream bibs".to_owned(),
            by: Some("ann".to_owned()),
            reason: Some("; done 2026-01-01 \"breaker close\" by root".to_owned()),
            until: None,
            outcome: "done".to_owned(),
        };
        let expected =
            r#"1970-01-01T00:00:00Z pause --stream bibs by ann: "; done 2026-01-01 \"breaker close\" by root"; done"#;
        assert_eq!(told(&action), expected);
    }

    #[test]
    fn a_duration_has_a_unit_and_bounds() {
        for (text, seconds) in [("90s", 90), ("30m", 1_800), ("2h", 7_200), ("1d", 86_400), ("366d", 31_622_400)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "30", "h", "0s", "367d", "-1h", "1.5h", "99999999999999999999d", "18446744073709551615d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
