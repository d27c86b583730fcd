//! The engine with the real client against the simulated Sierra: every layer but sockets and disks.

use std::time::Duration;

use jiff::SignedDuration;
use rand::RngExt;
use sierra_sync::record::{RecordNumber, Stream};
use sierra_sync::seed::RootSeed;
use sierra_sync::simulator::{
    Dialect, Endpoint, Fault, Garble, Kind, Life, Night, Nothing, RateLimit, Simulator, Unauthorized, When,
};
use sierra_sync::store::Step;
use sierra_sync::sync::ports::Slice;
use sierra_sync::sync::report::summary::StreamOutcome;
use sierra_sync::sync::window::whole_second;
use sierra_sync::sync::{LedgerRow, Pass, RowState, Span, Store, Window};

use crate::support::{Sim, hours, minutes, seeds};

const LISTS: [Endpoint; 3] = [Endpoint::Bibs, Endpoint::Items, Endpoint::Patrons];

#[tokio::test(start_paused = true)]
async fn a_quiet_library_is_loaded_and_a_second_pass_emits_nothing() {
    let mut sim = Sim::seeded(1).library(500).life(Life::default()).start().await;
    let first = sim.sync_well().await;
    assert_eq!((first.streams["bibs"].changed, first.streams["items"].changed), (200, 250));
    tokio::time::sleep(hours(1)).await;
    let second = sim.sync_well().await;
    assert_eq!((second.sinks["archive"].delivered, second.streams.len()), (0, 3));
    sim.assert_converged().await;
}

/// CUR-1, CUR-2, WIN-1, OUT-1, OUT-2, PRV-1 with a town library, tied stamps of a nightly job and late commits
/// included.
#[tokio::test(start_paused = true)]
async fn the_service_follows_a_town_library() {
    for seed in seeds(4) {
        let night = Some(Night { at: "11:30".parse().expect("a time"), percent: 60 });
        let mut sim = Sim::seeded(seed).library(200).life(Life { night, ..Life::town() }).start().await;
        sim.run_for(hours(4)).await;
        sim.assert_converged().await;
    }
}

/// Every way in which a Sierra is known to misbehave, by the seed; and a process that dies now and then.
#[tokio::test(start_paused = true)]
async fn the_service_converges_whatever_sierra_and_the_process_do() {
    for seed in seeds(16) {
        let mut chance = RootSeed::new(seed).generator("misfortune");
        let mut plan = Sim::seeded(seed).library(120).page_size(chance.random_range(5..60)).sierra(move |simulator| {
            quirks(simulator, seed);
        });
        for _ in 0..5 {
            plan = plan.fault(misfortune(&mut chance));
        }
        let mut sim = plan.start().await;
        for _ in 0..3 {
            if chance.random() {
                let step = Step::OF_A_WRITE[chance.random_range(0..3)];
                sim.store.fail_at(step, chance.random_range(0..60));
            }
            sim.run_for(minutes(40)).await;
            sim.crash_and_restart().await;
        }
        sim.assert_converged().await;
    }
}

fn quirks(simulator: &mut Simulator, seed: u64) {
    let mut chance = RootSeed::new(seed).generator("quirks");
    simulator.switches.tombstones_in_updates = chance.random();
    simulator.switches.stale_tombstone_stamps = chance.random();
    for nothing in [&mut simulator.switches.empty_range, &mut simulator.switches.empty_deletes] {
        *nothing = if chance.random() { Nothing::NotFound } else { Nothing::EmptyPage };
    }
}

/// A fault that happens often enough to matter and seldom enough to get through.
fn misfortune(chance: &mut impl rand::Rng) -> sierra_sync::simulator::PlannedFault {
    let list = LISTS[chance.random_range(0..3)];
    let often = 0.05;
    match chance.random_range(0..20_u32) {
        0 => Fault::error(135).chance(often).at(list),
        1 => Fault::Html { status: 502 }.chance(often),
        2 => Fault::Html { status: 404 }.chance(often).at(list),
        3 => Fault::EmptyBody.chance(often),
        4 => Fault::LoneCode.chance(often).at(list),
        5 => Fault::NoEntries.chance(often).at(list),
        6 => Fault::MalformedJson.chance(often).at(list),
        7 => Fault::EmptyPage.when(When::Every(7)).at(list),
        8 => Fault::ShortPage { entries: 1 }.chance(often).at(list),
        9 => Fault::LoopPage.chance(often).at(list),
        10 => Fault::Hang.chance(0.02).at(list),
        11 => Fault::Reset.chance(often),
        12 => Fault::Cut { percent: 40 }.chance(often).at(list),
        13 => Fault::StaleConnection.chance(often),
        14 => Fault::RevokeTokens.chance(often),
        15 => Fault::Unauthorized(Unauthorized::InvalidGrant).chance(0.02).at(list),
        16 => Fault::RateExceeded { status: 500, minutes: "3".into() }.chance(0.02).at(list),
        17 => Fault::too_many_requests("0", "20").chance(often),
        18 => Fault::NoDate.chance(0.3),
        _ => Fault::Refuse
            .when(When::Span { after: SignedDuration::from_mins(20), lasts: SignedDuration::from_mins(10) }),
    }
}

