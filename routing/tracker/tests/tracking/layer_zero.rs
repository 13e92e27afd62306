//! The recorded LayerZero transfers between two EVM chains, followed from their receipts to their recorded ends.

use std::path::Path;
use std::sync::Arc;

use chain::{Timestamp, U256, Vm};
use registry::{Builder, ChainKind, Endpoints, Leg, LegKind, NativeCoin, Oft, Origin, Registry, Terms};
use replay::{Addresses, Recording, ReplayNode};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tracker::{Options, Tracker};

use crate::goldens::asset;
use crate::world::chain;

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/evm-oft").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

async fn node(name: &str) -> ReplayNode {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/evm-oft").join(name);
    let recording = Arc::new(Recording::open(&dir).unwrap());
    ReplayNode::start(recording, Addresses::default(), replay::Options::default()).await.unwrap()
}

/// Two chains, each with the addresses of these nodes, and a group for every pair of contracts in the table.
fn registry(nodes: [&[&ReplayNode]; 2], endpoints: [Option<String>; 2], transfers: &[Value]) -> Registry {
    let mut builder = Builder::new();
    let mut ids = Vec::new();
    for (at, (nodes, eid)) in nodes.into_iter().zip([40101, 40102]).enumerate() {
        let id = (31337 + at).to_string();
        let json_rpc = nodes.iter().map(|node| node.json_rpc_url()).collect();
        let rpc = Endpoints { json_rpc, ..Endpoints::default() };
        let mut chain = chain(&id, ChainKind::Evm, Vm::None, rpc);
        chain.layer_zero_eid = Some(eid);
        chain.layer_zero_endpoint.clone_from(&endpoints[at]);
        let coin = |text: &str| text.to_owned();
        chain.native = Some(NativeCoin {
            name: coin("Ether"),
            symbol: coin("ETH"),
            decimals: 18,
            denom: coin("test-native"),
        });
        ids.push(builder.chain(chain).unwrap());
    }
    let mut known: Vec<String> = Vec::new();
    for transfer in transfers.iter().filter(|transfer| !transfer["token"].is_null()) {
        let text = |member: &str| transfer[member].as_str().unwrap().to_owned();
        let mut pair = [(text("from_chain"), text("oft_from")), (text("to_chain"), text("oft_to"))];
        pair.sort();
        if known.contains(&pair[0].1) {
            continue;
        }
        known.push(pair[0].1.clone());
        let legs = pair.iter().zip([40101, 40102]).zip(&ids).map(|(((_, contract), eid), chain)| {
            let asset = builder.asset(asset(*chain, contract, 18, Origin::Native)).unwrap();
            Leg {
                asset,
                kind: LegKind::Token,
                contract: contract.clone(),
                eid,
                shared_decimals: 6,
                options: "0x".to_owned(),
                messaging_fee: Some(U256::ZERO),
                terms: Terms::default(),
            }
        });
        let legs = legs.collect();
        builder.oft(Oft { symbol: text("token"), legs }).unwrap();
    }
    builder.finish("test".to_owned())
}

#[tokio::test]
async fn every_recorded_message_is_followed_to_its_recorded_end() {
    let (a, b) = (node("a").await, node("b").await);
    follow([&[&a], &[&b]]).await;
    for node in [a, b] {
        assert_eq!(node.missing().count, 0, "{:?}", node.missing().questions);
    }
}

#[tokio::test]
async fn an_evm_node_of_another_chain_is_not_queried() {
    let (a, b) = (node("a").await, node("b").await);
    follow([&[&b, &a], &[&a, &b]]).await;
}

async fn follow(nodes: [&[&ReplayNode]; 2]) {
    let transfers = read("transfers.json").as_array().unwrap().clone();
    let contracts = read("contracts.json");
    let endpoints = [0, 1].map(|at| contracts[at]["layerzero"]["endpoint"].as_str().map(str::to_owned));
    assert!(endpoints.iter().all(Option::is_some), "{contracts}");
    let (_keep, registry) = watch::channel(Arc::new(registry(nodes, endpoints, &transfers)));
    let dir = TempDir::new().unwrap();
    let tracker = Tracker::open(dir.path(), registry, Options::default()).unwrap();
    let now = Timestamp::parse("2030-01-01T00:00:00Z").unwrap();
    for transfer in &transfers {
        tracker
            .track(transfer["from_chain"].as_str().unwrap(), transfer["send_hash"].as_str().unwrap(), now)
            .unwrap();
    }
    let polled = tracker.poll_due(now).await.unwrap();
    assert_eq!(polled.polled, transfers.len());
    for transfer in &transfers {
        let of = |member: &str| transfer[member].as_str().unwrap_or_default();
        let answer = tracker.status(of("from_chain"), of("send_hash")).unwrap().unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        check(transfer, &answer);
    }
}

fn check(transfer: &Value, answer: &Value) {
    let state = match transfer["state"].as_str().unwrap() {
        "received" | "no transfer" => "STATE_COMPLETED_SUCCESS",
        "failed" => "STATE_COMPLETED_ERROR",
        "in flight" | "alerted" => "STATE_PENDING",
        other => panic!("{other}"),
    };
    assert_eq!(answer["state"], state, "{transfer} {answer}");
    if state == "STATE_COMPLETED_ERROR" {
        assert_eq!(answer["error"]["type"], "STATUS_ERROR_TRANSACTION_EXECUTION");
        return;
    }
    if transfer["token"].is_null() {
        assert_eq!(answer["transfer_sequence"], Value::Array(Vec::new()));
        return;
    }
    let hop = &answer["transfer_sequence"][0]["layer_zero_transfer"];
    let is_there = state == "STATE_COMPLETED_SUCCESS";
    let word = if is_there { "RECEIVED" } else { "SENT" };
    assert_eq!(hop["state"], format!("LAYER_ZERO_TRANSFER_{word}"));
    assert_eq!(
        (&hop["from_chain_id"], &hop["to_chain_id"]),
        (&transfer["from_chain"], &transfer["to_chain"])
    );
    for (tx, hash) in [("send_tx", "send_hash"), ("receive_tx", "receive_hash"), ("error_tx", "alert_hash")] {
        assert_eq!(hop["txs"][tx]["tx_hash"], transfer[hash], "{tx} of {transfer}");
    }
    assert_eq!(hop["txs"]["compose_tx"], Value::Null);
    if is_there {
        let release = &answer["transfer_asset_release"];
        assert_eq!(release["amount"], transfer["amount_received"]);
        assert_eq!((&release["chain_id"], &release["released"]), (&transfer["to_chain"], &true.into()));
        assert_eq!(release["denom"].as_str().unwrap().to_lowercase(), transfer["oft_to"]);
    }
}
