//! Computed chains of each virtual machine, indexed completely with verified hashes, and compared with the computed
//! state.

use std::sync::Arc;

use chain::{U256, evm::abi};
use ingest::verify::Scope;
use replay::{Options, Recording};
use schema::internal_tx::Calls;
use schema::meta::{self, BlockLane, CallLane};
use schema::rich::{Erc20s, Holders};
use store::key::All;
use store::{MemStore, Order, Snapshot};
use synthesize::BlockSizes;
use testkit::{indexed, recording};

use crate::verify::database::Indexed;

/// Holders of a token that are compared.
const HOLDERS: u64 = 300;

/// Indexes a recording that is extended to `txs` transactions, and verifies the index, owners included.
async fn indexed_extended(name: &str, txs: u64, sizes: BlockSizes) -> Indexed {
    let recorded = Recording::open(&recording(name)).unwrap();
    let extended = Arc::new(synthesize::extend(recorded, txs, sizes).unwrap());
    let indexed = Indexed::of(Arc::clone(&extended)).await.unwrap();
    let missing = indexed.played.missing();
    assert_eq!(missing.count, 0, "{:?}", missing.questions);
    let store = indexed.copy().unwrap();
    all_there(&extended, &*store.snapshot().unwrap(), txs);
    let report = indexed.look(&store, Scope::Last(10)).await.unwrap();
    assert!(report.is_sound(), "{name}: {:#?}", report.findings);
    assert!(report.checked["owners of tokens"] > 50, "{name}: {:?}", report.checked);
    indexed
}

/// The counts are those of the extended recording.
fn all_there(extended: &Recording, snapshot: &dyn Snapshot, txs: u64) {
    let summary = extended.summary();
    let blocks: BlockLane = meta::read(snapshot).unwrap().unwrap();
    assert_eq!((summary.txs, blocks.height), (txs, summary.last_height));
    // Cosmos transactions of the recording have no receipt.
    assert_eq!((blocks.txs, blocks.evm_txs), (summary.txs, summary.evm_txs));
    let calls: CallLane = meta::read(snapshot).unwrap().unwrap_or_default();
    assert_eq!(calls.calls, summary.trace_frames);
    // A row has the frames of several transactions.
    let rows = store::table::rows::<Calls>(snapshot, &All, Order::Asc, usize::MAX).unwrap();
    assert!(rows.len() as u64 * 8 <= calls.calls, "{} rows of {} frames", rows.len(), calls.calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_computed_evm_rollup_is_indexed_whole_and_its_state_is_the_computed_one() {
    let indexed = indexed_extended("evm-scenario", 4_000, BlockSizes::Medium).await;
    let store = indexed.copy().unwrap();
    let (snapshot, evm) = (store.snapshot().unwrap(), indexed.node.evm.as_ref().unwrap());
    let (mut tokens, mut holders) = (0, 0);
    for (token, _) in store::table::rows::<Erc20s>(&*snapshot, &All, Order::Asc, 1_000).unwrap() {
        let len = store::ranked::len::<Holders>(&*snapshot, &token).unwrap();
        let slice = store::ranked::slice::<Holders>(&*snapshot, &token, 0..len.min(HOLDERS)).unwrap();
        for ((amount, holder), ()) in slice {
            let Ok(answer) = evm.call(token, &abi::balance_of(holder), None).await else { continue };
            let held = U256::from_be_bytes(amount);
            assert_eq!(
                abi::read_uint(&answer),
                Some(held),
                "{} of {}",
                hex::encode(token),
                hex::encode(holder)
            );
            holders += 1;
        }
        tokens += 1;
    }
    assert!(tokens >= 4 && holders > 250, "{holders} holders of {tokens} tokens");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_computed_move_rollup_is_indexed_whole_and_its_state_is_the_computed_one() {
    indexed_extended("move-scenario", 2_000, BlockSizes::Small).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_computed_wasm_rollup_is_indexed_whole_and_its_state_is_the_computed_one() {
    indexed_extended("wasm-scenario", 3_000, BlockSizes::Medium).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn up_to_the_recorded_heights_the_index_is_that_of_the_recording() {
    let open = || Recording::open(&recording("evm-scenario")).unwrap();
    let extended = Arc::new(synthesize::extend(open(), 2_000, BlockSizes::Large).unwrap());
    let (recorded, prefix) = (Arc::new(MemStore::new()), Arc::new(MemStore::new()));
    let options = Options { up_to: Some(open().last()), ..Options::default() };
    indexed::index(Arc::new(open()), Options::default(), Arc::<MemStore>::clone(&recorded)).await.unwrap();
    indexed::index(extended, options, Arc::<MemStore>::clone(&prefix)).await.unwrap();
    assert_eq!(indexed::digest(&*recorded).unwrap(), indexed::digest(&*prefix).unwrap());
}
