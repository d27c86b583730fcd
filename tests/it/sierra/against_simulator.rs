//! The client against the look-alike, which shares no types with it: where both agree, the wire is understood.

use std::collections::BTreeMap;
use std::sync::Arc;

use sierra_sync::clock::SimClock;
use sierra_sync::record::{Entry, Live, RecordNumber, Stream};
use sierra_sync::resilience::quota::Patience;
use sierra_sync::secret::Secret;
use sierra_sync::seed::RootSeed;
use sierra_sync::sierra::{ClientParts, SierraClient, SierraSettings};
use sierra_sync::simulator::{Endpoint, Fault, Garble, Kind, LibrarySettings, SharedSimulator, Simulator};
use sierra_sync::sync::ports::{Answer, BadEntry, FieldSet, PageQuery, Source};

use super::script::{line, live, settings};

fn simulator() -> SharedSimulator {
    let opened = "2026-01-05T10:00:00Z".parse().expect("a date");
    let simulator = Simulator::new(&LibrarySettings::opened_at(opened).sized(60, 80, 15), RootSeed::new(7));
    let clock = Arc::new(SimClock::starting_at(simulator.now()));
    SharedSimulator::new(simulator, clock)
}

fn client(simulator: &SharedSimulator) -> SierraClient {
    let settings = SierraSettings {
        base_url: "https://sierra.test/iii/sierra-api/v6".to_owned(),
        client_key: "simulator-key".to_owned(),
        client_secret: Secret::new("simulator-secret".to_owned()),
        ..settings()
    };
    let fields: Vec<(Stream, Vec<String>)> = [
        (Stream::Bibs, "default,fixedFields,varFields,locations"),
        (Stream::Items, "default,fixedFields,varFields,itemType"),
        (Stream::Patrons, "default,homeLibraryCode"),
    ]
    .map(|(stream, fields)| (stream, fields.split(',').map(str::to_owned).collect()))
    .to_vec();
    let parts = ClientParts {
        transport: Arc::new(simulator.transport()),
        line: line(),
        clock: Arc::new(SimClock::starting_at(simulator.with(|simulator| simulator.now()))),
        boot_number: 1,
        fields: &fields,
        patience: Patience::default(),
        latch: &[],
    };
    SierraClient::start(&settings, parts).expect("a client")
}

/// Every page of the live records of `stream`, to Sierra's own end; with what the calls cost.
async fn walk(client: &SierraClient, stream: Stream) -> (Vec<Result<Entry, BadEntry>>, u64) {
    let mut query = PageQuery { limit: 17, fields: FieldSet::Configured, ..live(stream) };
    let (mut entries, mut calls) = (Vec::new(), 0);
    loop {
        match client.page(&query).await.expect("an answer") {
            Answer::Page(page) => {
                calls += u64::from(page.traffic.calls);
                query.after = Some(page.last_id);
                entries.extend(page.entries);
            }
            Answer::Nothing { traffic, .. } => return (entries, calls + u64::from(traffic.calls)),
        }
    }
}

fn links(live: &Live) -> Vec<u64> {
    let Live::Item(item) = live else { return Vec::new() };
    let mut links: Vec<u64> = item.bib_ids.iter().map(|id| id.value()).collect();
    links.sort_unstable();
    links
}

/// Every live record comes once, with its stamp, suppression and links; and every request is accounted for.
#[tokio::test(start_paused = true)]
async fn every_live_record_of_the_library_is_read() {
    let simulator = simulator();
    let client = client(&simulator);
    let mut calls = 0;
    for (stream, kind) in [(Stream::Bibs, Kind::Bibs), (Stream::Items, Kind::Items), (Stream::Patrons, Kind::Patrons)] {
        let (entries, cost) = walk(&client, stream).await;
        calls += cost;
        let read: BTreeMap<u64, _> = entries
            .into_iter()
            .map(|entry| match entry.expect("every entry is read") {
                Entry::Live(live) => (live.id().value(), (live.updated(), live.suppressed(), links(&live))),
                Entry::Tombstone(stone) => panic!("a tombstone among the living: {stone:?}"),
            })
            .collect();
        let truth = simulator.world(|world| world.truth(kind)).live;
        let truth: BTreeMap<u64, _> = truth
            .into_values()
            .map(|record| (record.id, (Some(record.updated), record.suppressed, record.links)))
            .collect();
        assert_eq!(read, truth, "{stream}");
    }
    assert_eq!(calls, simulator.with(|simulator| simulator.journal.total()));
}

/// BR-020, BR-021: odd entries are accepted or set aside one by one; no neighbour is lost.
#[tokio::test(start_paused = true)]
async fn garbled_entries_cost_nobody_else() {
    let readable = [Garble::OnlyId, Garble::Blank, Garble::LoneSurrogate];
    for how in readable.into_iter().chain([Garble::WrongTypes, Garble::NoId, Garble::Null]) {
        let simulator = simulator();
        let bibs: Vec<u64> = simulator.world(|world| world.truth(Kind::Bibs)).live.into_keys().collect();
        simulator.plan(Fault::Garbled { kind: Kind::Bibs, id: bibs[20], how });
        let (entries, _) = walk(&client(&simulator), Stream::Bibs).await;
        assert_eq!(entries.len(), bibs.len(), "{how:?}");
        let bad = entries.iter().filter(|entry| entry.is_err()).count();
        assert_eq!(bad, usize::from(!readable.contains(&how)), "{how:?}");
    }
}

/// A5: whatever is dressed up as a success or broken off is asked for again, and nothing is lost.
#[tokio::test(start_paused = true)]
async fn failures_dressed_as_success_lose_nothing() {
    for fault in [Fault::EmptyBody, Fault::LoneCode, Fault::NoEntries, Fault::ErrorCodeText, Fault::MalformedJson] {
        let simulator = simulator();
        let name = fault.name();
        simulator.plan(fault.every(3).at(Endpoint::Items));
        let client = client(&simulator);
        let read: Vec<RecordNumber> =
            walk(&client, Stream::Items).await.0.into_iter().map(|entry| entry.expect("read").id()).collect();
        let truth: Vec<u64> = simulator.world(|world| world.truth(Kind::Items)).live.into_keys().collect();
        assert_eq!(read.iter().map(|id| id.value()).collect::<Vec<_>>(), truth, "{name}");
    }
}

/// A9: the roles of the key, as Sierra tells them.
#[tokio::test(start_paused = true)]
async fn the_keys_rights_are_read() {
    let simulator = simulator();
    let info = client(&simulator).token_info().await.expect("alive").expect("told");
    assert_eq!(info.may_list(Stream::Bibs), Some(true));
    assert!(info.beyond_reading().is_empty(), "{info:?}");
}
