//! Many workers in front of one quota.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sierra_sync::resilience::endpoint::{Endpoint, PerEndpoint};
use sierra_sync::resilience::quota::{Class, Patience, Quota, Quoted, Waiter};
use sierra_sync::resilience::rate_headers::RateFacts;
use sierra_sync::resilience::settings::QuotaSettings;
use sierra_sync::resilience::span::Span;
use sierra_sync::seed::RootSeed;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn fast() -> QuotaSettings {
    QuotaSettings { rate: 1_000.0, concurrency: PerEndpoint::from_fn(|_| 100), ..QuotaSettings::default() }
}

fn quota(settings: QuotaSettings) -> Quota {
    Quota::new(settings, RootSeed::new(21).generator("quota"))
}

async fn acquire(quota: &Quota, endpoint: Endpoint, class: Class) -> sierra_sync::resilience::quota::QuotaPermit {
    quota.acquire(&mut Waiter::new(endpoint, class), &mut Patience::endless()).await.expect("endless patience")
}

/// The headers of an answer: what is left, until when.
fn facts(limit: u32, remaining: u32, reset: u64) -> RateFacts {
    let reset = Some(Span::exactly(SECOND * u32::try_from(reset).expect("a short wait")));
    RateFacts { limit: Some(limit), remaining: Some(remaining), reset, ..RateFacts::default() }
}

/// A3: 64 workers wait for the reset; one goes at once, the rest follow its answer, spread over two seconds.
#[tokio::test(start_paused = true)]
async fn after_a_reset_one_call_goes_first_and_the_rest_are_spread() {
    for latency in [Duration::ZERO, Duration::from_millis(300)] {
        let quota = quota(fast());
        let permit = acquire(&quota, Endpoint::Bibs, Class::Incremental).await;
        permit.answered(&facts(1000, 3, 30), Quoted::Served);
        let opens_at = Instant::now() + 30 * SECOND;
        let sent = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        for _ in 0..64 {
            let (quota, sent) = (quota.clone(), sent.clone());
            tasks.spawn(async move {
                let permit = acquire(&quota, Endpoint::Bibs, Class::Incremental).await;
                sent.lock().expect("unpoisoned").push(Instant::now());
                sleep(latency).await;
                permit.answered(&facts(1000, 900, 60), Quoted::Served);
            });
        }
        tasks.join_all().await;
        let sent: Vec<_> = sent.lock().expect("unpoisoned").iter().map(|at| *at - opens_at).collect();
        let within = |limit: Duration| sent.iter().filter(|after| **after < limit).count();
        assert_eq!(within(Duration::from_millis(50)), 1, "{sent:?}");
        assert_eq!(within(latency.max(Duration::from_millis(50))), 1, "the rest wait for the first answer");
        assert_eq!(within(Duration::from_millis(2_350)), 64);
        for tenth in 0..20 {
            let from = latency + Duration::from_millis(50 + tenth * 100);
            let bucket = within(from + Duration::from_millis(100)) - within(from);
            assert!(bucket <= 20, "{bucket} of 64 in one tenth of a second");
        }
    }
}

/// A3: fewer than five left is as good as none; five are not. A missing reset is ten seconds, a missing header nothing.
#[tokio::test(start_paused = true)]
async fn the_reserve_is_left_alone() {
    let wait_after = async |facts: RateFacts| {
        let quota = quota(fast());
        acquire(&quota, Endpoint::Bibs, Class::Incremental).await.answered(&facts, Quoted::Served);
        let started = Instant::now();
        drop(acquire(&quota, Endpoint::Bibs, Class::Incremental).await);
        started.elapsed()
    };
    let only = |remaining| RateFacts { remaining: Some(remaining), ..RateFacts::default() };
    assert!(wait_after(facts(1000, 4, 30)).await >= 30 * SECOND);
    assert!(wait_after(facts(1000, 5, 30)).await < SECOND);
    assert!(wait_after(facts(1000, 900, 3_000)).await < SECOND, "BR-102: quota is left, so no wait");
    let ten = wait_after(only(4)).await;
    assert!(ten >= 10 * SECOND && ten <= 12 * SECOND, "{ten:?}");
    assert!(wait_after(RateFacts::default()).await < SECOND);
}

