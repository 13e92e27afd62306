//! Holders of tokens, compared with what the contracts said.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use chain::U256;
use etherscan::Etherscan;
use evm_rpc::{Dialect, EvmRpc, Forward, ForwardAt, Group};
use replay::{Addresses, Options, Recording, ReplayNode};
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::{indexed, recording};
use web::app::App;

use super::naive::{lines, text};
use super::{fees, reply, result, rows};

/// The fee token.
const GAS: &str = "0x042add9e80f7a23ab71d5e1d392af1d3928b7d05";

/// The balances of the last height by token: the total supply, and the account of each amount.
fn balances() -> BTreeMap<String, (U256, BTreeMap<String, U256>)> {
    let all: Vec<Value> = lines("evm-fees", "balances.ndjson.zst").collect();
    let list = |name: &str| all[0][name].as_array().unwrap().clone();
    let accounts: Vec<_> = list("accounts").iter().map(|it| text(&it["address"]).to_owned()).collect();
    let amount = |it: &Value| U256::from_str_radix(text(it), 10).unwrap_or_default();
    let of_token = |(token, amounts): (&String, &Value)| {
        let amounts = amounts.as_array()?;
        let held = accounts.iter().cloned().zip(amounts[1..].iter().map(amount));
        Some((token.clone(), (amount(&amounts[0]), held.filter(|(_, held)| !held.is_zero()).collect())))
    };
    all.last().unwrap()["erc20"].as_object().unwrap().iter().filter_map(of_token).collect()
}

/// The interface over the index with the rich list.
async fn indexed_with_holders(forward: Option<Forward>) -> App<Etherscan> {
    let played = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    indexed::index(played, Options::default(), Arc::clone(&store)).await.unwrap();
    let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let index = Arc::new(OnceLock::from(Arc::new(app)));
    let rpc = EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "0").with_forward(forward);
    Etherscan::new(rpc).app().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_holders_of_each_token_are_those_that_its_contract_names() {
    let app = indexed_with_holders(None).await;
    let mut compared = 0;
    for (token, (supply, expected)) in balances() {
        let query = |action: &str| format!("module=token&action={action}&contractaddress={token}");
        let listed = reply(&app, &query("tokenholderlist")).await;
        if listed["message"] == "NOTOK" {
            assert!(text(&listed["result"]).contains("Not all holders"), "{listed}");
            assert_eq!(reply(&app, &query("tokenholdercount")).await["message"], "NOTOK");
            continue;
        }
        let rows = listed["result"].as_array().unwrap();
        let amount = |row: &Value| U256::from_str_radix(text(&row["TokenHolderQuantity"]), 10).unwrap();
        let found: BTreeMap<_, _> =
            rows.iter().map(|row| (text(&row["TokenHolderAddress"]).to_owned(), amount(row))).collect();
        assert!(rows.windows(2).all(|two| amount(&two[0]) >= amount(&two[1])), "the largest first");
        let sum = found.values().fold(U256::ZERO, |sum, held| sum + held);
        assert!(expected.iter().all(|(account, held)| found.get(account) == Some(held)), "{token}");
        assert_eq!(sum, supply, "{token}");
        assert_eq!(result(&app, &query("tokenholdercount")).await, found.len().to_string());
        let of_blockscout = result(&app, &query("getTokenHolders")).await;
        for (one, other) in rows.iter().zip(of_blockscout.as_array().unwrap()) {
            assert_eq!(
                (&one["TokenHolderAddress"], &one["TokenHolderQuantity"]),
                (&other["address"], &other["value"])
            );
        }
        let page = result(&app, &format!("{}&page=2&offset=3", query("tokenholderlist"))).await;
        assert_eq!(page.as_array().unwrap()[..], rows[3..6.min(rows.len())]);
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
    let nobody = format!("module=token&action=tokenholderlist&contractaddress=0x{}", "5a".repeat(20));
    assert_eq!(
        reply(&app, &nobody).await,
        json!({ "status": "0", "message": "No token holder found", "result": [] })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_rich_list_holders_are_refused_and_without_a_node_what_is_in_wei() {
    let query = format!("module=token&action=tokenholderlist&contractaddress={GAS}");
    let refused = reply(fees().await, &query).await;
    assert_eq!(refused["result"], "it needs `rich_list`, which is not indexed", "{refused}");
    let app = indexed_with_holders(None).await;
    for query in ["module=account&action=listaccounts", "module=stats&action=ethsupply"] {
        let refused = reply(&app, query).await;
        assert!(text(&refused["result"]).contains("`state` in the setting `evm_forward`"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_by_their_native_balances_and_its_supply_are_in_wei() {
    let played = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    let node = ReplayNode::start(played, Addresses::default(), Options::default()).await.unwrap();
    let forward = Forward::new(vec![Group::State], vec![node.json_rpc_url().parse().unwrap()]).unwrap();
    let app = indexed_with_holders(Some(forward.at(ForwardAt::Index))).await;
    let (supply, expected) = balances().remove(GAS).unwrap();
    assert_eq!(result(&app, "module=stats&action=ethsupply").await, supply.to_string());
    let accounts = rows(&app, "module=account&action=listaccounts&page=1&offset=10").await;
    assert_eq!(accounts.len(), 10);
    for row in accounts.iter().filter(|row| expected.contains_key(text(&row["address"]))) {
        assert_eq!(row["balance"], expected[text(&row["address"])].to_string(), "{row}");
        assert_eq!(row["stale"], false);
    }
    let decimal = format!("module=stats&action=tokensupply&contractaddress={GAS}");
    assert_eq!(result(&app, &decimal).await, supply.to_string());
    // What the node refuses is its own error, whatever is forwarded.
    let silent = "module=stats&action=tokensupply&contractaddress=0x67ee3fd2f9597f0da8bde548b93e65bb93902af3";
    let refused = reply(&app, silent).await;
    assert_eq!(refused["message"], "NOTOK");
    assert!(!text(&refused["result"]).contains("evm_forward"), "{refused}");
    node.stop().await;
}
