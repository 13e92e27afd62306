//! EVM transactions: the receipts of `eth_getBlockReceipts`, borrowed from their bytes, and the JSON made of them.
//!
//! Texts pass through unchanged. `null` in place of the list is never an empty block, and a malformed address is
//! an error, because the node writes the receipts, not contracts (indexing 6.2).

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::address::{Account, AccountSet};
use crate::hash::{Hash, parse_hash};
use crate::involved::{is_address_topic, topic_account};
use crate::json;
use crate::serde_lenient::{JsonText, list};

/// One receipt.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub struct Receipt<'a> {
    /// Hash of the EVM header, not of `CometBFT`'s.
    pub block_hash: JsonText<'a>,
    /// The height in hex.
    pub block_number: JsonText<'a>,
    /// The created contract.
    pub contract_address: Option<JsonText<'a>>,
    /// Gas used in the block up to and including this transaction.
    pub cumulative_gas_used: JsonText<'a>,
    /// Price paid.
    pub effective_gas_price: JsonText<'a>,
    /// The sender: the zero address for a Cosmos transaction that only emitted logs.
    pub from: JsonText<'a>,
    /// Gas used.
    pub gas_used: JsonText<'a>,
    /// The logs; empty if the transaction failed.
    #[serde(deserialize_with = "list")]
    pub logs: Vec<Log<'a>>,
    /// 256 bytes of bloom filter.
    pub logs_bloom: JsonText<'a>,
    /// `0x1`, `0x0`, or empty if the node does not report it.
    pub status: JsonText<'a>,
    /// The receiver; empty for a creation.
    pub to: JsonText<'a>,
    /// The Ethereum hash.
    pub transaction_hash: JsonText<'a>,
    /// Position in the block; counted from 1 on these chains.
    pub transaction_index: JsonText<'a>,
    /// The transaction type.
    #[serde(rename = "type")]
    pub kind: JsonText<'a>,
}

/// One log of a receipt.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub struct Log<'a> {
    /// The contract that logged.
    pub address: JsonText<'a>,
    /// Up to four words.
    #[serde(deserialize_with = "list")]
    pub topics: Vec<JsonText<'a>>,
    /// The data of the log.
    pub data: JsonText<'a>,
    /// As in the receipt.
    pub block_number: JsonText<'a>,
    /// As in the receipt.
    pub transaction_hash: JsonText<'a>,
    /// As in the receipt.
    pub transaction_index: JsonText<'a>,
    /// As in the receipt.
    pub block_hash: JsonText<'a>,
    /// Position among the block's logs.
    pub log_index: JsonText<'a>,
    /// Always false on these chains.
    pub removed: bool,
}

/// Why receipts cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The answer is not a list of receipts.
    #[error("the answer of eth_getBlockReceipts is not a list of receipts: {0}")]
    Shape(#[source] serde_json::Error),
    /// The answer is `null`: the node has not indexed the block yet.
    #[error("the node has no receipts of the block yet: ask again")]
    NotReady,
    /// A receipt belongs to another block.
    #[error(
        "receipt {hash} is of block {block_number:?}, requested was {height}: ask again, or another endpoint"
    )]
    OtherBlock {
        /// The receipt.
        hash: String,
        /// Its block number.
        block_number: String,
        /// The requested height.
        height: u64,
    },
    /// Fewer receipts than Ethereum transactions in the block: the index of the node is behind or pruned.
    #[error("block {height} has {expected} ethereum transactions or more and the node {receipts} receipts")]
    TooFew {
        /// The block.
        height: u64,
        /// The minimum number.
        expected: usize,
        /// The received number.
        receipts: usize,
    },
    /// A hash is not 32 bytes of hex.
    #[error("{text:?} is not the hash of an ethereum transaction")]
    BadHash {
        /// The value.
        text: String,
    },
    /// A member that must be an address is not one.
    #[error("{member} of ethereum transaction {hash} is {text:?}, expected a 20-byte address in hex")]
    BadAddress {
        /// The member.
        member: &'static str,
        /// The receipt.
        hash: String,
        /// The value.
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

    /// The height in the receipt.
    pub fn block_number(&self) -> Option<u64> {
        u64::from_str_radix(self.block_number.strip_prefix("0x")?, 16).ok()
    }

    /// The signer: the zero address for receipts of Cosmos transactions.
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

/// Appends the JSON of an EVM transaction: the members of a receipt in the order of the contract (indexer-api 4.10).
pub fn write_evm_tx(out: &mut Vec<u8>, receipt: &Receipt<'_>) {
    json::push(out, receipt);
}
