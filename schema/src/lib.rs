//! cairn's tables: what is where on disk, and nothing else.
//!
//! Every table is declared once, in the list `tables!` below; opening a database, options, the digest, the format golden and
//! `db info` are all derived from that list. A table and all orders of the same thing live in one file:
//!
//! | file | holds |
//! |---|---|
//! | [`meta`] | what the database is of, and how far each lane has come |
//! | [`block`] | blocks by height |
//! | [`tx`] | Cosmos transactions, by hash, account, signer and message-type set |
//! | [`msg_set`] | the dictionary of message-type sets |
//! | [`evm_tx`] | EVM transactions, by hash, account and signer |
//! | [`internal_tx`] | call frames of EVM transactions, by height, hash and account |
//! | [`nft`] | NFTs in every order, and the log that they are made from |
//! | [`rich`] | balances of ERC-20s, and their holders by amount |
//! | [`payload`] | how a stored JSON record is compressed |
//! | [`descriptors`] | the chain's protobuf descriptors |
//! | [`undo`] | what rows were before the last commits |
//!
//! Beside the tables: [`digest`] tells databases apart, [`rewind`] takes back the last blocks and [`rollback`] any,
//! [`audit`] looks for damage.
//!
//! Sequences (`seq`) count records of one kind from 1 in chain order, so they are a function of the chain's content
//! and the start height alone: two databases built apart give the same cursors.

pub mod audit;
pub mod block;
pub mod descriptors;
pub mod digest;
pub mod evm_tx;
pub mod internal_tx;
pub mod keys;
pub mod meta;
pub mod msg_set;
pub mod nft;
pub mod open;
pub mod payload;
mod progress;
pub mod rewind;
pub mod rich;
pub mod rollback;
pub mod tx;
pub mod undo;

use store::{Table, TableSpec};

/// The number of the on-disk format. Any change of a key or value layout raises it; a database of another format is
/// refused ([`open`]).
pub const FORMAT: u32 = 2;

/// A visitor of tables: Rust has no slice of types.
pub trait Visitor {
    /// Called once for each ordinary table.
    fn table<T: Table>(&mut self);
    /// Called once for each list.
    fn list<L: store::List>(&mut self);
    /// Called once for each ranked set, whose rows are a table.
    fn ranked<R: store::Ranked>(&mut self) {
        self.table::<R>();
    }
}

macro_rules! tables {
    (tables: $($table:ty),* ; lists: $($list:ty),* ; ranked: $($ranked:ty),* $(,)?) => {
        /// Every table of the database.
        pub const TABLES: &[&TableSpec] = &[
            store::list::COUNT,
            store::RANK,
            $(<$table as Table>::SPEC,)*
            $(<$list as store::List>::SPEC,)*
            $(<$ranked as Table>::SPEC,)*
        ];

        /// Every list of the database: rows `owner | ordinal → value`, lengths in the table `count`.
        pub const LISTS: &[&TableSpec] = &[$(<$list as store::List>::SPEC),*];

        /// Every ranked set of the database: ordered rows, with lengths and towers in the table `rank`.
        pub const RANKED: &[&TableSpec] = &[$(<$ranked as Table>::SPEC),*];

        /// Shows every table, list and ranked set to `visitor`.
        pub fn visit(visitor: &mut impl Visitor) {
            $(visitor.table::<$table>();)*
            $(visitor.list::<$list>();)*
            $(visitor.ranked::<$ranked>();)*
        }
    };
}

tables! {
    tables:
        meta::Meta, payload::Dictionary, descriptors::Descriptors, undo::UndoRecords,
        block::Blocks,
        tx::Txs, tx::TxByHash,
        msg_set::MsgSets, msg_set::MsgSetByNames, msg_set::MsgSetByType,
        evm_tx::EvmTxs, evm_tx::EvmTxByHash,
        internal_tx::Calls, internal_tx::CallsByHash, internal_tx::CallsByHeight,
        nft::Collections, nft::TokenObjects, nft::ObjectTokens, nft::OriginNames, nft::CollectionsByName,
        nft::NameChanges, nft::NftLog, nft::Refused, nft::Questions, nft::Waiting,
        rich::Erc20s, rich::Newborns, rich::Balances, rich::Denoms, rich::DenomsFolded, rich::RichUndo;
    lists:
        tx::AccountTxs, tx::AccountSetTxs, tx::SetTxs,
        evm_tx::AccountEvmTxs,
        internal_tx::AccountCalls,
        nft::TokenTxs;
    ranked:
        nft::CollectionsByHeight, nft::OwnedCollections, nft::Tokens, nft::TokensByHeight,
        nft::OwnedTokens, nft::OwnedTokensByHeight, nft::Holdings, nft::HoldingsByHeight,
        rich::Holders,
}

/// What can be wrong with a database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store below failed, or a row does not decode.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The database belongs to something else than was asked for.
    #[error("{0}")]
    Refused(#[from] open::Refusal),
    /// A stored record does not decompress or does not hold what its table promises.
    #[error(
        "table `{table}`, key {key}: {reason}; run `cairn db rollback` below it and let it be indexed again"
    )]
    Record {
        /// The table's name.
        table: &'static str,
        /// The key, in the form the table's documentation shows it.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}
