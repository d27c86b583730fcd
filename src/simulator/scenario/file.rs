//! The shape of a scenario file.

use std::path::Path;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::super::api::Endpoint;
use super::super::faults::{Fault, PlannedFault, When};
use super::super::latency::Latency;
use super::super::limits::{EndpointLimit, RateLimit};
use super::super::simulator::Simulator;
use super::super::switches::Switches;
use super::super::world::{LibrarySettings, Life};
use super::error::ScenarioError;
use super::script::{Script, Step};
use crate::seed::RootSeed;

/// Scenarios that are always at hand, by name.
const BUILT_IN: [(&str, &str); 5] = [
    ("demo", include_str!("../../../fixtures/scenarios/demo.toml")),
    ("night", include_str!("../../../fixtures/scenarios/night.toml")),
    ("outage", include_str!("../../../fixtures/scenarios/outage.toml")),
    ("quiet", include_str!("../../../fixtures/scenarios/quiet.toml")),
    ("storm", include_str!("../../../fixtures/scenarios/storm.toml")),
];

/// A scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in one sentence.
    pub about: String,
    /// The library at the start.
    #[serde(default)]
    pub library: LibraryPlan,
    /// The server's quirks.
    #[serde(default)]
    pub switches: Switches,
    /// What happens by itself.
    #[serde(default)]
    pub life: Life,
    /// How long answers take.
    #[serde(default)]
    pub latency: Latency,
    /// How long tokens live.
    #[serde(default)]
    pub token_lifetime: Option<SignedDuration>,
    /// The quota of the key.
    #[serde(default)]
    pub rate_limit: Option<RateLimit>,
    /// Limits on single endpoints, in place of the usual one on exports of MARC.
    #[serde(default)]
    pub endpoint_limit: Option<Vec<EndpointLimit>>,
    /// Faults that are planned from the beginning.
    #[serde(default)]
    pub fault: Vec<FaultPlan>,
    /// The script.
    #[serde(default)]
    pub step: Vec<Step>,
}

/// The library of a scenario; what is left out is as in the default library.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LibraryPlan {
    /// Live bibs at the start.
    pub bibs: Option<usize>,
    /// Live items at the start.
    pub items: Option<usize>,
    /// Live patrons at the start.
    pub patrons: Option<usize>,
    /// Tombstones at the start, per hundred.
    pub tombstones_percent: Option<u32>,
    /// The IANA name of the library's zone.
    pub zone: Option<String>,
}

/// A fault of a scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    /// What happens.
    pub what: Fault,
    /// To which calls; to all, if left out.
    #[serde(default = "always")]
    pub when: When,
    /// Calls of this endpoint only.
    #[serde(default)]
    pub at: Option<Endpoint>,
    /// Calls with this query parameter only: its name and how its value begins, which may be empty for any.
    #[serde(default)]
    pub asking: Option<(String, String)>,
}

fn always() -> When {
    When::Always
}

impl From<FaultPlan> for PlannedFault {
    fn from(plan: FaultPlan) -> Self {
        Self { fault: plan.what, when: plan.when, endpoint: plan.at, parameter: plan.asking }
    }
}

impl Scenario {
    /// The names of the built-in scenarios.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// A built-in scenario, or one from a file.
    ///
    /// # Errors
    /// When there is no such scenario or it cannot be understood.
    pub fn find(name_or_path: &str) -> Result<Self, ScenarioError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
            return Self::parse(name, text);
        }
        let path = Path::new(name_or_path);
        if !path.exists() {
            return Err(ScenarioError::Unknown { name: name_or_path.into(), known: Self::names() });
        }
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| ScenarioError::Read { path: path.into(), source })?;
        Self::parse(name_or_path, &text)
    }

    /// Reads a scenario; `name` is for errors.
    ///
    /// # Errors
    /// When the text is not TOML or holds an unknown key or value.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|source| ScenarioError::Parse { name: name.into(), source: Box::new(source) })
    }

    /// Opens the library at `opened` and sets the server up. The script is for the caller to drive.
    ///
    /// # Errors
    /// When the library's zone is unknown.
    pub fn start(&self, seed: RootSeed, opened: Timestamp) -> Result<(Simulator, Script), ScenarioError> {
        let mut simulator = Simulator::new(&self.library.settings(opened)?, seed);
        simulator.switches = self.switches;
        simulator.latency = self.latency;
        if let Some(lifetime) = self.token_lifetime {
            simulator.access.token_lifetime = lifetime.unsigned_abs();
        }
        simulator.limit_rate(self.rate_limit);
        if let Some(limits) = &self.endpoint_limit {
            simulator.limit_endpoints(limits.iter().copied());
        }
        for fault in &self.fault {
            simulator.plan(fault.clone());
        }
        simulator.world.live(self.life);
        Ok((simulator, Script::new(self.step.clone())))
    }
}

