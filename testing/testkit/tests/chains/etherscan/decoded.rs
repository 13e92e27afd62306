//! Calls and logs by the ABIs of known contracts.

use std::collections::BTreeMap;

use chain::U256;
use etherscan::{Contracts, Etherscan};
use serde_json::{Value, json};
use web::app::App;

use super::naive::{chain, number, objects, text};
use super::{fees, response, rows};

const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// `transfer(address,uint256)`.
const SELECTOR: &str = "0xa9059cbb";

async fn decoded(app: &App<Etherscan>, hash: &str) -> Value {
    let response = response(app, &format!("/indexer/evm/v1/decoded/{hash}")).await;
    assert_eq!(response.status(), 200, "{response:?}");
    serde_json::from_slice(response.body()).unwrap()
}

fn address(word: &str) -> String {
    format!("0x{}", &word[word.len() - 40..])
}

#[tokio::test(flavor = "multi_thread")]
async fn transfers_are_explained_by_the_abi_of_their_contract_and_else_by_the_standards() {
    let (shared, txs, objects) = (fees().await, chain("evm-fees"), objects("evm-fees"));
    let folder = tempfile::tempdir().unwrap();
    let contracts = Contracts::new(folder.path().to_owned());
    let app = Etherscan::new(shared.state().rpc().clone()).with_contracts(Some(contracts.clone()));
    let app = app.app().unwrap();
    // The contracts that are called most.
    let mut called = BTreeMap::<&str, usize>::new();
    for object in objects.values().filter(|object| text(&object["input"]).starts_with(SELECTOR)) {
        *called.entry(text(&object["to"])).or_default() += 1;
    }
    let token = *called.iter().max_by_key(|(_, times)| **times).unwrap().0;
    let abi = json!([
        { "type": "function", "name": "transfer", "inputs": [
            { "type": "address", "name": "whom" }, { "type": "uint256", "name": "much" },
        ] },
        { "type": "event", "name": "Transfer", "inputs": [
            { "type": "address", "name": "a", "indexed": true }, { "type": "address", "name": "b", "indexed": true },
            { "type": "uint256", "name": "c" },
        ] },
    ]);
    let bytes = hex::decode(&token[2..]).unwrap().try_into().unwrap();
    contracts.add_bytes(&bytes, abi.to_string().as_bytes()).unwrap();
    let (mut calls, mut likely, mut own, mut guessed, mut unknown) = (0, 0, 0, 0, 0);
    for tx in &txs {
        let hash = text(&tx.receipt["transactionHash"]);
        let (found, object) = (decoded(&app, hash).await, &objects[hash]);
        let input = text(&object["input"]);
        let is_stand_in = text(&object["from"]).trim_matches(['0', 'x']).is_empty();
        let calls_one = !object["to"].is_null() && input.len() >= 10 && !is_stand_in;
        assert_eq!(found["call"].is_object(), calls_one, "{found}");
        if object["to"] == token && input.starts_with(SELECTOR) && input.len() == 138 {
            let expected = json!([
                { "name": "whom", "type": "address", "value": address(&input[10..74]) },
                { "name": "much", "type": "uint256", "value": U256::from_str_radix(&input[74..], 16).unwrap().to_string() },
            ]);
            assert_eq!(found["call"]["arguments"], expected, "{hash}");
            assert_eq!(found["call"]["function"], "transfer(address whom, uint256 much)");
            assert_eq!(found["call"]["guess"], false);
            calls += 1;
        } else if calls_one && object["to"] != token {
            // Of an unknown contract: a function of a standard with its arguments, or nothing.
            let call = &found["call"];
            assert_eq!(call["guess"], !call["function"].is_null(), "{found}");
            assert_eq!(call["arguments"].is_null(), call["function"].is_null(), "{found}");
            if input.starts_with(SELECTOR) && input.len() == 138 {
                assert_eq!(call["function"], "transfer(address to, uint256 value)");
                likely += 1;
            }
        }
        let logs = tx.receipt["logs"].as_array().unwrap();
        assert_eq!(found["logs"].as_array().unwrap().len(), logs.len());
        for (log, row) in logs.iter().zip(found["logs"].as_array().unwrap()) {
            assert_eq!(row["contract"], log["address"]);
            let topics = log["topics"].as_array().unwrap();
            let is_transfer = topics.len() == 3 && topics[0] == TRANSFER && text(&log["data"]).len() == 66;
            if !is_transfer {
                unknown += usize::from(row["event"].is_null());
                continue;
            }
            let values: Vec<_> =
                row["arguments"].as_array().unwrap().iter().map(|it| it["value"].clone()).collect();
            let expected =
                [address(text(&topics[1])), address(text(&topics[2])), number(&log["data"]).to_string()];
            assert_eq!(values, expected.map(Value::from), "{row}");
            let is_own = log["address"] == token;
            assert_eq!(row["guess"], !is_own);
            let name = if is_own {
                "Transfer(address a, address b, uint256 c)"
            } else {
                "Transfer(address from, address to, uint256 value)"
            };
            assert_eq!(row["event"], name);
            if is_own { own += 1 } else { guessed += 1 }
        }
    }
    assert!(calls > 10 && likely > 10 && own > 10 && guessed > 100, "{calls} {likely} {own} {guessed}");
    assert!(unknown > 0, "logs of other events");
    let named = rows(&app, &format!("module=account&action=txlist&address={token}")).await;
    assert!(named.iter().any(|row| row["functionName"] == "transfer(address whom, uint256 much)"));
    for (path, status) in [(format!("0x{}", "7".repeat(64)), 404), ("0x12".to_owned(), 400)] {
        let response = response(&app, &format!("/indexer/evm/v1/decoded/{path}")).await;
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert!(response.status() == status && body["message"].is_string(), "{path}: {body}");
    }
}

/// The contract behind a proxy explains it too.
#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_explained_by_the_contract_behind_it() {
    let (shared, txs, objects) = (fees().await, chain("evm-fees"), objects("evm-fees"));
    let folder = tempfile::tempdir().unwrap();
    let contracts = Contracts::new(folder.path().to_owned());
    let app = Etherscan::new(shared.state().rpc().clone()).with_contracts(Some(contracts.clone()));
    let app = app.app().unwrap();
    let tx = txs.iter().map(|tx| text(&tx.receipt["transactionHash"])).find(|hash| {
        text(&objects[*hash]["input"]).starts_with(SELECTOR) && text(&objects[*hash]["input"]).len() == 138
    });
    let (hash, to) = (tx.unwrap(), text(&objects[tx.unwrap()]["to"]));
    let proxy = json!({ "abi": [], "proxyResolution": { "implementations": [{ "address": format!("0x{}", "cd".repeat(20)) }] } });
    contracts
        .add_bytes(&hex::decode(&to[2..]).unwrap().try_into().unwrap(), proxy.to_string().as_bytes())
        .unwrap();
    assert_eq!(decoded(&app, hash).await["call"]["guess"], true);
    let behind = r#"[{"type":"function","name":"transfer","inputs":[{"type":"address","name":"x"},{"type":"uint256","name":"y"}]}]"#;
    contracts.add_bytes(&[0xcd; 20], behind.as_bytes()).unwrap();
    assert_eq!(decoded(&app, hash).await["call"]["function"], "transfer(address x, uint256 y)");
}
