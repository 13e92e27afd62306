//! The second generation of Otterscan's methods, compared with the lists of Etherscan's API and with the recorded receipts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evm_rpc::EvmRpc;
use ingest::{Config, Ingest};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::logs::LOGS;
use schema::tokens::TOKENS;
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::{indexed, recording};
use web::app::App;

use super::{naive, over, reply};

const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// The contract of the fee token.
const GAS: &str = "0x042add9e80f7a23ab71d5e1d392af1d3928b7d05";

async fn opened() -> App<EvmRpc> {
    let played = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    over(indexed::index_for_json_rpc(played, true).await.unwrap())
}

/// All pages of a list, in its order.
async fn listed(app: &App<EvmRpc>, name: &str, account: Option<&str>) -> Vec<Value> {
    let params = |more: &[Value]| {
        let account = account.map(Value::from).into_iter();
        Value::from(account.chain(more.iter().cloned()).collect::<Vec<_>>())
    };
    let count = reply(app, &format!("ots2_get{name}Count"), &params(&[])).await["result"].as_u64().unwrap();
    let (mut all, method) = (Vec::new(), format!("ots2_get{name}List"));
    while (all.len() as u64) < count {
        let page = reply(app, &method, &params(&[json!(all.len()), json!(7)])).await["result"].clone();
        let rows = page["results"].as_array().unwrap().clone();
        assert!(!rows.is_empty() && rows.len() <= 7, "{page}");
        for row in rows.iter().filter(|row| row["blockNumber"].is_u64()) {
            let block = &page["blocksSummary"][row["blockNumber"].to_string()];
            assert!(block["timestamp"].as_u64().unwrap() > 1_000_000_000, "{page}");
        }
        all.extend(rows);
    }
    let beyond = reply(app, &method, &params(&[json!(count), json!(7)])).await;
    assert_eq!(beyond["result"]["results"], json!([]), "{beyond}");
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_contracts_and_of_transfers_have_each_once_in_the_order_of_the_chain() {
    let (app, txs) = (opened().await, naive::txs("evm-fees"));
    let contracts = listed(&app, "AllContracts", None).await;
    let heights: Vec<_> = contracts.iter().map(|row| row["blockNumber"].as_u64().unwrap()).collect();
    assert!(heights.is_sorted() && heights.len() > 50, "{heights:?}");
    let addresses: BTreeSet<_> =
        contracts.iter().map(|row| naive::text(&row["address"]).to_owned()).collect();
    assert_eq!(addresses.len(), contracts.len());
    for tx in txs.iter().filter(|tx| tx.receipt["contractAddress"].is_string()) {
        assert!(addresses.contains(naive::text(&tx.receipt["contractAddress"])));
    }

    let mut of_account = BTreeMap::<String, Vec<String>>::new();
    for tx in &txs {
        for log in tx.receipt["logs"].as_array().unwrap() {
            let topics: Vec<_> = log["topics"].as_array().unwrap().iter().map(naive::text).collect();
            let is_erc20 =
                topics.len() == 3 && topics[0] == TRANSFER && naive::text(&log["data"]).len() == 66;
            // A topic that is no address makes no transfer.
            let are_addresses = topics.iter().skip(1).all(|topic| topic[2..].starts_with(&"0".repeat(24)));
            if !is_erc20 || !are_addresses || log["address"] == GAS {
                continue;
            }
            for side in &topics[1..] {
                let hashes = of_account.entry(format!("0x{}", &side[26..])).or_default();
                if hashes.last().is_none_or(|last| last != tx.hash()) {
                    hashes.push(tx.hash().to_owned());
                }
            }
        }
    }
    let mut compared = 0;
    for (account, expected) in of_account.iter().filter(|(_, all)| all.len() > 3) {
        let rows = listed(&app, "ERC20Transfer", Some(account)).await;
        let hashes: Vec<_> = rows.iter().map(|row| naive::text(&row["hash"]).to_owned()).collect();
        assert_eq!(&hashes, expected, "{account}");
        for row in &rows {
            assert_eq!(
                (&row["transaction"]["hash"], &row["receipt"]["transactionHash"]),
                (&row["hash"], &row["hash"])
            );
        }
        compared += 1;
    }
    assert!(compared > 3, "{compared}");
    assert_eq!(reply(&app, "ots2_getWithdrawalsCount", &json!([GAS])).await["result"], 0);
    let refused = reply(&app, "ots2_getAllContractsList", &json!([0, 101])).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("max allowed page size"), "{refused}");
    // Without the index of tokens there are no lists of them.
    for method in ["ots2_getERC20Count", "ots2_getERC721Count", "ots2_getERC1155Count"] {
        assert_eq!(reply(&app, method, &json!([])).await["error"]["code"], -32601, "{method}");
    }
    assert_eq!(reply(&app, "ots2_getERC1167Count", &json!([])).await["error"]["code"], -32601);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_tokens_have_each_contract_that_moved_some_once() {
    let played = Arc::new(Recording::open(&recording("evm-scenario")).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let lanes = indexed::config(&played).unwrap();
    let config = Config { indexes: vec![&TOKENS, &LOGS], internal_txs: false, rich_list: false, ..lanes };
    let node = ReplayNode::start(played, Addresses::default(), Options::default()).await.unwrap();
    let ingest = Ingest::prepare(config, Arc::new(indexed::clients(&node).unwrap()), Arc::clone(&store));
    indexed::run_to(&ingest.await.unwrap(), 226).await.unwrap();
    node.stop().await;
    let app = over(store);
    let mut logged = [BTreeSet::new(), BTreeSet::new()];
    for tx in naive::txs("evm-scenario") {
        for log in tx.receipt["logs"].as_array().unwrap() {
            let topics = log["topics"].as_array().unwrap();
            let place = match (topics.len(), naive::text(&log["data"]).len()) {
                (3, 66) if topics[0] == TRANSFER => 0,
                (4, ..=2) if topics[0] == TRANSFER => 1,
                _ => continue,
            };
            logged[place].insert(naive::text(&log["address"]).to_owned());
        }
    }
    for (name, attribute, expected) in [("ERC20", "erc20", &logged[0]), ("ERC721", "erc721", &logged[1])] {
        let rows = listed(&app, name, None).await;
        let heights: Vec<_> = rows.iter().map(|row| row["blockNumber"].as_u64().unwrap()).collect();
        let found: BTreeSet<_> = rows.iter().map(|row| naive::text(&row["address"]).to_owned()).collect();
        assert!(
            heights.is_sorted() && found.len() == rows.len() && found.is_superset(expected),
            "{name}: {rows:?}"
        );
        assert!(
            !expected.is_empty()
                && rows.iter().all(|row| row["name"].is_string() && row["decimals"].is_u64())
        );
        for contract in expected {
            let attributes =
                reply(&app, "ots2_getAddressAttributes", &json!([contract])).await["result"].clone();
            assert_eq!(attributes[attribute], true, "{contract}");
        }
    }
}
