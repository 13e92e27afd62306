//! Following a chain at its head: by the node's notifications, or by polling.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ingest::Config;
use replay::{Addresses, Options, Recording, ReplayNode};
use store::{MemStore, Store};
use testkit::live::Live;
use testkit::{indexed, recording};

/// Number of blocks that appear one after the other.
const BLOCKS: u64 = 40;
const BLOCK_EVERY: Duration = Duration::from_millis(50);

/// Follows a growing chain; returns the duration.
async fn follow(poll: Duration, faults: &[&str]) -> Duration {
    let chain = Arc::new(Recording::open(&recording("move-scenario")).unwrap());
    let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let options =
        Options { up_to: Some(chain.first()), block_every: Some(BLOCK_EVERY), faults, ..Options::default() };
    let played = ReplayNode::start(Arc::clone(&chain), Addresses::default(), options).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = Config { poll, ..indexed::config(&chain).unwrap() };
    let begun = Instant::now();
    let node = Arc::new(indexed::clients(&played).unwrap());
    let mut live = Live::start(node, config, store).await.unwrap();
    live.reach(&chain, chain.first() + BLOCKS).await.unwrap();
    live.stop().await.unwrap();
    begun.elapsed()
}

/// Far longer than the chain takes to grow, far shorter than a few polls.
const RARELY: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_sends_block_events_is_not_polled() {
    assert!(follow(RARELY, &[]).await < RARELY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_refuses_a_subscription_is_polled() {
    follow(Duration::from_millis(20), &["comet:ws-refused"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_accepts_a_subscription_and_sends_no_events_is_polled() {
    follow(Duration::from_millis(20), &["comet:ws-silent"]).await;
}
