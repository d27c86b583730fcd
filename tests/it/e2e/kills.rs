//! The real binary, killed at random moments of everything it does. `just kill` does it a thousand times.
//!
//! `SIERRA_SYNC_KILLS` says how often and `SIERRA_SYNC_KILL_SEED` with which chance; what a run used is printed.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{Endpoint, Kind};
use tokio::time::{Instant, sleep};

use super::support::{Library, Running, Site, patiently};

/// Kills of one round: a quarter each in a load, in a backfill, in a reconciliation and of the service, in a library of
/// its own.
const ROUND: u64 = 40;
/// Records on a page: few, so that every kill falls near the end of one.
const PAGE: u64 = 20;

#[test]
fn nothing_is_lost_and_nothing_wrong_however_often_it_is_killed() {
    let number = |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"));
    let kills = number("SIERRA_SYNC_KILLS", ROUND);
    let seed = number("SIERRA_SYNC_KILL_SEED", 1);
    println!("SIERRA_SYNC_KILLS={kills} SIERRA_SYNC_KILL_SEED={seed} cargo test --test it e2e::kills -- --nocapture");
    let mut figures = Figures::default();
    for (round, left) in (0..kills).step_by(usize::try_from(ROUND).expect("small")).enumerate() {
        let round_seed = seed + round as u64;
        println!("round of seed {round_seed}");
        let mut random = RootSeed::new(round_seed).generator("kills");
        killed_over_and_over(ROUND.min(kills - left), &mut random, &mut figures);
    }
    figures.print(kills);
}

fn killed_over_and_over(kills: u64, random: &mut StdRng, figures: &mut Figures) {
    let site = Site::new(Library::sized(600, 300, 0));
    site.configure(|text| {
        let streams = "interval = \"1s\"\ndeleted_interval = \"1s\"\nsettle = \"0s\"";
        let text = text.replace("page_size = 40", &format!("page_size = {PAGE}")).replace("settle = \"0s\"", streams);
        format!("{text}\n[ops]\nlisten = \"127.0.0.1:0\"\n")
    });
    let (loads, backfills, reconciles) = (kills / 4, kills / 4, kills / 4);

    let killed = (0..loads).filter(|_| kill(site.bench.start(&["sync", "--json"]), random, 900)).count();
    site.sync_well();
    figures.fetched_again(&site, killed);
    site.assert_converged();

    let backfill = ["backfill", "bibs", "--json", "--force"];
    site.library.clear_journal();
    let killed = (0..backfills).filter(|_| kill(site.bench.start(&backfill), random, 600)).count();
    site.bench.run(&backfill).ends(0);
    figures.fetched_again(&site, killed);
    site.assert_converged();

    // What no window shows, in the midst of what is being killed.
    drift(&site, random);
    let reconcile = ["reconcile", "bibs", "--deep", "--repair", "--json"];
    site.library.clear_journal();
    let killed = (0..reconciles).filter(|_| kill(site.bench.start(&reconcile), random, 900)).count();
    let run = site.bench.run(&reconcile);
    // One that was interrupted says that it concludes nothing from absence.
    assert!(matches!(run.code, Some(0 | 3)), "{run:?}");
    let report = run.json_lines().remove(0);
    assert!(report["stopped"].as_str().is_none_or(|why| why.contains("was interrupted and resumed")), "{report}");
    assert_eq!(report["drift"], report["repaired"], "{report}");
    figures.fetched_again(&site, killed);
    site.assert_converged();

    for _ in 0..kills - loads - backfills - reconciles {
        edit(&site, random);
        let began = Instant::now();
        let service = site.bench.start(&["run", "--log-format", "json"]);
        if random.random_bool(0.5) {
            patiently("a service that is ready", || service.stderr().contains("service_started").then_some(()));
            figures.ready.push(began.elapsed());
        }
        kill(service, random, 700);
    }
    site.library.pass_a_second();
    site.sync_well();
    site.assert_converged();
    site.outputs().assert_each_seq_once();
    let verified = site.bench.run(&["queue", "verify", "--json"]).ends(0).json_lines().remove(0);
    assert_eq!(verified["sound"], true, "{verified}");
    let state = std::fs::read_dir(site.bench.path("state")).expect("there");
    let names: Vec<String> =
        state.map(|entry| entry.expect("one").file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("damaged-")), "a kill is no damage: {names:?}");
}

