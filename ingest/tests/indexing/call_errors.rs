//! The errors of calls, which the lane of internal transactions writes with its own rows.

use std::sync::Arc;

use ingest::Config;
use replay::recording::Trace;
use replay::{Options, Recording};
use schema::call_errors::{CALL_ERRORS, of_frames};
use schema::meta::{self, CallLane};
use schema::rewind::rewind;
use serde_json::Value;
use store::{MemStore, Store};
use testkit::{indexed, recording};

/// Before and after it calls failed.
const MIDDLE: u64 = 120;

/// The errors of a recorded chain: the number of each frame that has one, in the order of the traces, and its height.
fn expected(chain: &Recording) -> Vec<(u64, u64, String)> {
    fn walk(frame: &Value, height: u64, seq: &mut u64, found: &mut Vec<(u64, u64, String)>) {
        *seq += 1;
        if let Some(error) = frame["error"].as_str() {
            found.push((*seq, height, error.to_owned()));
        }
        for call in frame["calls"].as_array().into_iter().flatten() {
            walk(call, height, seq, found);
        }
    }
    let (mut found, mut seq) = (Vec::new(), 0);
    for block in chain.heights() {
        let Some(Trace::Result(result)) = &block.eth_trace else { continue };
        let txs: Vec<Value> = serde_json::from_slice(result).unwrap();
        for tx in &txs {
            walk(&tx["result"], block.height, &mut seq, &mut found);
        }
    }
    found
}

async fn index(chain: &Arc<Recording>, up_to: u64, with_errors: bool, store: &Arc<dyn Store>) {
    let indexes = if with_errors { vec![&CALL_ERRORS] } else { Vec::new() };
    let config = Config { indexes, rich_list: false, ..indexed::config(chain).unwrap() };
    let options = Options { up_to: Some(up_to), ..Options::default() };
    indexed::index_as(config, Arc::clone(chain), options, Arc::clone(store)).await.unwrap();
}

/// The rows of the index, and its first and last block.
fn stored(store: &dyn Store) -> (Vec<(u64, String)>, (u64, u64)) {
    let snapshot = store.snapshot().unwrap();
    let state = CALL_ERRORS.state(&*snapshot).unwrap().unwrap();
    let lane: CallLane = meta::read(&*snapshot).unwrap().unwrap();
    assert_eq!(state.height, lane.height, "the height is that of the lane");
    (of_frames(&*snapshot, 0, u64::MAX).unwrap(), (state.from, state.height))
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_calls_are_those_of_the_traces_from_where_they_are_named_and_go_back_with_the_calls() {
    let chain = Arc::new(Recording::open(&recording("evm-scenario")).unwrap());
    let (last, all) = (chain.last(), expected(&chain));
    let from = |height: u64| -> Vec<(u64, String)> {
        all.iter().filter(|(_, at, _)| *at >= height).map(|(seq, _, error)| (*seq, error.clone())).collect()
    };
    assert!(from(MIDDLE).len() > 3 && from(1).len() > from(MIDDLE).len() + 3, "{all:?}");
    let whole: Arc<dyn Store> = Arc::new(MemStore::new());
    index(&chain, last, true, &whole).await;
    assert_eq!(stored(&*whole), (from(1), (1, last)));
    let digest = indexed::digest(&*whole).unwrap();
    rewind(&*whole, MIDDLE).unwrap();
    let before = all.iter().filter(|(_, at, _)| *at <= MIDDLE).map(|(seq, _, error)| (*seq, error.clone()));
    assert_eq!(stored(&*whole), (before.collect(), (1, MIDDLE)));
    index(&chain, last, true, &whole).await;
    assert_eq!(indexed::digest(&*whole).unwrap(), digest);

    let later: Arc<dyn Store> = Arc::new(MemStore::new());
    index(&chain, MIDDLE, false, &later).await;
    index(&chain, last - 10, true, &later).await;
    assert_eq!(stored(&*later).1, (MIDDLE + 1, last - 10));
    index(&chain, last, true, &later).await;
    assert_eq!(stored(&*later), (from(MIDDLE + 1), (MIDDLE + 1, last)));
    // It was not written meanwhile: what is missing is not taken for calls without errors.
    let gap: Arc<dyn Store> = Arc::new(MemStore::new());
    index(&chain, MIDDLE, true, &gap).await;
    index(&chain, last - 5, false, &gap).await;
    index(&chain, last, true, &gap).await;
    assert_eq!(stored(&*gap).1, (last - 4, last));
}
