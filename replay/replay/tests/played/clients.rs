//! The clients of `node` against replay nodes of the recorded pair of chains.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use node::{Comet, Error, Evm, Kind, Limits, OpinitExecutor, Rest};
use replay::{Addresses, Options, Recording, ReplayNode};

static L1: LazyLock<Arc<Recording>> = LazyLock::new(|| open("l1"));
static L2: LazyLock<Arc<Recording>> = LazyLock::new(|| open("l2"));

const RECV: &str = "recv_packet.packet_sequence='1' AND recv_packet.packet_dst_channel='channel-0'";
const RECV_HASH: &str = "D539B39B568F826E474914BD1A973EFD91942731D2E27BC5D32039E96794686A";

fn open(name: &str) -> Arc<Recording> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/l1-l2").join(name);
    Arc::new(Recording::open(&dir).unwrap())
}

async fn play(recording: &Arc<Recording>, up_to: u64) -> ReplayNode {
    let options = Options { up_to: Some(up_to), ..Options::default() };
    ReplayNode::start(Arc::clone(recording), Addresses::default(), options).await.unwrap()
}

fn comet(node: &ReplayNode) -> Comet {
    Comet::new(vec![node.comet_url().parse().unwrap()], Limits::default()).unwrap()
}

fn rest(node: &ReplayNode) -> Rest {
    Rest::new(vec![node.rest_url().parse().unwrap()], Limits::default()).unwrap()
}

fn hash(text: &str) -> [u8; 32] {
    hex::decode(text).unwrap().try_into().unwrap()
}

#[tokio::test]
async fn a_received_packet_is_found_over_both_services_once_its_height_is_shown() {
    let node = play(&L2, 132).await;
    let (comet, rest) = (comet(&node), rest(&node));
    assert_eq!(comet.tx_search(RECV, 1, 30, false).await.unwrap(), (vec![], 0));
    assert_eq!(rest.find_txs(RECV, 1, 30, false).await.unwrap(), (vec![], 0));
    assert_eq!(comet.tx(hash(RECV_HASH)).await.unwrap(), None);
    assert_eq!(rest.find_tx(hash(RECV_HASH)).await.unwrap(), None);
    node.show(133).unwrap();
    let (found, total) = comet.tx_search(RECV, 1, 30, true).await.unwrap();
    assert_eq!((found.len(), total), (1, 1));
    assert_eq!((found[0].hash, found[0].height, found[0].code), (hash(RECV_HASH), 133, 0));
    let received = found[0].events.iter().find(|event| event.kind == "recv_packet").unwrap();
    assert_eq!((received.get("packet_sequence"), received.get("no")), (Some("1"), None));
    assert_eq!(comet.tx(hash(RECV_HASH)).await.unwrap().as_ref(), Some(&found[0]));
    let (by_rest, total) = rest.find_txs(RECV, 1, 30, true).await.unwrap();
    assert_eq!((&by_rest[0].0, total), (&found[0], 1));
    assert_eq!(rest.find_tx(hash(RECV_HASH)).await.unwrap(), by_rest.first().cloned());
    let time = comet.block_time(133).await.unwrap();
    assert_eq!(by_rest[0].1.nanos(), time.seconds());
    assert!(time.millis_since(by_rest[0].1) < 1000);
    assert_eq!(comet.block_time(134).await.unwrap_err().kind(), Kind::NotYet);
    assert_eq!(node.missing().count, 0);
}

#[tokio::test]
async fn a_failed_transaction_has_its_reason() {
    let node = play(&L1, 1430).await;
    let failed = hash("C13456662E943632203AB3D5B1131728DD2785C3DAB992F02201197C6B01FCB5");
    let by_comet = comet(&node).tx(failed).await.unwrap().unwrap();
    assert_eq!((by_comet.code, by_comet.codespace.as_str(), by_comet.index), (8, "ophost", 2));
    assert!(by_comet.log.ends_with("output has not finalized"), "{}", by_comet.log);
    // REST does not report the position in the block.
    let (by_rest, _) = rest(&node).find_tx(failed).await.unwrap().unwrap();
    assert_eq!(by_rest, node::TxSearchHit { index: 0, ..by_comet });
}

#[tokio::test]
async fn a_broken_search_is_a_definite_refusal() {
    let node = play(&L2, 820).await;
    let (comet, rest) = (comet(&node), rest(&node));
    for (query, page) in [("a.b", 1), ("", 1), ("a.b='1", 1), (RECV, 2), ("a.b=!", 1), ("tx.hash='x'", 1)] {
        for error in [
            comet.tx_search(query, page, 30, false).await.unwrap_err(),
            rest.find_txs(query, page, 30, false).await.unwrap_err(),
        ] {
            assert!(matches!(error, Error::Refused { .. }), "{query:?}: {error}");
        }
    }
    // Quotes, blanks and signs arrive unchanged.
    let odd = r#"a.b='x & "y" + %20 ü' AND c.d='='"#;
    assert_eq!(comet.tx_search(odd, 1, 1, false).await.unwrap().1, 0);
    assert_eq!(rest.find_txs(odd, 1, 1, false).await.unwrap().1, 0);
    assert_eq!(node.missing().count, 0);
}

