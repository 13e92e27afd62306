//! A very large number of registered transactions: each is polled once when it is due, in little memory.
//!
//! In a separate process, because it measures the memory of the process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there and then")]

use std::sync::Arc;

use chain::{Timestamp, Vm};
use registry::{Builder, Chain, ChainKind, Endpoints};
use tempfile::TempDir;
use tokio::sync::watch;
use tracker::{Options, Tracker};

const MANY: u32 = 100_000;

/// A chain without nodes: every poll is made and has no node to query.
fn chain() -> Chain {
    Chain {
        id: "test-1".to_owned(),
        name: "test".to_owned(),
        pretty_name: "Test".to_owned(),
        kind: ChainKind::Cosmos,
        vm: Vm::None,
        initia: false,
        l1: false,
        bech32_prefix: "test".to_owned(),
        testnet: true,
        hidden: false,
        forwards: false,
        forwards_given: false,
        logo_uri: None,
        fee_assets: Vec::new(),
        endpoints: Endpoints::default(),
        explorer_tx: None,
        native: None,
        layer_zero_eid: None,
        layer_zero_endpoint: None,
        confirmations: 0,
        block_seconds: 1,
    }
}

/// Peak memory of this process, in MiB.
#[cfg(target_os = "linux")]
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_hundred_thousand_transactions_take_one_poll_each_and_less_than_200_mib() {
    let mut builder = Builder::new();
    builder.chain(chain()).unwrap();
    let (_keep, registry) = watch::channel(Arc::new(builder.finish("test".to_owned())));
    let dir = TempDir::new().unwrap();
    let tracker = Tracker::open(dir.path(), registry, Options::default()).unwrap();
    let start = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let begin = std::time::Instant::now();
    for number in 0..MANY {
        tracker.track("test-1", &format!("{number:064x}"), start).unwrap();
    }
    println!("registered in {:.1} s", begin.elapsed().as_secs_f64());
    let mut now = start;
    for _ in 0..3 {
        let begin = std::time::Instant::now();
        let polled = tracker.poll_due(now).await.unwrap();
        let seconds = begin.elapsed().as_secs_f64();
        println!("{} looks in {seconds:.1} s, {} MiB at most", polled.polled, peak_mib());
        assert_eq!(polled.polled, usize::try_from(MANY).unwrap());
        assert_eq!(polled.changed, 0);
        // No transaction is due before.
        let next = polled.next_due.unwrap();
        let before = Timestamp::from_unix_nanos(next.unix_nanos() - 1);
        assert_eq!(tracker.poll_due(before).await.unwrap().polled, 0);
        now = next;
    }
    assert!(peak_mib() < 200, "{} MiB", peak_mib());
}
