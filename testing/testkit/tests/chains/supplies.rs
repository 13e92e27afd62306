//! Supplies, numbers of holders and of movements of tokens at heights, against what recorded chains said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use ingest::Config;
use query::Indexer;
use replay::Recording;
use replay::answers::HttpReply;
use schema::balances::BALANCES;
use schema::index::Index;
use schema::ledger::LEDGER;
use schema::supply::SupplyReplies;
use schema::tokens::TOKENS;
use schema::undo::Horizon;
use serde_json::{Value, json};
use store::key::All;
use store::{MemStore, Message, Order, Store};
use testkit::live::Live;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, recording};
use web::app::App;

static INDEXES: [Index; 3] = [LEDGER, TOKENS, BALANCES];

const ROOT: &str = "/indexer/ledger/v1";

/// What the bank said of all supplies at a height.
fn supplies(recording: &Recording, height: u64) -> Option<BTreeMap<String, String>> {
    let path = "/cosmos/bank/v1beta1/supply?pagination.limit=1000";
    let reply = recording.state().rest("GET", path, Some(height), None)?;
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    let coin = |coin: &Value| (text(coin, "denom").to_owned(), text(coin, "amount").to_owned());
    Some(reply["supply"].as_array().unwrap().iter().map(coin).collect())
}

/// A node that is asked for one supply at a time, which the recording has in lists.
async fn node(chain: &Arc<Recording>) -> OverriddenNode {
    let recording = Arc::clone(chain);
    let one = move |exchange: RecordedExchange<'_>| -> HttpReply {
        let target = exchange.request.uri().path_and_query().map_or("", |target| target.as_str());
        let height = exchange.request.headers().get("x-cosmos-block-height");
        let height = height.and_then(|height| height.to_str().ok()?.parse().ok());
        let denom = target.strip_prefix("/cosmos/bank/v1beta1/supply/by_denom?denom=");
        let Some((denom, all)) = denom.zip(height.and_then(|height| supplies(&recording, height))) else {
            return exchange.answer;
        };
        let denom = denom.replace("%2F", "/").replace("%5F", "_");
        let amount = all.get(&denom).map_or("0", String::as_str);
        let body = json!({ "amount": { "denom": denom, "amount": amount } });
        HttpReply { status: StatusCode::OK, body: body.to_string().into() }
    };
    OverriddenNode::start(Arc::clone(chain), one).await.unwrap()
}

fn get(app: &App<Indexer>, target: &str) -> Value {
    let reply = app.read(target).map_err(|error| format!("{target}: {}", error.message())).unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

fn text<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap_or_else(|| panic!("{name}: {record}"))
}

fn total(app: &App<Indexer>, target: &str) -> String {
    text(&get(app, target)["pagination"], "total").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supply_that_was_told_once_is_that_of_every_height() {
    let chain = Arc::new(Recording::open(&recording("wasm-ledger")).unwrap());
    let (last, node) = (chain.last(), node(&chain).await);
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = Config {
        indexes: INDEXES.iter().collect(),
        reconcile_every: Some(Duration::from_millis(160)),
        // Recorded blocks are older than a day.
        undo: Horizon { time: Duration::MAX, bytes: u64::MAX },
        ..indexed::config(&chain).unwrap()
    };
    let clients = Arc::new(node.clients().unwrap());
    let mut live = Live::start(clients, config, Arc::clone(&store)).await.unwrap();
    live.reach(&chain, last).await.unwrap();
    let of_last = supplies(&chain, last).unwrap();
    let app = App::new(indexed::indexer(Arc::clone(&store)).unwrap(), query::ENDPOINTS).unwrap();
    let target = |denom: &str| format!("{ROOT}/tokens/{}", denom.replace('/', "%2F"));
    let token = |denom: &str, query: &str| get(&app, &format!("{}{query}", target(denom)))["token"].take();
    // A supply is sampled in turns, and nothing announces that.
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let told = |denom: &String| token(denom, "")["supply_checked_height"] == json!(last.to_string());
    while !of_last.keys().all(told) {
        looks.tick().await;
    }
    live.stop().await.unwrap();

    let mut compared = 0;
    for height in (chain.first()..=last).filter(|height| supplies(&chain, *height).is_some()) {
        let all = supplies(&chain, height).unwrap();
        for denom in of_last.keys() {
            let record = token(denom, &format!("?height={height}"));
            let said = all.get(denom).map_or("0", String::as_str);
            assert_eq!(text(&record, "supply"), said, "{denom} {height}");
            let encoded = denom.replace('/', "%2F");
            let holders = total(&app, &format!("{ROOT}/holders/{encoded}?height={height}"));
            assert_eq!(text(&record, "holders"), holders, "{denom} {height}");
            let moved = total(&app, &format!("{ROOT}/transfers/by_token/{encoded}?to_height={height}"));
            assert_eq!(text(&record, "transfers"), moved, "{denom} {height}");
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
    for denom in of_last.keys() {
        let record = token(denom, "");
        let flags = ["drifting", "silent", "derived"].map(|flag| &record[flag]);
        assert_eq!(flags, [&json!(false); 3], "{record}");
        assert_eq!(text(&record, "complete_from"), chain.first().to_string(), "{record}");
        assert_eq!(record, token(denom, &format!("?height={last}")));
    }
    // Of CW20s whose first balances are unknown, nothing is known; and not 0.
    let contracts = get(&app, &format!("{ROOT}/tokens?type=cw20&pagination.limit=1000"));
    let contracts = contracts["tokens"].as_array().unwrap().clone();
    let (known, unknown): (Vec<_>, Vec<_>) =
        contracts.iter().partition(|record| !record["complete_from"].is_null());
    assert!(!known.is_empty() && !unknown.is_empty());
    assert!(known.iter().all(|record| record["supply"].is_string()));
    let untold = unknown.iter().filter(|record| record["supply_checked_height"].is_null());
    assert!(untold.clone().count() > 0 && untold.clone().all(|record| record["supply"].is_null()));

    // What was said of removed blocks is forgotten.
    let said = || {
        let snapshot = store.snapshot().unwrap();
        let rows = store::table::rows::<SupplyReplies>(&*snapshot, &All, Order::Asc, usize::MAX).unwrap();
        rows.into_iter().filter(|(_, Message(reply))| reply.height == last).count()
    };
    assert!(said() >= of_last.len());
    schema::rewind::rewind(&*store, last - 1).unwrap();
    assert_eq!(said(), 0);
}
