//! EVM transactions: the receipts of `eth_getBlockReceipts`, borrowed from their bytes, and the JSON made of them.
//!
//! Texts pass through unchanged. `null` in place of the list is never an empty block (T3), and an address that is none
//! is an error, because receipts are written by the node and not by contracts (indexing 6.2).

use std::borrow::Cow;

use serde::Deserialize;
use thiserror::Error;

use crate::account_set::AccountSet;
use crate::address::Account;
use crate::hash::{Hash, parse_hash};
use crate::involved::{is_address_topic, topic_account};
use crate::json::{push_list, push_member, push_str};
use crate::serde_lenient::{list, optional_text, text, texts};

/// One receipt.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Receipt<'a> {
    /// Hash of the EVM header, which is not `CometBFT`'s.
    #[serde(borrow, deserialize_with = "text")]
    pub block_hash: Cow<'a, str>,
    /// The height in hex.
    #[serde(borrow, deserialize_with = "text")]
    pub block_number: Cow<'a, str>,
    /// The created contract.
    #[serde(borrow, deserialize_with = "optional_text")]
    pub contract_address: Option<Cow<'a, str>>,
    /// Gas used in the block so far.
    #[serde(borrow, deserialize_with = "text")]
    pub cumulative_gas_used: Cow<'a, str>,
    /// Price paid.
    #[serde(borrow, deserialize_with = "text")]
    pub effective_gas_price: Cow<'a, str>,
    /// The sender: the zero address for a Cosmos transaction that only emitted logs.
    #[serde(borrow, deserialize_with = "text")]
    pub from: Cow<'a, str>,
    /// Gas used.
    #[serde(borrow, deserialize_with = "text")]
    pub gas_used: Cow<'a, str>,
    /// The logs; none if it failed.
    #[serde(borrow, deserialize_with = "list")]
    pub logs: Vec<Log<'a>>,
    /// 256 bytes of bloom filter.
    #[serde(borrow, deserialize_with = "text")]
    pub logs_bloom: Cow<'a, str>,
    /// `0x1`, `0x0`, or empty if the node says nothing.
    #[serde(borrow, deserialize_with = "text")]
    pub status: Cow<'a, str>,
    /// The receiver; empty for a creation.
    #[serde(borrow, deserialize_with = "text")]
    pub to: Cow<'a, str>,
    /// The Ethereum hash.
    #[serde(borrow, deserialize_with = "text")]
    pub transaction_hash: Cow<'a, str>,
    /// Position in the block; from 1 on these chains.
    #[serde(borrow, deserialize_with = "text")]
    pub transaction_index: Cow<'a, str>,
    /// The transaction type.
    #[serde(borrow, rename = "type", deserialize_with = "text")]
    pub kind: Cow<'a, str>,
}

/// One log of a receipt.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Log<'a> {
    /// The contract that logged.
    #[serde(borrow, deserialize_with = "text")]
    pub address: Cow<'a, str>,
    /// Up to four words.
    #[serde(borrow, deserialize_with = "texts")]
    pub topics: Vec<Cow<'a, str>>,
    /// The rest of the log.
    #[serde(borrow, deserialize_with = "text")]
    pub data: Cow<'a, str>,
    /// As in the receipt.
    #[serde(borrow, deserialize_with = "text")]
    pub block_number: Cow<'a, str>,
    /// As in the receipt.
    #[serde(borrow, deserialize_with = "text")]
    pub transaction_hash: Cow<'a, str>,
    /// As in the receipt.
    #[serde(borrow, deserialize_with = "text")]
    pub transaction_index: Cow<'a, str>,
    /// As in the receipt.
    #[serde(borrow, deserialize_with = "text")]
    pub block_hash: Cow<'a, str>,
    /// Position among the block's logs.
    #[serde(borrow, deserialize_with = "text")]
    pub log_index: Cow<'a, str>,
    /// Always false on these chains.
    pub removed: bool,
}

/// Why receipts cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The answer is no list of receipts.
    #[error("the answer of eth_getBlockReceipts is not a list of receipts: {0}")]
    Shape(#[source] serde_json::Error),
    /// The answer is `null`: the node has not indexed the block yet.
    #[error("the node has no receipts of the block yet: ask again")]
    NotReady,
    /// A receipt belongs to another block.
    #[error(
        "receipt {hash} is of block {block_number:?}, asked was {height}: ask again, or another endpoint"
    )]
    OtherBlock {
        /// The receipt.
        hash: String,
        /// What it says.
        block_number: String,
        /// What was asked for.
        height: u64,
    },
    /// Fewer receipts than Ethereum transactions in the block: the index of the node is behind or pruned.
    #[error("block {height} has {expected} ethereum transactions or more and the node {receipts} receipts")]
    TooFew {
        /// The block.
        height: u64,
        /// At least so many must be there.
        expected: usize,
        /// So many came.
        receipts: usize,
    },
    /// A hash is not 32 bytes of hex.
    #[error("{text:?} is not the hash of an ethereum transaction")]
    BadHash {
        /// What stood there.
        text: String,
    },
    /// A member that must be an address is none.
    #[error("{member} of ethereum transaction {hash} is {text:?}, expected a 20-byte address in hex")]
    BadAddress {
        /// The member.
        member: &'static str,
        /// The receipt.
        hash: String,
        /// What stood there.
        text: String,
    },
}

