//! Holders of tokens, compared with what the contracts said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use chain::U256;
use etherscan::Etherscan;
use evm_rpc::{Dialect, EvmRpc, Forward, ForwardAt, Group};
use replay::{Addresses, Options, Recording, ReplayNode};
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::{indexed, recording};
use web::app::App;

use super::naive::{chain, fee_token, lines, number, text};
use super::{fees, reply, result, rows};

const NAME: &str = "evm-scenario";

/// The supply of each token, as its contract said.
fn supplies() -> BTreeMap<String, U256> {
    let calls = lines(NAME, "state.ndjson.zst").filter(|line| line["data"] == "0x18160ddd");
    calls.map(|call| (text(&call["to"]).to_owned(), number(&call["result"]))).collect()
}

/// The interface over the index with the rich list.
async fn indexed_with_holders(forward: Option<Forward>) -> App<Etherscan> {
    let played = Arc::new(Recording::open(&recording(NAME)).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    indexed::index(played, Options::default(), Arc::clone(&store)).await.unwrap();
    let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let index = Arc::new(OnceLock::from(Arc::new(app)));
    let rpc = EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "0").with_forward(forward);
    Etherscan::new(rpc).app().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_holders_of_each_token_have_its_supply_the_largest_first() {
    let app = indexed_with_holders(None).await;
    let mut compared = 0;
    for (token, supply) in supplies() {
        let query = |action: &str| format!("module=token&action={action}&contractaddress={token}");
        let listed = reply(&app, &query("tokenholderlist")).await;
        if listed["message"] == "NOTOK" {
            assert!(text(&listed["result"]).contains("Not all holders"), "{listed}");
            assert_eq!(reply(&app, &query("tokenholdercount")).await["message"], "NOTOK");
            continue;
        }
        let rows = listed["result"].as_array().unwrap();
        let amount = |row: &Value| U256::from_str_radix(text(&row["TokenHolderQuantity"]), 10).unwrap();
        assert!(rows.windows(2).all(|two| amount(&two[0]) >= amount(&two[1])), "the largest first");
        assert_eq!(rows.iter().fold(U256::ZERO, |sum, row| sum + amount(row)), supply, "{token}");
        let accounts: BTreeSet<_> = rows.iter().map(|row| text(&row["TokenHolderAddress"])).collect();
        assert_eq!(accounts.len(), rows.len());
        assert_eq!(result(&app, &query("tokenholdercount")).await, rows.len().to_string());
        let of_blockscout = result(&app, &query("getTokenHolders")).await;
        for (one, other) in rows.iter().zip(of_blockscout.as_array().unwrap()) {
            let same = [("TokenHolderAddress", "address"), ("TokenHolderQuantity", "value")];
            assert!(same.iter().all(|(a, b)| one[*a] == other[*b]), "{one} {other}");
        }
        let page = super::rows(&app, &format!("{}&page=2&offset=3", query("tokenholderlist"))).await;
        assert_eq!(page[..], rows[rows.len().min(3)..rows.len().min(6)]);
        compared += 1;
    }
    assert!(compared > 1, "{compared}");
    let nobody = format!("module=token&action=tokenholderlist&contractaddress=0x{}", "5a".repeat(20));
    assert_eq!(
        reply(&app, &nobody).await,
        json!({ "status": "0", "message": "No token holder found", "result": [] })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_rich_list_holders_are_refused_and_without_a_node_what_is_in_wei() {
    let query = format!("module=token&action=tokenholderlist&contractaddress=0x{}", "5a".repeat(20));
    let refused = reply(fees().await, &query).await;
    assert_eq!(refused["result"], "it needs `rich_list`, which is off: set `rich_list`", "{refused}");
    let app = indexed_with_holders(None).await;
    for query in ["module=account&action=listaccounts", "module=stats&action=ethsupply"] {
        let refused = reply(&app, query).await;
        assert!(text(&refused["result"]).contains("`state` in the setting `evm_forward`"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_by_their_native_balances_and_its_supply_are_in_wei() {
    let played = Arc::new(Recording::open(&recording(NAME)).unwrap());
    let node = ReplayNode::start(played, Addresses::default(), Options::default()).await.unwrap();
    let forward = Forward::new(vec![Group::State], vec![node.json_rpc_url().parse().unwrap()]).unwrap();
    let app = indexed_with_holders(Some(forward.at(ForwardAt::Index))).await;
    let token = fee_token(&chain(NAME)).unwrap();
    let supply = supplies()[&token];
    assert_eq!(result(&app, "module=stats&action=ethsupply").await, supply.to_string());
    let accounts = rows(&app, "module=account&action=listaccounts&page=1&offset=10").await;
    let holders = format!("module=token&action=tokenholderlist&contractaddress={token}&page=1&offset=10");
    for (account, holder) in accounts.iter().zip(rows(&app, &holders).await) {
        assert_eq!(account["address"], holder["TokenHolderAddress"]);
        assert_eq!((&account["balance"], &account["stale"]), (&holder["TokenHolderQuantity"], &json!(false)));
    }
    assert!(accounts.len() > 3, "{accounts:?}");
    // What the node refuses is its own error, whatever is forwarded.
    let unknown = format!("module=stats&action=tokensupply&contractaddress=0x{}", "5a".repeat(20));
    let refused = reply(&app, &unknown).await;
    assert_eq!(refused["message"], "NOTOK");
    assert!(!text(&refused["result"]).contains("evm_forward"), "{refused}");
    node.stop().await;
}
