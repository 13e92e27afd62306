//! The deployed server's replies on the recorded chains: the transactions that it lists under each account, and the
//! records themselves.

use std::collections::HashMap;

use crate::recorded::{Golden, Line, goldens, heights};
use chain::AccountSet;
use chain::comet::{parse_block, parse_results};
use chain::evm::trace::{parse_traces, write_internal_tx};
use chain::evm::{parse_receipts, write_evm_tx};
use chain::fee::FeeTotals;
use chain::involved::{StoreOwners, accounts, primary_stores};
use chain::key::KeyCache;
use chain::record::{BlockRecord, Proposer, write_block_record, write_tx_record};
use chain::signer::signers;
use chain::tx::{DecodedTx, tx_hash};
use chain::{Account, Timestamp, Vm};
use serde_json::Value;

/// A list of records: their JSON, in order.
type Rows = Vec<Value>;

/// The contents of a chain's index, built with this crate alone.
#[derive(Default)]
struct Index {
    txs: HashMap<Account, Rows>,
    /// By the first signer, as on the deployed server.
    signed: HashMap<Account, Rows>,
    evm_txs: HashMap<Account, Rows>,
    evm_signed: HashMap<Account, Rows>,
    internal: HashMap<Account, Rows>,
    blocks: HashMap<u64, Value>,
    owners: StoreOwners,
}

impl Index {
    fn of(chain: &str, vm: Vm) -> Self {
        let mut index = Self::default();
        let mut last = None;
        for line in heights(chain) {
            last = Some(index.add(&line, vm, last));
        }
        index
    }

    fn add(&mut self, line: &Line, vm: Vm, last: Option<Timestamp>) -> Timestamp {
        let block = parse_block(line.block.get().as_bytes()).unwrap();
        let results = parse_results(line.block_results.get().as_bytes()).unwrap();
        let block_events = results.finalize_block_events.iter();
        let events = block_events.chain(results.txs_results.iter().flat_map(|result| &result.events));
        self.owners.extend(primary_stores(events));
        let (height, time) = (block.header.height, block.header.time);
        let mut fees = FeeTotals::new();
        let raw_txs = block.raw_txs().unwrap();
        for (position, (raw, result)) in raw_txs.iter().zip(&results.txs_results).enumerate() {
            let tx = DecodedTx::decode(raw).unwrap();
            fees.add(&tx.fee);
            let signers = signers(&tx, &result.events, Vec::new, "init", &mut KeyCache::new(1));
            let mut set = AccountSet::default();
            accounts(&result.events, "init", vm, &self.owners, &signers, &mut set);
            let mut out = Vec::new();
            let node_tx = serde_json::to_vec(&line.rest_txs.as_ref().unwrap()[position]).unwrap();
            write_tx_record(&mut out, &tx_hash(raw), height, result, &node_tx, time).unwrap();
            push(&mut self.txs, &set, &out);
            push(&mut self.signed, &signers[..1], &out);
        }
        self.add_evm(line);
        let mut out = Vec::new();
        let gas = |of: fn(&chain::comet::TxResult<'_>) -> i64| {
            results.txs_results.iter().map(|result| i128::from(of(result))).sum()
        };
        let record = BlockRecord {
            chain_id: &block.header.chain_id,
            height,
            hash: &block.hash,
            block_time_ms: last.map_or(0, |last| time.millis_since(last)),
            timestamp: time,
            gas_used: gas(|result| result.gas_used),
            gas_wanted: gas(|result| result.gas_wanted),
            tx_count: raw_txs.len() as u64,
            total_fee: &fees.into_sorted(),
            proposer: &Proposer::default(),
        };
        write_block_record(&mut out, &record);
        self.blocks.insert(height, serde_json::from_slice(&out).unwrap());
        time
    }

    fn add_evm(&mut self, line: &Line) {
        for receipt in parse_receipts(line.receipts()).unwrap() {
            let (mut set, mut out) = (AccountSet::default(), Vec::new());
            receipt.accounts(&mut set).unwrap();
            write_evm_tx(&mut out, &receipt);
            push(&mut self.evm_txs, &set, &out);
            push(&mut self.evm_signed, &[receipt.signer().unwrap()], &out);
        }
        for tx in parse_traces(line.traces()).unwrap() {
            for frame in &tx.frames {
                let (mut set, mut out) = (AccountSet::default(), Vec::new());
                frame.accounts(&mut set).unwrap();
                write_internal_tx(&mut out, line.height, &tx.hash, frame);
                push(&mut self.internal, &set, &out);
            }
        }
    }

