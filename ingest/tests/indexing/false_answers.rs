//! False replies: an endpoint whose reply is proved false is logged, counted and distrusted, and the index equals the
//! undisturbed one.

use std::sync::Arc;
use std::time::Duration;

use ingest::{Config, Error, Verify};
use node::{EndpointStatus, Endpoints, Limits, Node};
use replay::{Addresses, Call, Options, Recording, ReplayNode};
use schema::digest::TableDigest;
use store::{MemStore, Store};
use testkit::live::Live;
use testkit::{indexed, recording};
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// Longer than any wait here takes.
const MINUTE: Duration = Duration::from_mins(1);

/// Enough for false replies about transactions of all kinds.
const PART: u64 = 90;

fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

async fn play(chain: &Arc<Recording>, shown: u64, faults: &[&str]) -> ReplayNode {
    let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    let options = Options { up_to: Some(shown), faults, seed: 11, ..Options::default() };
    ReplayNode::start(Arc::clone(chain), Addresses::default(), options).await.unwrap()
}

fn clients(nodes: &[&ReplayNode]) -> Arc<Node> {
    let mut all = Endpoints::default();
    for node in nodes {
        let one = indexed::endpoints(node).unwrap();
        all.comet.extend(one.comet);
        all.rest.extend(one.rest);
        all.json_rpc.extend(one.json_rpc);
    }
    Arc::new(Node::new(all, Limits::default()).unwrap())
}

async fn undisturbed() -> &'static [TableDigest] {
    static DIGEST: OnceCell<Vec<TableDigest>> = OnceCell::const_new();
    let index = || async {
        let store = Arc::new(MemStore::new());
        let options = Options { up_to: Some(PART + 1), ..Options::default() };
        indexed::index(evm(), options, Arc::<MemStore>::clone(&store)).await.unwrap();
        indexed::digest(&*store).unwrap()
    };
    DIGEST.get_or_init(index).await
}

/// Indexes all blocks that the servers of `node` show, and then one more with true replies from all: at the head of a
/// chain only the next header proves the last block.
async fn index(node: &Arc<Node>, servers: &[&ReplayNode], config: Config) -> Arc<MemStore> {
    let store = Arc::new(MemStore::new());
    let shared: Arc<dyn Store> = Arc::<MemStore>::clone(&store);
    let mut live = Live::start(Arc::clone(node), config, shared).await.unwrap();
    live.reach(&evm(), PART).await.unwrap();
    for server in servers {
        server.set_faults(Vec::new());
        server.show(PART + 1).unwrap();
    }
    live.reach(&evm(), PART + 1).await.unwrap();
    live.stop().await.unwrap();
    store
}

/// The endpoints that are known to have given false replies: CometBFT's, REST's and the EVM's.
fn liars(node: &Node) -> Vec<bool> {
    node.endpoints().iter().map(|endpoint| endpoint.false_answers > 0).collect()
}

