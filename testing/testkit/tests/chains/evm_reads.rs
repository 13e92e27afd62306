//! The chain as JSON-RPC shows it, without its envelope: the fixed form, and optional indexes that lag, are off or pruned.

use std::collections::BTreeMap;
use std::sync::Arc;

use chain::evm::dialect::Dialect;
use chain::evm::log_filter::LogFilter;
use ingest::{Config, Ingest};
use query::Indexer;
use query::evm::{Error, LogLimits};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::evm_block::{BLOCKS, EvmBlocks};
use schema::index::State;
use schema::logs::LOGS;
use schema::meta::{self, Meta, WrittenIndexes};
use serde_json::Value;
use store::key::Text;
use store::{Durability, Message, Store, Value as _};
use testkit::{indexed, recording};

/// The index of a recorded chain, with what JSON-RPC reads.
pub(crate) async fn index(name: &str) -> (Arc<dyn Store>, Indexer) {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    let store = indexed::index_for_json_rpc(recording, false).await.unwrap();
    let indexer = indexed::indexer(Arc::clone(&store)).unwrap();
    (store, indexer)
}

fn number(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

fn bytes<const N: usize>(value: &Value) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(value.as_str()?.strip_prefix("0x")?, &mut bytes).ok()?;
    Some(bytes)
}

fn json(bytes: Vec<u8>) -> Value {
    serde_json::from_slice(&bytes).unwrap()
}

/// What clients take for granted, and a node of v1.2 violates.
#[tokio::test(flavor = "multi_thread")]
async fn in_the_fixed_form_a_log_has_one_place_and_every_transaction_the_id_of_the_chain() {
    for name in ["evm-fees", "evm-scenario"] {
        let (_store, indexer) = index(name).await;
        let view = indexer.evm(Dialect::Fixed).unwrap();
        let all =
            json(view.logs(&LogFilter::default(), view.first()..=view.head(), LogLimits::default()).unwrap());
        let logs = all.as_array().unwrap();
        let mut places: Vec<_> =
            logs.iter().map(|log| (number(&log["blockNumber"]), number(&log["logIndex"]))).collect();
        assert!(places.len() > 500 && places.is_sorted(), "{name}");
        places.dedup();
        assert_eq!(places.len(), logs.len(), "{name}: two logs have one place");

        let (mut from_receipts, mut kinds, mut created) = (Vec::new(), BTreeMap::<String, usize>::new(), 0);
        for height in view.first()..=view.head() {
            let block = json(view.block(height, true).unwrap().unwrap());
            let receipts = json(view.receipts(height).unwrap().unwrap());
            let (txs, receipts) = (block["transactions"].as_array().unwrap(), receipts.as_array().unwrap());
            assert_eq!(
                (txs.len(), block["number"].clone()),
                (receipts.len(), Value::from(format!("{height:#x}")))
            );
            for (tx, receipt) in txs.iter().zip(receipts) {
                assert_eq!(number(&tx["chainId"]), view.chain_id().ok(), "{tx}");
                assert_eq!((&tx["hash"], &tx["blockHash"]), (&receipt["transactionHash"], &block["hash"]));
                assert_eq!(tx["transactionIndex"], receipt["transactionIndex"]);
                assert_eq!(receipt["to"].is_null(), tx["to"].is_null());
                *kinds.entry(tx["type"].as_str().unwrap().to_owned()).or_default() += 1;
                assert_eq!(tx["authorizationList"].is_array(), tx["type"] == "0x4");
                from_receipts.extend(receipt["logs"].as_array().unwrap().iter().cloned());
                if let Some(contract) = bytes(&receipt["contractAddress"]) {
                    created += 1;
                    let creations = view.creations(contract).unwrap();
                    let hash = bytes(&tx["hash"]);
                    let evm = creations.iter().map(|creation| view.evm_hash(&creation.cosmos_hash).unwrap());
                    assert!(evm.into_iter().any(|evm| evm == hash), "{tx} {creations:?}");
                }
            }
        }
        assert_eq!(*logs, from_receipts, "{name}: the logs of all receipts");
        assert!(kinds.len() >= 3 && created > 5, "{name}: {kinds:?} {created}");
    }
}

