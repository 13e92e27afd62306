//! Paths of `opinit.ophost.v1` over the index of a layer one, against what the recorded nodes replied.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::sync::Arc;

use ingest::Config;
use query::Indexer;
use replay::{Options, Recording};
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::{indexed, recording};
use web::app::App;

use crate::bridge_pair::INDEX;
use crate::node_search::{Recorded, get};

const ROOT: &str = "/opinit/ophost/v1/bridges";

/// The index of a recorded layer one.
async fn app(pair: &str) -> App<Indexer> {
    let chain = Arc::new(Recording::open(&recording(&format!("{pair}/l1"))).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = Config {
        indexes: vec![&INDEX],
        internal_txs: false,
        rich_list: false,
        ..indexed::config(&chain).unwrap()
    };
    indexed::index_as(config, chain, Options::default(), Arc::clone(&store)).await.unwrap();
    App::new(indexed::indexer(store).unwrap(), query::WITH_NODE_PATHS).unwrap()
}

/// The last recorded reply to each request about outputs and claims.
fn replies(pair: &str) -> BTreeMap<String, (u16, Value)> {
    let bytes = std::fs::read(recording(pair).join("l1/extra.ndjson.zst")).unwrap();
    let text = zstd::stream::decode_all(bytes.as_slice()).unwrap();
    let lines = text.lines().map(Result::unwrap).filter(|line| line.contains(ROOT));
    let rest = lines.filter_map(|line| serde_json::from_str::<Recorded>(&line).ok());
    let wanted = rest.filter(|line| line.path.contains("/outputs") || line.path.contains("/by_hash"));
    wanted.map(|line| (line.path, (line.status, serde_json::from_str(line.answer.get()).unwrap()))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_and_claims_are_those_of_the_recorded_nodes() {
    for (pair, is_whole, least) in [("l1-l2-swaps", true, 50), ("bridge-cases", false, 8)] {
        let app = app(pair).await;
        let (mut equal, mut older) = (0, 0);
        for (path, (status, theirs)) in replies(pair) {
            let (code, body) = get(&app, &path);
            if code == 501 && !is_whole {
                assert!(body.contains("may be older than block 161"), "{pair} {path}: {body}");
                older += 1;
                continue;
            }
            let ours: Value = serde_json::from_str(&body).unwrap();
            assert_eq!((code, ours), (status, theirs), "{pair} {path}");
            equal += 1;
        }
        println!("{pair}: {equal} equal, {older} may be older than the index");
        assert!(equal >= least && (older > 0) != is_whole, "{pair}: {equal}, {older}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_outputs_follow_one_another_in_both_orders_and_bad_parameters_are_named() {
    let app = app("l1-l2-swaps").await;
    let all: Vec<u64> = (1..=43).collect();
    for (order, expected) in [("false", all.clone()), ("true", all.into_iter().rev().collect())] {
        let (mut found, mut key) = (Vec::new(), Some(String::new()));
        while let Some(from) = key {
            let from = from.replace('=', "%3D");
            let target = format!(
                "{ROOT}/1/outputs?pagination.limit=10&pagination.reverse={order}&pagination.key={from}"
            );
            let (status, body) = get(&app, &target);
            assert_eq!(status, 200, "{body}");
            let page: Value = serde_json::from_str(&body).unwrap();
            let outputs = page["output_proposals"].as_array().unwrap().iter();
            found.extend(
                outputs.map(|output| output["output_index"].as_str().unwrap().parse::<u64>().unwrap()),
            );
            key = page["pagination"]["next_key"].as_str().map(str::to_owned);
        }
        assert_eq!(found, expected);
    }
    assert_eq!(app.get(&format!("{ROOT}/1/outputs")).headers()["x-cosmos-block-height"], "570");
    for (target, named) in [
        ("1/outputs?pagination.limit=1001", "at most 1000 outputs"),
        ("1/outputs?pagination.limit=x", "strconv.ParseUint"),
        ("1/outputs?pagination.key=AAAAAAAAACo%3D&pagination.offset=1", "pagination.offset"),
        ("1/outputs?pagination.key=AA", "base64 of 8 bytes"),
        ("1/outputs/x", "output_index"),
        ("x/outputs", "bridge_id"),
        ("1/withdrawals/claimed/by_hash", "withdrawal_hash"),
    ] {
        let (status, body) = get(&app, &format!("{ROOT}/{target}"));
        assert!(status == 400 && body.contains(named), "{target}: {status} {body}");
    }
    let (status, body) = get(&app, "/cosmos/base/tendermint/v1beta1/node_info");
    let info: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &info["default_node_info"]["network"]), (200, &json!("swap-l1-1")));
}
