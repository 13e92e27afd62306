//! Balances of the recorded accounts, also if some nodes do not answer.

use std::time::Instant;

use serde_json::json;

use crate::client::fixture::Fixture;
use crate::client::recorded::{Chains, HOLDER, L1, L2, TOKEN_A, USER, WRAPPED, answers};
use crate::client::{ASK, Client};

#[tokio::test]
async fn balances_equal_the_answers_of_the_nodes() {
    let chains = Chains::start().await;
    let client = chains.client();
    let ask = json!({ "chains": {
        L1: { "address": USER, "denoms": [] },
        L2: { "address": USER },
        "31337": { "address": HOLDER, "denoms": ["test-evm-a-native", TOKEN_A.to_lowercase(), TOKEN_A] },
    } });
    let reply = client.post("/v2/info/balances", &ask).await.ok();
    for (id, recording) in [(L1, "l1-l2/l1"), (L2, "l1-l2/l2")] {
        let path = format!("/cosmos/bank/v1beta1/balances/{USER}?pagination.limit=1000");
        let recorded = &answers(recording)[&path]["balances"];
        let denoms = reply["chains"][id]["denoms"].as_object().unwrap();
        assert_eq!(denoms.len(), recorded.as_array().unwrap().len());
        assert!(denoms.len() > 1);
        for coin in recorded.as_array().unwrap() {
            assert_eq!(denoms[coin["denom"].as_str().unwrap()]["amount"], coin["amount"]);
        }
    }
    let evm = &reply["chains"]["31337"]["denoms"];
    assert_eq!(evm["test-evm-a-native"]["formatted_amount"], "1000.000000000000000000");
    assert_eq!(evm["test-evm-a-native"]["value_usd"], "3000000.00");
    // Each under the name in the request.
    for name in [TOKEN_A.to_owned(), TOKEN_A.to_lowercase()] {
        assert_eq!(evm[&name]["amount"], "1000000000000000000000000", "{name}");
        assert_eq!(evm[&name]["decimals"], 18);
    }
}

#[tokio::test]
async fn a_named_denomination_is_listed_even_with_balance_zero() {
    let chains = Chains::start().await;
    let shouted = WRAPPED.to_uppercase().replace("EVM/", "evm/");
    let ask = json!({ "chains": { L2: { "address": USER, "denoms": [WRAPPED, shouted, "uinot"] } } });
    let reply = chains.client().post("/v2/info/balances", &ask).await.ok();
    let denoms = &reply["chains"][L2]["denoms"];
    assert_eq!(denoms[WRAPPED]["formatted_amount"], "0.000000000000000000");
    assert_eq!(denoms[&shouted]["amount"], "0");
    let unknown = json!({
        "amount": "0", "decimals": null, "formatted_amount": "0", "price": null, "price_usd": null,
        "value_usd": null,
    });
    assert_eq!(denoms["uinot"], unknown);
}

#[tokio::test]
async fn a_chain_that_is_down_does_not_affect_other_balances() {
    let chains = Chains::start().await;
    chains.l2.down();
    let client = chains.client();
    let ask = json!({ "chains": {
        L1: { "address": USER }, L2: { "address": USER, "denoms": ["GAS"] }, "31337": { "address": HOLDER },
        "nowhere-1": { "address": USER },
    } });
    let reply = client.post("/v2/info/balances", &ask).await.ok();
    assert_eq!(reply["chains"][L1]["denoms"]["uinit"]["amount"], "999999989226638");
    let down = &reply["chains"][L2]["denoms"]["GAS"];
    assert_eq!(down["amount"], "0");
    assert!(!down["error"]["message"].as_str().unwrap().is_empty());
    assert!(reply["chains"].get("nowhere-1").is_none());
    chains.l2.up();
    let reply = client.post("/v2/info/balances", &ask).await.ok();
    assert_eq!(reply["chains"][L2]["denoms"]["GAS"]["amount"], "999999998999999999966993");
}

#[tokio::test]
async fn nodes_that_never_answer_do_not_delay_the_others() {
    let chains = Chains::start().await;
    let silent = Fixture::silent().await;
    let registry = chains.registry().with_endpoints(|id| {
        let urls = vec![silent.url.clone(), silent.url.replace("127.0.0.1", "127.0.0.2"), silent.url.clone()];
        (id == L2).then(|| registry::Endpoints { rest: urls, ..registry::Endpoints::default() })
    });
    let begun = Instant::now();
    let ask = json!({ "chains": { L1: { "address": USER }, L2: { "address": USER, "denoms": ["GAS"] } } });
    let reply = Client::over(registry).post("/v2/info/balances", &ask).await.ok();
    assert_eq!(reply["chains"][L1]["denoms"]["uinit"]["amount"], "999999989226638");
    assert!(reply["chains"][L2]["denoms"]["GAS"]["error"]["message"].is_string());
    // Regardless of its number of nodes.
    assert!(begun.elapsed() < ASK * 3 / 2, "{:?}", begun.elapsed());
}