/// One endpoint of three gives the false reply `lie`: the index is correct, and the endpoint is identified.
async fn is_found_out(lie: &str) {
    let chain = evm();
    let (honest, liar) = (play(&chain, PART, &[]).await, play(&chain, PART, &[lie]).await);
    // With a third endpoint, block and results of every height, which are requested in rotation, would always come from
    // the same two.
    let third = play(&chain, PART, &[]).await;
    let node = clients(&[&liar, &honest, &third]);
    let store = index(&node, &[&liar, &honest, &third], indexed::config(&chain).unwrap()).await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await, "{lie}");
    assert!(liar.faulted() > 0, "{lie}: nobody lied");
    let in_receipts = lie.contains("receipts");
    assert_eq!(
        liars(&node),
        [!in_receipts, false, false, false, false, false, in_receipts, false, false],
        "{lie}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn false_transactions_are_detected() {
    is_found_out("lie-txs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_header_is_detected() {
    is_found_out("lie-header").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_header_with_a_matching_hash_is_detected_by_its_neighbours() {
    is_found_out("lie-header-rehashed@0.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn false_results_are_detected_by_the_next_header() {
    is_found_out("lie-results@0.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn false_receipts_are_detected_by_their_transactions() {
    is_found_out("lie-receipts").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_endpoint_with_false_answers_is_queried_until_an_answer_is_true() {
    let chain = evm();
    for lie in ["lie-txs@0.3", "lie-header@0.3", "lie-results@0.2", "lie-receipts@0.3", "other-height@0.3"] {
        let liar = play(&chain, PART, &[lie]).await;
        let store = index(&clients(&[&liar]), &[&liar], indexed::config(&chain).unwrap()).await;
        assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await, "{lie}");
        assert!(liar.faulted() > 0, "{lie}: nobody lied");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn false_receipts_of_every_endpoint_are_replaced_by_those_that_follow_from_the_results() {
    let chain = evm();
    let liar = play(&chain, PART, &["lie-receipts"]).await;
    let node = clients(&[&liar]);
    let config = Config { believe_after: Duration::from_millis(300), ..indexed::config(&chain).unwrap() };
    let store = index(&node, &[&liar], config).await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
    assert_eq!(liars(&node), [false, false, true], "its results are those that the headers confirm");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_of_another_chain_gets_no_requests() {
    let chain = evm();
    let other = Arc::new(Recording::open(&recording("move-scenario")).unwrap());
    let (honest, foreign) = (play(&chain, PART, &[]).await, play(&other, 40, &[]).await);
    let mut config = indexed::config(&chain).unwrap();
    config.rich_list = false;
    let node = clients(&[&honest, &foreign]);
    let store = Arc::new(MemStore::new());
    let shared: Arc<dyn Store> = Arc::<MemStore>::clone(&store);
    let mut live = Live::start(Arc::clone(&node), config, shared).await.unwrap();
    live.reach(&chain, PART).await.unwrap();
    live.stop().await.unwrap();
    assert_eq!(node.comet.endpoints()[1].status, EndpointStatus::WrongChain);
    assert_eq!(foreign.call_count(Call::Block), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_of_the_recorded_validators_verify_and_a_forged_history_does_not_pass() {
    let chain = evm();
    let node = play(&chain, PART, &[]).await;
    let signed = |chain: &Recording| Config {
        verify: Verify::Signatures { trusted: None },
        ..indexed::config(chain).unwrap()
    };
    let store = index(&clients(&[&node]), &[&node], signed(&chain)).await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);

    // Another complete, consistent history of one endpoint: only signatures identify it.
    let forged = Arc::new(chain.forked(40, 2).unwrap());
    let (honest, liar) = (play(&chain, PART, &[]).await, play(&forged, PART, &[]).await);
    let mut endpoints = indexed::endpoints(&honest).unwrap();
    // State and receipts are the honest endpoint's: no header distinguishes those of another history.
    endpoints.comet.insert(0, liar.comet_url().parse().unwrap());
    let node = Arc::new(Node::new(endpoints, Limits::default()).unwrap());
    let store = index(&node, &[&honest, &liar], signed(&chain)).await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_the_first_block_that_turn_out_false_are_rewound() {
    let chain = evm();
    // It has transactions, so that false replies about them are possible.
    // The recording has no list of accounts at this height for the baseline of a rich list.
    let config = Config { start_height: Some(7), rich_list: false, ..indexed::config(&chain).unwrap() };
    let mut digests = Vec::new();
    for faults in [&["lie-results"][..], &[]] {
        let (node, store) = (play(&chain, 7, faults).await, Arc::new(MemStore::new()));
        let mut live = Live::start(clients(&[&node]), config.clone(), Arc::clone(&store) as _).await.unwrap();
        live.reach(&chain, 7).await.unwrap();
        node.set_faults(Vec::new());
        node.show(12).unwrap();
        live.reach(&chain, 12).await.unwrap();
        live.stop().await.unwrap();
        digests.push(indexed::digest(&*store).unwrap());
    }
    assert_eq!(digests[0], digests[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_never_passes_a_trusted_block_that_is_not_on_the_chain() {
    let chain = evm();
    let node = play(&chain, PART, &[]).await;
    let mut config = indexed::config(&chain).unwrap();
    config.verify = Verify::Signatures { trusted: Some((20, [7; 32])) };
    let store = Arc::new(MemStore::new());
    let shared: Arc<dyn Store> = Arc::<MemStore>::clone(&store);
    let clients_of = clients(&[&node]);
    let mut live = Live::start(Arc::clone(&clients_of), config.clone(), shared).await.unwrap();
    // The node is queried for blocks 20 and 21 repeatedly, and block 20 is never forwarded.
    let mut heads = clients_of.comet.heads();
    timeout(MINUTE, heads.wait_for(|endpoints| endpoints[0].false_answers >= 8)).await.unwrap().unwrap();
    assert!(live.progress.blocks.borrow_and_update().height < 20);
    live.stop().await.unwrap();

    // The same if it is both the first block and the last one.
    let (alone, shared) = (play(&chain, 20, &[]).await, Arc::new(MemStore::new()));
    let clients_of = clients(&[&alone]);
    let from_20 = Config { start_height: Some(20), ..config.clone() };
    let mut live = Live::start(Arc::clone(&clients_of), from_20, Arc::clone(&shared) as _).await.unwrap();
    let mut heads = clients_of.comet.heads();
    timeout(MINUTE, heads.wait_for(|endpoints| endpoints[0].false_answers >= 4)).await.unwrap().unwrap();
    assert_eq!(live.progress.blocks.borrow_and_update().height, 0);
    live.stop().await.unwrap();

    // And an index with another block at that height does not continue.
    let (node, store) = (play(&chain, PART, &[]).await, Arc::new(MemStore::new()));
    indexed::index(chain, Options { up_to: Some(PART), ..Options::default() }, Arc::clone(&store) as _)
        .await
        .unwrap();
    let refused =
        ingest::Ingest::prepare(config.clone(), clients(&[&node]), store).await.map(drop).unwrap_err();
    assert!(matches!(refused, Error::Setup(text) if text.contains("another hash")), "{refused}");

    config.start_height = Some(30);
    let shared: Arc<dyn Store> = Arc::new(MemStore::new());
    let refused = ingest::Ingest::prepare(config, clients(&[&node]), shared).await.map(drop).unwrap_err();
    assert!(matches!(refused, Error::Setup(text) if text.contains("trusted")), "{refused}");
}
