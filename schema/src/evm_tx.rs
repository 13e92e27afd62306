//! EVM transactions and their indexes.

use store::{Access, List, Table, TableSpec};

use crate::keys::{AccountKey, HashPrefix, Role};
use crate::payload::Payload;
use crate::postings::Postings;
use crate::records::Records;

/// EVM transactions' records (their receipts) as they are served, in chunks.
///
/// | seq of the chunk's first record (8, BE) | → compressed records ([`crate::payload::Chunk`])
#[derive(Debug)]
pub struct EvmTxs;

impl Table for EvmTxs {
    const SPEC: &'static TableSpec = &TableSpec { name: "evm_tx", tag: 0x20, access: Access::Append };
    type Key = u64;
    type Value = Payload;
}

impl Records for EvmTxs {
    /// Receipts are shorter than transactions.
    const MOST: usize = 6;
}

/// EVM transactions by EVM hash, like [`crate::tx::TxByHash`].
///
/// | first 8 bytes of the hash | → sequences with their numbers ([`Postings`])
#[derive(Debug)]
pub struct EvmTxByHash;

impl Table for EvmTxByHash {
    const SPEC: &'static TableSpec = &TableSpec { name: "evm_tx_by_hash", tag: 0x21, access: Access::Hash };
    type Key = HashPrefix;
    type Value = Postings;
}

/// EVM transactions of an account, oldest first.
///
/// | account (1 + 20 or 32) | role (1) | first ordinal (8, BE) | → up to 32 seqs (varints)
#[derive(Debug)]
pub struct AccountEvmTxs;

impl List for AccountEvmTxs {
    const SPEC: &'static TableSpec = &TableSpec { name: "account_evm_tx", tag: 0x22, access: Access::Scan };
    type Owner = (AccountKey, Role);
}
