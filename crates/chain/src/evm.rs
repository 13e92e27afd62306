//! EVM transactions: the receipts of `eth_getBlockReceipts`, borrowed from their bytes, and the JSON made of them.
//!
//! `null` in place of the list is never an empty block, and a malformed address is an error, because the node writes the
//! receipts, not contracts. Nodes of several versions write the same receipt in different forms;
//! [`normalise`] gives it the one that is stored.

pub mod abi;
pub mod coin;
pub mod contract_created;
pub(crate) mod data;
pub mod dialect;
pub(crate) mod envelope;
pub mod erc20;
pub(crate) mod eth_form;
pub(crate) mod eth_record;
pub mod eth_tx;
pub mod ethereum_events;
pub(crate) mod ethereum_msg;
pub(crate) mod ethermint_tx;
pub mod fee_paid;
pub mod flavour;
pub mod header;
pub(crate) mod log;
pub mod log_filter;
pub mod trace;
pub mod transaction;
pub mod transfer;

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
    /// Position in the block, counted from 1.
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
    /// The block's time in seconds, in hex; empty if the node prints none.
    #[serde(skip_serializing_if = "JsonText::is_none")]
    pub block_timestamp: JsonText<'a>,
    /// Position among the block's logs, counted from 0.
    pub log_index: JsonText<'a>,
    /// Always false on these chains.
    pub removed: bool,
}

/// The EVM block of `eth_getBlockByNumber`, without the content of its transactions.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct EvmBlock<'a> {
    /// Its hash.
    pub hash: JsonText<'a>,
    /// The height in hex.
    pub number: JsonText<'a>,
    /// The hashes of its transactions, in the order of their receipts.
    #[serde(deserialize_with = "list")]
    pub transactions: Vec<JsonText<'a>>,
}

/// Why receipts cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The answer is not a list of receipts.
    #[error("the answer of eth_getBlockReceipts is not a list of receipts: {0}")]
    Shape(#[source] serde_json::Error),
    /// The answer is not a block.
    #[error("the answer of eth_getBlockByNumber is not a block: {0}")]
    BlockShape(#[source] serde_json::Error),
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

/// Reads the `result` of `eth_getBlockByNumber`, which must be of this height.
pub fn parse_block(answer: &[u8], height: u64) -> Result<EvmBlock<'_>, Error> {
    let block: Option<EvmBlock<'_>> = serde_json::from_slice(answer).map_err(Error::BlockShape)?;
    let block = block.ok_or(Error::NotReady)?;
    if quantity(&block.number) == Some(height) {
        return Ok(block);
    }
    let (hash, block_number) = (block.hash.to_string(), block.number.to_string());
    Err(Error::OtherBlock { hash, block_number, height })
}

/// Gives the receipts of a block the form in which they are stored, whatever the software of the node that wrote them.
///
/// Computed: `logIndex`, the position in the block from 0 as in Ethereum, and the members of a log that repeat those of its
/// receipt. Rewritten: quantities without leading zeros, hex in lower case, and `contractAddress` null if there is no
/// contract.
pub fn normalise(receipts: &mut [Receipt<'_>]) {
    let mut logs = 0;
    for receipt in receipts {
        receipt.rewrite();
        for log in &mut receipt.logs {
            log.block_number.clone_from(&receipt.block_number);
            log.transaction_hash.clone_from(&receipt.transaction_hash);
            log.transaction_index.clone_from(&receipt.transaction_index);
            log.block_hash.clone_from(&receipt.block_hash);
            log.log_index = hex_quantity(logs);
            log.removed = false;
            logs += 1;
        }
    }
}

/// A number in hex, as Ethereum's JSON-RPC writes it.
pub(crate) fn hex_quantity<'a>(number: u64) -> JsonText<'a> {
    format!("{number:#x}").into()
}

/// The number in hex, with any number of leading zeros.
pub(crate) fn quantity(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'))?;
    u64::from_str_radix(digits, 16).ok()
}

/// Checks that all receipts are of this block and that there are at least as many as [`crate::evm::eth_tx::is_eth_tx`]
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

impl Log<'_> {
    /// The contract that logged; `None` if it is not 20 bytes in hex.
    pub fn address_bytes(&self) -> Option<[u8; 20]> {
        log::bytes(&self.address)
    }

    /// A topic; `None` if it is not 32 bytes in hex.
    pub fn topic_bytes(topic: &str) -> Option<[u8; 32]> {
        log::bytes(topic)
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
        quantity(&self.block_number)
    }

    /// `transactionIndex`: the position in the block, from 1 on minievm and from 0 elsewhere.
    pub fn index(&self) -> Option<u64> {
        quantity(&self.transaction_index)
    }

    /// Rewrites members in one form.
    fn rewrite(&mut self) {
        let none = |text: &JsonText<'_>| text.is_empty() || quantity_is_zero(text);
        self.contract_address = self.contract_address.take().filter(|text| !none(text));
        let quantities = [
            &mut self.block_number,
            &mut self.cumulative_gas_used,
            &mut self.effective_gas_price,
            &mut self.gas_used,
            &mut self.kind,
            &mut self.status,
            &mut self.transaction_index,
        ];
        quantities.into_iter().for_each(shorten);
        let others = [
            &mut self.block_hash,
            &mut self.from,
            &mut self.logs_bloom,
            &mut self.to,
            &mut self.transaction_hash,
        ];
        others.into_iter().for_each(JsonText::make_ascii_lowercase);
        if let Some(text) = &mut self.contract_address {
            text.make_ascii_lowercase();
        }
        for log in &mut self.logs {
            log.address.make_ascii_lowercase();
            log.data.make_ascii_lowercase();
            log.topics.iter_mut().for_each(JsonText::make_ascii_lowercase);
        }
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

/// Rewrites a quantity without leading zeros and in lower case; other text is left as it is.
fn shorten(text: &mut JsonText<'_>) {
    text.make_ascii_lowercase();
    let Some(digits) = text.strip_prefix("0x").filter(|digits| digits.starts_with('0') && digits.len() > 1)
    else {
        return;
    };
    let digits = digits.trim_start_matches('0');
    *text = format!("0x{}", if digits.is_empty() { "0" } else { digits }).into();
}

fn quantity_is_zero(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|digit| digit == b'0'))
}

/// Appends the JSON of an EVM transaction: the members of a receipt in the order of the deployed server.
pub fn write_evm_tx(out: &mut Vec<u8>, receipt: &Receipt<'_>) {
    json::push(out, receipt);
}
