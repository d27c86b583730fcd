//! One suite for every sink: what the port promises, seen from the reader's side.

use sierra_sync::record::Stream;
use sierra_sync::sync::{Change, Seq};

use super::changes::{bib, deleted, item, patron, seq};
use super::destination::{Destination, Kind};

/// A small life of a library: edits, a deletion, a return, items that move, a patron.
fn life() -> Vec<Change> {
    vec![
        bib(10, 1, "first"),
        bib(20, 2, "second & <third>"),
        item(30, 5, &[1], &[]),
        bib(40, 1, "first, corrected"),
        deleted(50, Stream::Bibs, 2, &[]),
        patron(60, 1_200_345),
        item(70, 5, &[2], &[1]),
        bib(80, 2, "second, back again"),
        deleted(90, Stream::Items, 5, &[2]),
        bib(100, 3, "third"),
        deleted(110, Stream::Bibs, 1, &[]),
    ]
}

/// A11, B11: a batch whose acknowledgement was lost comes again, to the same process or to the next one, and is a no-op.
#[tokio::test]
async fn every_sink_redelivers_after_a_lost_acknowledgement() {
    let life = life();
    for kind in Kind::ALL {
        for lost in 0..life.len() {
            let destination = Destination::new(kind);
            let mut sink = destination.open();
            sink.deliver(&life[..=lost]).await.expect("delivered");
            sink.deliver(&life[..=lost]).await.expect("delivered again");
            if kind != Kind::Stdout {
                drop(sink);
                sink = destination.open();
                sink.deliver(&life[lost / 2..=lost]).await.expect("delivered again after a crash");
            }
            sink.deliver(&life[lost / 2..]).await.expect("the rest");
            sink.close().await.expect("closed");
            assert_eq!(destination.held(), destination.expected(&life), "{kind:?}, {lost}");
            assert_eq!(destination.count(), destination.taken(&life).count(), "no copy: {kind:?}, {lost}");
        }
    }
}

/// OUT-2: however the changes are cut into batches, with whatever between them, readers end with the same.
#[tokio::test]
async fn every_sink_keeps_the_order_of_a_record_however_changes_are_batched() {
    let life = life();
    for kind in Kind::ALL {
        for size in [1, 2, 3, 5, 11] {
            for rotate_size in [1, 600, 1 << 30] {
                let destination = Destination::new(kind).rotating_at(rotate_size);
                let mut sink = destination.open();
                for (index, batch) in life.chunks(size).enumerate() {
                    sink.deliver(batch).await.expect("delivered");
                    if index % 2 == 0 {
                        sink.settle().await.expect("settled");
                    }
                    if index % 3 == 0 && kind != Kind::Stdout {
                        sink.close().await.expect("closed");
                        sink = destination.open();
                    }
                }
                sink.close().await.expect("closed");
                assert_eq!(destination.held(), destination.expected(&life), "{kind:?}, {size}, {rotate_size}");
                assert_eq!(destination.count(), destination.taken(&life).count(), "{kind:?}, {size}, {rotate_size}");
            }
        }
    }
}

#[tokio::test]
async fn file_sinks_tell_the_highest_seq_they_hold_and_standard_output_tells_none() {
    let life = life();
    for kind in Kind::ALL {
        let destination = Destination::new(kind);
        let told = async |sink: &mut Box<dyn sierra_sync::sync::Sink>| sink.highest_seq().await.expect("told");
        let mut sink = destination.open();
        assert_eq!(told(&mut sink).await, None);
        for (index, change) in life.iter().enumerate() {
            sink.deliver(std::slice::from_ref(change)).await.expect("delivered");
            let expected = match kind {
                Kind::Stdout => None,
                _ => destination.taken(&life[..=index]).map(|change| change.seq).max(),
            };
            assert_eq!(told(&mut sink).await, expected, "{kind:?}, {index}");
            match index % 3 {
                0 => sink.settle().await.expect("settled"),
                1 => sink.close().await.expect("closed"),
                _ => {}
            }
            if kind != Kind::Stdout {
                drop(sink);
                sink = destination.open();
            }
            assert_eq!(told(&mut sink).await, expected, "after a start: {kind:?}, {index}");
        }
    }
}

/// Readers may take finished files away at any time; what was held is not forgotten and does not come again.
#[tokio::test]
async fn file_sinks_remember_what_they_held_when_readers_take_the_files() {
    let life = life();
    for kind in Kind::FILES {
        let destination = Destination::new(kind);
        let mut sink = destination.open();
        sink.deliver(&life).await.expect("delivered");
        sink.close().await.expect("closed");
        for stream in Stream::ALL {
            std::fs::remove_dir_all(destination.path().join(stream.name())).ok();
        }
        let mut sink = destination.open();
        let highest: Option<Seq> = destination.taken(&life).map(|change| change.seq).max();
        assert_eq!(sink.highest_seq().await.expect("told"), highest);
        sink.deliver(&life).await.expect("delivered again");
        sink.deliver(&[bib(200, 9, "new")]).await.expect("delivered");
        sink.close().await.expect("closed");
        assert_eq!(destination.held(), destination.expected(&[bib(200, 9, "new")]), "{kind:?}");
        assert_eq!(sink.highest_seq().await.expect("told"), Some(seq(200)));
    }
}

#[tokio::test]
async fn an_empty_batch_and_an_idle_settle_leave_no_files() {
    for kind in Kind::FILES {
        let destination = Destination::new(kind);
        let mut sink = destination.open();
        sink.deliver(&[]).await.expect("nothing to do");
        sink.settle().await.expect("nothing to do");
        sink.close().await.expect("nothing to do");
        for stream in Stream::ALL {
            assert!(!destination.path().join(stream.name()).exists());
        }
    }
}