/// Kills `running` within so many milliseconds; `false` when it had ended by itself.
fn kill(running: Running, random: &mut StdRng, within: u64) -> bool {
    let moment = Duration::from_micros(random.random_range(0..within * 1_000));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async { sleep(moment).await });
    running.killed()
}

/// What staff do between two kills.
fn edit(site: &Site, random: &mut StdRng) {
    let (bibs, items) = (site.library.ids(Kind::Bibs), site.library.ids(Kind::Items));
    let [bib, other, item] = [bibs.len(), bibs.len(), items.len()].map(|length| random.random_range(0..length));
    site.library.edits(|world| {
        world.edit_bib(bibs[bib]).expect("it lives");
        world.toggle_suppression(Kind::Bibs, bibs[other]).expect("it lives");
        world.set_status(items[item], 'm').expect("it lives");
        let new = world.create_bib();
        world.create_item(&[new]);
        if bib != other {
            world.delete(Kind::Bibs, bibs[other]).expect("it lives");
        }
    });
}

/// Edits and suppressions that nobody has stamped.
fn drift(site: &Site, random: &mut StdRng) {
    let bibs = site.library.ids(Kind::Bibs);
    site.library.with(|simulator| {
        simulator.world.silently(|world| {
            for _ in 0..40 {
                world.edit_bib(bibs[random.random_range(0..bibs.len())]).expect("it lives");
                world.toggle_suppression(Kind::Bibs, bibs[random.random_range(0..bibs.len())]).expect("it lives");
            }
        });
    });
}

/// What a run of kills came to.
#[derive(Default)]
struct Figures {
    kills: usize,
    again: usize,
    ready: Vec<Duration>,
}

impl Figures {
    /// Counts the pages that were read more than once since the journal was cleared, of each stream: no more than one
    /// for each of `kills` may be, as each stream walks one range.
    #[track_caller]
    fn fetched_again(&mut self, site: &Site, kills: usize) {
        let mut again = 0;
        for endpoint in [Endpoint::Bibs, Endpoint::Items] {
            let mut read: BTreeMap<String, usize> = BTreeMap::new();
            for call in site.library.calls() {
                // Full pages of a range alone: the end of a stream is asked for again on purpose, before it is believed, and
                // so is what a list by numbers tells.
                let is_range = call.parameter("id").is_none_or(|id| id.contains('['));
                let is_page = call.entries as u64 == PAGE && call.parameter("deleted") != Some("true");
                if call.endpoint == endpoint && is_range && is_page {
                    *read.entry(format!("{:?}", call.parameter("id"))).or_default() += 1;
                }
            }
            let of_endpoint: usize = read.values().map(|times| times - 1).sum();
            assert!(of_endpoint <= kills, "{endpoint:?}: {of_endpoint} pages read again after {kills} kills: {read:?}");
            again += of_endpoint;
        }
        self.kills += kills;
        self.again += again;
    }

    fn print(mut self, kills: u64) {
        self.ready.sort();
        let at = |part: f64| {
            let index = (self.ready.len().saturating_sub(1) as f64 * part) as usize;
            self.ready.get(index).copied().unwrap_or_default()
        };
        println!(
            "{kills} kills: 0 lost, 0 wrong; {} pages read again after {} kills in loads, backfills and reconciliations; from a restart to \
             ready {:?} at the median, {:?} at most ({} restarts)",
            self.again,
            self.kills,
            at(0.5),
            at(1.0),
            self.ready.len()
        );
    }
}
