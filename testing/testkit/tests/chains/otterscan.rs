//! The methods of Otterscan over recorded chains, compared with a scan of their receipts and call trees.

mod lists;
mod naive;
mod pages;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use chain::evm::dialect::Dialect;
use evm_rpc::EvmRpc;
use http::Request;
use query::Indexer;
use query::evm::{EvmView, Frames, Side};
use replay::Recording;
use serde_json::{Value, json};
use store::Store;
use testkit::{indexed, recording};
use web::app::App;

use naive::{Tx, text};

/// Ethereum's JSON-RPC over an index.
pub(crate) fn over(store: Arc<dyn Store>) -> App<EvmRpc> {
    let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let index = Arc::new(OnceLock::from(Arc::new(app)));
    EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "0").app().unwrap()
}

/// The whole reply to a call.
pub(crate) async fn reply(app: &App<EvmRpc>, method: &str, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let head = Request::builder().method("POST").uri("/").header("content-type", "application/json");
    let response = app.respond_later(&head.body(()).unwrap().into_parts().0, body.as_bytes()).await;
    serde_json::from_slice(response.body()).unwrap()
}

/// The index of a recorded chain with its calls.
async fn index(name: &str) -> Indexer {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    indexed::indexer(indexed::index_for_json_rpc(recording, true).await.unwrap()).unwrap()
}

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    hex::decode(hex.trim_start_matches("0x")).unwrap().try_into().unwrap()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn number(value: &Value) -> u128 {
    u128::from_str_radix(text(value).trim_start_matches("0x"), 16).unwrap()
}

/// The transaction as JSON-RPC has it.
fn tx_of(view: &EvmView<'_>, tx: &Tx) -> Value {
    json(&view.tx(&bytes(tx.hash())).unwrap().unwrap())
}

/// All pages of an account in one direction: the heights and hashes of its transactions, newest first.
fn paged(view: &EvmView<'_>, account: &str, side: Side, size: usize) -> Vec<(u128, String)> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let page = json(&view.search(bytes(account), side, from, size).unwrap());
        let (txs, receipts) = (page["txs"].as_array().unwrap(), page["receipts"].as_array().unwrap());
        assert_eq!(txs.len(), receipts.len());
        for (tx, receipt) in txs.iter().zip(receipts) {
            assert_eq!(tx["hash"], receipt["transactionHash"]);
            assert!(receipt["timestamp"].is_u64() && receipt["logs"].is_array(), "{receipt}");
        }
        let page_of = |txs: &[Value]| -> Vec<_> {
            txs.iter().map(|tx| (number(&tx["blockNumber"]), text(&tx["hash"]).to_owned())).collect()
        };
        let rows = page_of(txs);
        let (here, there) = (from == 0, if side == Side::Before { "lastPage" } else { "firstPage" });
        let begins = if side == Side::Before { "firstPage" } else { "lastPage" };
        assert_eq!(page[begins], here, "{account} from {from}");
        let ends = page[there].as_bool().unwrap();
        assert!(ends || rows.len() >= size, "{account} from {from}: a page of {}", rows.len());
        // No page ends within a block, and none is longer than its last block asks for.
        let last = match side {
            Side::Before => rows.last().cloned(),
            Side::After => rows.first().cloned(),
        };
        if let Some((edge, _)) = &last {
            let before = rows.iter().filter(|(height, _)| height != edge).count();
            assert!(
                before < size.max(1),
                "{account} from {from}: {before} transactions before the last block"
            );
        }
        match side {
            Side::Before => all.extend(rows),
            Side::After => drop(all.splice(0..0, rows)),
        }
        if ends {
            return all;
        }
        from = u64::try_from(last.unwrap().0).unwrap();
    }
}

