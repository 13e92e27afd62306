//! Concurrency of requests.

use std::num::NonZeroU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ingest::Config;
use replay::answers::{HttpReply, Service};
use replay::{Addresses, Call, Options, Pace, Recording, ReplayNode};
use store::{MemStore, RocksOptions, RocksStore, Store};
use testkit::live::Live;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, recording};

use crate::malformed_answers::{HEIGHT, LAST, ending, evm, indexed_with, undisturbed};

/// Far longer than two requests take on a busy machine; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// Received requests.
#[derive(Default)]
struct Seen {
    parts: Mutex<Vec<&'static str>>,
    came: Condvar,
}

impl Seen {
    fn note(&self, part: &'static str) {
        self.parts.lock().unwrap().push(part);
        self.came.notify_all();
    }

    /// True if a request for each of `parts` arrives; blocks this thread.
    fn all_come(&self, parts: &[&str]) -> bool {
        let seen = self.parts.lock().unwrap();
        let missing = |seen: &mut Vec<&str>| !parts.iter().all(|part| seen.contains(part));
        !self.came.wait_timeout_while(seen, PATIENCE, missing).unwrap().1.timed_out()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn at_the_head_block_results_and_receipts_are_requested_concurrently() {
    let (seen, last) = (Arc::new(Seen::default()), format!("\"{LAST:#x}\""));
    let (noted, together) = (Arc::clone(&seen), Arc::new(Mutex::new(None)));
    let outcome = Arc::clone(&together);
    let override_answer = move |exchange: RecordedExchange<'_>| -> HttpReply {
        if exchange.is_comet("block_results", LAST) {
            noted.note("results");
        } else if exchange.is_rpc("eth_getBlockReceipts", &last) {
            noted.note("receipts");
        } else if exchange.is_comet("block", LAST) {
            let mut outcome = outcome.lock().unwrap();
            if outcome.is_none() {
                *outcome = Some(noted.all_come(&["results", "receipts"]));
            }
        }
        ending(exchange)
    };
    let store = indexed_with(override_answer).await;
    assert_eq!(*together.lock().unwrap(), Some(true));
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_catching_up_no_receipts_are_requested_for_a_block_without_transactions() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requested = Arc::clone(&seen);
    let store = indexed_with(move |exchange| {
        for height in 1..=HEIGHT {
            if exchange.is_rpc("eth_getBlockReceipts", &format!("\"{height:#x}\"")) {
                requested.lock().unwrap().push(height);
            }
        }
        ending(exchange)
    })
    .await;
    let requested = seen.lock().unwrap().clone();
    assert!(requested.contains(&HEIGHT) && !requested.contains(&1), "{requested:?}");
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

/// The calls of a whole chain, and the number of requests that carried them.
#[tokio::test(flavor = "multi_thread")]
async fn the_contract_calls_about_nfts_of_a_block_use_few_requests() {
    let (calls, others) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (called, other) = (Arc::clone(&calls), Arc::clone(&others));
    let chain = evm();
    let node = OverriddenNode::start(Arc::clone(&chain), move |exchange| {
        if exchange.is_rpc("eth_call", "") {
            called.fetch_add(1, Relaxed);
        } else if exchange.service == Service::JsonRpc && !exchange.is_rpc("eth_blockNumber", "") {
            other.fetch_add(1, Relaxed);
        }
        exchange.answer
    });
    let (node, store) = (node.await.unwrap(), Arc::new(MemStore::new()));
    let config = indexed::config(&chain).unwrap();
    indexed::index_from(node.clients().unwrap(), config, store, chain.last()).await.unwrap();
    let (calls, others) = (calls.load(Relaxed), others.load(Relaxed));
    let batches = node.requests(Service::JsonRpc) - others;
    assert!(calls > 60 && batches < calls / 2, "{calls} calls in {batches} requests beside {others}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_trace_at_a_time_is_requested_while_the_blocks_are_far_behind_the_head() {
    const STUCK: u64 = 100;
    const TRACED: u64 = 60;
    let (traces, far) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(true)));
    let (now, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let highest = Arc::clone(&most);
    let chain = evm();
    let node = OverriddenNode::start(Arc::clone(&chain), move |exchange| {
        if exchange.is_comet("block", STUCK) {
            // Until enough traces have been requested, the block lane is far behind the head.
            traces.all_come(&["enough"]);
            far.store(false, Relaxed);
        } else if exchange.is_rpc("debug_traceBlockByNumber", "") && far.load(Relaxed) {
            highest.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
            std::thread::sleep(Duration::from_millis(5));
            now.fetch_sub(1, Relaxed);
            if (TRACED..STUCK)
                .any(|height| exchange.is_rpc("debug_traceBlockByNumber", &format!("{height:#x}")))
            {
                traces.note("enough");
            }
        }
        exchange.answer
    });
    let (node, store) = (node.await.unwrap(), Arc::new(MemStore::new()));
    let config = Config { rich_list: false, ..indexed::config(&chain).unwrap() };
    assert!(chain.last() > STUCK + 64);
    indexed::index_from(node.clients().unwrap(), config, store, chain.last()).await.unwrap();
    assert_eq!(most.load(Relaxed), 1);
}

/// The time to index all of `evm-load` from a node as slow as a real one, against the time of the index's own work: for
/// measurements, run by hand. The work is that of blocks and traces; each call to a contract adds 1 ms.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures, and proves nothing"]
#[allow(clippy::cast_precision_loss, clippy::print_stdout, reason = "figures for eyes")]
async fn time_of_catching_up_beside_a_node_of_measured_speed() {
    let chain = Arc::new(Recording::open(&recording("evm-load")).unwrap());
    let (mut txs, mut traced) = (0, 0);
    for height in chain.first()..=chain.last() {
        let recorded = chain.height(height).unwrap();
        txs += chain::comet::parse_block(&recorded.block).unwrap().txs.len();
        let receipts = recorded.eth_receipts.as_deref().unwrap_or(b"[]");
        traced += serde_json::from_slice::<Vec<serde_json::Value>>(receipts).unwrap().len();
    }
    let pace =
        Pace { txs: NonZeroU32::new(4860), traces: NonZeroU32::new(867), call: Duration::from_millis(1) };
    for internal_txs in [false, true] {
        for rich_list in [false, true] {
            let config = Config { internal_txs, rich_list, ..indexed::config(&chain).unwrap() };
            let options = Options { pace, ..Options::default() };
            let played = ReplayNode::start(Arc::clone(&chain), Addresses::default(), options).await.unwrap();
            let dir = tempfile::tempdir().unwrap();
            let store: Arc<dyn Store> =
                Arc::new(RocksStore::open(dir.path(), schema::TABLES, RocksOptions::default()).unwrap());
            let node = Arc::new(indexed::clients(&played).unwrap());
            let begun = Instant::now();
            let mut live = Live::start(node, config, store).await.unwrap();
            let mut blocks = live.progress.blocks.clone();
            let (_, of_blocks) = tokio::join!(live.reach(&chain, chain.last()), async {
                blocks.wait_for(|progress| progress.height >= chain.last()).await.unwrap();
                begun.elapsed()
            });
            let took = begun.elapsed();
            live.stop().await.unwrap();
            let calls = played.call_count(Call::EthCall);
            let limit = txs as f64 / 4860.0 + if internal_txs { traced as f64 / 867.0 } else { 0.0 };
            println!(
                "internal_txs {internal_txs} rich_list {rich_list}: {txs} txs, {traced} traced, {calls} calls, limit {limit:.2} s, blocks {of_blocks:.2?}, all {took:.2?}, ratio {:.2}",
                limit / took.as_secs_f64()
            );
        }
    }
}
