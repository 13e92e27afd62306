//! Cosmos transactions and their indexes.

use chain::comet::Event;
use serde::Deserialize;
use serde_json::value::RawValue;
use store::{List as _, TableSpec};

use crate::keys::{AccountKey, HashPrefix, Role};
use crate::payload::Payload;
use crate::postings::{Hashed, Postings};
use crate::records::Records;

store::tables! {
    /// Transactions' records as they are served, in chunks.
    ///
    /// | seq of the chunk's first record (8, BE) | → compressed records ([`crate::payload::Chunk`])
    pub table Txs("tx", 0x11, Append): u64 => Payload;
}

impl Records for Txs {
    /// With 4 of them a transaction has 364 bytes, with 1 it has 444 (`--bench growth`).
    const MAX_RECORDS: usize = 4;
}

/// Its lists.
pub(crate) const LISTS: [&TableSpec; 3] = [AccountTxs::SPEC, AccountSetTxs::SPEC, SetTxs::SPEC];

impl Hashed for Txs {
    type ByHash = TxByHash;
}

store::tables! {
    /// Transactions by hash. Several may share a prefix: two blocks may contain the same bytes (the first one failed), and
    /// prefixes may collide; the record contains the full hash. The number of a record is that of the records before it
    /// in its row of `tx`.
    ///
    /// | first 8 bytes of the hash | → sequences with their numbers ([`Postings`])
    pub table TxByHash("tx_by_hash", 0x12, Hash): HashPrefix => Postings;

    /// Transactions of an account, oldest first.
    ///
    /// | account (1 + 20 or 32) | role (1) | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list AccountTxs("account_tx", 0x13): (AccountKey, Role);

    /// Transactions of an account that have one message-type set, oldest first.
    ///
    /// | account (1 + 20 or 32) | role (1) | set (4, BE) | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list AccountSetTxs("account_set_tx", 0x14): (AccountKey, Role, u32);

    /// Transactions that have one message-type set, oldest first.
    ///
    /// | set (4, BE) | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list SetTxs("set_tx", 0x15): u32;
}

/// The members of a transaction's record that indexes read.
#[derive(Deserialize)]
pub(crate) struct TxRecord<'a> {
    /// In hex.
    pub(crate) txhash: &'a str,
    /// 0 if it succeeded.
    pub(crate) code: u32,
    #[serde(borrow)]
    pub(crate) events: Vec<Event<'a>>,
    #[serde(borrow)]
    tx: &'a RawValue,
}

impl<'a> TxRecord<'a> {
    /// The members in `record`.
    pub(crate) fn read(record: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(record)
    }

    /// Its messages; none if nothing decodes the transaction, whose content then has another form.
    pub(crate) fn messages(&self) -> Vec<&'a RawValue> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Content<'a> {
            #[serde(borrow)]
            body: Body<'a>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Body<'a> {
            #[serde(borrow)]
            messages: Vec<&'a RawValue>,
        }
        serde_json::from_str::<Content<'_>>(self.tx.get()).unwrap_or_default().body.messages
    }
}
