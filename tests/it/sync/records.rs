//! Records that move, hide, carry much, or cannot be understood.

use sierra_sync::marc::LossKind;
use sierra_sync::record::Stream;
use sierra_sync::sync::observer::Event;
use sierra_sync::sync::ports::{PageFilter, SourceErrorKind};
use sierra_sync::sync::{DeleteReason, Op, Store};

use crate::support::{Act, Rig, ShelfSource, minutes};

const BIBS: Stream = Stream::Bibs;
const ITEMS: Stream = Stream::Items;

async fn loaded(stream: Stream, count: u64) -> Rig<ShelfSource> {
    let mut rig = Rig::on_shelf(1, &[stream]);
    rig.library.with(|shelf| shelf.stock(stream, count));
    rig.sync_well().await;
    rig.sink("archive").delivered();
    rig.sink("archive").unlinked();
    tokio::time::sleep(minutes(20)).await;
    rig
}

/// BR-014: an item moves from one bib to another and back; each bib that lost it is named.
#[tokio::test(start_paused = true)]
async fn an_item_that_moves_names_the_bib_that_lost_it() {
    let mut rig = loaded(ITEMS, 5).await;
    for (links, lost) in [(vec![2000], vec![1001]), (vec![1001], vec![2000]), (vec![1001, 3000], vec![])] {
        rig.library.with(|shelf| shelf.change(ITEMS, 1004, |version| version.bib_ids = links));
        tokio::time::sleep(minutes(2)).await;
        rig.sync_well().await;
        rig.sync_well().await;
        let unlinked = rig.sink("archive").unlinked();
        let expected = if lost.is_empty() { Vec::new() } else { vec![("1004".to_owned(), lost)] };
        assert_eq!(unlinked, expected, "each once, though windows overlap");
        rig.assert_converged();
    }
}

