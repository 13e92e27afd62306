//! Computed chains of each virtual machine, indexed completely with verified hashes, and compared with the computed
//! state.

use std::sync::Arc;

use replay::{Options, Recording};
use schema::meta::{self, BlockLane, CallLane};
use store::{MemStore, Snapshot, Store as _};
use synthesize::BlockSizes;
use testkit::{indexed, recording};

/// Indexes a recording that is extended to `txs` transactions.
async fn indexed_extended(name: &str, txs: u64, sizes: BlockSizes) -> (Arc<Recording>, MemStore) {
    let recorded = Recording::open(&recording(name)).unwrap();
    let extended = Arc::new(synthesize::extend(recorded, txs, sizes).unwrap());
    let store = Arc::new(MemStore::new());
    indexed::index(Arc::clone(&extended), Options::default(), Arc::<MemStore>::clone(&store)).await.unwrap();
    all_there(&extended, &*store.snapshot().unwrap(), txs);
    (extended, Arc::try_unwrap(store).unwrap())
}

/// The counts are those of the extended recording.
fn all_there(extended: &Recording, snapshot: &dyn Snapshot, txs: u64) {
    let summary = extended.summary();
    let blocks: BlockLane = meta::read(snapshot).unwrap().unwrap();
    assert_eq!((summary.txs, blocks.height), (txs, summary.last_height));
    assert_eq!((blocks.txs, blocks.evm_txs), (summary.txs, summary.evm_txs));
    let calls: CallLane = meta::read(snapshot).unwrap().unwrap_or_default();
    assert_eq!(calls.calls, summary.trace_frames);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_computed_evm_rollup_is_indexed_whole_with_verified_hashes() {
    indexed_extended("evm-scenario", 4_000, BlockSizes::Medium).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_computed_move_rollup_is_indexed_whole_with_verified_hashes() {
    indexed_extended("move-scenario", 2_000, BlockSizes::Small).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_computed_wasm_rollup_is_indexed_whole_with_verified_hashes() {
    indexed_extended("wasm-scenario", 3_000, BlockSizes::Medium).await;
}
