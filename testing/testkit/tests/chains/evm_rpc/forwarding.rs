//! Calls that are forwarded to a recorded node.

use std::sync::Arc;

use evm_rpc::{Dialect, Forward, Group};
use replay::{Addresses, Call, Options, Recording, ReplayNode};
use serde_json::{Value, json};
use testkit::recording;

use super::{rpc, text};

async fn played(name: &str) -> ReplayNode {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap()
}

fn forward(groups: &[Group], node: &ReplayNode) -> Forward {
    Forward::new(groups.to_vec(), vec![node.json_rpc_url().parse().unwrap()]).unwrap()
}

/// A call that the chain was asked when it was recorded, with its result.
fn recorded_call() -> (Value, String) {
    let bytes = std::fs::read(recording("evm-fees").join("state.ndjson.zst")).unwrap();
    let text = String::from_utf8(zstd::stream::decode_all(&bytes[..]).unwrap()).unwrap();
    let calls = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let call =
        calls.into_iter().find(|line| line["kind"] == "eth_call" && line["result"].is_string()).unwrap();
    let height = format!("{:#x}", call["height"].as_u64().unwrap());
    (json!([{ "to": call["to"], "data": call["data"] }, height]), call["result"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_group_that_is_on_has_the_result_of_the_node_and_of_one_that_is_off_none() {
    let node = played("evm-fees").await;
    let app = rpc(Dialect::Fixed).await.with_forward(Some(forward(&[Group::State], &node))).app().unwrap();
    let (params, result) = recorded_call();
    let calls = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": params }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "eth_blockNumber" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "eth_sendRawTransaction", "params": ["0x00"] }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "eth_call", "params": [{ "to": 7 }] }),
        json!({ "jsonrpc": "2.0", "method": "eth_blockNumber" }),
        json!({ "jsonrpc": "2.0", "id": 5, "method": "eth_call", "params": params }),
    ];
    let replies: Vec<Value> =
        serde_json::from_str(&text(&app, &Value::from(calls.to_vec()).to_string()).await).unwrap();
    assert_eq!(
        replies.iter().map(|reply| reply["id"].as_u64().unwrap()).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    assert_eq!((&replies[0]["result"], &replies[4]["result"]), (&json!(result), &json!(result)));
    assert_eq!(replies[1]["result"], "0x248");
    assert_eq!(replies[2]["error"]["code"], -32601, "{}", replies[2]);
    assert!(replies[3]["error"]["message"].is_string(), "the error of the node: {}", replies[3]);
    assert_eq!(node.call_count(Call::EthCall), 3);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_down_or_of_another_chain_gets_no_call() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}"#;
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"upstream unavailable"}}"#;
    let other = played("evm-scenario").await;
    let app = rpc(Dialect::Fixed).await.with_forward(Some(forward(&[Group::State], &other))).app().unwrap();
    assert_eq!(text(&app, call).await.trim_end(), error);
    other.stop().await;
    let down = Forward::new(vec![Group::State], vec!["http://127.0.0.1:1".parse().unwrap()]).unwrap();
    let app = rpc(Dialect::Fixed).await.with_forward(Some(down)).app().unwrap();
    assert_eq!(text(&app, call).await.trim_end(), error);
}