/// The headers of the blocks up to `height` only, as while they are fetched.
fn keep_headers(store: &dyn Store, height: u64, head: u64) {
    let state = BLOCKS.state(&*store.snapshot().unwrap()).unwrap().unwrap();
    store::commit_rows(store, Durability::Buffered, |txn| {
        txn.put::<Meta>(&Text("index/blocks".to_owned()), &Message(State { height, ..state }).encoded());
        (height + 1..=head).for_each(|gone| txn.delete::<EvmBlocks>(&gone));
        Ok::<(), store::Error>(())
    })
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_lag_hide_no_block_that_was_shown_and_are_no_absent_blocks() {
    let (store, indexer) = index("evm-scenario").await;
    let (head, hash, tx) = {
        let view = indexer.evm(Dialect::Fixed).unwrap();
        let has_txs = |height: &u64| view.tx_count(*height).unwrap() > Some(0);
        let head = (1..=view.head()).rev().find(has_txs).unwrap();
        let block: Value = serde_json::from_slice(&view.block(head, false).unwrap().unwrap()).unwrap();
        let hash = |member: &Value| {
            <[u8; 32]>::try_from(hex::decode(&member.as_str().unwrap()[2..]).unwrap()).unwrap()
        };
        (head, hash(&block["hash"]), hash(&block["transactions"][0]))
    };
    schema::rewind::rewind(&*store, head).unwrap();
    keep_headers(&*store, head - 1, head);
    let begun = indexed::indexer(Arc::clone(&store)).unwrap();
    let view = begun.evm(Dialect::Fixed).unwrap();
    assert_eq!(view.head(), head - 1, "the block waits for its header");
    assert!(view.receipt(&tx).unwrap().is_none() && view.tx(&tx).unwrap().is_none(), "above the head");
    drop(view);

    keep_headers(&*store, 10, head);
    let begun = indexed::indexer(Arc::clone(&store)).unwrap();
    for headers in [10, 10, head - 1] {
        keep_headers(&*store, headers, head);
        let view = begun.evm(Dialect::Fixed).unwrap();
        assert_eq!(view.head(), head, "headers up to {headers}");
        assert!(view.receipt(&tx).unwrap().is_some());
        assert!(matches!(view.block(head, false), Err(Error::Behind { .. })), "headers up to {headers}");
        assert!(matches!(view.height_of(&hash), Err(Error::Behind { .. })), "headers up to {headers}");
    }
}

fn name_indexes(store: &dyn Store, names: &[&str]) {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    store::commit_rows(store, Durability::Buffered, |txn| {
        meta::put(txn, &WrittenIndexes { names });
        Ok::<(), store::Error>(())
    })
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_no_longer_written_holds_no_block_back_and_is_not_being_built() {
    let (store, indexer) = index("evm-scenario").await;
    let head = indexer.evm(Dialect::Fixed).unwrap().head();
    for behind in [1, 2, 5] {
        keep_headers(&*store, head - behind, head);
        name_indexes(&*store, &["logs"]);
        let begun = indexed::indexer(Arc::clone(&store)).unwrap();
        let view = begun.evm(Dialect::Fixed).unwrap();
        assert_eq!(view.head(), head, "headers {behind} behind");
        assert!(matches!(view.block(head, false), Err(Error::Behind { is_written: false, .. })));
        assert!(view.block(head - behind, false).unwrap().is_some());
        assert!(view.logs(&LogFilter::default(), 1..=head, LogLimits::default()).is_ok());
        name_indexes(&*store, &["blocks"]);
        let view = begun.evm(Dialect::Fixed).unwrap();
        assert!(matches!(view.block(head, false), Err(Error::Behind { is_written: true, .. })));
    }
}

/// The configuration of the optional indexes `blocks` and `logs`.
fn config(recording: &Recording) -> Config {
    let lanes = Config { internal_txs: false, rich_list: false, ..indexed::config(recording).unwrap() };
    Config { indexes: vec![&BLOCKS, &LOGS], ..lanes }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_named_is_being_built_from_the_start() {
    let recording = Arc::new(Recording::open(&recording("evm-scenario")).unwrap());
    let store: Arc<dyn Store> = Arc::new(store::MemStore::new());
    let without = Config { indexes: Vec::new(), ..config(&recording) };
    let options = || Options { up_to: Some(50), ..Options::default() };
    indexed::index_as(without, Arc::clone(&recording), options(), Arc::clone(&store)).await.unwrap();
    let indexer = indexed::indexer(Arc::clone(&store)).unwrap();
    let all = || LogLimits::default();
    let view = indexer.evm(Dialect::Fixed).unwrap();
    assert!(matches!(view.logs(&LogFilter::default(), 1..=50, all()), Err(Error::Off("logs"))));
    drop(view);
    ingest::begin_indexes(&config(&recording), &*store).unwrap();
    let view = indexer.evm(Dialect::Fixed).unwrap();
    let behind = |error: Error| matches!(error, Error::Behind { from: 1, height: 0, is_written: true, .. });
    assert!(behind(view.logs(&LogFilter::default(), 1..=50, all()).unwrap_err()));
    assert!(behind(view.block(50, false).unwrap_err()));
    assert_eq!(view.head(), 50);
    drop(view);
    // As a rollback beyond the undo log leaves it.
    BLOCKS.remove(&*store).unwrap();
    assert!(behind(indexer.evm(Dialect::Fixed).unwrap().block(50, false).unwrap_err()));
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_a_node_has_pruned_are_pruned_and_not_being_built() {
    let recording = Arc::new(Recording::open(&recording("evm-pruned")).unwrap());
    let store: Arc<dyn Store> = Arc::new(store::MemStore::new());
    // Its last blocks have no transactions, whose receipts it has pruned as well.
    let last = recording.last();
    let config = Config { start_height: Some(last - 2), ..config(&recording) };
    let played = ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap();
    let ingest = Ingest::prepare(config, Arc::new(indexed::clients(&played).unwrap()), Arc::clone(&store));
    let ingest = ingest.await.unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let begun = async {
        let state = || BLOCKS.state(&*store.snapshot().unwrap()).unwrap();
        while state().is_none_or(|state| state.from < last)
            || meta::read::<meta::BlockLane>(&*store.snapshot().unwrap())
                .unwrap()
                .is_none_or(|at| at.height < last)
        {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    };
    let (outcome, ()) = tokio::join!(ingest.run(stopped), begun);
    outcome.unwrap();
    let indexer = indexed::indexer(Arc::clone(&store)).unwrap();
    let view = indexer.evm(Dialect::Fixed).unwrap();
    for height in [last - 2, last - 1] {
        let error = view.block(height, false).unwrap_err();
        assert!(matches!(error, Error::Pruned { first } if first == last), "{height}: {error:?}");
    }
    played.stop().await;
}
