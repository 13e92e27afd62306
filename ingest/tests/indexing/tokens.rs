//! The index of tokens, on every virtual machine.

use std::sync::Arc;

use replay::Recording;
use schema::rewind::rewind;
use schema::tokens::{TOKENS, TokenNumbers, TokenQuestions};
use store::{Batch, Durability, Store as _, Table as _};
use testkit::{indexed, recording};

use super::evm_indexes::{build, empty, index, is_sound, rows};

static INDEX: schema::index::Index = TOKENS;

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_the_same_however_their_index_is_written() {
    for chain in ["evm-scenario", "move-scenario", "wasm-ledger"] {
        let recording = Arc::new(Recording::open(&recording(chain)).unwrap());
        let (with_blocks, later, back) = (empty(), empty(), empty());
        let last = recording.last();
        index(&recording, last, &[&INDEX], &with_blocks).await;
        let expected = indexed::digest(&*with_blocks).unwrap();
        assert!(is_sound(&with_blocks).await, "{chain}");
        assert!(!rows(&*with_blocks, TokenNumbers::SPEC).is_empty(), "{chain}");

        index(&recording, last, &[], &later).await;
        let without = indexed::digest(&*later).unwrap();
        build(&*later, &INDEX, last);
        assert_eq!(indexed::digest(&*later).unwrap(), expected, "{chain}: built after the blocks");
        let asked = rows(&*later, TokenQuestions::SPEC).len();
        assert_eq!(asked, rows(&*later, TokenNumbers::SPEC).len(), "{chain}: each is to be asked");
        INDEX.remove(&*later).unwrap();
        assert_eq!(indexed::digest(&*later).unwrap(), without, "{chain}: removed without a trace");
        for table in INDEX.tables {
            assert!(rows(&*later, table).is_empty(), "{chain}: {}", table.name);
        }

        index(&recording, last, &[&INDEX], &back).await;
        for to in [last - 1, last - 9] {
            rewind(&*back, to).unwrap();
            let fresh = empty();
            index(&recording, to, &[&INDEX], &fresh).await;
            index(&recording, to, &[&INDEX], &back).await;
            assert_eq!(
                indexed::digest(&*back).unwrap(),
                indexed::digest(&*fresh).unwrap(),
                "{chain}: back to {to}"
            );
        }
        index(&recording, last, &[&INDEX], &back).await;
        assert_eq!(indexed::digest(&*back).unwrap(), expected, "{chain}: forward again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_token_is_found_and_repaired_from_the_records() {
    let recording = Arc::new(Recording::open(&recording("wasm-ledger")).unwrap());
    let store = empty();
    index(&recording, recording.last(), &[&INDEX], &store).await;
    let sound = indexed::digest(&*store).unwrap();
    let mut batch = Batch::new();
    batch.delete(TokenNumbers::SPEC, rows(&*store, TokenNumbers::SPEC)[0].0.clone());
    store.commit(batch, Durability::Buffered).unwrap();
    assert!(!is_sound(&store).await);
    let (_, stop) = tokio::sync::watch::channel(false);
    ingest::verify::repair(&store, None, &|| Ok(empty()), stop).await.unwrap();
    assert_eq!(indexed::digest(&*store).unwrap(), sound);
}
