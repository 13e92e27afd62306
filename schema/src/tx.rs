//! Cosmos transactions and their indexes.

use store::{Access, List, Table, TableSpec};

use crate::keys::{AccountKey, HashPrefix, Role};
use crate::payload::Payload;
use crate::postings::{Hashed, Postings};
use crate::records::Records;

/// Transactions' records as they are served, in chunks.
///
/// | seq of the chunk's first record (8, BE) | → compressed records ([`crate::payload::Chunk`])
#[derive(Debug)]
pub struct Txs;

impl Table for Txs {
    const SPEC: &'static TableSpec = &TableSpec { name: "tx", tag: 0x11, access: Access::Append };
    type Key = u64;
    type Value = Payload;
}

impl Records for Txs {
    /// With 4 of them a transaction has 364 bytes, with 1 it has 444 (`--bench growth`).
    const MOST: usize = 4;
}

/// Its lists.
pub(crate) const LISTS: [&TableSpec; 3] = [AccountTxs::SPEC, AccountSetTxs::SPEC, SetTxs::SPEC];

impl Hashed for Txs {
    type ByHash = TxByHash;
}

/// Transactions by hash. Several may share a prefix: two blocks may contain the same bytes (the first one failed), and
/// prefixes may collide; the record contains the full hash. The number of a record is that of the records before it
/// in its row of `tx`.
///
/// | first 8 bytes of the hash | → sequences with their numbers ([`Postings`])
#[derive(Debug)]
pub struct TxByHash;

impl Table for TxByHash {
    const SPEC: &'static TableSpec = &TableSpec { name: "tx_by_hash", tag: 0x12, access: Access::Hash };
    type Key = HashPrefix;
    type Value = Postings;
}

/// Transactions of an account, oldest first.
///
/// | account (1 + 20 or 32) | role (1) | first ordinal (8, BE) | → up to 32 seqs (varints)
#[derive(Debug)]
pub struct AccountTxs;

impl List for AccountTxs {
    const SPEC: &'static TableSpec = &TableSpec { name: "account_tx", tag: 0x13, access: Access::Scan };
    type Owner = (AccountKey, Role);
}

/// Transactions of an account that have one message-type set, oldest first.
///
/// | account (1 + 20 or 32) | role (1) | set (4, BE) | first ordinal (8, BE) | → up to 32 seqs (varints)
#[derive(Debug)]
pub struct AccountSetTxs;

impl List for AccountSetTxs {
    const SPEC: &'static TableSpec = &TableSpec { name: "account_set_tx", tag: 0x14, access: Access::Scan };
    type Owner = (AccountKey, Role, u32);
}

/// Transactions that have one message-type set, oldest first.
///
/// | set (4, BE) | first ordinal (8, BE) | → up to 32 seqs (varints)
#[derive(Debug)]
pub struct SetTxs;

impl List for SetTxs {
    const SPEC: &'static TableSpec = &TableSpec { name: "set_tx", tag: 0x15, access: Access::Scan };
    type Owner = u32;
}
