//! Reload of a registry while requests run.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use registry::{Endpoints, Facts};
use serde_json::{Value, json};

use crate::client::Client;
use crate::client::fixture::Fixture;
use crate::client::recorded::{Chains, USER, VOUCHER, example, texts};

fn ask() -> Value {
    json!({
        "amount_in": "1000000", "source_asset_chain_id": "e2e-l1-1", "source_asset_denom": "uinit",
        "dest_asset_chain_id": "e2e-l2-1", "dest_asset_denom": VOUCHER,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_request_fails_and_later_ones_use_the_new_registry() {
    const ROUNDS: u64 = 20;
    let client = Arc::new(Client::over(example().with_endpoints(|_| Some(Endpoints::default()))));
    let (over, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let users: Vec<_> = (0..4)
        .map(|_| {
            let (client, over, asked) = (Arc::clone(&client), Arc::clone(&over), Arc::clone(&asked));
            tokio::spawn(async move {
                while !over.load(Ordering::SeqCst) {
                    let route = client.post("/v2/fungible/route", &ask()).await.ok();
                    assert_eq!(route["amount_out"], "1000000");
                    client.get("/v2/fungible/assets").await.ok();
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for round in 1..=ROUNDS {
        for (name, text) in texts() {
            let text =
                text.replace("pretty_name = \"Recorded L1\"", &format!("pretty_name = \"L1, {round}\""));
            fs::write(dir.path().join(name), text).unwrap();
        }
        let before = asked.load(Ordering::SeqCst);
        assert_eq!(client.service().reload(dir.path()).unwrap(), []);
        let chain = client.get("/v2/info/chains?chain_ids=e2e-l1-1").await.ok()["chains"][0].clone();
        assert_eq!(chain["pretty_name"], format!("L1, {round}"));
        seen.push(client.get("/v2/info/registry").await.ok()["hash"].clone());
        while asked.load(Ordering::SeqCst) == before {
            assert!(!users.iter().any(tokio::task::JoinHandle::is_finished), "a request failed");
            tokio::task::yield_now().await;
        }
    }
    over.store(true, Ordering::SeqCst);
    for user in users {
        user.await.unwrap();
    }
    seen.sort_by_key(Value::to_string);
    seen.dedup();
    assert_eq!(seen.len() as u64, ROUNDS, "a hash names the content");
}

#[tokio::test]
async fn a_registry_that_does_not_load_leaves_the_old_one() {
    let client = Client::over(example().with_endpoints(|_| Some(Endpoints::default())));
    let before = client.get("/v2/info/registry").await.body;
    let dir = tempfile::tempdir().unwrap();
    let refused = client.service().reload(dir.path()).unwrap_err().to_string();
    assert!(!refused.is_empty());
    for (name, text) in texts() {
        fs::write(dir.path().join(name), text).unwrap();
    }
    fs::write(dir.path().join("more.toml"), "[[bridge]]\nid = 5\nl2 = \"nowhere-1\"\n").unwrap();
    let refused = client.service().reload(dir.path()).unwrap_err().to_string();
    assert!(refused.contains("more.toml") && refused.contains("nowhere-1"), "{refused}");
    assert_eq!(client.get("/v2/info/registry").await.body, before);
    assert_eq!(client.post("/v2/fungible/route", &ask()).await.ok()["amount_out"], "1000000");
}

#[tokio::test]
async fn nodes_are_queried_at_the_new_addresses() {
    let chains = Chains::start().await;
    let old =
        Fixture::start(|_| Ok(json!({ "balances": [{ "denom": "uinit", "amount": "5" }] })), |_| Value::Null)
            .await;
    let at = Endpoints { rest: vec![old.url.clone()], ..Endpoints::default() };
    let client = Client::over(example().with_endpoints(|_| Some(at.clone())));
    let ask = json!({ "chains": { "e2e-l1-1": { "address": USER } } });
    for amount in ["5", "999999989226638"] {
        let answer = client.post("/v2/info/balances", &ask).await.ok();
        assert_eq!(answer["chains"]["e2e-l1-1"]["denoms"]["uinit"]["amount"], amount);
        client.service().replace(chains.registry());
    }
}

#[tokio::test]
async fn chain_facts_survive_a_reload() {
    let client = Client::over(example().with_endpoints(|_| Some(Endpoints::default())));
    let end = ("e2e-l1-1".to_owned(), "transfer".to_owned(), "channel-0".to_owned());
    let mut facts = Facts::default();
    facts.closed.insert(end, "closed for good".to_owned());
    client.service().learn(facts);
    client.service().replace(example().with_endpoints(|_| Some(Endpoints::default())));
    let (_, _, message) = client.post("/v2/fungible/route", &ask()).await.refusal();
    assert!(message.ends_with("closed for good"), "{message}");
}