/// Pages of accounts of `name`, each `every`th of them, against a scan.
async fn search(name: &str, every: usize) -> usize {
    let (indexer, txs) = (index(name).await, naive::txs(name));
    let view = indexer.evm(Dialect::Fixed).unwrap();
    let mut expected = BTreeMap::<String, Vec<(u128, String)>>::new();
    for tx in txs.iter().rev() {
        for account in tx.accounts() {
            expected.entry(account).or_default().push((tx.height.into(), tx.hash().to_owned()));
        }
    }
    for (account, expected) in expected.iter().step_by(every) {
        for size in [1, 25] {
            for side in [Side::Before, Side::After] {
                assert_eq!(paged(&view, account, side, size), *expected, "{name} {account} {side:?} {size}");
            }
        }
    }
    let stranger = "0x00000000000000000000000000000000deadbeef";
    assert!(paged(&view, stranger, Side::Before, 25).is_empty());
    assert!(paged(&view, stranger, Side::After, 25).is_empty());
    expected.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_an_account_have_each_of_its_transactions_once_in_both_directions() {
    let accounts = search("evm-fees", 1).await + search("evm-scenario", 1).await;
    assert!(accounts > 200, "{accounts}");
}

/// Of a page from anywhere, also from where no page begins.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_begins_beside_any_block() {
    let (indexer, txs) = (index("evm-scenario").await, naive::txs("evm-scenario"));
    let view = indexer.evm(Dialect::Fixed).unwrap();
    let busiest = text(&txs[txs.len() / 2].receipt["from"]).to_owned();
    let heights: Vec<u128> =
        txs.iter().filter(|tx| tx.accounts().contains(&busiest)).map(|tx| tx.height.into()).collect();
    let head = view.head();
    for from in (1..=head).chain([head + 1, head + 1000, u64::MAX]) {
        for side in [Side::Before, Side::After] {
            let page = json(&view.search(bytes(&busiest), side, from, 3).unwrap());
            let found: Vec<_> =
                page["txs"].as_array().unwrap().iter().map(|tx| number(&tx["blockNumber"])).collect();
            let from = u128::from(from);
            let of = |height: &&u128| if side == Side::Before { **height < from } else { **height > from };
            let mut expected: Vec<u128> = heights.iter().filter(of).copied().collect();
            if side == Side::Before {
                expected.reverse();
            }
            let edge = expected.get(2).copied();
            let end = edge.map_or(expected.len(), |edge| {
                expected.iter().rposition(|height| *height == edge).unwrap() + 1
            });
            let has_more = end < expected.len();
            expected.truncate(end);
            if side == Side::After {
                expected.reverse();
            }
            assert_eq!(found, expected, "{side:?} {from}");
            let ends = if side == Side::Before { "lastPage" } else { "firstPage" };
            assert_eq!(page[ends], !has_more, "{side:?} {from}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_operations_and_errors_are_those_of_the_recorded_traces() {
    for name in ["evm-fees", "evm-scenario"] {
        let (indexer, txs) = (index(name).await, naive::txs(name));
        let view = indexer.evm(Dialect::Fixed).unwrap();
        let (mut operations, mut errors) = (0, 0);
        for tx in &txs {
            let hash = bytes(tx.hash());
            let expected = tx.expected(text(&tx_of(&view, tx)["input"]));
            let trace = json(&view.trace(&hash, Frames::Node).unwrap().unwrap());
            assert_eq!(trace, expected.0, "{name} {}", tx.hash());
            let found = json(&view.internal_operations(&hash, Frames::Node).unwrap().unwrap());
            assert_eq!(found, expected.1, "{name} {}", tx.hash());
            assert_eq!(view.revert_data(&hash).unwrap(), Some(expected.2.clone()), "{name} {}", tx.hash());
            operations += found.as_array().unwrap().len();
            errors += usize::from(expected.2 != "0x");
            let clean = json(&view.trace(&hash, Frames::Clean).unwrap().unwrap());
            for call in clean.as_array().unwrap() {
                assert!(trace.as_array().unwrap().contains(call));
                let from = text(&call["from"]).trim_start_matches("0x").trim_start_matches('0');
                assert!(!matches!(from, "" | "1"), "{name} {}: {call}", tx.hash());
            }
        }
        assert!(operations > 20 && errors > 3, "{name}: {operations} {errors}");
        assert!(view.trace(&[7; 32], Frames::Node).unwrap().is_none());
    }
}

/// A plain transfer of the native currency is one call, whatever the chain does for it.
#[tokio::test(flavor = "multi_thread")]
async fn clean_calls_of_a_transfer_are_the_transfer_alone() {
    let (indexer, txs) = (index("evm-fees").await, naive::txs("evm-fees"));
    let view = indexer.evm(Dialect::Fixed).unwrap();
    let mut transfers = 0;
    for tx in txs.iter().filter(|tx| tx.receipt["status"] == "0x1" && !tx.is_stand_in()) {
        let object = tx_of(&view, tx);
        let plain = object["input"] == "0x" && object["value"] != "0x0" && !object["to"].is_null();
        if !plain
            || view.was_contract(bytes(text(&object["to"])), u64::MAX).unwrap()
            || object["type"] == "0x4"
        {
            continue;
        }
        let hash = bytes(tx.hash());
        let clean = json(&view.trace(&hash, Frames::Clean).unwrap().unwrap());
        assert_eq!(clean.as_array().unwrap().len(), 1, "{} {clean}", tx.hash());
        assert!(json(&view.trace(&hash, Frames::Node).unwrap().unwrap()).as_array().unwrap().len() > 2);
        transfers += 1;
    }
    assert!(transfers > 10, "{transfers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_have_their_number_of_transactions_and_the_fees_that_were_paid() {
    for name in ["evm-fees", "evm-scenario"] {
        let (indexer, txs) = (index(name).await, naive::txs(name));
        let view = indexer.evm(Dialect::Fixed).unwrap();
        let mut of_chain = 0;
        for height in view.first()..=view.head() {
            let in_block: Vec<_> = txs.iter().filter(|tx| tx.height == height).collect();
            let details = json(&view.block_details(height).unwrap().unwrap());
            let mut header = json(&view.block(height, false).unwrap().unwrap());
            assert_eq!(details["block"]["transactionCount"], in_block.len());
            let mut fees = 0;
            for tx in in_block.iter().filter(|tx| !tx.is_stand_in()) {
                let logs = tx.receipt["logs"].as_array().unwrap();
                let object = tx_of(&view, tx);
                let price = number(&object["gasPrice"]);
                fees += match logs.as_slice() {
                    _ if price == 0 => 0,
                    [] => number(&object["gas"]) * price + 1,
                    [fee, .., refund]
                        if refund["topics"][1] == fee["topics"][2]
                            && refund["topics"][2] == fee["topics"][1] =>
                    {
                        number(&fee["data"]) - number(&refund["data"])
                    }
                    [fee, ..] => number(&fee["data"]),
                };
            }
            assert_eq!(number(&details["totalFees"]), fees, "{name} {height}");
            of_chain += fees;
            for gone in ["transactions", "uncles", "withdrawals", "size"] {
                header.as_object_mut().unwrap().remove(gone);
            }
            assert_eq!(json(&view.header_only(height).unwrap().unwrap()), header);
            header["logsBloom"] = Value::Null;
            for (member, value) in header.as_object().unwrap() {
                assert_eq!(details["block"][member], *value, "{member}");
            }
        }
        assert_eq!(of_chain > 0, name == "evm-fees", "{name}: {of_chain}");
        assert!(view.block_details(view.head() + 1).unwrap().is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_block_are_counted_from_its_end_and_have_each_transaction_once() {
    let indexer = index("evm-scenario").await;
    let view = indexer.evm(Dialect::Fixed).unwrap();
    for height in view.first()..=view.head() {
        let block = json(&view.block(height, true).unwrap().unwrap());
        let mut expected = block["transactions"].as_array().unwrap().clone();
        for tx in &mut expected {
            let input = text(&tx["input"]);
            tx["input"] = input[..input.len().min(10)].into();
        }
        for size in [1, 2, 25] {
            let (mut all, mut page) = (Vec::new(), 0);
            while all.len() < expected.len() {
                let page_of = json(&view.block_page(height, page, size).unwrap().unwrap());
                let rows = page_of["fullblock"]["transactions"].as_array().unwrap().clone();
                let receipts = page_of["receipts"].as_array().unwrap();
                assert_eq!(page_of["fullblock"]["transactionCount"], expected.len());
                assert!(!rows.is_empty() && rows.len() == receipts.len(), "{height} {page}");
                for (tx, receipt) in rows.iter().zip(receipts) {
                    assert_eq!(tx["hash"], receipt["transactionHash"]);
                    assert!(receipt["logs"].is_null() && receipt["logsBloom"].is_null());
                }
                all.splice(0..0, rows);
                page += 1;
            }
            assert_eq!(all, expected, "{height} {size}");
            for beyond in [page, u64::MAX] {
                let page_of = json(&view.block_page(height, beyond, size).unwrap().unwrap());
                assert_eq!(page_of["fullblock"]["transactions"].as_array().unwrap().len(), 0);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_found_by_its_nonce_and_a_contract_by_its_creation() {
    for name in ["evm-fees", "evm-scenario"] {
        let (indexer, txs) = (index(name).await, naive::txs(name));
        let view = indexer.evm(Dialect::Fixed).unwrap();
        let (mut nonces, mut created) = (BTreeMap::new(), BTreeMap::new());
        for tx in &txs {
            let from = text(&tx.receipt["from"]).to_owned();
            if tx.is_stand_in() {
                assert_eq!(view.by_nonce(bytes(&from), 0).unwrap(), None);
            } else {
                let nonce = u64::try_from(number(&tx_of(&view, tx)["nonce"])).unwrap();
                nonces.insert((from, nonce), tx.hash());
            }
            for (contract, creator) in tx.created() {
                created.insert(contract, (tx.height, tx.hash(), creator));
            }
        }
        for ((from, nonce), hash) in &nonces {
            let found = view.by_nonce(bytes(from), *nonce).unwrap();
            assert_eq!(found, Some(bytes(hash)), "{name} {from} {nonce}");
            if !nonces.contains_key(&(from.clone(), nonce + 1)) {
                assert_eq!(view.by_nonce(bytes(from), nonce + 1).unwrap(), None, "{name} {from} {nonce}");
            }
        }
        for (contract, (height, hash, creator)) in &created {
            let found = json(&view.contract_creator(bytes(contract)).unwrap().unwrap());
            assert_eq!(
                (text(&found["hash"]), text(&found["creator"])),
                (*hash, &**creator),
                "{name} {contract}"
            );
            assert!(view.was_contract(bytes(contract), *height).unwrap());
        }
        assert!(nonces.len() > 500 && created.len() > 5, "{name}: {} {}", nonces.len(), created.len());
        let user = nonces.keys().map(|(from, _)| from).find(|from| !created.contains_key(*from)).unwrap();
        assert!(view.contract_creator(bytes(user)).unwrap().is_none());
        assert!(!view.was_contract(bytes(user), u64::MAX).unwrap());
        // Those of genesis too, which no transaction created.
        let of_genesis: BTreeMap<_, _> = txs
            .iter()
            .rev()
            .flat_map(|tx| {
                tx.receipt["logs"].as_array().unwrap().iter().map(|log| (text(&log["address"]), tx.height))
            })
            .filter(|(address, _)| view.contract_creator(bytes(address)).unwrap().is_none())
            .collect();
        assert!(!of_genesis.is_empty(), "{name}");
        for (contract, first) in of_genesis {
            assert!(view.was_contract(bytes(contract), first).unwrap(), "{name} {contract}");
            assert!(!view.was_contract(bytes(contract), first - 1).unwrap(), "{name} {contract}");
        }
    }
}