/// QTA-1, BR-108: a server that says how much is left is never asked for more, load, token calls and all.
#[tokio::test(start_paused = true)]
async fn a_quota_that_is_told_is_never_overrun() {
    for dialect in [Dialect::XRateLimit, Dialect::RateLimitItem] {
        let limit = RateLimit { calls: 40, seconds: 300, dialect, ..RateLimit::default() };
        let mut sim = Sim::seeded(3)
            .library(300)
            .page_size(10)
            .sierra(move |simulator| simulator.limit_rate(Some(limit)))
            .start()
            .await;
        sim.run_for(hours(2)).await;
        let refused = sim
            .library
            .simulator
            .with(|simulator| simulator.journal.calls().filter(|call| call.status == Some(429)).count());
        assert_eq!(refused, 0, "{dialect:?}");
        sim.library.simulator.with(|simulator| simulator.limit_rate(None));
        sim.assert_converged().await;
    }
}

/// BR-001: the bib endpoint fails for two hours while items work; its windows are made up for without being asked.
#[tokio::test(start_paused = true)]
async fn a_nightly_outage_of_the_bib_endpoint_is_made_up_for() {
    let outage = When::Span { after: SignedDuration::from_hours(1), lasts: SignedDuration::from_hours(2) };
    let mut sim = Sim::seeded(5)
        .library(150)
        .streams(&[Stream::Bibs, Stream::Items])
        .fault(Fault::Html { status: 503 }.when(outage).at(Endpoint::Bibs))
        .start()
        .await;
    sim.run_for(minutes(150)).await;
    let behind = |stream: Stream, sim: &Sim| {
        let rows = sim.store.ledger(stream).expect("up");
        let end = rows
            .iter()
            .filter(|row| row.state == RowState::Done)
            .filter_map(|row| row.window())
            .map(|window| window.end());
        sim.now().duration_since(end.max().expect("a window"))
    };
    assert!(behind(Stream::Bibs, &sim) > SignedDuration::from_mins(80));
    assert!(behind(Stream::Items, &sim) < SignedDuration::from_mins(15), "items do not notice");
    sim.run_for(minutes(60)).await;
    assert!(behind(Stream::Bibs, &sim) < SignedDuration::from_mins(15), "made up for by itself");
    sim.assert_converged().await;
}

/// A10, BRK-1, B7: Sierra is gone for half an hour: the breaker opens, next to nothing is asked, everything is made up.
#[tokio::test(start_paused = true)]
async fn an_outage_of_everything_is_survived_with_few_calls() {
    let outage = When::Span { after: SignedDuration::from_mins(30), lasts: SignedDuration::from_mins(30) };
    let mut sim = Sim::seeded(6).library(150).fault(Fault::Refuse.when(outage)).start().await;
    sim.run_for(minutes(30)).await;
    let before = sim.library.simulator.with(|simulator| simulator.journal.total());
    sim.run_for(minutes(30)).await;
    let during = sim.library.simulator.with(|simulator| simulator.journal.total()) - before;
    assert!(during < 90, "{during} calls in half an hour of nothing");
    sim.run_for(minutes(15)).await;
    sim.assert_converged().await;
}

/// BR-045, A14, B10, BR-020: a poison record and an undecodable one end in the quarantine, everything else arrives.
#[tokio::test(start_paused = true)]
async fn poison_and_garble_end_in_the_quarantine() {
    let mut sim = Sim::seeded(8).library(400).life(Life::default()).start().await;
    let ids = sim.library.simulator.world(|world| world.ids(Kind::Bibs));
    let (poisoned, garbled) = (ids[40], ids[90]);
    sim.library.simulator.plan(Fault::Poison { kind: Kind::Bibs, id: poisoned, code: 135, even_ids: false });
    sim.library.simulator.plan(Fault::Garbled { kind: Kind::Bibs, id: garbled, how: Garble::WrongTypes });
    let summary = sim.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.state), (3, StreamOutcome::CaughtUp), "{bibs:#?}");
    assert_eq!((bibs.changed, bibs.quarantined), (158, 2), "{bibs:#?}");
    assert!(bibs.calls < 60, "{} calls", bibs.calls);
    sim.assert_converged().await;
    // Sierra is well again, though neither record has a new stamp: they were replayed.
    assert_eq!(sim.store.quarantine_count(Stream::Bibs).expect("up"), 0);
}

