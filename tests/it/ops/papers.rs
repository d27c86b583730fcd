//! What is written for people, against the code and against itself.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{CommandFactory, Parser};
use sierra_sync::cli::args::Arguments;
use sierra_sync::ops::alert::{Cause, Severity};
use sierra_sync::telemetry::metric::{Kind, METRICS};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every name of ours in `text`.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_part = |at: char| at.is_ascii_alphanumeric() || at == '_';
    text.split(|at| !is_part(at)).filter(|word| word.starts_with("sierra_sync_")).collect()
}

#[test]
fn the_page_about_metrics_is_what_the_code_declares() {
    let mut rows = String::new();
    for metric in METRICS {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        rows += &format!("| `{}` | {kind} | {} | {} |\n", metric.name, labels.join(", "), metric.help);
    }
    let page = read("docs/metrics.md");
    assert!(page.contains(&rows), "docs/metrics.md should hold:\n{rows}");
}

#[test]
fn every_cause_has_an_entry_in_the_runbook_and_a_rule_that_points_there() {
    let (runbook, rules) = (read("docs/runbook.md"), read("deploy/prometheus/sierra-sync.rules.yml"));
    for cause in Cause::ALL {
        let name = cause.name();
        assert!(runbook.contains(&format!("\n## {name}\n")), "no entry for {name}");
        let rule = rules
            .split("- alert:")
            .find(|rule| rule.contains(&format!("docs/runbook.md#{name}\n")))
            .unwrap_or_else(|| panic!("no rule for {name}"));
        let severity = match cause.severity() {
            Severity::Warning => "severity: warning",
            Severity::Critical => "severity: critical",
        };
        assert!(rule.contains(severity), "{name}: {rule}");
        // One cause is one alert: what the service explains by another cause is not told by a rule of its own.
        let expression = format!("\n        expr: sierra_sync_alert_active{{cause=\"{name}\"}} == 1\n");
        assert!(rule.contains(&expression), "{name}: {rule}");
        assert_eq!(rules.matches(&expression).count(), 1, "{name}");
    }
    let entries = runbook.lines().filter_map(|line| line.strip_prefix("## ")).count();
    assert_eq!(entries, Cause::ALL.len() + 1, "an entry without a cause");
}

#[test]
fn every_expression_in_rules_and_dashboard_names_a_metric_that_exists() {
    let declared: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    for path in [
        "deploy/prometheus/sierra-sync.rules.yml",
        "deploy/prometheus/sierra-sync.rules.test.yml",
        "deploy/grafana/sierra-sync.json",
    ] {
        let text = read(path);
        let named = metrics_in(&text);
        assert!(!named.is_empty());
        let unknown: Vec<&&str> = named.iter().filter(|name| !declared.contains(**name)).collect();
        assert_eq!(unknown, Vec::<&&str>::new(), "{path}");
    }
    let dashboard: serde_json::Value = serde_json::from_str(&read("deploy/grafana/sierra-sync.json")).expect("JSON");
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            assert!(!metrics_in(expression).is_empty(), "{expression}");
        }
    }
}

/// What rules and runbook tell people to type can be typed.
#[test]
fn every_command_of_rules_and_runbook_can_be_typed() {
    let rules = read("deploy/prometheus/sierra-sync.rules.yml").replace("{{ $labels.subject }}", "bibs");
    let of_rules = rules.lines().filter_map(|line| line.trim_start().strip_prefix("command: sierra-sync "));
    let pages = [read("docs/runbook.md"), rules.clone()];
    let quoted = pages.iter().flat_map(|page| page.split('`').skip(1).step_by(2));
    let quoted = quoted.filter_map(|code| code.strip_prefix("sierra-sync "));
    let mut count = 0;
    for command in of_rules.chain(quoted) {
        let command = command.replace("--stream NAME", "--stream bibs").replace("sierra-sync ", "");
        assert_typed(&command);
        count += 1;
    }
    assert!(count > 25, "{count} commands were looked at");
}

/// Asserts that the command line takes `sierra-sync` with these words behind it.
pub(super) fn assert_typed(words: &str) {
    let line = std::iter::once("sierra-sync").chain(words.split_whitespace());
    if let Err(error) = Arguments::command().try_get_matches_from(line) {
        panic!("{words}: {error}");
    }
}

/// Nobody has to guess which commands there are.
#[test]
fn every_command_stands_on_the_page_about_commands() {
    let page = read("docs/commands.md");
    for command in Arguments::command().get_subcommands() {
        let name = command.get_name();
        assert!([format!("`{name}`"), format!("`{name} ")].iter().any(|code| page.contains(code)), "{name}");
    }
}