    /// The requested list and the member that holds it; `None` for lists that are not compared here.
    fn list(&self, question: &str) -> Option<(&'static str, Rows)> {
        let (path, query) = question.split_once('?').unwrap_or((question, ""));
        let (route, account) = path.rsplit_once('/')?;
        let signer = query.contains("is_signer=true");
        let (member, rows) = match route {
            _ if query.contains("msgs=") => return None,
            "/indexer/tx/v1/txs/by_account" => ("txs", if signer { &self.signed } else { &self.txs }),
            "/indexer/tx/v1/evm-txs/by_account" => {
                ("txs", if signer { &self.evm_signed } else { &self.evm_txs })
            }
            "/indexer/tx/v1/evm-internal-txs/by_account" => ("internal_txs", &self.internal),
            _ => return None,
        };
        let account = Account::parse(account, "init")?;
        Some((member, rows.get(&account).cloned().unwrap_or_default()))
    }
}

fn push<'a>(
    lists: &mut HashMap<Account, Rows>,
    accounts: impl IntoIterator<Item = &'a Account>,
    json: &[u8],
) {
    let json: Value = serde_json::from_slice(json).unwrap();
    for account in accounts {
        lists.entry(*account).or_default().push(json.clone());
    }
}

/// The requested page of a list; `None` for queries that are not compared here.
fn page(mut rows: Rows, query: &str) -> Option<Rows> {
    let mut limit = 100;
    rows.reverse();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=')? {
            ("pagination.limit", number) => limit = number.parse().ok()?,
            ("pagination.reverse", "false") => rows.reverse(),
            ("pagination.reverse", "true") | ("is_signer", _) => {}
            _ => return None,
        }
    }
    rows.truncate(limit);
    Some(rows)
}

/// Compares all golden lists by account, and blocks; returns the number of compared answers.
fn compare(chain: &str, golden: &str, vm: Vm) -> usize {
    let index = Index::of(chain, vm);
    let mut compared = 0;
    for Golden { u, r } in goldens(golden).filter(|golden| golden.r.status == 200) {
        if let Some(block) = r.body.get("block") {
            compared += 1;
            let height = block["height"].as_str().unwrap().parse().unwrap();
            assert_eq!(without_proposer(&index.blocks[&height]), without_proposer(block), "{u}");
        }
        let Some((member, rows)) = index.list(&u) else { continue };
        let total = rows.len().to_string();
        let Some(rows) = page(rows, u.split_once('?').map_or("", |(_, query)| query)) else { continue };
        compared += 1;
        assert_eq!(hashes(&r.body[member]), hashes(&Value::Array(rows.clone())), "{u}");
        assert_eq!(r.body[member], Value::Array(rows), "{u}");
        assert_eq!(r.body["pagination"]["total"], total, "{u}");
    }
    compared
}

fn hashes(rows: &Value) -> Vec<Value> {
    let id = |row: &Value| [&row["txhash"], &row["transactionHash"], &row["hash"]].map(Clone::clone).into();
    rows.as_array().unwrap().iter().map(id).collect()
}

fn without_proposer(block: &Value) -> Value {
    let mut block = block.clone();
    block["proposer"].take();
    block
}

#[test]
fn the_evm_chain_is_listed_by_account_as_the_deployed_server_lists_it() {
    assert_eq!(compare("evm-scenario", "evm-scenario", Vm::Evm), 519);
}

#[test]
fn the_move_chain_is_listed_by_account_as_the_deployed_server_lists_it() {
    assert_eq!(compare("move-scenario", "move-scenario", Vm::Move), 46);
}

#[test]
fn the_rollup_with_ibc_traffic_is_listed_by_account_as_the_deployed_server_lists_it() {
    assert_eq!(compare("l1-l2/l2", "l1-l2-l2", Vm::Evm), 466);
}
