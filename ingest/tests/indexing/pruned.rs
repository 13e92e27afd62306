//! A node that has pruned the state of old heights: it has their blocks but cannot trace them.

use std::sync::Arc;

use ingest::Config;
use ingest::verify::{Scope, verify};
use replay::{Addresses, Options, ReplayNode};
use schema::internal_tx::{BlockCalls, CallsByHeight};
use schema::meta::{self, CallLane};
use schema::rewind::rewind;
use store::key::All;
use store::{MemStore, Message, Order, Store};
use testkit::indexed;
use testkit::live::Live;

use crate::malformed_answers::evm;

/// State is pruned below this height. Tracing needs the state of the parent block.
const BASE: u64 = 100;
const SHOWN: u64 = 150;
const LAST: u64 = 200;

fn lane(store: &dyn Store) -> CallLane {
    meta::read(&*store.snapshot().unwrap()).unwrap().unwrap()
}

fn frames(store: &dyn Store) -> Vec<(u64, BlockCalls)> {
    let snapshot = store.snapshot().unwrap();
    let rows = store::table::rows::<CallsByHeight>(&*snapshot, &All, Order::Asc, 1000).unwrap();
    rows.into_iter().map(|(height, Message(calls))| (height, calls)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_transactions_begin_at_the_first_height_that_has_state_and_follow_the_head() {
    let chain = evm();
    // The recording lacks a pruned node's replies about NFTs and balances.
    let config = Config { rich_list: false, ..indexed::config(&chain).unwrap() };
    let faults = vec![format!("json-rpc:pruned={BASE}").parse().unwrap()];
    let options = Options { up_to: Some(SHOWN), faults, ..Options::default() };
    let pruned = ReplayNode::start(Arc::clone(&chain), Addresses::default(), options).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let node = Arc::new(indexed::clients(&pruned).unwrap());
    let mut live = Live::start(node, config.clone(), Arc::clone(&store)).await.unwrap();
    live.reach(&chain, SHOWN).await.unwrap();
    pruned.show(LAST).unwrap();
    live.reach(&chain, LAST).await.unwrap();
    live.stop().await.unwrap();

    let complete: Arc<dyn Store> = Arc::new(MemStore::new());
    let options = Options { up_to: Some(LAST), ..Options::default() };
    indexed::index(Arc::clone(&chain), options.clone(), Arc::clone(&complete)).await.unwrap();
    let mut wanted = frames(&*complete);
    assert!(wanted.iter().any(|(height, _)| *height <= BASE), "there is something to miss");
    wanted.retain(|(height, _)| *height > BASE);
    let missed = wanted[0].1.first - 1;
    for (_, calls) in &mut wanted {
        calls.first -= missed;
    }
    assert_eq!(frames(&*store), wanted);
    let calls = lane(&*complete).calls - missed;
    assert_eq!(
        lane(&*store),
        CallLane { height: LAST, calls, complete_from: BASE + 1, untraced: Vec::new() }
    );

    // With a node that has all state, the gap is not reported as damage.
    let whole = ReplayNode::start(Arc::clone(&chain), Addresses::default(), options).await.unwrap();
    let node = Arc::new(indexed::clients(&whole).unwrap());
    let scratch = || Ok(Arc::new(MemStore::new()) as Arc<dyn Store>);
    for scope in [Scope::Last(200), Scope::All] {
        let report = verify(&store, Some(&node), scope, &scratch).await.unwrap();
        let of_calls = |table: &str| table.starts_with("internal_tx") || table == "meta";
        let found: Vec<_> = report.findings.iter().filter(|found| of_calls(found.table.name)).collect();
        assert!(found.is_empty(), "{found:?}");
    }
    // After a rewind into the gap, there still is one.
    rewind(&*store, BASE + 40).unwrap();
    assert_eq!((lane(&*store).height, lane(&*store).complete_from), (BASE + 40, BASE + 1));
    // The gap was noted by one commit, which is reverted as a whole.
    rewind(&*store, BASE - 40).unwrap();
    let CallLane { height, calls, .. } = lane(&*store);
    assert!(height <= BASE - 40 && calls == 0, "{height}");
}
