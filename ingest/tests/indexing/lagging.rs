//! Nodes whose state lags behind their blocks.
//!
//! `LAG_SEED` is the first seed and `LAG_RUNS` the number of them: `LAG_SEED=7 LAG_RUNS=1` repeats the run of seed 7.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use node::{Limits, Node};
use replay::{Addresses, Options, Recording, ReplayNode};
use store::{MemStore, Store};
use testkit::crashing_store::CrashingStore;
use testkit::live::Live;
use testkit::{indexed, recording};

/// Interval of the blocks; a third of their states lag, up to almost three blocks.
const BLOCK_TIME: Duration = Duration::from_millis(150);
const FAULT: &str = "state-lag=400ms@0.34";

/// Recordings with the heights at which each run begins and ends; NFTs are minted in between.
const STRETCHES: [(&str, u64, u64); 3] =
    [("evm-scenario", 97, 121), ("wasm-scenario", 44, 60), ("move-scenario", 22, 36)];

/// Seeds of a usual test run.
const RUNS: u64 = 3;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Follows a chain at its head; returns the number of replies from a state too low, and the tables that differ from
/// those of an undisturbed catch-up.
async fn follow((name, from, to): (&str, u64, u64), seed: u64) -> (u64, Vec<&'static str>) {
    let chain = Arc::new(Recording::open(&recording(name)).unwrap());
    let (kills, second) = (seed % 3 == 1, seed.is_multiple_of(2));
    let faults = vec![FAULT.parse().unwrap()];
    let options = Options { up_to: Some(from), faults, seed, ..Options::default() };
    let mut nodes = vec![ReplayNode::start(Arc::clone(&chain), Addresses::default(), options).await.unwrap()];
    if second {
        let options = Options { up_to: Some(from), ..Options::default() };
        nodes.push(ReplayNode::start(Arc::clone(&chain), Addresses::default(), options).await.unwrap());
    }
    let mut all = indexed::endpoints(&nodes[0]).unwrap();
    for more in &nodes[1..] {
        let more = indexed::endpoints(more).unwrap();
        all.comet.extend(more.comet);
        all.rest.extend(more.rest);
        all.json_rpc.extend(more.json_rpc);
    }
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let begin = async || {
        let ending = Arc::new(CrashingStore::after(u64::MAX, Arc::clone(&store)));
        let node = Arc::new(Node::new(all.clone(), Limits::default()).unwrap());
        let shared = Arc::<CrashingStore>::clone(&ending);
        (Live::start(node, indexed::config(&chain).unwrap(), shared).await.unwrap(), ending)
    };
    let (mut live, mut ending) = begin().await;
    live.reach(&chain, from).await.unwrap();
    for height in from + 1..=to {
        for node in &nodes {
            node.show(height).unwrap();
        }
        tokio::time::sleep(BLOCK_TIME).await;
        if kills && height.is_multiple_of(5) {
            ending.end();
            live.ended().await.unwrap();
            (live, ending) = begin().await;
        }
    }
    live.reach(&chain, to).await.unwrap();
    while indexed::has_questions(&*store).unwrap() {
        live.progress.moved().await;
    }
    live.stop().await.unwrap();
    let lagged = nodes.iter().map(ReplayNode::lagged).sum();

    let undisturbed: Arc<dyn Store> = Arc::new(MemStore::new());
    let options = Options { up_to: Some(to), ..Options::default() };
    indexed::index(Arc::clone(&chain), options, Arc::clone(&undisturbed)).await.unwrap();
    let (ours, theirs) = (indexed::digest(&*store).unwrap(), indexed::digest(&*undisturbed).unwrap());
    let differ = ours.iter().zip(&theirs).filter(|(a, b)| a != b).map(|(a, _)| a.table).collect();
    (lagged, differ)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_state_lags_behind_its_blocks_causes_no_wrong_rows() {
    let (first, runs) = (number("LAG_SEED", 1), number("LAG_RUNS", RUNS));
    for stretch in STRETCHES {
        let following = (first..first + runs).map(|seed| async move {
            let (lagged, differ) = follow(stretch, seed).await;
            assert!(differ.is_empty(), "seed {seed} of {}: these tables differ: {differ:?}", stretch.0);
            lagged
        });
        let lagged = join_all(following).await;
        eprintln!("{}: answers from a state too low, by seed: {lagged:?}", stretch.0);
        assert!(stretch.0 != "evm-scenario" || lagged.iter().sum::<u64>() > 0, "no state lagged: {lagged:?}");
    }
}
