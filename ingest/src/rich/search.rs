//! Search for holders that no understood log names, in the contract's own EVM transactions: their senders, and what looks
//! like an address in the contract's logs. So tokens are found that a constructor or a log of another name has given.
//!
//! # Invariants
//! * A transaction of a contract is searched once, [`TXS_AT_ONCE`] at a time, between blocks and a few times in a turn.

use std::collections::{BTreeMap, BTreeSet};

use chain::Account;
use node::ContractCall;
use schema::evm_tx::{AccountEvmTxs, EvmTxs};
use schema::keys::{AccountKey, Role};
use schema::meta::RichLane;
use schema::payload::Codec;
use schema::records;
use schema::rich::{self, Address, Erc20, Erc20s, UndoBuilder};
use serde::Deserialize;
use store::{Message, Snapshot};

use super::flow::ZERO;
use super::lane::{BalanceReply, End, RichList};
use super::ledger::{put_balance, put_token};
use super::queue::Queue;
use crate::Error;

/// Transactions that are searched at once.
const TXS_AT_ONCE: u64 = 64;
/// Accounts that are asked for at once.
const ACCOUNTS_AT_ONCE: usize = 1000;
/// Values of a log's data that are read.
const VALUES: usize = 8;
/// Contracts of which it is remembered how far they are searched; of others, the search begins anew.
const MAX_SEARCHED: usize = 1 << 14;

/// Number of searched transactions by contract.
#[derive(Debug, Default)]
pub(super) struct Searched(BTreeMap<Address, u64>);

impl Searched {
    fn set(&mut self, contract: Address, txs: u64) {
        if self.0.len() >= MAX_SEARCHED {
            self.0.clear();
        }
        self.0.insert(contract, txs);
    }
}

impl RichList {
    /// Searches the next transactions of `contract`, and stores the balances that it tells at the lane's height.
    pub(super) fn search(
        &self,
        (queue, searched): (&mut Queue, &mut Searched),
        contract: Address,
        lane: &RichLane,
    ) -> Result<(), End> {
        let snapshot = self.store.snapshot()?;
        let owner = (AccountKey(Account::from(contract)), Role::Involved);
        let len = store::list::len::<AccountEvmTxs>(&*snapshot, &owner)?;
        let from = searched.0.get(&contract).copied().unwrap_or(0).min(len);
        let to = len.min(from + TXS_AT_ONCE);
        if from == to {
            return Ok(());
        }
        let seqs = store::list::slice::<AccountEvmTxs>(&*snapshot, &owner, from..to)?;
        let accounts = accounts(&*snapshot, &self.finality.codec, contract, &seqs)?;
        drop(snapshot);
        let call =
            |account: &Address| ContractCall { to: contract, data: chain::evm::abi::balance_of(*account) };
        let answers = self.answers(&accounts.iter().map(call).collect::<Vec<_>>(), lane.height)?;
        if answers.len() < accounts.len() {
            queue.postpone();
            return Ok(());
        }
        let told = accounts.iter().zip(answers).filter_map(|(account, answer)| match answer {
            BalanceReply::AtHeight(amount) => Some((*account, amount)),
            BalanceReply::Latest(_) | BalanceReply::NoReply => None,
        });
        let told: Vec<_> = told.collect();
        store::commit_rows::<Error>(&*self.store, store::Durability::Buffered, |txn| {
            let mut before = UndoBuilder::default();
            let stored = txn.get::<Erc20s>(&contract)?.map(|Message(token)| token);
            // A contract that tells no balance but zeros may be no token.
            if stored.is_none() && told.iter().all(|(_, amount)| amount.is_zero()) {
                return Ok(());
            }
            let token = Erc20 { complete: false, ..stored.unwrap_or_default() };
            put_token(&contract, &token, &mut before, txn)?;
            for (account, amount) in &told {
                put_balance(&contract, account, *amount, token.complete, &mut before, txn)?;
            }
            Ok(rich::put_undo(txn, lane.height..=lane.height, before)?)
        })?;
        // The rest of the accounts of these transactions is next, unless the replies would not tell them apart.
        let is_whole = accounts.len() < ACCOUNTS_AT_ONCE || told.iter().all(|(_, amount)| amount.is_zero());
        if is_whole {
            searched.set(contract, to);
        }
        if to < len || !is_whole {
            queue.search(contract);
        } else {
            // Its supply is checked again.
            queue.again(contract);
        }
        Ok(())
    }
}