/// What a unit, a container or a line of cron calls is a command that there is.
#[test]
fn whatever_calls_the_program_calls_it_rightly() {
    let mut lines = Vec::new();
    for unit in UNITS {
        let text = read(unit);
        let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
        lines.push(start.to_owned());
    }
    let dockerfile = read("deploy/container/Dockerfile");
    let array = |line: &str| serde_json::from_str::<Vec<String>>(line).expect("an array").join(" ");
    let line = |mark: &str| dockerfile.lines().find_map(|line| line.strip_prefix(mark)).map(array).expect("one");
    lines.push(format!("{} {}", line("ENTRYPOINT "), line("CMD ")));
    let health = dockerfile.split("HEALTHCHECK").nth(1).and_then(|rest| rest.split("CMD ").nth(1)).expect("one");
    let health = array(health.lines().next().expect("a line"));
    // It asks whether the service is well, and not only whether it can be asked.
    assert!(health.ends_with("status --check"), "{health}");
    lines.push(health);
    let cron = cron_line();
    let fields: Vec<&str> = cron.split_whitespace().collect();
    assert_eq!((fields[0], fields[5]), ("*/5", "sierra-sync"), "five fields and the user: {cron}");
    // cron's PATH is /usr/bin:/bin, and it mails what is said.
    assert!(fields[6] == "/usr/local/bin/sierra-sync" && fields.contains(&"--quiet"), "{cron}");
    lines.push(fields[6..].join(" "));
    assert_eq!(lines.len(), 5);
    for line in &lines {
        Arguments::try_parse_from(line.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

const UNITS: [&str; 2] = ["deploy/systemd/sierra-sync.service", "deploy/systemd/sierra-sync-pass.service"];

/// The line for cron that the manual has.
fn cron_line() -> String {
    let operations = read("docs/operations.md");
    let line = operations.lines().find(|line| line.starts_with("*/5 "));
    line.expect("docs/operations.md has one").to_owned()
}

/// The configuration decides: a variable would override it unseen, and `state.path`, changed as the manual says, would
/// change nothing.
#[test]
fn nothing_that_is_shipped_overrides_where_the_state_lies() {
    for unit in UNITS {
        let text = read(unit);
        assert!(!text.contains("Environment=SIERRA_SYNC__"), "{unit} overrides the configuration");
        // `path = "./state"`, the default, lies where the unit may write.
        assert!(text.contains("\nStateDirectory=sierra-sync\n"), "{unit}");
        assert!(text.contains("\nWorkingDirectory=%S/sierra-sync\n"), "{unit}");
        assert!(text.contains("\nProtectSystem=strict\n") && !text.contains("\nReadWritePaths="), "{unit}");
    }
    let dockerfile = read("deploy/container/Dockerfile");
    assert!(!dockerfile.contains("SIERRA_SYNC__"), "the image overrides the configuration");
    assert!(dockerfile.contains("\nWORKDIR /var/lib/sierra-sync\n"));
    assert!(dockerfile.contains("\nVOLUME /var/lib/sierra-sync\n"));
    let compose = read("deploy/container/compose.yaml");
    assert!(!compose.contains("SIERRA_SYNC__STATE"), "the container overrides the configuration");
    let operations = read("docs/operations.md");
    // What the unit can write, and what is to be done for another place.
    assert!(operations.contains("path = \"/var/lib/sierra-sync/state\""), "docs/operations.md");
    assert!(operations.contains("ReadWritePaths="), "docs/operations.md");
}

/// A secret of a compose file keeps owner and mode of its file: whoever reads it must be that owner, or in its group.
#[test]
fn every_container_that_is_given_a_secret_can_read_it() {
    let dockerfile = read("deploy/container/Dockerfile");
    assert!(dockerfile.contains("groupadd --system --gid 10001 ") && dockerfile.contains("--uid 10001 --gid 10001 "));
    assert!(dockerfile.contains("\nUSER 10001:10001\n"));
    let compose = read("deploy/container/compose.yaml");
    let services =
        compose.split("\nservices:\n").nth(1).and_then(|rest| rest.split("\nsecrets:\n").next()).expect("some");
    let mut count = 0;
    for service in services.split("\n\n").filter(|service| service.contains("    secrets: [")) {
        let is_ours = service.starts_with("  sierra-sync:");
        assert!(is_ours || service.contains("group_add: [\"10001\"]"), "{service}");
        // The other reads the token alone, as the group of the file.
        assert!(is_ours || service.contains("secrets: [ops_token]"), "{service}");
        count += 1;
    }
    assert_eq!(count, 2);
    for page in [compose, read("docs/operations.md")] {
        for command in ["-m 0600 -o 10001 -g 10001 ", "-m 0640 -o 10001 -g 10001 "] {
            assert!(page.contains(command), "how the secrets are made is not told: {command}");
        }
    }
}

/// Every link of the manual leads to a file that is there, and to a heading of it.
#[test]
fn links_between_the_pages_lead_somewhere() {
    let mut pages: Vec<String> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned).to_vec();
    let docs = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")).expect("it is there");
    let names = docs.map(|entry| entry.expect("it can be listed").file_name().into_string().expect("UTF-8"));
    pages.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")));
    let mut count = 0;
    for page in &pages {
        let text = read(page);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        for target in targets.filter(|target| !target.starts_with("http")) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = Path::new(page).parent().expect("a page has a folder");
            let path = if path.is_empty() { page.clone() } else { folder.join(path).display().to_string() };
            let there = Path::new(env!("CARGO_MANIFEST_DIR")).join(&path);
            assert!(there.is_file(), "{page} links to {target}");
            assert!(anchor.is_empty() || anchors_of(&read(&path)).contains(anchor), "{page} links to {target}");
            count += 1;
        }
    }
    assert!(count > 30, "{count} links were looked at");
}

/// What headings are called in links, as GitHub has it.
fn anchors_of(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let keep = |at: char| match at {
        ' ' => Some('-'),
        at if at.is_alphanumeric() || matches!(at, '-' | '_') => Some(at.to_ascii_lowercase()),
        _ => None,
    };
    headings.map(|heading| heading.chars().filter_map(keep).collect()).collect()
}