impl LibraryPlan {
    /// The full settings of the library.
    ///
    /// # Errors
    /// When the zone is unknown.
    pub fn settings(&self, opened: Timestamp) -> Result<LibrarySettings, ScenarioError> {
        let mut settings = LibrarySettings::opened_at(opened);
        settings.bibs = self.bibs.unwrap_or(settings.bibs);
        settings.items = self.items.unwrap_or(settings.items);
        settings.patrons = self.patrons.unwrap_or(settings.patrons);
        settings.tombstones_percent = self.tombstones_percent.unwrap_or(settings.tombstones_percent);
        if let Some(name) = &self.zone {
            let zone = TimeZone::get(name);
            settings.zone = zone.map_err(|source| ScenarioError::Zone { name: name.clone(), source })?;
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Timestamp {
        "2026-01-05T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn every_built_in_scenario_starts() {
        for name in Scenario::names() {
            let mut scenario = Scenario::find(name).unwrap();
            (scenario.library.bibs, scenario.library.items) = (Some(20), Some(20));
            scenario.start(RootSeed::new(1), opened()).unwrap();
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        let refused = |text: &str| {
            let error = Scenario::parse("test", text).unwrap_err();
            std::error::Error::source(&error).unwrap().to_string()
        };
        assert!(refused("about = \"x\"\nlibrary = { books = 3 }").contains("books"));
        assert!(refused("about = \"x\"\n[[fault]]\nwhat = \"hung\"").contains("hung"));
        assert!(refused("about = \"x\"\n[[fault]]\nwhat = \"hang\"\nat = \"bib_list\"").contains("bib_list"));
        assert!(Scenario::find("rainstorm").unwrap_err().to_string().contains("demo, night, outage, quiet, storm"));
        let zone = LibraryPlan { zone: Some("Europe/Atlantis".into()), ..LibraryPlan::default() };
        assert!(zone.settings(opened()).unwrap_err().to_string().contains("Atlantis"));
    }

    /// What `fixtures/scenarios/README.md` says can be written.
    #[test]
    fn every_documented_form_can_be_written() {
        let faults = [
            "{ error = { code = 109 } }",
            "{ error = { code = 107, status = 200, as_text = true } }",
            "{ unauthorized = \"invalid_grant\" }",
            "{ too_many_requests = { remaining = \"0\", reset = \"2\", limit = \"9\", retry_after = \"soon\" } }",
            "{ rate_exceeded = { status = 500, minutes = \"12\" } }",
            "{ html = { status = 502 } }",
            "{ bare = { status = 500 } }",
            "{ not_retryable = { status = 503 } }",
            "{ raw = { status = 200, content_type = \"text/plain\", headers = [[\"x\", \"y\"]], body = \"…\" } }",
            "\"empty_body\"",
            "\"lone_code\"",
            "\"no_entries\"",
            "\"error_code_text\"",
            "\"malformed_json\"",
            "\"empty_page\"",
            "{ short_page = { entries = 3 } }",
            "\"loop_page\"",
            "\"reversed_page\"",
            "{ poison = { kind = \"bibs\", id = 1000001, code = 103, even_ids = true } }",
            "{ garbled = { kind = \"bibs\", id = 1000001, how = \"wrong_types\" } }",
            "\"hang\"",
            "\"reset\"",
            "\"refuse\"",
            "{ cut = { percent = 50 } }",
            "{ slow = { bytes_per_second = 1000 } }",
            "\"stale_connection\"",
            "\"close_after\"",
            "{ delay = { milliseconds = 500 } }",
            "\"no_date\"",
            "{ wrong_date = { seconds = 90 } }",
            "\"revoke_tokens\"",
            "{ expires_in = { literal = \"null\" } }",
            "{ expires_in = {} }",
        ];
        let choices = [
            "\"always\"",
            "{ nth = 3 }",
            "{ first = 10 }",
            "{ calls = { from = 3, to = 5 } }",
            "{ every = 7 }",
            "{ chance = 0.01 }",
            "{ span = { after = \"30s\", lasts = \"10m\" } }",
            "{ daily = { from = \"23:30\", to = \"04:15\" } }",
        ];
        let actions = [
            "{ edit = { kind = \"bibs\", count = 5 } }",
            "{ batch = { kind = \"items\", count = 5 } }",
            "{ create = { kind = \"patrons\", count = 5 } }",
            "{ suppress = { kind = \"bibs\", count = 5 } }",
            "{ toggle_suppression = { kind = \"bibs\", count = 5 } }",
            "{ delete = { kind = \"bibs\", count = 5 } }",
            "{ edit_silently = { count = 5 } }",
            "{ move = { count = 5 } }",
            "{ lend = { count = 5 } }",
            "{ use = { count = 5 } }",
            "{ edit_late = { kind = \"bibs\", count = 5, seconds = 150 } }",
            "{ load_back_dated = { count = 5, days = 30 } }",
            "{ plant = { oddity = \"short_leader\", count = 1 } }",
            "{ fault = { what = \"hang\", when = { first = 1 } } }",
            "\"revoke_tokens\"",
            "{ step_clock = { seconds = -3600 } }",
            "{ live = { bib_edits = 3.0, night = { at = \"02:30\", percent = 4 } } }",
        ];
        let mut text = String::from("about = \"All forms\"\ntoken_lifetime = \"1h\"\n");
        for fault in faults {
            text.push_str(&format!("[[fault]]\nwhat = {fault}\nat = \"token_info\"\nasking = [\"id\", \"[\"]\n"));
        }
        for choice in choices {
            text.push_str(&format!("[[fault]]\nwhat = \"hang\"\nwhen = {choice}\n"));
        }
        text.push_str(&format!("[[step]]\nsay = \"All.\"\nwhen = \"recovered\"\ndo = [{}]\n", actions.join(",")));
        let scenario = Scenario::parse("test", &text).unwrap();
        assert_eq!(scenario.fault.len(), faults.len() + choices.len());
        assert_eq!(scenario.step[0].actions.len(), actions.len());
    }
}
