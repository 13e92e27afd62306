//! Every recorded chain indexed completely: no record is missing, and neither the engine nor the batching matters.

use std::sync::Arc;

use ingest::Config;
use replay::{Options, Recording};
use schema::block::Blocks;
use schema::meta::{self, BlockLane, CallLane};
use schema::payload::Codec;
use schema::records;
use schema::tx::Txs;
use serde_json::value::RawValue;
use store::{MemStore, Message, RocksOptions, RocksStore, Snapshot, Store};
use testkit::{indexed, recording};

/// Indexes a chain twice, with settings as different as possible, and returns the first index.
async fn indexed_whole(chain: &str) -> (Arc<Recording>, MemStore) {
    let recording = Arc::new(Recording::open(&recording(chain)).unwrap());
    let config = indexed::config(&recording).unwrap();
    let (mem, dir) = (Arc::new(MemStore::new()), tempfile::tempdir().unwrap());
    let rocks = Arc::new(RocksStore::open(dir.path(), schema::TABLES, RocksOptions::default()).unwrap());
    let runs: [(usize, Arc<dyn Store>); 2] =
        [(32, Arc::<MemStore>::clone(&mem)), (1, Arc::<RocksStore>::clone(&rocks))];
    for (look_ahead, store) in runs {
        let config = Config { look_ahead, ..config.clone() };
        indexed::index_as(config, Arc::clone(&recording), Options::default(), store).await.unwrap();
    }
    assert_eq!(indexed::digest(&*mem).unwrap(), indexed::digest(&*rocks).unwrap());
    let snapshot = mem.snapshot().unwrap();
    all_there(&recording, &*snapshot);
    drop(snapshot);
    (recording, Arc::try_unwrap(mem).unwrap())
}

/// The counts are those of the recording, and blocks and sequences have no gaps.
fn all_there(recording: &Recording, snapshot: &dyn Snapshot) {
    let summary = recording.summary();
    let blocks: BlockLane = meta::read(snapshot).unwrap().unwrap();
    assert_eq!(
        (blocks.height, blocks.txs, blocks.evm_txs),
        (summary.last_height, summary.txs, summary.evm_txs)
    );
    let calls: Option<CallLane> = meta::read(snapshot).unwrap();
    assert_eq!(calls.is_some(), recording.is_evm());
    assert_eq!(calls.unwrap_or_default().calls, summary.trace_frames);
    let (mut tx, mut evm_tx) = (1, 1);
    for height in recording.heights() {
        let Message(block) = store::table::read::<Blocks>(snapshot, &height.height).unwrap().unwrap();
        assert_eq!((block.first_tx, block.first_evm_tx), (tx, evm_tx), "height {}", height.height);
        assert_eq!(block.txs, height.raw_txs().unwrap().len() as u64, "height {}", height.height);
        tx += block.txs;
        evm_tx += block.evm_txs;
    }
}

/// The `tx` member of every record is the node's own JSON, byte for byte, with the `@type` in front.
fn as_the_node_prints(recording: &Recording, store: &MemStore) {
    #[derive(serde::Deserialize)]
    struct Record<'a> {
        #[serde(borrow)]
        tx: &'a RawValue,
    }
    let snapshot = store.snapshot().unwrap();
    let codec = Codec::load(&*snapshot).unwrap();
    let (mut seq, mut bytes) = (0, Vec::new());
    for height in recording.heights() {
        let txs: Vec<&RawValue> =
            serde_json::from_slice(height.rest_txs.as_deref().unwrap_or(b"[]")).unwrap();
        for tx in txs {
            seq += 1;
            bytes.clear();
            records::each::<Txs>(&*snapshot, &codec, &[seq], |record| bytes.extend_from_slice(record))
                .unwrap();
            let record: Record<'_> = serde_json::from_slice(&bytes).unwrap();
            let expected = tx.get().replacen('{', r#"{"@type":"/cosmos.tx.v1beta1.Tx","#, 1);
            assert_eq!(record.tx.get(), expected, "transaction {seq} at height {}", height.height);
        }
    }
    assert_eq!(seq, recording.summary().txs);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evm_rollup_is_indexed_whole_and_its_transactions_are_the_nodes() {
    let (recording, store) = indexed_whole("evm-scenario").await;
    as_the_node_prints(&recording, &store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_rollup_is_indexed_whole_and_its_transactions_are_the_nodes() {
    let (recording, store) = indexed_whole("move-scenario").await;
    as_the_node_prints(&recording, &store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wasm_rollup_whose_node_begins_at_height_4_is_indexed_whole_from_height_4() {
    let (recording, store) = indexed_whole("wasm-scenario").await;
    assert_eq!(recording.first(), 4);
    assert_eq!(schema::open::existing(&store).unwrap().start_height, 4);
    as_the_node_prints(&recording, &store);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_l1_whose_blocks_begin_with_vote_data_is_indexed_whole() {
    indexed_whole("l1-l2/l1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollup_with_bridge_and_ibc_is_indexed_whole() {
    indexed_whole("l1-l2/l2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_with_cosmos_evm_is_indexed_whole_with_the_receipts_and_frames_of_its_node() {
    indexed_whole("cosmos-evm").await;
}