/// A14: what MARC cannot carry is counted with the change that it travels with, and not again when it is read again.
#[tokio::test(start_paused = true)]
async fn what_is_lost_to_marc_is_counted_with_the_change() {
    let mut rig = loaded(BIBS, 5).await;
    rig.library.with(|shelf| shelf.change(BIBS, 1004, |version| version.title = "damaged \u{fffd}".to_owned()));
    for _ in 0..2 {
        tokio::time::sleep(minutes(2)).await;
        rig.sync_well().await;
    }
    let counted = rig.watch.events().into_iter().filter_map(|event| match event {
        Event::PageCaptured { entries, .. } => Some(entries.losses.iter().collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(counted.flatten().collect::<Vec<_>>(), [(LossKind::TextDamaged, 1)]);
    rig.assert_converged();
}

/// A deleted item arrives without its links; they are remembered (sierra-api.md §7 item 9).
#[tokio::test(start_paused = true)]
async fn a_deleted_item_names_the_bibs_it_hung_from() {
    let mut rig = loaded(ITEMS, 5).await;
    rig.library.with(|shelf| {
        shelf.change(ITEMS, 1007, |version| version.bib_ids = vec![11, 12]);
    });
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    rig.sink("archive").unlinked();
    rig.crash();
    rig.library.with(|shelf| shelf.delete(ITEMS, 1007));
    rig.sync_well().await;
    assert_eq!(rig.sink("archive").unlinked(), [("1007".to_owned(), vec![11, 12])]);
    rig.assert_converged();
}

/// BR-016: an item that hangs from 120 bibs is one change among others.
#[tokio::test(start_paused = true)]
async fn an_item_with_120_bibs_is_one_change() {
    let mut rig = loaded(ITEMS, 300).await;
    rig.library.with(|shelf| shelf.change(ITEMS, 1004, |version| version.bib_ids = (5000..5120).collect()));
    tokio::time::sleep(minutes(2)).await;
    let summary = rig.sync_well().await;
    assert_eq!((summary.streams["items"].changed, summary.sinks["archive"].delivered), (1, 1));
    rig.assert_converged();
    rig.library.with(|shelf| shelf.delete(ITEMS, 1004));
    rig.sync_well().await;
    assert_eq!(rig.sink("archive").unlinked().last().expect("named").1.len(), 120);
}

/// BR-026: the same bib in four overlapping windows, unchanged, is emitted once.
#[tokio::test(start_paused = true)]
async fn overlapping_windows_emit_a_change_once() {
    let mut rig = loaded(BIBS, 5).await;
    rig.settings(BIBS).overlap = minutes(60);
    rig.restart().await;
    rig.library.with(|shelf| shelf.edit(BIBS, 1001));
    let mut seen = 0;
    for _ in 0..4 {
        tokio::time::sleep(minutes(5)).await;
        let summary = rig.sync_well().await;
        seen += summary.streams["bibs"].changed + summary.streams["bibs"].unchanged;
    }
    assert_eq!((seen, rig.sink("archive").delivered().len()), (4, 1));
}

/// A bump of the stamp alone is remembered and not emitted; `emit_unchanged` emits it.
#[tokio::test(start_paused = true)]
async fn a_bump_is_emitted_only_if_that_is_wanted() {
    for emit_unchanged in [false, true] {
        let mut rig = loaded(BIBS, 5).await;
        rig.settings(BIBS).emit_unchanged = emit_unchanged;
        rig.restart().await;
        rig.library.with(|shelf| shelf.bump(BIBS, 1001));
        tokio::time::sleep(minutes(2)).await;
        let summary = rig.sync_well().await;
        let bibs = &summary.streams["bibs"];
        assert_eq!((bibs.changed, bibs.unchanged), if emit_unchanged { (1, 0) } else { (0, 1) });
    }
}

/// BR-015: suppression is state: emitted with the record, both ways, never a reason to lose it from sight.
#[tokio::test(start_paused = true)]
async fn suppression_is_emitted_as_state() {
    let mut rig = loaded(BIBS, 5).await;
    for suppressed in [true, false] {
        rig.library.with(|shelf| shelf.change(BIBS, 1001, |version| version.suppressed = suppressed));
        tokio::time::sleep(minutes(2)).await;
        let summary = rig.sync_well().await;
        assert_eq!(summary.streams["bibs"].changed, 1);
        assert_eq!(rig.sink("archive").holds(BIBS)["1001"].suppressed, suppressed);
        rig.assert_converged();
    }
}

/// A sink that wants suppressed records deleted gets them so, and back when they are shown again.
#[tokio::test(start_paused = true)]
async fn a_sink_may_have_suppressed_records_deleted() {
    use sierra_sync::sync::settings::SuppressedAs;
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.library.with(|shelf| shelf.stock(BIBS, 5));
    rig.add_sink("public").suppressed = SuppressedAs::Delete;
    rig.sync_well().await;
    for (suppressed, held) in [(true, 4), (false, 5)] {
        rig.library.with(|shelf| shelf.change(BIBS, 1001, |version| version.suppressed = suppressed));
        tokio::time::sleep(minutes(2)).await;
        rig.sync_well().await;
        assert_eq!((rig.sink("public").holds(BIBS).len(), rig.sink("archive").holds(BIBS).len()), (held, 5));
    }
}

/// A record that leaves the configured locations is a delete with the reason `filtered`; one that was never inside is
/// never heard of.
#[tokio::test(start_paused = true)]
async fn leaving_the_configured_locations_is_a_delete() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.settings(BIBS).locations = vec!["ma*".into()];
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 5);
        shelf.change(BIBS, 1001, |version| version.location = "law".into());
    });
    let first = rig.sync_well().await;
    assert_eq!((first.streams["bibs"].changed, first.streams["bibs"].unchanged), (4, 1));
    rig.sink("archive").delivered();
    for (id, location, expected) in [(1004, "law", 3), (1004, "main", 4), (1001, "law", 4), (1001, "math", 5)] {
        rig.library.with(|shelf| shelf.change(BIBS, id, |version| version.location = location.into()));
        tokio::time::sleep(minutes(12)).await;
        rig.sync_well().await;
        assert_eq!(rig.sink("archive").holds(BIBS).len(), expected, "{id} {location}");
    }
    let reasons = rig.sink("archive").delivered();
    let filtered = Op::Delete { reason: DeleteReason::Filtered, deleted_on: None };
    assert_eq!(reasons.iter().filter(|(_, op)| *op == filtered).count(), 1);
}

/// BR-020: one entry that cannot be decoded is set aside with its reason, the page goes on, the counts add up; a good
/// version closes the entry.
#[tokio::test(start_paused = true)]
async fn one_bad_entry_is_set_aside_and_healed_by_a_good_version() {
    let mut rig = Rig::on_shelf(1, &[BIBS]);
    rig.settings(BIBS).page_size = 500;
    rig.library.with(|shelf| {
        shelf.stock(BIBS, 500);
        shelf.change_silently(BIBS, 1301, |version| version.is_garbled = true);
    });
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.fetched, bibs.changed, bibs.quarantined), (3, 500, 499, 1));
    let entry = rig.store.quarantine(BIBS, 10).expect("up").remove(0);
    assert_eq!((entry.record.as_str(), entry.reason.as_str()), ("1301", "bibIds: expected an array"));
    assert!(entry.payload.is_some());
    // The same again is not new: exit 0, and the attempts add up.
    rig.library.with(|shelf| shelf.bump(BIBS, 1301));
    tokio::time::sleep(minutes(2)).await;
    let again = rig.sync_well().await;
    assert_eq!((again.exit, again.streams["bibs"].quarantined), (0, 1));
    assert_eq!(rig.store.quarantine(BIBS, 10).expect("up").remove(0).attempts, 2);
    rig.library.with(|shelf| shelf.change(BIBS, 1301, |version| version.is_garbled = false));
    tokio::time::sleep(minutes(2)).await;
    rig.sync_well().await;
    assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), 0);
    rig.assert_converged();
}

