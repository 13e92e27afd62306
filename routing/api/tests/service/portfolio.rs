//! What an account has on all chains, as the wallet widget reads it, from recorded nodes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, StreamExt as _};
use registry::Endpoints;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::fixture::Fixture;
use crate::client::recorded::{Chains, L1, L2, USER, answers};
use crate::client::{ASK, Client};

const ALL: &str = "/v1/chain/all";

/// The first `n` messages of a stream, by their chain and type, and what follows.
async fn messages(client: &Client, address: &str, n: usize) -> BTreeMap<(String, String), Value> {
    let mut events = client.app.open(&format!("{ALL}/{address}")).unwrap();
    let mut found = BTreeMap::new();
    for _ in 0..n {
        let event = timeout(Duration::from_secs(20), events.next()).await.unwrap().unwrap();
        assert!(event.frame().starts_with(b"data: {"), "no name and no id");
        let message: Value = serde_json::from_slice(event.data()).unwrap();
        let text = |name: &str| message[name].as_str().unwrap().to_owned();
        assert!(found.insert((text("chainId"), text("type")), message.clone()).is_none(), "{message}");
    }
    assert!(events.next().now_or_never().is_none(), "the stream stays open, and has no more");
    found
}

fn of<'a>(found: &'a BTreeMap<(String, String), Value>, chain: &str, kind: &str) -> &'a Value {
    &found[&(chain.to_owned(), kind.to_owned())]
}

#[tokio::test]
async fn each_chain_of_initia_says_what_its_node_says_of_an_account_in_any_spelling() {
    let chains = Chains::start().await;
    let client = chains.client();
    let names = client.get("/v1/supported-chains").await.ok();
    assert_eq!(names.as_array().unwrap().len(), 2, "{names}");
    let hex = chain::Account::parse(USER, "init").unwrap().to_hex();
    for address in [USER, &hex] {
        let found = messages(&client, address, 4).await;
        for (id, recording) in [(L1, "l1-l2/l1"), (L2, "l1-l2/l2")] {
            let path = format!("/cosmos/bank/v1beta1/balances/{USER}?pagination.limit=1000");
            let recorded = answers(recording)[&path]["balances"].clone();
            let message = of(&found, id, "balances");
            assert_eq!(of(&found, id, "positions")["positions"], json!([]));
            let name = message["chain"].as_str().unwrap();
            assert!(names.as_array().unwrap().contains(&json!(name)), "{name}");
            let said = |balances: &Value| -> BTreeMap<String, String> {
                let pair = |it: &Value| (it["denom"].to_string(), it["amount"].to_string());
                balances.as_array().unwrap().iter().map(pair).collect()
            };
            assert_eq!(said(&message["balances"]), said(&recorded));
            let alone = client.get(&format!("/v1/chain/{name}/{address}/balances")).await.ok();
            assert_eq!(alone, message["balances"]);
            let upper = name.to_uppercase();
            assert_eq!(client.get(&format!("/v1/chain/{upper}/{address}/balances")).await.ok(), alone);
            assert_eq!(
                client.get(&format!("/v1/chain/{name}/{address}/positions?includeYield=true")).await.ok(),
                json!([])
            );
        }
        let balances = of(&found, L1, "balances")["balances"].as_array().unwrap();
        let init = balances.iter().find(|it| it["denom"] == "uinit").unwrap();
        assert_eq!(
            *init,
            json!({
                "type": "asset", "denom": "uinit", "symbol": "INIT", "amount": "999999989226638", "decimals": 6,
                "formattedAmount": 999_999_989.226_638, "value": 999_999_989.226_638 * 0.15,
            })
        );
        let unknown = balances.iter().chain(of(&found, L2, "balances")["balances"].as_array().unwrap());
        let mut unknown = unknown.filter(|it| it["type"] == "unknown").peekable();
        assert!(unknown.all(|it| it.as_object().unwrap().len() == 3));
    }
    let prices = client.get("/v1/prices").await.ok();
    assert!(prices.as_array().unwrap().contains(&json!(["INIT", 0.15])), "{prices}");
}

#[tokio::test]
async fn a_chain_that_fails_says_so_and_delays_no_other() {
    let chains = Chains::start().await;
    chains.l2.down();
    let client = chains.client();
    let found = messages(&client, USER, 3).await;
    assert!(!of(&found, L1, "balances")["balances"].as_array().unwrap().is_empty());
    let error = of(&found, L2, "error");
    assert!(error["error"].as_str().unwrap().contains(L2), "{error}");
    assert!(error.get("balances").is_none(), "what is unknown is not shown as nothing");
    let name = error["chain"].as_str().unwrap();
    assert_eq!(client.get(&format!("/v1/chain/{name}/{USER}/balances")).await.status, 503);

    let silent = Fixture::silent().await;
    let urls = vec![silent.url.clone(), silent.url.replace("127.0.0.1", "127.0.0.2")];
    let endpoints = Endpoints { rest: urls, ..Endpoints::default() };
    let registry = chains.registry().with_endpoints(|id| (id == L2).then(|| endpoints.clone()));
    let begun = Instant::now();
    let found = messages(&Client::over(registry), USER, 3).await;
    assert!(of(&found, L2, "error")["error"].as_str().unwrap().contains("did not answer within"));
    assert!(begun.elapsed() < ASK * 3 / 2, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn invalid_addresses_and_unknown_chains_are_refused_with_their_text() {
    let chains = Chains::start().await;
    let client = chains.client();
    for (target, status, words) in [
        (format!("/v1/chain/nowhere/{USER}/balances"), 404, "`nowhere`"),
        (format!("/v1/chain/nowhere/{USER}/positions"), 404, "`nowhere`"),
        ("/v1/chain/initia/cosmos1x/balances".to_owned(), 400, "`cosmos1x`"),
    ] {
        let answer = client.get(&target).await;
        assert_eq!(answer.status, status, "{target}");
        assert!(String::from_utf8_lossy(&answer.body).contains(words), "{target}");
    }
    let refused = client.app.open(&format!("{ALL}/0x{}", "1".repeat(65))).err().unwrap();
    assert_eq!(refused.status().as_u16(), 400);
}
