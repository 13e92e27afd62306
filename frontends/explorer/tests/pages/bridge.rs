//! The pages of a bridge: a withdrawal with its proof, an output whose root differs.

use std::sync::Arc;

use replay::{Options, Recording};
use schema::bridge::BRIDGE;
use schema::bridge_output::{self, L1Proposal, L1Replies};
use schema::index_writer::Writer;
use schema::undo::Horizon;
use store::{MemStore, Store};

use crate::site::Site;

static INDEX: schema::index::Index = BRIDGE;

/// A recorded chain with the index.
async fn indexed(name: &str) -> Arc<dyn Store> {
    let recording = Arc::new(Recording::open(&testkit::recording(name)).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let mut config = testkit::indexed::config(&recording).unwrap();
    config.indexes = vec![&INDEX];
    testkit::indexed::index_as(config, recording, Options::default(), Arc::clone(&store)).await.unwrap();
    store
}

/// The rollup of `l1-l2`, with the first 25 outputs as its layer one lists them, and a false one.
async fn site() -> Site {
    let l1 = Recording::open(&testkit::recording("l1-l2/l1")).unwrap();
    let store = indexed("l1-l2/l2").await;
    let mut outputs = Vec::new();
    for block in l1.heights() {
        let results = chain::comet::parse_results(&block.block_results).unwrap();
        for (_, event) in chain::comet::order::in_order(&results) {
            let read = chain::bridge::BridgeEvent::read(event);
            if let Some(chain::bridge::BridgeEvent::Proposed(proposal)) = read {
                let (l2_block, root, l1_time) = (proposal.l2_block, proposal.root.to_vec(), 1);
                let l1_height = block.height;
                outputs.push((proposal.output, L1Proposal { l2_block, root, l1_height, l1_time }));
            }
        }
    }
    outputs.truncate(26);
    outputs[25].1.root = vec![7; 32];
    let replies = L1Replies { bridge: 1, finalization_seconds: 20, outputs, ..L1Replies::default() };
    let mut writer = Writer::new(&*store, &INDEX, Horizon::DEFAULT).unwrap();
    writer.amend(&*store, |txn| bridge_output::apply(txn, &replies).map(drop)).unwrap();
    Site::over(store, None)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_has_pages_of_its_withdrawals_and_outputs() {
    let site = site().await;
    let read = async |path: &str| {
        let answer = site.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let document = answer.document();
        assert_eq!(document.errors, [""; 0], "{path}");
        document.text
    };
    let bridge = read("/bridge").await;
    assert!(bridge.contains("has another root"), "{bridge}");
    assert!(bridge.contains("e2e-l1-1") && bridge.contains("waiting"), "{bridge}");

    let proof = &site.json("/indexer/bridge/v1/withdrawal/1");
    let withdrawal = read("/bridge/withdrawal/1").await;
    assert!(withdrawal.contains("final") && withdrawal.contains(proof["storage_root"].as_str().unwrap()));
    assert!(withdrawal.contains(proof["withdrawal_proofs"][0].as_str().unwrap()), "{withdrawal}");
    // Without output.
    assert!(!read("/bridge/withdrawal/11").await.contains("Storage root"));
    assert!(read("/bridge/output/25").await.contains("equals ours"));
    assert!(read("/bridge/output/26").await.contains("differs from ours"));

    let deposits = &site.json("/indexer/bridge/v1/deposits")["deposits"];
    let shown = read("/bridge/deposits").await;
    assert!(shown.contains("Arrived") && shown.contains("Refunded"), "{shown}");
    assert!(shown.contains(deposits[0]["from"].as_str().unwrap()), "{shown}");

    // A block, a Cosmos and an EVM transaction say which output covers them.
    let covered = site.json("/indexer/bridge/v1/outputs/3");
    let last = covered["output"]["l2_block_number"].as_u64().unwrap();
    for (height, words) in [(last, "output  3 , final since"), (last + 1, "output  4 , final since")] {
        let block = read(&format!("/block/{height}")).await;
        assert!(block.contains(words), "{words}: {block}");
    }
    let withdrawal = &site.json("/indexer/bridge/v1/withdrawals?pagination.reverse=false")["withdrawals"][0];
    let covering = format!("output  {} , final since", withdrawal["output_index"]);
    let tx = read(&format!("/tx/{}", withdrawal["tx_hash"].as_str().unwrap())).await;
    assert!(tx.contains(&covering), "{covering}: {tx}");
    let evm = site.json("/indexer/tx/v1/evm-txs?pagination.limit=1")["txs"][0].clone();
    let evm = site.get(&format!("/tx/{}", evm["transactionHash"].as_str().unwrap())).await;
    let shown = read(evm.header("location")).await;
    assert!(shown.contains("Covered by"), "{shown}");
    let newest = site.json("/indexer/block/v1/blocks?pagination.limit=1")["blocks"][0].clone();
    let shown = read(&format!("/block/{}", newest["height"].as_str().unwrap())).await;
    assert!(shown.contains("no output yet"), "{shown}");

    for (path, status) in
        [("/bridge/withdrawal/99", 404), ("/bridge/withdrawal/x", 404), ("/bridge/output/99", 404)]
    {
        assert_eq!(site.get(path).await.status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_one_shows_its_bridges_with_their_outputs_claims_deposits_and_batches() {
    let site = Site::over(indexed("l1-l2/l1").await, None);
    let read = async |path: &str| {
        let answer = site.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let document = answer.document();
        assert_eq!(document.errors, [""; 0], "{path}");
        document
    };
    let bridges = read("/bridge").await;
    assert!(bridges.links().iter().any(|link| link == "/bridges/1"), "{}", bridges.text);

    for (path, request, list, member) in [
        ("/bridges/1", "outputs", "outputs", "l1_txhash"),
        ("/bridges/1?list=claims", "claims", "claims", "txhash"),
        ("/bridges/1?list=deposits", "deposits", "deposits", "txhash"),
        ("/bridges/1?list=batches", "batches", "txs", "txhash"),
    ] {
        let shown = read(path).await;
        let rows = site.json(&format!("/indexer/bridge/v1/{request}?bridge_id=1&pagination.limit=25"));
        let rows = rows[list].as_array().unwrap();
        assert!(!rows.is_empty(), "{path}");
        let links = shown.links();
        for row in rows {
            let tx = format!("/tx/{}", row[member].as_str().unwrap());
            assert!(links.contains(&tx), "{path} lacks {tx}");
        }
    }
    assert!(read("/bridges/1").await.text.contains("Deleted"));
    assert_eq!(site.get("/bridges/99").await.status, 404);
    assert_eq!(site.get("/bridges/x").await.status, 400);
    // A layer one has no output that covers its own blocks.
    assert!(!read("/block/200").await.text.contains("Covered by"));
}
