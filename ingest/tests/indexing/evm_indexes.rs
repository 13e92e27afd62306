//! The optional indexes of EVM chains: those that follow from records, and headers, which only a node has.

use std::sync::Arc;

use ingest::verify::{Scope, repair, verify};
use ingest::{Config, Ingest};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::contracts::CONTRACTS;
use schema::evm_block::{BLOCKS, EvmBlockByHash, EvmBlocks};
use schema::index::Index;
use schema::index_writer::{Rest, Writer};
use schema::logs::LOGS;
use schema::rewind::rewind;
use schema::undo::Horizon;
use store::{Batch, Bounds, Durability, MemStore, Order, Store, Table as _, TableSpec};
use testkit::{indexed, recording};
use tokio::sync::watch;

const ALL: [&Index; 3] = [&LOGS, &CONTRACTS, &BLOCKS];

fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

pub(super) fn empty() -> Arc<dyn Store> {
    Arc::new(MemStore::new())
}

/// Indexes `recording` up to `height`, with `indexes`.
pub(super) async fn index(
    recording: &Arc<Recording>,
    height: u64,
    indexes: &[&'static Index],
    store: &Arc<dyn Store>,
) {
    let options = Options { up_to: Some(height), ..Options::default() };
    let played = ReplayNode::start(Arc::clone(recording), Addresses::default(), options).await.unwrap();
    let config = Config {
        indexes: indexes.to_vec(),
        internal_txs: false,
        rich_list: false,
        ..indexed::config(recording).unwrap()
    };
    let node = Arc::new(indexed::clients(&played).unwrap());
    let ingest = Ingest::prepare(config, node, Arc::clone(store)).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let all_done = async {
        let mut progress = ingest.progress();
        while progress.done() < height {
            progress.moved().await;
        }
        // Written by the lane after its blocks: there is no channel to wait on.
        while indexes.iter().any(|index| height_of(&**store, index) < Some(height)) {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    };
    let (outcome, ()) = tokio::join!(ingest.run(stopped), all_done);
    outcome.unwrap();
}

fn height_of(store: &dyn Store, index: &Index) -> Option<u64> {
    index.state(&*store.snapshot().unwrap()).unwrap().map(|state| state.height)
}

pub(super) fn build(store: &dyn Store, index: &'static Index, height: u64) {
    let mut writer = Writer::new(store, index, Horizon::DEFAULT).unwrap();
    while writer.advance(store, height).unwrap() != Rest::None {}
}

pub(super) fn rows(store: &dyn Store, spec: &'static TableSpec) -> Vec<(Vec<u8>, Vec<u8>)> {
    store.snapshot().unwrap().scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap()
}

pub(super) async fn is_sound(store: &Arc<dyn Store>) -> bool {
    verify(store, None, Scope::All, &|| Ok(empty())).await.unwrap().is_sound()
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_of_evm_chains_are_the_same_however_they_are_written() {
    let (recording, with_blocks, later, off_and_on) = (evm(), empty(), empty(), empty());
    let last = recording.last();
    index(&recording, last, &ALL, &with_blocks).await;
    for table in ALL.iter().flat_map(|index| index.tables) {
        assert!(rows(&*with_blocks, table).len() > 20, "{}", table.name);
    }
    assert_eq!(rows(&*with_blocks, EvmBlocks::SPEC).len() as u64, last);
    let expected = indexed::digest(&*with_blocks).unwrap();
    assert!(is_sound(&with_blocks).await);

    index(&recording, last, &[], &later).await;
    let without = indexed::digest(&*later).unwrap();
    build(&*later, &LOGS, last);
    build(&*later, &CONTRACTS, last);
    build(&*later, &BLOCKS, last);
    assert_eq!(height_of(&*later, &BLOCKS), Some(0), "headers need a node");
    index(&recording, last, &ALL, &later).await;
    assert_eq!(indexed::digest(&*later).unwrap(), expected, "built after the blocks");

    index(&recording, last / 3, &ALL, &off_and_on).await;
    index(&recording, last / 2, &[], &off_and_on).await;
    index(&recording, last, &ALL, &off_and_on).await;
    assert_eq!(indexed::digest(&*off_and_on).unwrap(), expected, "off for a while");

    for index in ALL {
        index.remove(&*later).unwrap();
    }
    assert_eq!(indexed::digest(&*later).unwrap(), without, "removed without a trace");
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_of_evm_chains_go_back_with_the_blocks() {
    let (recording, store, expected) = (evm(), empty(), empty());
    let last = recording.last();
    index(&recording, last, &ALL, &expected).await;
    index(&recording, last, &ALL, &store).await;
    for to in [last - 1, last - 20, last / 2] {
        rewind(&*store, to).unwrap();
        let fresh = empty();
        index(&recording, to, &ALL, &fresh).await;
        // An index whose undo log does not reach the height is removed and built again.
        index(&recording, to, &ALL, &store).await;
        assert_eq!(indexed::digest(&*store).unwrap(), indexed::digest(&*fresh).unwrap(), "back to {to}");
        assert!(is_sound(&store).await, "back to {to}");
    }
    index(&recording, last, &ALL, &store).await;
    assert_eq!(indexed::digest(&*store).unwrap(), indexed::digest(&*expected).unwrap(), "forward again");
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_rows_of_evm_indexes_are_found_and_those_that_follow_from_others_repaired() {
    let (recording, store) = (evm(), empty());
    index(&recording, recording.last(), &ALL, &store).await;
    let sound = indexed::digest(&*store).unwrap();
    for table in [LOGS.tables[0], CONTRACTS.tables[0], EvmBlockByHash::SPEC] {
        let mut batch = Batch::new();
        batch.delete(table, rows(&*store, table)[5].0.clone());
        store.commit(batch, Durability::Buffered).unwrap();
        assert!(!is_sound(&store).await, "{}", table.name);
        let (_, stop) = watch::channel(false);
        repair(&store, None, &|| Ok(empty()), stop).await.unwrap();
        assert_eq!(indexed::digest(&*store).unwrap(), sound, "{}", table.name);
    }
    // A header that is not the one of its hash; nothing but the node has the right one.
    let (key, mut header) = rows(&*store, EvmBlocks::SPEC).swap_remove(7);
    *header.last_mut().unwrap() ^= 1;
    let mut batch = Batch::new();
    batch.put(EvmBlocks::SPEC, key, header);
    store.commit(batch, Durability::Buffered).unwrap();
    assert!(!is_sound(&store).await, "a header with another base fee");
    BLOCKS.remove(&*store).unwrap();
    index(&recording, recording.last(), &ALL, &store).await;
    assert_eq!(indexed::digest(&*store).unwrap(), sound, "fetched again");
}

/// A node that has no headers yet stops nothing, and its index begins with the first that it has.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_evm_headers_does_not_stop_the_blocks() {
    let recording = Arc::new(Recording::open(&recording("evm-pruned")).unwrap());
    let (store, last) = (empty(), recording.last());
    let config = Config {
        indexes: vec![&BLOCKS],
        internal_txs: false,
        rich_list: false,
        start_height: Some(last - 2),
        ..indexed::config(&recording).unwrap()
    };
    let played =
        ReplayNode::start(Arc::clone(&recording), Addresses::default(), Options::default()).await.unwrap();
    let ingest = Ingest::prepare(config, Arc::new(indexed::clients(&played).unwrap()), Arc::clone(&store))
        .await
        .unwrap();
    indexed::run_to(&ingest, last).await.unwrap();
    let state = BLOCKS.state(&*store.snapshot().unwrap()).unwrap().unwrap();
    assert!(state.height < state.from, "no header is claimed: {state:?}");
}