#[tokio::test]
async fn an_absent_value_differs_from_an_unrecorded_one() {
    let node = play(&L1, 1430).await;
    let rest = rest(&node);
    let ack = "/ibc/core/channel/v1/channels/channel-0/ports/transfer/packet_acks/";
    assert!(rest.get_or_absent(&format!("{ack}1"), None).await.unwrap().is_some());
    assert_eq!(rest.get_or_absent(&format!("{ack}5"), None).await.unwrap(), None);
    let unserved = rest.get_or_absent("/ibc/apps/transfer/v1/denoms", None).await.unwrap_err();
    assert!(matches!(unserved, Error::MethodMissing { .. }), "{unserved}");
    // An unknown bridge is a server error on these chains.
    assert!(rest.get_or_absent("/opinit/ophost/v1/bridges/3", None).await.is_err());
}

#[tokio::test]
async fn a_withdrawal_gets_its_proofs_when_its_output_ends() {
    let node = play(&L2, 325).await;
    let urls = vec![node.executor_url().unwrap().parse().unwrap()];
    let executor = OpinitExecutor::new(urls, Limits::default()).unwrap();
    assert_eq!(executor.withdrawal(8).await.unwrap(), None);
    node.show(326).unwrap();
    let open = executor.withdrawal(8).await.unwrap().unwrap();
    assert_eq!((open.output_index, open.proofs.len(), open.storage_root.as_str()), (None, 0, ""));
    assert_eq!((open.amount.as_str(), open.denom.as_str(), open.sequence), ("5555", "uinit", 8));
    node.show(331).unwrap();
    let closed = executor.withdrawal(8).await.unwrap().unwrap();
    assert_eq!((closed.output_index, closed.proofs.len(), closed.version.as_str()), (Some(46), 1, "AQ=="));
    assert_eq!((closed.from, closed.to), (open.from, open.to));
    assert_eq!((closed.storage_root.len(), closed.last_block_hash.len()), (44, 44));
    assert_eq!(executor.withdrawal(999).await.unwrap(), None);
    assert_eq!(node.missing().count, 0);
}

#[tokio::test]
async fn the_two_hashes_of_an_evm_transaction_are_distinguished() {
    let node = play(&L2, 820).await;
    let evm = Evm::new(vec![node.json_rpc_url().parse().unwrap()], Limits::default()).unwrap();
    let eth = hash("c6df105041e088cfb40770b84e79c674ab80c234b4b63a1595e23f2693833ff7");
    let cosmos = hash("947c30960c71fd6e39ccd6a4abaf584963991d3504115b063ad54661a3ac669a");
    assert_eq!(evm.cosmos_hash(eth).await.unwrap(), Some(cosmos));
    assert_eq!(evm.cosmos_hash([1; 32]).await.unwrap(), None);
    let sent = hash("8CB4D5ED426758577C30CE379E8084C050C37845593C751E61A02F9F5EB196BC");
    assert!(evm.eth_hashes(sent).await.unwrap().is_some());
    assert_eq!(evm.eth_hashes([1; 32]).await.unwrap(), None);
    assert_eq!(
        (evm.finalized().await.unwrap(), evm.chain_id().await.unwrap()),
        (Some(820), 0x0002_70d1_2ad0_846e)
    );
    assert!(evm.receipt(eth).await.unwrap().is_some());
    assert_eq!(evm.receipt([1; 32]).await.unwrap(), None);
    assert_eq!(evm.block_time(821).await.unwrap(), None);
    assert!(evm.block_time(820).await.unwrap().is_some());
    assert_eq!(node.missing().count, 0);
}

#[tokio::test]
async fn a_node_that_is_down_answers_no_request_until_it_is_up_again() {
    let node = play(&L2, 820).await;
    let (comet, rest) = (comet(&node), rest(&node));
    let evm = Evm::new(vec![node.json_rpc_url().parse().unwrap()], Limits::default()).unwrap();
    let executor = vec![node.executor_url().unwrap().parse().unwrap()];
    let executor = OpinitExecutor::new(executor, Limits::default()).unwrap();
    assert!(comet.status().await.is_ok());
    node.down();
    let failures = [
        comet.status().await.unwrap_err(),
        comet.tx_search(RECV, 1, 1, false).await.unwrap_err(),
        rest.find_tx(hash(RECV_HASH)).await.unwrap_err(),
        evm.chain_id().await.unwrap_err(),
        executor.withdrawal(8).await.unwrap_err(),
    ];
    assert!(failures.iter().all(|error| error.kind() == Kind::Transient), "{failures:?}");
    node.up();
    assert!(comet.status().await.is_ok() && evm.chain_id().await.is_ok());
    assert!(rest.find_tx(hash(RECV_HASH)).await.unwrap().is_some());
    assert!(executor.withdrawal(8).await.unwrap().is_some());
    assert_eq!((node.missing().count, node.faulted()), (0, 0));
}

#[tokio::test]
async fn faults_hit_searches_and_the_executor_too() {
    let faults = ["comet:cut", "rest:503", "executor:hang-up"].map(|text| text.parse().unwrap()).to_vec();
    let options = Options { faults, ..Options::default() };
    let node = ReplayNode::start(Arc::clone(&L2), Addresses::default(), options).await.unwrap();
    let executor = vec![node.executor_url().unwrap().parse().unwrap()];
    let executor = OpinitExecutor::new(executor, Limits::default()).unwrap();
    assert!(matches!(comet(&node).tx_search(RECV, 1, 1, false).await, Err(Error::Cut { .. })));
    assert!(matches!(rest(&node).find_txs(RECV, 1, 1, false).await, Err(Error::Busy { status: 503, .. })));
    assert_eq!(executor.withdrawal(8).await.unwrap_err().kind(), Kind::Transient);
    assert_eq!(node.faulted(), 3);
}
