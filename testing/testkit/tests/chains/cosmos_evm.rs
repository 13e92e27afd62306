//! A chain with cosmos/evm, served as its own node serves it: every recorded receipt and frame.

use std::sync::Arc;

use chain::U256;
use chain::evm::dialect::Dialect;
use replay::recording::Trace;
use replay::{Options, Recording};
use serde_json::Value;
use store::{MemStore, Store};
use testkit::{indexed, recording};
use web::app::App;

const NAME: &str = "cosmos-evm";

async fn index(played: &Arc<Recording>) -> Arc<MemStore> {
    let store = Arc::new(MemStore::new());
    let written: Arc<dyn Store> = Arc::<MemStore>::clone(&store);
    indexed::index(Arc::clone(played), Options::default(), written).await.unwrap();
    store
}

/// A frame of a recorded tree with its parent, in the order of calls.
fn flattened<'t>(tree: &'t Value, parent: i64, frames: &mut Vec<(i64, &'t Value)>) {
    let place = i64::try_from(frames.len()).unwrap();
    frames.push((parent, tree));
    for call in tree["calls"].as_array().into_iter().flatten() {
        flattened(call, place, frames);
    }
}

fn quantity(value: &Value) -> U256 {
    let digits = value.as_str().unwrap_or_default().trim_start_matches("0x");
    U256::from_str_radix(if digits.is_empty() { "0" } else { digits }, 16).unwrap()
}

/// A text of hex digits; that of an absent member is empty.
fn hex_digits(value: &Value) -> String {
    value.as_str().unwrap_or_default().trim_start_matches("0x").to_lowercase()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_frame_of_the_recorded_traces_is_served_in_its_place() {
    let played = Arc::new(Recording::open(&recording(NAME)).unwrap());
    let app = App::new(indexed::indexer(index(&played).await).unwrap(), query::ENDPOINTS).unwrap();
    let mut compared = 0;
    for height in played.heights() {
        let trace: Value = match &height.eth_trace {
            Some(Trace::Result(result)) => serde_json::from_slice(result).unwrap(),
            _ => Value::Null,
        };
        let mut expected = Vec::new();
        for entry in trace.as_array().into_iter().flatten() {
            let mut frames = Vec::new();
            flattened(&entry["result"], -1, &mut frames);
            expected.extend(frames.into_iter().enumerate());
        }
        let target = format!(
            "/indexer/tx/v1/evm-internal-txs/by_height/{}?pagination.limit=1000&pagination.reverse=false",
            height.height
        );
        let response = app.get(&target);
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        let served = body["internal_txs"].as_array().unwrap();
        assert_eq!(served.len(), expected.len(), "{target}");
        for (served, (index, (parent, frame))) in served.iter().zip(expected) {
            assert_eq!(
                (&served["index"], &served["parent_index"]),
                (&index.into(), &parent.into()),
                "{served}"
            );
            assert_eq!(served["type"], frame["type"], "{served}");
            for member in ["from", "to", "input", "output"] {
                assert_eq!(hex_digits(&served[member]), hex_digits(&frame[member]), "{member} of {served}");
            }
            for member in ["value", "gas", "gasUsed"] {
                assert_eq!(quantity(&served[member]), quantity(&frame[member]), "{member} of {served}");
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 681);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_receipt_is_served_with_all_members() {
    let played = Arc::new(Recording::open(&recording(NAME)).unwrap());
    let indexer = indexed::indexer(index(&played).await).unwrap();
    let mut compared = 0;
    for dialect in [Dialect::Node, Dialect::Fixed] {
        let view = indexer.evm(dialect).unwrap();
        for height in played.heights() {
            let recorded: Vec<Value> = serde_json::from_slice(height.eth_receipts.as_ref().unwrap()).unwrap();
            let served: Vec<Value> =
                serde_json::from_slice(&view.receipts(height.height).unwrap().unwrap()).unwrap();
            assert_eq!(served, recorded, "{}", height.height);
            compared += recorded.len();
        }
    }
    assert_eq!(compared, 2 * 493);
}
