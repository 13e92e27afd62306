//! `eth_getLogs` and minievm's hashes against the recordings.

use replay::answers::Service;
use serde_json::{Value, json};

use crate::{EVM, L2, Reply, parse, post};

const JSON_RPC: Service = Service::JsonRpc;

fn logs_at(shown: u64, filter: Value) -> Reply {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [filter] });
    EVM.ask_at(shown, JSON_RPC, post("/", &call.to_string()))
}

fn logs(filter: Value) -> Vec<Value> {
    logs_at(EVM.recording.last(), filter).result().as_array().unwrap().clone()
}

/// Every log of the recording, in order.
fn all() -> Vec<Value> {
    let receipts = EVM
        .recording
        .heights()
        .iter()
        .flat_map(|height| parse(height.eth_receipts.as_ref().unwrap()).as_array().unwrap().clone());
    receipts.flat_map(|receipt| receipt["logs"].as_array().unwrap().clone()).collect()
}

#[test]
fn a_filter_selects_by_address_topics_and_blocks() {
    let all = all();
    let everything = json!({ "fromBlock": "earliest", "toBlock": "latest" });
    assert!(all.len() > 100);
    assert_eq!(logs(everything), all);
    let sample = all.iter().find(|log| log["topics"].as_array().unwrap().len() == 3).unwrap();
    let (address, topics) = (&sample["address"], sample["topics"].as_array().unwrap());
    let select = |of: &dyn Fn(&Value) -> bool| all.iter().filter(|log| of(log)).cloned().collect::<Vec<_>>();
    let from = |mut filter: Value| {
        filter["fromBlock"] = json!("0x0");
        logs(filter)
    };
    let of_address = select(&|log| log["address"] == *address);
    let upper = format!("0x{}", address.as_str().unwrap()[2..].to_ascii_uppercase());
    assert_eq!(from(json!({ "address": upper })), of_address);
    let nobody = format!("0x{}", "00".repeat(20));
    assert_eq!(from(json!({ "address": [nobody, address] })), of_address);
    assert_eq!(from(json!({ "address": [nobody] })), Vec::<Value>::new());
    assert_eq!(from(json!({ "address": [] })), all);
    assert_eq!(from(json!({ "topics": [topics[0]] })), select(&|log| log["topics"][0] == topics[0]));
    assert_eq!(
        from(json!({ "topics": [null, [topics[1], topics[2]]] })),
        select(&|log| log["topics"][1] == topics[1] || log["topics"][1] == topics[2])
    );
    assert_eq!(from(json!({ "topics": [[], null, null, null] })), select(&|log| !log["topics"][3].is_null()));
    let number = &sample["blockNumber"];
    let of_block = select(&|log| log["blockNumber"] == *number);
    assert_eq!(logs(json!({ "fromBlock": number, "toBlock": number })), of_block);
    assert_eq!(logs(json!({ "blockHash": sample["blockHash"] })), of_block);
}

#[test]
fn logs_above_the_shown_height_do_not_exist() {
    let all = all();
    let number = |log: &Value| u64::from_str_radix(&log["blockNumber"].as_str().unwrap()[2..], 16).unwrap();
    let last = number(all.last().unwrap());
    let shown: Vec<_> = all.iter().filter(|log| number(log) < last).cloned().collect();
    let filter = json!({ "fromBlock": "0x1", "toBlock": "0xffff" });
    assert_eq!(logs_at(last - 1, filter.clone()).result(), json!(shown));
    assert_eq!(logs_at(last, filter).result(), json!(all));
    let at_the_tip = logs_at(last, json!({})).result();
    assert!(at_the_tip.as_array().unwrap().iter().all(|log| number(log) == last));
}

#[test]
fn malformed_filters_are_errors() {
    for (filter, code) in [
        (json!({ "fromBlock": "0x5", "toBlock": "0x4" }), -32000),
        (json!({ "fromBlock": "five" }), -32602),
        (json!({ "topics": 5 }), -32602),
        (json!("x"), -32602),
        (json!({ "blockHash": "0x00", "fromBlock": "0x1" }), -32602),
    ] {
        assert_eq!(logs_at(226, filter.clone()).json()["error"]["code"], code, "{filter}");
    }
    assert_eq!(logs_at(226, json!({ "blockHash": format!("0x{}", "00".repeat(32)) })).missing, 1);
}

#[test]
fn the_other_hash_of_a_transaction_is_unknown_until_it_is_shown() {
    let ask = |shown: u64, method: &str, hash: &str| {
        let call = json!({ "id": 1, "method": method, "params": [hash] }).to_string();
        L2.ask_at(shown, JSON_RPC, post("/", &call)).result()
    };
    let (eth, cosmos) = (
        "0xc6df105041e088cfb40770b84e79c674ab80c234b4b63a1595e23f2693833ff7",
        "947c30960c71fd6e39ccd6a4abaf584963991d3504115b063ad54661a3ac669a",
    );
    let (to_cosmos, to_eth) = ("cosmos_cosmosTxHashByTxHash", "cosmos_txHashByCosmosTxHash");
    assert_eq!(ask(287, to_cosmos, eth), cosmos);
    assert_eq!(ask(286, to_cosmos, eth), "00".repeat(32));
    assert_eq!(ask(286, "eth_getTransactionByHash", eth), Value::Null);
    assert_eq!(ask(287, "eth_getTransactionByHash", eth)["hash"], eth);
    let sent = "0x8cb4d5ed426758577c30ce379e8084c050c37845593c751e61a02f9f5eb196bc";
    let eth = "0x250e143155cfabc727f353bca7885807c946d536752e04cccb61f8a4dc178319";
    assert_eq!(ask(134, to_eth, sent), eth);
    assert_eq!(ask(133, to_eth, sent), format!("0x{}", "00".repeat(32)));
    assert_eq!(ask(820, to_eth, &format!("0x{}", "ab".repeat(32))), format!("0x{}", "00".repeat(32)));
}