/// The accounts that the records `seqs` name in addition to `contract`, and that have no balance row.
fn accounts(
    snapshot: &dyn Snapshot,
    codec: &Codec,
    contract: Address,
    seqs: &[u64],
) -> Result<Vec<Address>, Error> {
    let mut named = BTreeSet::new();
    let read =
        records::each::<EvmTxs>(snapshot, codec, seqs, |record| add_named(record, contract, &mut named));
    match read {
        // A damaged record names nobody; the audit reports it.
        Ok(()) | Err(schema::Error::Record { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    named.remove(&ZERO);
    let mut unknown = Vec::new();
    for account in named {
        if unknown.len() < ACCOUNTS_AT_ONCE && rich::balance(snapshot, &contract, &account)?.is_none() {
            unknown.push(account);
        }
    }
    Ok(unknown)
}

/// The members of a receipt that name accounts.
#[derive(Deserialize)]
struct Receipt {
    #[serde(default)]
    from: String,
    #[serde(default)]
    logs: Vec<Log>,
}

#[derive(Deserialize)]
struct Log {
    address: String,
    #[serde(default)]
    topics: Vec<String>,
    #[serde(default)]
    data: String,
}

fn add_named(record: &[u8], contract: Address, named: &mut BTreeSet<Address>) {
    let Ok(receipt) = serde_json::from_slice::<Receipt>(record) else { return };
    named.extend(address(&receipt.from));
    for log in receipt.logs.iter().filter(|log| address(&log.address) == Some(contract)) {
        let topics = log.topics.iter().skip(1).filter_map(|topic| topic.strip_prefix("0x"));
        let data = log.data.strip_prefix("0x").unwrap_or_default();
        let values = data.as_bytes().chunks_exact(64).take(VALUES);
        named.extend(topics.map(str::as_bytes).chain(values).filter_map(account));
    }
}

fn address(text: &str) -> Option<Address> {
    Address::try_from(Account::from_hex_literal(text)?.as_bytes()).ok()
}

/// The account in a value of a log in hex: a number of 17 to 20 bytes.
fn account(value: &[u8]) -> Option<Address> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(value, &mut bytes).ok()?;
    let (zeros, account) = bytes.split_first_chunk::<12>()?;
    let account = Address::try_from(account).ok()?;
    (*zeros == [0; 12] && account[..4] != [0; 4]).then_some(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_and_addresses_in_logs_of_the_contract_are_named() {
        let word = |digits: &str| format!("0x{digits:0>64}");
        let [contract, other, sender, a, b] = ["c0", "c1", "5e", "aa", "bb"].map(|byte| byte.repeat(20));
        let record = serde_json::json!({
            "from": format!("0x{sender}"),
            "logs": [
                { "address": format!("0x{contract}"), "topics": [word("77"), word(&a), word("9")],
                  "data": format!("0x{}{}00", &word(&b)[2..], &word("64")[2..]) },
                { "address": format!("0x{other}"), "topics": [word("77"), word(&other)], "data": "0x" },
            ],
        });
        let mut named = BTreeSet::new();
        add_named(record.to_string().as_bytes(), [0xc0; 20], &mut named);
        assert_eq!(named, BTreeSet::from([[0x5e; 20], [0xaa; 20], [0xbb; 20]]));
        add_named(b"{", [0xc0; 20], &mut named);
        add_named(br#"{"from":null}"#, [0xc0; 20], &mut named);
        assert_eq!(named.len(), 3);
    }
}
