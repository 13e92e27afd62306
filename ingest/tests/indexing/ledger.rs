//! The index of token movements, on every virtual machine.

use std::sync::Arc;

use replay::Recording;
use schema::block::BlockEvents;
use schema::index::Index;
use schema::ledger::{AccountTokenMovements, LEDGER, Movements, TokenDenoms, position};
use schema::movement::{MovementRow, Place};
use schema::rewind::rewind;
use store::{Batch, Durability, List as _, Store, Table as _, TableSpec, Value as _};
use testkit::{indexed, recording};

use super::evm_indexes::{build, empty, index, is_sound, rows};

static INDEX: Index = LEDGER;

/// Writes an index with blocks, after them, and after a rewind; returns the first store.
pub(super) async fn is_the_same_however_it_is_written(
    written: &'static Index,
    chain: &str,
) -> Arc<dyn Store> {
    let recording = Arc::new(Recording::open(&recording(chain)).unwrap());
    let (with_blocks, later, back) = (empty(), empty(), empty());
    let last = recording.last();
    index(&recording, last, &[written], &with_blocks).await;
    let expected = indexed::digest(&*with_blocks).unwrap();
    assert!(is_sound(&with_blocks).await, "{chain}");

    index(&recording, last, &[], &later).await;
    let without = indexed::digest(&*later).unwrap();
    build(&*later, written, last);
    assert_eq!(indexed::digest(&*later).unwrap(), expected, "{chain}: built after the blocks");
    written.remove(&*later).unwrap();
    assert_eq!(indexed::digest(&*later).unwrap(), without, "{chain}: removed without a trace");

    index(&recording, last, &[written], &back).await;
    for to in [last - 1, last - 9] {
        rewind(&*back, to).unwrap();
        let fresh = empty();
        index(&recording, to, &[written], &fresh).await;
        index(&recording, to, &[written], &back).await;
        assert_eq!(
            indexed::digest(&*back).unwrap(),
            indexed::digest(&*fresh).unwrap(),
            "{chain}: back to {to}"
        );
    }
    index(&recording, last, &[written], &back).await;
    assert_eq!(indexed::digest(&*back).unwrap(), expected, "{chain}: forward again");
    with_blocks
}

#[tokio::test(flavor = "multi_thread")]
async fn movements_are_the_same_however_their_index_is_written() {
    for chain in ["evm-scenario", "move-scenario", "wasm-ledger"] {
        let store = is_the_same_however_it_is_written(&INDEX, chain).await;
        assert!(!rows(&*store, AccountTokenMovements::SPEC).is_empty(), "{chain}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_blocks_are_stored_and_moved_from() {
    let recording = Arc::new(Recording::open(&recording("bridge-cases/l1")).unwrap());
    let store = empty();
    index(&recording, recording.last(), &[&INDEX], &store).await;
    assert!(rows(&*store, BlockEvents::SPEC).len() > 1_000);
    let snapshot = store.snapshot().unwrap();
    let len = INDEX.state(&*snapshot).unwrap().unwrap().numbered;
    let all: Vec<_> = rows(&*store, Movements::SPEC)
        .into_iter()
        .flat_map(|(_, row)| MovementRow::decode(&row).unwrap().0)
        .collect();
    assert_eq!(all.len() as u64, len);
    assert!(all.is_sorted_by_key(|placed| (placed.height, placed.place, placed.index)));
    assert!(all.iter().any(|placed| placed.place == Place::Begin));
    for (before, placed) in (0..).zip(&all) {
        assert!(position(&*snapshot, len, placed.height, placed.place).unwrap() <= before);
        assert!(position(&*snapshot, len, placed.height + 1, Place::Begin).unwrap() > before);
    }
    assert!(rows(&*store, TokenDenoms::SPEC).iter().any(|(_, denom)| denom == b"uinit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_movement_is_found_and_repaired_from_the_records() {
    is_repaired(&INDEX, Movements::SPEC, "wasm-scenario").await;
}

/// Removes the first row of a table of an index, and repairs it.
pub(super) async fn is_repaired(written: &'static Index, table: &'static TableSpec, chain: &str) {
    let recording = Arc::new(Recording::open(&recording(chain)).unwrap());
    let store = empty();
    index(&recording, recording.last(), &[written], &store).await;
    let sound = indexed::digest(&*store).unwrap();
    let mut batch = Batch::new();
    batch.delete(table, rows(&*store, table)[0].0.clone());
    store.commit(batch, Durability::Buffered).unwrap();
    assert!(!is_sound(&store).await);
    let (_, stop) = tokio::sync::watch::channel(false);
    ingest::verify::repair(&store, None, &|| Ok(empty()), stop).await.unwrap();
    assert_eq!(indexed::digest(&*store).unwrap(), sound);
}