/// A version like the one before the bad one closes the entry too, though nothing is emitted.
#[tokio::test(start_paused = true)]
async fn an_entry_is_closed_by_a_good_version_without_new_content() {
    let mut rig = loaded(BIBS, 200).await;
    for (is_garbled, open) in [(true, 1), (false, 0)] {
        rig.library.with(|shelf| shelf.change(BIBS, 1301, |version| version.is_garbled = is_garbled));
        tokio::time::sleep(minutes(12)).await;
        rig.sync().await;
        assert_eq!(rig.store.quarantine_count(BIBS).expect("up"), open);
    }
    assert_eq!(rig.sink("archive").delivered().len(), 0);
}

/// BR-048: a bib that comes without MARC is asked for by itself; if it has none then either it is set aside and the
/// good stored copy stays.
#[tokio::test(start_paused = true)]
async fn a_bib_without_marc_is_asked_for_again() {
    let mut rig = loaded(BIBS, 200).await;
    rig.library.with(|shelf| {
        for id in (1001..1241).step_by(3) {
            shelf.edit(BIBS, id);
            shelf.change(BIBS, id, |version| version.without_marc = Some(false));
        }
        shelf.edit(BIBS, 1301);
        shelf.change(BIBS, 1301, |version| version.without_marc = Some(true));
    });
    tokio::time::sleep(minutes(2)).await;
    rig.library.asked();
    let summary = rig.sync().await;
    let bibs = &summary.streams["bibs"];
    assert_eq!((summary.exit, bibs.changed, bibs.quarantined, bibs.fetched), (3, 80, 1, 81));
    let lists: Vec<_> = rig
        .library
        .asked()
        .into_iter()
        .filter_map(|(_, query)| match query.filter {
            PageFilter::Ids(ids) => Some((ids.len(), query.limit)),
            _ => None,
        })
        .collect();
    assert_eq!(lists, [(50, 50), (31, 31)], "in lists that Sierra takes, with the limit that they need");
    let entry = rig.store.quarantine(BIBS, 10).expect("up").remove(0);
    assert!(entry.reason.starts_with("no-marc"), "{}", entry.reason);
    assert_eq!(rig.sink("archive").holds(BIBS)["1301"].title, "title 1301", "the good copy stays");
}

/// BR-048: when the list cannot be had for now, the page is not committed; when Sierra refuses it, the bib is set
/// aside.
#[tokio::test(start_paused = true)]
async fn missing_marc_is_not_given_up_for_a_failure_that_passes() {
    let mut rig = loaded(BIBS, 200).await;
    rig.library.with(|shelf| {
        shelf.edit(BIBS, 1001);
        shelf.change(BIBS, 1001, |version| version.without_marc = Some(false));
    });
    tokio::time::sleep(minutes(2)).await;
    rig.library.script(|_, query, _| match query.filter {
        PageFilter::Ids(_) => Act::Fail(SourceErrorKind::Exhausted),
        _ => Act::Serve,
    });
    let summary = rig.sync().await;
    assert_eq!((summary.streams["bibs"].fetched, summary.streams["bibs"].gaps.len()), (0, 1));
    rig.library.behave();
    rig.sync_well().await;
    rig.assert_converged();
}

/// PRV-1: of a patron nothing but what the policy lets pass reaches the store's readable places and the sinks.
#[tokio::test(start_paused = true)]
async fn a_patron_is_nowhere_but_masked() {
    let mut rig = loaded(Stream::Patrons, 40).await;
    rig.engine().await.expect("up").pause_sink("archive").expect("it exists");
    rig.library.with(|shelf| {
        shelf.edit(Stream::Patrons, 1001);
        shelf.change(Stream::Patrons, 1004, |version| version.is_garbled = true);
    });
    tokio::time::sleep(minutes(2)).await;
    rig.library.script(|_, query, _| match query.filter {
        PageFilter::Deleted { .. } => Act::Fail(SourceErrorKind::Exhausted),
        _ => Act::Serve,
    });
    let summary = rig.sync().await;
    let waiting = rig.store.outbox_after(sierra_sync::sync::Seq::ZERO, 10, usize::MAX).expect("up");
    let quarantined = rig.store.quarantine(Stream::Patrons, 10).expect("up");
    let texts = format!("{waiting:?} {quarantined:?} {summary:?} {:?}", rig.watch.events());
    for canary in ["CANARY", "1001", "1004", "1007"] {
        assert!(!texts.contains(canary), "{canary} stands in {texts}");
    }
    assert_eq!((waiting.len(), quarantined.len(), quarantined[0].payload.as_deref()), (1, 1, None));
}