/// Reads the `result` of `eth_getBlockReceipts`.
pub fn parse_receipts(answer: &[u8]) -> Result<Vec<Receipt<'_>>, Error> {
    let receipts: Option<Vec<Receipt<'_>>> = serde_json::from_slice(answer).map_err(Error::Shape)?;
    receipts.ok_or(Error::NotReady)
}

/// Checks that all receipts are of this block and that there are at least as many as [`crate::eth_tx::is_eth_tx`]
/// counts.
pub fn check_receipts(receipts: &[Receipt<'_>], height: u64, expected: usize) -> Result<(), Error> {
    if receipts.len() < expected {
        return Err(Error::TooFew { height, expected, receipts: receipts.len() });
    }
    match receipts.iter().find(|receipt| receipt.block_number() != Some(height)) {
        None => Ok(()),
        Some(other) => Err(Error::OtherBlock {
            hash: other.transaction_hash.to_string(),
            block_number: other.block_number.to_string(),
            height,
        }),
    }
}

impl Receipt<'_> {
    /// The Ethereum hash of the transaction.
    pub fn hash(&self) -> Result<Hash, Error> {
        match parse_hash(&self.transaction_hash) {
            Ok(Some(hash)) => Ok(hash),
            _ => Err(Error::BadHash { text: self.transaction_hash.to_string() }),
        }
    }

    /// The height that the receipt names.
    pub fn block_number(&self) -> Option<u64> {
        u64::from_str_radix(self.block_number.strip_prefix("0x")?, 16).ok()
    }

    /// The signer: the zero address "signs" receipts that stand for Cosmos transactions (T13).
    pub fn signer(&self) -> Result<Account, Error> {
        self.account("from", &self.from)
    }

    /// Adds the accounts that the transaction is listed under: `from`, `to`, the created contract, and of each log the
    /// contract and the topics that can be an address.
    pub fn accounts(&self, out: &mut AccountSet) -> Result<(), Error> {
        out.insert(self.signer()?);
        for (member, text) in [("to", Some(&self.to)), ("contractAddress", self.contract_address.as_ref())] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                out.insert(self.account(member, text)?);
            }
        }
        for log in &self.logs {
            out.insert(self.account("logs[].address", &log.address)?);
            for topic in log.topics.iter().skip(1).filter(|topic| is_address_topic(topic)) {
                let account = topic_account(topic);
                out.insert(account.ok_or_else(|| self.bad_address("logs[].topics[]", topic))?);
            }
        }
        Ok(())
    }

    fn account(&self, member: &'static str, text: &str) -> Result<Account, Error> {
        Account::from_hex_literal(text).ok_or_else(|| self.bad_address(member, text))
    }

    fn bad_address(&self, member: &'static str, text: &str) -> Error {
        Error::BadAddress { member, hash: self.transaction_hash.to_string(), text: text.to_owned() }
    }
}

/// Appends the JSON of an EVM transaction: 14 members in the order of the contract (indexer-api 4.10).
pub fn write_evm_tx(out: &mut Vec<u8>, receipt: &Receipt<'_>) {
    push_member(out, r#"{"blockHash":"#, &receipt.block_hash);
    push_member(out, r#","blockNumber":"#, &receipt.block_number);
    match &receipt.contract_address {
        Some(contract) => push_member(out, r#","contractAddress":"#, contract),
        None => out.extend_from_slice(br#","contractAddress":null"#),
    }
    push_member(out, r#","cumulativeGasUsed":"#, &receipt.cumulative_gas_used);
    push_member(out, r#","effectiveGasPrice":"#, &receipt.effective_gas_price);
    push_member(out, r#","from":"#, &receipt.from);
    push_member(out, r#","gasUsed":"#, &receipt.gas_used);
    out.extend_from_slice(br#","logs":"#);
    push_list(out, &receipt.logs, push_log);
    push_member(out, r#","logsBloom":"#, &receipt.logs_bloom);
    push_member(out, r#","status":"#, &receipt.status);
    push_member(out, r#","to":"#, &receipt.to);
    push_member(out, r#","transactionHash":"#, &receipt.transaction_hash);
    push_member(out, r#","transactionIndex":"#, &receipt.transaction_index);
    push_member(out, r#","type":"#, &receipt.kind);
    out.push(b'}');
}

fn push_log(out: &mut Vec<u8>, log: &Log<'_>) {
    push_member(out, r#"{"address":"#, &log.address);
    out.extend_from_slice(br#","topics":"#);
    push_list(out, &log.topics, |out, topic| push_str(out, topic));
    push_member(out, r#","data":"#, &log.data);
    push_member(out, r#","blockNumber":"#, &log.block_number);
    push_member(out, r#","transactionHash":"#, &log.transaction_hash);
    push_member(out, r#","transactionIndex":"#, &log.transaction_index);
    push_member(out, r#","blockHash":"#, &log.block_hash);
    push_member(out, r#","logIndex":"#, &log.log_index);
    let removed: &[u8] = if log.removed { br#","removed":true}"# } else { br#","removed":false}"# };
    out.extend_from_slice(removed);
}
