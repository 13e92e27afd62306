//! Node faults: slow, refusing, disconnecting, lagging, or of the wrong chain. The index equals the undisturbed one, or
//! stops with a clear error.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ingest::{Config, Error, Ingest};
use node::{Limits, Node};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::digest::TableDigest;
use store::{MemStore, Store};
use testkit::{indexed, recording};
use tokio::sync::OnceCell;

/// Half of the chain suffices to meet each fault: 101 transactions of all kinds.
const PART: u64 = 120;

fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

/// The digest of an undisturbed run up to `height`, computed once.
async fn undisturbed(height: u64) -> &'static [TableDigest] {
    static PARTIAL: OnceCell<Vec<TableDigest>> = OnceCell::const_new();
    static WHOLE: OnceCell<Vec<TableDigest>> = OnceCell::const_new();
    let index = || async {
        let store = Arc::new(MemStore::new());
        let options = Options { up_to: Some(height), ..Options::default() };
        indexed::index(evm(), options, Arc::<MemStore>::clone(&store)).await.unwrap();
        indexed::digest(&*store).unwrap()
    };
    if height == PART { PARTIAL.get_or_init(index).await } else { WHOLE.get_or_init(index).await }
}

/// Indexes from a node that plays `faults` until `last`, and compares.
async fn undisturbed_by(faults: &[&str], options: Options, last: u64) {
    let (recording, store) = (evm(), Arc::new(MemStore::new()));
    let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let config = indexed::config(&recording).unwrap();
    let played = ReplayNode::start(recording, Addresses::default(), Options { faults, seed: 7, ..options });
    let played = played.await.unwrap();
    let node = indexed::clients(&played).unwrap();
    indexed::index_from(node, config, Arc::<MemStore>::clone(&store), last).await.unwrap();
    assert!(played.faulted() > 10, "only {} requests were hit", played.faulted());
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed(last).await);
}

async fn part_undisturbed_by(fault: &str) {
    undisturbed_by(&[fault], Options { up_to: Some(PART), ..Options::default() }, PART).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_node_changes_nothing() {
    part_undisturbed_by("delay=20ms@0.3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_limits_the_rate_gets_fewer_requests() {
    part_undisturbed_by("429@0.15").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_a_node_orders_is_respected() {
    part_undisturbed_by("json-rpc:429=1s@0.1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_a_failing_node_are_repeated() {
    part_undisturbed_by("500@0.15").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_answer_is_never_accepted() {
    part_undisturbed_by("cut@0.15").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_connection_is_not_an_answer() {
    part_undisturbed_by("hang-up@0.15").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_that_are_not_indexed_yet_are_waited_for() {
    part_undisturbed_by("json-rpc:null-receipts@0.3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_that_are_not_at_the_same_height_are_waited_for() {
    part_undisturbed_by("json-rpc:stale=7@0.4").await;
    part_undisturbed_by("comet:stale=5@0.4").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_grows_while_it_is_indexed_gives_the_same() {
    let growing =
        Options { block_every: Some(Duration::from_millis(5)), up_to: Some(1), ..Options::default() };
    undisturbed_by(&["no-results@0.4", "stale=2@0.1"], growing, evm().last()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_faults_together_change_nothing_of_a_whole_chain() {
    let all = [
        "delay=5ms@0.1",
        "429@0.02",
        "500@0.05",
        "cut@0.05",
        "hang-up@0.05",
        "null-receipts@0.1",
        "stale@0.1",
    ];
    undisturbed_by(&all, Options::default(), evm().last()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_endpoint_that_is_down_changes_nothing() {
    // Bound and closed again: the address has no listener.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (recording, store) = (evm(), Arc::new(MemStore::new()));
    let config = indexed::config(&recording).unwrap();
    let options = Options { up_to: Some(PART), ..Options::default() };
    let played = ReplayNode::start(recording, Addresses::default(), options).await.unwrap();
    let mut endpoints = indexed::endpoints(&played).unwrap();
    for service in [&mut endpoints.comet, &mut endpoints.rest, &mut endpoints.json_rpc] {
        service.insert(0, format!("http://{dead}").parse().unwrap());
    }
    let node = Node::new(endpoints, Limits::default()).unwrap();
    indexed::index_from(node, config, Arc::<MemStore>::clone(&store), PART).await.unwrap();
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed(PART).await);
}

/// Prepares with a node that plays `recording`, and returns the refusal with all of its causes.
async fn refusal(config: Config, recording: &Arc<Recording>, store: &Arc<MemStore>) -> (Error, String) {
    let played = ReplayNode::start(Arc::clone(recording), Addresses::default(), Options::default());
    let played = played.await.unwrap();
    let node = Arc::new(indexed::clients(&played).unwrap());
    let store: Arc<dyn Store> = Arc::<MemStore>::clone(store);
    let Err(error) = Ingest::prepare(config, node, store).await.map(drop) else {
        panic!("it was not refused");
    };
    played.stop().await;
    let (mut text, mut cause) = (String::new(), Some(&error as &dyn std::error::Error));
    while let Some(error) = cause {
        text = format!("{text}{error}\n");
        cause = error.source();
    }
    (error, text)
}

fn holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_another_chain_is_refused_with_both_chain_ids() {
    let (recording, store) = (evm(), Arc::new(MemStore::new()));
    let config = Config { chain_id: "other-1".to_owned(), ..indexed::config(&recording).unwrap() };
    let (_, text) = refusal(config, &recording, &store).await;
    holds(&text, &["`e2e-evm-1`", "`other-1`", "127.0.0.1:"]);
    assert!(schema::open::identity(&*store).unwrap().is_none(), "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_another_chain_is_refused_whatever_differs() {
    let (recording, store) = (evm(), Arc::new(MemStore::new()));
    let options = Options { up_to: Some(2), ..Options::default() };
    indexed::index(Arc::clone(&recording), options, Arc::<MemStore>::clone(&store)).await.unwrap();
    let before = indexed::digest(&*store).unwrap();
    let config = indexed::config(&recording).unwrap();
    let other = Arc::new(Recording::open(&testkit::recording("move-scenario")).unwrap());
    for (config, recording, parts) in [
        (indexed::config(&other).unwrap(), &other, ["chain-id", "`e2e-evm-1`", "`e2e-move-1`"]),
        (Config { vm: chain::Vm::Wasm, ..config.clone() }, &recording, ["vm", "`evm`", "`wasm`"]),
        (Config { start_height: Some(7), ..config.clone() }, &recording, ["start-height", "`1`", "`7`"]),
        (Config { prefix: Some("abc".to_owned()), ..config }, &recording, ["prefix", "`init`", "`abc`"]),
    ] {
        let (_, text) = refusal(config, recording, &store).await;
        holds(&text, &parts);
        assert_eq!(indexed::digest(&*store).unwrap(), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_first_height_is_refused_with_its_first_height() {
    let recording = Arc::new(Recording::open(&testkit::recording("wasm-scenario")).unwrap());
    let config = Config { start_height: Some(1), ..indexed::config(&recording).unwrap() };
    let (error, text) = refusal(config, &recording, &Arc::new(MemStore::new())).await;
    assert!(matches!(error, Error::Gap { next: 1, earliest: 4 }), "{error:?}");
    holds(&text, &["height 1", "4", "endpoint"]);
}
