//! A recorded chain as plain JSON, and the lists of its accounts by a scan of all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};

use chain::U256;
use serde_json::{Value, json};
use testkit::recording;

use super::{opened, rows};

const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const SINGLE: &str = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62";
const BATCH: &str = "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb";

pub(super) fn lines(name: &str, file: &str) -> impl Iterator<Item = Value> {
    let file = std::fs::File::open(recording(name).join(file)).unwrap();
    let mut plain = zstd::stream::read::Decoder::new(file).unwrap();
    plain.window_log_max(27).unwrap();
    BufReader::new(plain).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn number(value: &Value) -> U256 {
    U256::from_str_radix(text(value).trim_start_matches("0x"), 16).unwrap_or_default()
}

/// A transaction of the chain: its receipt, the call tree of its trace, the time of its block.
pub(super) struct Tx {
    pub(super) receipt: Value,
    pub(super) trace: Value,
    pub(super) time: u64,
}

/// All transactions of a chain, in order.
pub(super) fn chain(name: &str) -> Vec<Tx> {
    let mut all = Vec::new();
    for line in lines(name, "blocks.ndjson.zst") {
        let Some(receipts) = line["eth_receipts"].as_array() else { continue };
        let time = number(&line["eth_block"]["timestamp"]).to();
        for receipt in receipts {
            let traces = line["eth_trace"]["result"].as_array();
            let of_tx = |trace: &&Value| trace["txHash"] == receipt["transactionHash"];
            let trace = traces.and_then(|all| all.iter().find(of_tx)).map(|trace| trace["result"].clone());
            all.push(Tx { receipt: receipt.clone(), trace: trace.unwrap_or_default(), time });
        }
    }
    all
}

fn topic(address: &str) -> String {
    format!("0x{:0>64}", &address[2..])
}

fn address(topic: &Value) -> String {
    format!("0x{}", &text(topic)[26..])
}

/// The contract whose decimals the chain reads first in any transaction.
pub(super) fn fee_token(txs: &[Tx]) -> Option<String> {
    let is_decimals = |call: &&Value| call["input"] == "0x313ce567";
    let call = txs.iter().find_map(|tx| tx.trace["calls"].as_array()?.iter().find(is_decimals));
    Some(text(&call?["to"]).to_owned())
}

/// The hashes of the transactions that an account sent or received.
fn sent_or_received(txs: &[Tx], account: &str) -> Vec<String> {
    let is_of = |tx: &&Tx| {
        ["from", "to", "contractAddress"].iter().any(|member| text(&tx.receipt[*member]) == account)
    };
    txs.iter().filter(is_of).map(|tx| text(&tx.receipt["transactionHash"]).to_owned()).collect()
}

/// A transfer: hash, position of its log in the block, from, to, token, amount.
type Row = (String, u64, String, String, String, String);

fn words(data: &Value) -> Vec<U256> {
    let digits = text(data).trim_start_matches("0x").as_bytes();
    digits
        .chunks(64)
        .map(|word| U256::from_str_radix(std::str::from_utf8(word).unwrap(), 16).unwrap())
        .collect()
}

/// The transfers of a standard in which `account` sends or receives, if one is named, of `contract`, if one is named.
fn transfers(txs: &[Tx], kind: &str, account: Option<&str>, contract: Option<&str>) -> Vec<Row> {
    let left_out = fee_token(txs).filter(|_| contract.is_none());
    let (mut all, mut at) = (Vec::new(), (Value::Null, 0));
    for tx in txs {
        if at.0 != tx.receipt["blockNumber"] {
            at = (tx.receipt["blockNumber"].clone(), 0);
        }
        for log in tx.receipt["logs"].as_array().unwrap() {
            let position = at.1;
            at.1 += 1;
            let (topics, token) = (log["topics"].as_array().unwrap(), text(&log["address"]));
            let first = topics.first().map(text).unwrap_or_default();
            let (from, to, moved): (usize, usize, Vec<(String, String)>) = match (kind, first, topics.len()) {
                ("tokentx", TRANSFER, 3) if text(&log["data"]).len() == 66 => {
                    (1, 2, vec![(String::new(), words(&log["data"])[0].to_string())])
                }
                ("tokennfttx", TRANSFER, 4) if text(&log["data"]).len() <= 2 => {
                    (1, 2, vec![(number(&topics[3]).to_string(), String::new())])
                }
                ("token1155tx", SINGLE, 4) => {
                    let words = words(&log["data"]);
                    (2, 3, vec![(words[0].to_string(), words[1].to_string())])
                }
                ("token1155tx", BATCH, 4) => {
                    let words = words(&log["data"]);
                    let list = |place: usize| -> Vec<String> {
                        let start = words[place].to::<usize>() / 32;
                        let len = words[start].to::<usize>();
                        words[start + 1..=start + len].iter().map(ToString::to_string).collect()
                    };
                    let (ids, amounts) = (list(0), list(1));
                    // The chain has a batch with more tokens than amounts.
                    if ids.len() != amounts.len() {
                        continue;
                    }
                    (2, 3, ids.into_iter().zip(amounts).collect())
                }
                _ => continue,
            };
            let parties = [address(&topics[from]), address(&topics[to])];
            if [from, to].iter().any(|place| !text(&topics[*place]).starts_with(&topic("0x")[..26]))
                || account.is_some_and(|account| !parties.iter().any(|party| party == account))
                || contract.is_some_and(|contract| token != contract)
                || left_out.as_deref() == Some(token)
            {
                continue;
            }
            let hash = text(&tx.receipt["transactionHash"]);
            for (id, amount) in moved {
                let [from, to] = parties.clone();
                all.push((hash.to_owned(), position, from, to, id, amount));
            }
        }
    }
    all
}

/// The rows of a response in the same form.
fn as_transfers(rows: &[Value]) -> Vec<Row> {
    let of = |row: &Value| {
        let member = |name: &str| text(&row[name]).to_owned();
        let amount = member(if row["tokenValue"].is_null() { "value" } else { "tokenValue" });
        (
            member("hash"),
            member("logIndex").parse().unwrap(),
            member("from"),
            member("to"),
            member("tokenID"),
            amount,
        )
    };
    rows.iter().map(of).collect()
}

/// The call at `place`, with those behind it that are not of the chain itself: of messages that contracts gave to the chain.
pub(crate) fn with_dispatched(calls: &[Value], place: usize) -> Value {
    let mut own = calls[place].clone();
    let is_of_chain = |call: &&Value| text(&call["from"]).trim_matches(['0', 'x']).len() <= 1;
    let dispatched: Vec<_> = calls[place + 1..].iter().filter(|call| !is_of_chain(call)).cloned().collect();
    if !dispatched.is_empty() {
        let below = own["calls"].as_array().cloned().unwrap_or_default();
        own["calls"] = [below, dispatched].concat().into();
    }
    own
}

/// An internal call: path, from, to, value, and why it or a call around it failed.
type Internal = (String, String, String, String, String);

/// The internal calls of a transaction, with their paths: those with value, creations and destructions below its own call.
fn internal(tx: &Tx, object: &Value) -> Vec<Internal> {
    fn below(frame: &Value, path: &str, error: &str, out: &mut Vec<Internal>) {
        let error_of = |frame: &Value, above: &str| frame["error"].as_str().unwrap_or(above).to_owned();
        let error = error_of(frame, error);
        for (place, call) in frame["calls"].as_array().into_iter().flatten().enumerate() {
            let path = if path.is_empty() { place.to_string() } else { format!("{path}_{place}") };
            let kind = text(&call["type"]);
            if kind.starts_with("CREATE")
                || kind == "SELFDESTRUCT"
                || (kind == "CALL" && number(&call["value"]) > U256::ZERO)
            {
                let address = |member: &str| text(&call[member]).to_owned();
                let value = number(&call["value"]).to_string();
                out.push((path.clone(), address("from"), address("to"), value, error_of(call, &error)));
            }
            below(call, &path, &error, out);
        }
    }
    let (mut out, error) = (Vec::new(), text(&tx.trace["error"]));
    if text(&object["from"]).trim_matches(['0', 'x']).is_empty() {
        below(&tx.trace, "", "", &mut out);
        return out;
    }
    let is_own = |call: &&Value| {
        let is_to = if object["to"].is_null() {
            text(&call["type"]).starts_with("CREATE")
        } else {
            call["to"] == object["to"]
        };
        call["from"] == object["from"] && is_to && call["input"] == object["input"]
    };
    let calls = tx.trace["calls"].as_array().map_or(&[][..], Vec::as_slice);
    if let Some(place) = calls.iter().rposition(|call| is_own(&call)) {
        below(&with_dispatched(calls, place), "", error, &mut out);
    }
    out
}

/// The node's own objects of the transactions, by hash.
pub(super) fn objects(name: &str) -> BTreeMap<String, Value> {
    let of_txs =
        lines(name, "rpc-goldens.ndjson.zst").filter(|line| line["method"] == "eth_getTransactionByHash");
    let results = of_txs.filter_map(|line| serde_json::from_str::<Value>(text(&line["body"])).ok());
    results.map(|body| (text(&body["result"]["hash"]).to_owned(), body["result"].clone())).collect()
}

/// Every account that is a party of something, and some of its contracts.
fn accounts(txs: &[Tx]) -> Vec<String> {
    let mut all = BTreeSet::new();
    for tx in txs {
        all.extend(["from", "to", "contractAddress"].map(|member| text(&tx.receipt[member]).to_owned()));
        for log in tx.receipt["logs"].as_array().unwrap() {
            let topics = log["topics"].as_array().unwrap().iter().skip(1);
            all.extend(topics.filter(|topic| text(topic).starts_with(&topic_prefix())).map(address));
            all.insert(text(&log["address"]).to_owned());
        }
    }
    all.into_iter().filter(|account| account.len() == 42).collect()
}

fn topic_prefix() -> String {
    topic("0x")[..26].to_owned()
}

/// Compares the lists of each account of a chain with a scan; the number of rows by list.
async fn compare(name: &str) -> BTreeMap<&'static str, usize> {
    let (app, txs) = (opened(name).await, chain(name));
    let mut counts = BTreeMap::new();
    for account in accounts(&txs) {
        let query = |action: &str| format!("module=account&action={action}&address={account}");
        let found = rows(&app, &query("txlist")).await;
        let hashes: Vec<_> = found.iter().map(|row| text(&row["hash"]).to_owned()).collect();
        assert_eq!(hashes, sent_or_received(&txs, &account), "{account}");
        *counts.entry("txlist").or_default() += found.len();
        for kind in ["tokentx", "tokennfttx", "token1155tx"] {
            let found = rows(&app, &query(kind)).await;
            let expected = transfers(&txs, kind, Some(&account), None);
            assert_eq!(as_transfers(&found), expected, "{kind} of {account}");
            *counts.entry(kind).or_default() += found.len();
            let of_contract = format!("module=account&action={kind}&contractaddress={account}");
            let found = rows(&app, &of_contract).await;
            let expected = transfers(&txs, kind, None, Some(&account));
            assert_eq!(as_transfers(&found), expected, "{kind} of the contract {account}");
            let newest = rows(&app, &format!("{of_contract}&sort=desc&page=2&offset=3")).await;
            let backward: Vec<_> = expected.iter().rev().skip(3).take(3).cloned().collect();
            assert_eq!(as_transfers(&newest), backward, "the second page of {account}");
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lists_of_every_account_are_those_of_a_scan_of_the_receipts() {
    for (name, least) in [("evm-fees", 100), ("evm-scenario", 10), ("evm-weth-rebase", 1)] {
        let counts = compare(name).await;
        println!("{name}: {counts:?}");
        assert!(counts["txlist"] >= least && counts["tokentx"] >= least, "{name}: {counts:?}");
        let is_whole = name == "evm-weth-rebase" || counts["tokennfttx"] > 0 && counts["token1155tx"] > 0;
        assert!(is_whole, "{name}: {counts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_in_a_list_has_the_fields_that_the_node_gave() {
    let (app, txs, objects) = (super::fees().await, chain("evm-fees"), objects("evm-fees"));
    let mut seen = 0;
    for account in accounts(&txs) {
        for row in rows(app, &format!("module=account&action=txlist&address={account}")).await {
            let tx = txs.iter().find(|tx| tx.receipt["transactionHash"] == row["hash"]).unwrap();
            let (object, receipt) = (&objects[text(&row["hash"])], &tx.receipt);
            let decimal = |value: &Value| json!(number(value).to_string());
            let failed = receipt["status"] == "0x0";
            let or_empty = |value: &Value| json!(text(value));
            let expected = [
                ("blockNumber", decimal(&receipt["blockNumber"])),
                ("timeStamp", json!(tx.time.to_string())),
                ("nonce", decimal(&object["nonce"])),
                ("blockHash", receipt["blockHash"].clone()),
                ("transactionIndex", decimal(&receipt["transactionIndex"])),
                ("from", receipt["from"].clone()),
                ("to", or_empty(&object["to"])),
                ("value", decimal(&object["value"])),
                ("gas", decimal(&object["gas"])),
                ("gasPrice", decimal(&object["gasPrice"])),
                ("isError", json!(if failed { "1" } else { "0" })),
                ("txreceipt_status", json!(if failed { "0" } else { "1" })),
                ("input", object["input"].clone()),
                ("contractAddress", or_empty(&receipt["contractAddress"])),
                ("cumulativeGasUsed", decimal(&receipt["cumulativeGasUsed"])),
                ("gasUsed", decimal(&receipt["gasUsed"])),
                ("confirmations", json!((U256::from(584) - number(&receipt["blockNumber"])).to_string())),
            ];
            for (member, value) in expected {
                assert_eq!(row[member], value, "{member} of {row}");
            }
            seen += 1;
        }
    }
    assert!(seen > 1000, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_calls_are_those_below_the_own_call_of_a_transaction() {
    let (app, txs, objects) = (super::fees().await, chain("evm-fees"), objects("evm-fees"));
    let mut of_accounts: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let (mut seen, mut caught) = (0, 0);
    for tx in &txs {
        let hash = text(&tx.receipt["transactionHash"]);
        let expected = internal(tx, &objects[hash]);
        let found = rows(app, &format!("module=account&action=txlistinternal&txhash={hash}")).await;
        let member = |row: &Value, name: &str| text(&row[name]).to_owned();
        let of = |row: &Value| {
            let to = member(row, if row["to"] == "" { "contractAddress" } else { "to" });
            let failed = !member(row, "errCode").is_empty() || tx.receipt["status"] == "0x0";
            assert_eq!(row["isError"], if failed { "1" } else { "0" }, "{row}");
            (member(row, "traceId"), member(row, "from"), to, member(row, "value"), member(row, "errCode"))
        };
        assert_eq!(found.iter().map(of).collect::<Vec<_>>(), expected, "{hash}");
        seen += expected.len();
        caught += expected.iter().filter(|row| !row.4.is_empty() && tx.receipt["status"] == "0x1").count();
        for (path, from, to, ..) in expected {
            for account in BTreeSet::from([from, to]) {
                of_accounts.entry(account).or_default().push((hash.to_owned(), path.clone()));
            }
        }
    }
    assert!(seen > 50 && caught > 0, "{seen} {caught}");
    for (account, expected) in of_accounts.iter().filter(|(account, _)| !account.is_empty()) {
        let query = format!("module=account&action=txlistinternal&address={account}");
        let of = |row: &Value| (text(&row["hash"]).to_owned(), text(&row["traceId"]).to_owned());
        let found: Vec<_> = rows(app, &query).await.iter().map(of).collect();
        assert_eq!(&found, expected, "{account}");
        let newest: Vec<_> =
            rows(app, &format!("{query}&sort=desc&page=2&offset=2")).await.iter().map(of).collect();
        assert_eq!(newest, expected.iter().rev().skip(2).take(2).cloned().collect::<Vec<_>>(), "{account}");
    }
    let all = rows(app, "module=account&action=txlistinternal").await;
    assert_eq!(all.len(), seen);
}