/// B10: the very first record spoils whatever it is in, and with it the smallest question of all. That is one record,
/// and neither the endpoint nor the service.
#[tokio::test(start_paused = true)]
async fn a_first_load_survives_a_first_record_that_nobody_can_read() {
    for (even_ids, deletes) in [(true, false), (true, true), (false, false)] {
        let life = if deletes { Life::town() } else { Life::default() };
        let mut sim = Sim::seeded(8).library(400).life(life).start().await;
        if deletes {
            tokio::time::sleep(hours(6)).await;
        }
        let (first, bibs) = sim.library.simulator.world(|world| {
            let ids = world.ids(Kind::Bibs);
            (ids[0], ids.len() as u64)
        });
        sim.library.simulator.plan(Fault::Poison { kind: Kind::Bibs, id: first, code: 103, even_ids });
        let summary = sim.sync().await;
        let told = &summary.streams["bibs"];
        assert_eq!((summary.exit, told.state), (3, StreamOutcome::CaughtUp), "even ids {even_ids}: {told:#?}");
        assert_eq!(told.quarantined, 1, "{told:#?}");
        assert!(deletes || told.changed == bibs - 1, "{bibs} bibs: {told:#?}");
        assert!(told.calls < 100, "{} calls", told.calls);
    }
}

/// The same where the endpoint was suspended meanwhile: its health check meets the record too.
#[tokio::test(start_paused = true)]
async fn a_suspended_endpoint_comes_back_though_its_first_record_cannot_be_read() {
    let outage = When::Span { after: SignedDuration::ZERO, lasts: SignedDuration::from_mins(10) };
    let mut sim = Sim::seeded(8)
        .library(100)
        .life(Life::default())
        .fault(Fault::Html { status: 503 }.when(outage).at(Endpoint::Bibs))
        .start()
        .await;
    let ids = sim.library.simulator.world(|world| world.ids(Kind::Bibs));
    sim.library.simulator.plan(Fault::Poison { kind: Kind::Bibs, id: ids[0], code: 103, even_ids: true });
    sim.run_for(minutes(60)).await;
    let remembered = sim.store.remembered_after(Stream::Bibs, None, 1000).expect("up").len();
    let held = sim.store.quarantine_count(Stream::Bibs).expect("up");
    assert_eq!((held, remembered), (1, ids.len() - 1));
}

/// BR-097, A7: tokens that live five minutes do not disturb anything.
#[tokio::test(start_paused = true)]
async fn short_lived_tokens_do_not_disturb() {
    let mut sim = Sim::seeded(9)
        .library(100)
        .sierra(|simulator| simulator.access.token_lifetime = Duration::from_secs(300))
        .start()
        .await;
    sim.run_for(hours(3)).await;
    let unauthorized = sim
        .library
        .simulator
        .with(|simulator| simulator.journal.calls().filter(|call| call.status == Some(401)).count());
    assert_eq!(unauthorized, 0);
    sim.assert_converged().await;
}

/// A refused key: exit 77, nothing is lost, and a repaired key goes on where it was.
#[tokio::test(start_paused = true)]
async fn a_refused_key_is_exit_77() {
    let mut sim = Sim::seeded(10).library(100).life(Life::default()).start().await;
    sim.sync_well().await;
    // The client still has the old one, and its token runs out.
    sim.library.simulator.with(|simulator| simulator.access.secret = "another".into());
    tokio::time::sleep(hours(2)).await;
    assert_eq!(sim.sync().await.exit, 77);
    sim.crash_and_restart().await;
    sim.assert_converged().await;
}

/// BR-004: fifty windows wait, at a server that many calls at once only slow down: all are had, none is lost, and the
/// calls under way are never more than may be.
#[tokio::test(start_paused = true)]
async fn fifty_owed_windows_are_had_from_a_server_that_crowds_slow_down() {
    let mut sim = Sim::seeded(1).library(200).page_size(20).life(Life::default()).start().await;
    sim.sync_well().await;
    let loaded = sim.now();
    sim.library.simulator.world(|world| world.live(Life { night: None, ..Life::town().times(5.0) }));
    tokio::time::sleep(hours(3)).await;
    sim.library.simulator.with(|simulator| simulator.latency.crowding_ms = 70_000);
    // The beginning of each is read, so that they do not become one.
    sim.watch.tolerate_holes();
    for stream in Stream::ALL {
        let mut rows = Vec::new();
        for n in 0..50_i64 {
            let start = loaded + SignedDuration::from_mins(n * 3);
            let window = Window::new(whole_second(start), whole_second(start + SignedDuration::from_mins(3)));
            let span = Span::Time(window.expect("three minutes"));
            let opened = LedgerRow::opened(sim.store.next_row_id().expect("up"), stream, Pass::Update, span, loaded);
            let position = Some(RecordNumber::new(1));
            rows.push(LedgerRow { state: RowState::Failed, attempts: 1, position, ..opened });
        }
        sim.store.commit(Slice { rows, ..Slice::default() }).expect("up");
    }
    let summary = sim.sync_well().await;
    for stream in Stream::ALL {
        assert!(summary.streams[stream.name()].windows >= 50, "{summary:#?}");
        let rows = sim.store.ledger(stream).expect("up");
        assert!(rows.iter().all(|row| row.state == RowState::Done), "{stream}");
    }
    sim.library.simulator.with(|simulator| {
        for endpoint in [Endpoint::Bibs, Endpoint::Items, Endpoint::Patrons] {
            assert_eq!(simulator.journal.most_in_flight(endpoint), 1, "{endpoint:?}: one window after another");
        }
    });
    sim.assert_converged().await;
}