/// QTA-1: what we may use is our share of the grant less the reserve, whatever is left on the server.
#[tokio::test(start_paused = true)]
async fn no_more_than_our_share_is_used_in_a_window() {
    let quota = quota(fast());
    let mut left = 100;
    let window = Instant::now() + 60 * SECOND;
    let mut sent = 0;
    loop {
        let Ok(permit) = timeout(SECOND, acquire(&quota, Endpoint::Bibs, Class::Incremental)).await else { break };
        sent += 1;
        left -= 1;
        let reset = Some(Span::exactly(window - Instant::now()));
        permit.answered(&RateFacts { reset, ..facts(100, left, 0) }, Quoted::Served);
    }
    assert_eq!(sent, 85, "100 × 0.9 − 5");
}

/// Lowering the rate while calls flow brings neither a burst nor a stall; so does raising it again.
#[tokio::test(start_paused = true)]
async fn a_new_rate_takes_hold_without_burst_or_stall() {
    let slow = QuotaSettings { rate: 2.0, ..fast() };
    let quick = QuotaSettings { rate: 20.0, ..fast() };
    let quota = quota(quick);
    let sent = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (quota, sent) = (quota.clone(), sent.clone());
        tasks.spawn(async move {
            loop {
                drop(acquire(&quota, Endpoint::Bibs, Class::Incremental).await);
                sent.lock().expect("unpoisoned").push(Instant::now());
            }
        });
    }
    let started = Instant::now();
    sleep(Duration::from_millis(10_020)).await;
    quota.set_settings(slow);
    sleep(10 * SECOND).await;
    quota.set_settings(quick);
    sleep(10 * SECOND).await;
    tasks.shutdown().await;
    let sent: Vec<_> = sent.lock().expect("unpoisoned").iter().map(|at| *at - started).collect();
    for pair in sent.windows(2) {
        let gap = (pair[1] - pair[0]).as_millis();
        let phase = (pair[1].as_millis().saturating_sub(1)) / 10_020;
        // Timers keep whole milliseconds, and waking up late costs one.
        let expected = if phase == 1 { 500..=502 } else { 50..=52 };
        let at_the_change = pair[1].as_millis() > 20_000 && pair[1].as_millis() < 20_600;
        assert!(expected.contains(&gap) || at_the_change, "{gap} ms at {:?}", pair[1]);
    }
    assert!(sent.len() > 400);
}

/// A permit that is dropped, cancelled or given back frees its place, and only a call that was made stays counted.
#[tokio::test(start_paused = true)]
async fn permits_release_themselves() {
    let quota = quota(QuotaSettings { rate: 1_000.0, ..QuotaSettings::default() });
    let (first, second) = (
        acquire(&quota, Endpoint::Bibs, Class::Incremental).await,
        acquire(&quota, Endpoint::Bibs, Class::Incremental).await,
    );
    let third = timeout(SECOND, acquire(&quota, Endpoint::Bibs, Class::Incremental)).await;
    assert!(third.is_err(), "two at once (A19)");
    drop(first);
    second.give_back();
    let third = acquire(&quota, Endpoint::Bibs, Class::Incremental).await;
    third.answered(&facts(100, 50, 60), Quoted::Served);
    let before = quota.snapshot(jiff::Timestamp::UNIX_EPOCH).remaining;
    acquire(&quota, Endpoint::Bibs, Class::Incremental).await.give_back();
    assert_eq!(quota.snapshot(jiff::Timestamp::UNIX_EPOCH).remaining, before);
    drop(acquire(&quota, Endpoint::Bibs, Class::Incremental).await);
    assert_eq!(quota.snapshot(jiff::Timestamp::UNIX_EPOCH).remaining, Some(49), "it may have reached the server");
}

