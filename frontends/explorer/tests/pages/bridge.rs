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

/// The rollup of `l1-l2`, with the first 25 outputs as its layer one lists them, and a false one.
async fn site() -> Site {
    let recording = Arc::new(Recording::open(&testkit::recording("l1-l2/l2")).unwrap());
    let l1 = Recording::open(&testkit::recording("l1-l2/l1")).unwrap();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let mut config = testkit::indexed::config(&recording).unwrap();
    config.indexes = vec![&INDEX];
    testkit::indexed::index_as(config, recording, Options::default(), Arc::clone(&store)).await.unwrap();
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

    for (path, status) in
        [("/bridge/withdrawal/99", 404), ("/bridge/withdrawal/x", 404), ("/bridge/output/99", 404)]
    {
        assert_eq!(site.get(path).await.status, status, "{path}");
    }
}
