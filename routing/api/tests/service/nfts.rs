//! Messages for NFTs, as the wallet widget requests them, over the recorded channel.

use serde_json::{Value, json};

use crate::client::Client;
use crate::client::recorded::{Chains, L1, L2, OTHER, USER};

const CLASS: &str = "move/a955cbcbaf04e15fcd20511785fbf5a61ebf62463494f1e08a1f97df89de3a8c";
const VOUCHER_CLASS: &str = "ibc/D5A84DCDEB356CA19280EAFFB4A623DC04AF53D447E9AE6E673E531E7B8218AF";

async fn refused(client: &Client, ask: &Value) -> String {
    let (status, code, message) = client.post("/nft", ask).await.refusal();
    assert_eq!((status, code), (400, 3), "{message}");
    message
}

#[tokio::test]
async fn nfts_cross_the_recorded_channel_both_ways() {
    let client = Chains::start().await.client();
    let out = json!({
        "from_address": USER, "from_chain_id": L1, "to_address": OTHER, "to_chain_id": L2,
        "collection_address": "0xa955cbcbaf04e15fcd20511785fbf5a61ebf62463494f1e08a1f97df89de3a8c",
        "token_ids": ["cat1"], "object_addresses": ["0x1"], "class_id": CLASS, "class_trace": null,
    });
    let back = json!({
        "from_address": OTHER, "from_chain_id": L2, "to_address": USER, "to_chain_id": L1,
        "collection_address": "0x2c1DE3b4Dbb4aDebEbB5dcECAe825bE2a9fc6eb6",
        "token_ids": ["cat1"], "object_addresses": [null], "class_id": VOUCHER_CLASS,
        "class_trace": { "path": "nft-transfer/channel-1", "base_class_id": CLASS },
    });
    for (mut ask, class) in [(out, CLASS), (back, VOUCHER_CLASS)] {
        if ask["from_chain_id"] == L2 {
            ask["object_addresses"] = json!([]);
        }
        let answer = client.post("/nft", &ask).await.ok();
        let [msg] = answer["msgs"].as_array().unwrap().as_slice() else { panic!("{answer}") };
        assert_eq!(msg["type"], "nft-transfer/MsgTransfer");
        let value = &msg["value"];
        assert_eq!(
            (&value["source_port"], &value["source_channel"]),
            (&json!("nft-transfer"), &json!("channel-1"))
        );
        assert_eq!((&value["class_id"], &value["token_ids"]), (&json!(class), &json!(["cat1"])));
        assert_eq!((&value["sender"], &value["receiver"]), (&ask["from_address"], &ask["to_address"]));
        assert!(
            value["timeout_timestamp"].as_str().unwrap().len() == 19 && value["timeout_height"] == json!({})
        );
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_by_name() {
    let client = Chains::start().await.client();
    let good = json!({
        "from_address": USER, "from_chain_id": L1, "to_address": OTHER, "to_chain_id": L2,
        "collection_address": "", "token_ids": ["cat1"], "class_id": CLASS,
    });
    client.post("/nft", &good).await.ok();
    for (name, value, why) in [
        ("token_ids", json!([]), "invalid token_ids: 0 entries, must be 1 to 30"),
        ("token_ids", json!(vec!["x"; 31]), "invalid token_ids: 31 entries, must be 1 to 30"),
        ("token_ids", json!([""]), "invalid token_ids: 0 bytes, must be 1 to 256"),
        ("token_ids", json!("cat1"), "invalid token_ids: "),
        ("class_id", Value::Null, "invalid class_id: it is missing"),
        ("to_address", json!("init1nobody"), "to_address `init1nobody` is no address of chain `e2e-l2-1`"),
        ("from_address", json!("cosmos1x"), "from_address `cosmos1x` is no address"),
        ("timeout", json!(0), "invalid timeout: 0 must be 1 to 86400"),
        ("to_chain_id", json!("31337"), "to_address"),
    ] {
        let mut ask = good.clone();
        ask[name] = value;
        let message = refused(&client, &ask).await;
        assert!(message.starts_with(why), "{message}");
    }
    let mut ask = good.clone();
    ask["to_chain_id"] = json!("31337");
    ask["to_address"] = json!("0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A");
    assert!(
        refused(&client, &ask)
            .await
            .starts_with("the registry has no channel for NFTs from e2e-l1-1 to 31337")
    );
    ask["to_chain_id"] = json!("nowhere-1");
    assert_eq!(client.post("/nft", &ask).await.refusal(), (404, 5, "chain ID not supported".to_owned()));
}

#[tokio::test]
async fn nfts_change_hands_within_a_chain() {
    let client = Chains::start().await.client();
    // The token and the receiver of a recorded transaction (move-scenario).
    let ask = json!({
        "from_address": USER, "from_chain_id": L1, "to_address": "init13fdjnhkv5kha2dv3n2rr4u6s3cdnvky7hvjfct",
        "to_chain_id": L1, "collection_address": "", "token_ids": ["1"],
        "object_addresses": ["0x108def296b356ddf9a1a5da68f10737eca3dd31477c1947046e9ca55d6063749"],
    });
    let answer = client.post("/nft", &ask).await.ok();
    let value = &answer["msgs"][0]["value"];
    assert_eq!(answer["msgs"][0]["type"], "move/MsgExecute");
    assert_eq!((&value["module_name"], &value["function_name"]), (&json!("object"), &json!("transfer_call")));
    let args =
        ["EI3vKWs1bd+aGl2mjxBzfso90xR3wZRwRunKVdYGN0k=", "AAAAAAAAAAAAAAAAilsp3sylr9U1kZqGOvNQjhs2WJ4="];
    assert_eq!(value["args"], json!(args));

    let ask = json!({
        "from_address": OTHER, "from_chain_id": L2, "to_address": USER, "to_chain_id": L2,
        "collection_address": "0xa888e7641e250e5e3e7c3dd82b61d79c7888416c", "token_ids": ["7"],
    });
    let answer = client.post("/nft", &ask).await.ok();
    assert_eq!(answer["msgs"][0]["type"], "evm/MsgCall");
    let input = answer["msgs"][0]["value"]["input"].as_str().unwrap();
    // transferFrom(address,address,uint256)
    assert!(input.starts_with("0x23b872dd") && input.ends_with("0000000000000007"), "{input}");
}