/// Backfills are spread over the window, and keep to half of the grant while a live stream is behind.
#[tokio::test(start_paused = true)]
async fn paced_calls_leave_half_to_a_live_stream_that_is_behind() {
    for (behind, expected) in [(false, 83..=85), (true, 41..=43)] {
        let quota = quota(fast());
        quota.set_behind(behind);
        let window = Instant::now() + 60 * SECOND;
        let (mut left, mut sent) = (100, Vec::new());
        while let Ok(permit) = tokio::time::timeout_at(window, acquire(&quota, Endpoint::Bibs, Class::Paced)).await {
            sent.push(Instant::now());
            left -= 1;
            let reset = Some(Span::exactly(window - Instant::now()));
            permit.answered(&RateFacts { reset, ..facts(100, left, 0) }, Quoted::Served);
        }
        assert!(expected.contains(&sent.len()), "behind {behind}: {}", sent.len());
        let half_way = sent.iter().filter(|at| **at < window - 30 * SECOND).count();
        let half = sent.len() / 2;
        assert!((half - 2..=half + 3).contains(&half_way), "spread: {half_way} of {} by half time", sent.len());
    }
}

/// A gate that a refusal closed survives a restart, and is not stretched by a stepped clock.
#[tokio::test(start_paused = true)]
async fn closed_gates_survive_a_restart() {
    let date: jiff::Timestamp = "2026-01-05T10:00:00Z".parse().expect("a date");
    let first = quota(fast());
    let asked = RateFacts { retry_after: Some(Span::whole_seconds(600)), ..RateFacts::default() };
    acquire(&first, Endpoint::Bibs, Class::Incremental).await.answered(&asked, Quoted::Throttled);
    let mut waiter = Waiter::new(Endpoint::BibsMarc, Class::Paced);
    let snapshot = first.snapshot(date);
    assert_eq!((snapshot.state(), snapshot.refused), ("waiting_quota", 1));
    let json = serde_json::to_string(&snapshot).expect("plain data");
    let snapshot = serde_json::from_str(&json).expect("and back");

    let wait = |date_at_start: jiff::Timestamp, waiter: &mut Waiter| {
        let second = quota(fast());
        second.restore(&snapshot, date_at_start);
        second.planned(waiter).map(|at| (at - Instant::now()).as_secs())
    };
    assert_eq!(wait(date + jiff::SignedDuration::from_secs(100), &mut waiter), Some(500));
    assert_eq!(wait(date + jiff::SignedDuration::from_secs(601), &mut waiter), None);
    let mut waiter = Waiter::new(Endpoint::Bibs, Class::Incremental);
    assert!(wait(date - jiff::SignedDuration::from_hours(30), &mut waiter).is_some_and(|wait| wait <= 3_600));
}

/// BR-103: no header can stop us for more than an hour, and then one call looks again.
#[tokio::test(start_paused = true)]
async fn a_hostile_header_closes_the_gate_for_an_hour_at_most() {
    for asked in [
        RateFacts { retry_after: Some(Span::whole_seconds(999_999_999)), ..RateFacts::default() },
        facts(1000, 0, 2_000_000),
    ] {
        let quota = quota(fast());
        acquire(&quota, Endpoint::Bibs, Class::Incremental).await.answered(&asked, Quoted::Throttled);
        let started = Instant::now();
        let permit = acquire(&quota, Endpoint::Items, Class::Incremental).await;
        assert_eq!(started.elapsed().as_secs(), 3_600);
        permit.answered(&facts(1000, 900, 60), Quoted::Served);
    }
}

/// BR-102: headers that make no sense are warned of once, not with every answer.
#[tokio::test(start_paused = true)]
async fn nonsense_is_warned_of_once() {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("unpoisoned").extend_from_slice(line);
            Ok(line.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone()).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let quota = quota(fast());
    for _ in 0..10 {
        let absurd = RateFacts { nonsense: 1, ..RateFacts::default() };
        acquire(&quota, Endpoint::Bibs, Class::Incremental).await.answered(&absurd, Quoted::Served);
    }
    drop(guard);
    let log = String::from_utf8(log.0.lock().expect("unpoisoned").clone()).expect("text");
    assert_eq!(log.lines().filter(|line| line.contains(r#""event":"quota_headers_ignored""#)).count(), 1, "{log}");
}
