//! The on-disk schema: every table with its key, value and options, and the operations over all of them.
//!
//! Each table is declared once, in the list `all_tables!` below. Opening a database, RocksDB options, the digest, the
//! format golden and `db info` are derived from that list. A table and its secondary indexes are declared in one
//! file:
//!
//! | file | holds |
//! |---|---|
//! | [`meta`] | the chain the database belongs to, and the progress of each lane |
//! | [`block`] | blocks by height |
//! | [`tx`] | Cosmos transactions, by hash, account, signer and message-type set |
//! | [`msg_set`] | the dictionary of message-type sets |
//! | [`evm_tx`] | EVM transactions, by hash, account and signer |
//! | [`parties`] | optional: EVM transactions by recipient |
//! | [`contracts`] | optional: Cosmos transactions by the EVM contract that they created |
//! | [`evm_block`] | optional: headers of EVM blocks |
//! | [`logs`] | optional: EVM transactions by the content of their logs |
//! | [`ledger`], [`movement`] | optional: movements of tokens, by account and by token |
//! | [`balances`], [`supply`] | optional: what accounts held before the first block of the ledger, holders, and supplies |
//! | [`tokens`] | optional: tokens, with what the node says of them |
//! | [`packets`] | optional: packets and channels of IBC |
//! | [`bridge`], [`opchild`], [`ophost`] | optional: transfers over OPinit bridges: of a rollup, of its layer one |
//! | [`bridge_output`] | what the layer one says of a rollup's outputs, and proofs of withdrawals |
//! | [`internal_tx`] | call frames of EVM transactions, by height and account |
//! | [`nft`] | NFT collections and tokens, their indexes, and the event log that they are derived from |
//! | [`rich`] | ERC-20 balances, holders by amount, and the tokens of an account |
//! | [`search`] | transactions by attributes of their events |
//! | [`activity`] | optional: gas and accounts of hours and days |
//! | [`payload`], [`records`] | compression of stored JSON records in chunks, and reading them |
//! | [`descriptors`] | the chain's protobuf descriptors |
//! | [`undo`] | the undo log: prior values of the rows that the last commits changed |
//! | [`index`] | optional indexes: tables that follow from stored records, built and removed on their own |
//! | [`index_writer`] | their writer, removal and way back |
//!
//! Operations: [`digest`] hashes the contents, [`rewind`] removes the last blocks with the undo log, [`audit`] detects
//! damage.
//!
//! # Invariants
//!
//! A sequence (`seq`) counts records of one kind from 1 in chain order. It depends on the chain's content and the start
//! height only, so two independently built databases return the same cursors.

pub mod activity;
pub mod audit;
pub mod balance_change;
pub mod balances;
pub mod block;
pub mod bridge;
pub mod bridge_output;
pub mod call_errors;
pub mod contracts;
pub mod descriptors;
pub mod digest;
pub mod evm_block;
pub mod evm_tx;
pub mod index;
pub mod index_writer;
pub mod internal_tx;
mod json;
pub mod keys;
pub mod known_balance;
pub mod known_token;
pub mod ledger;
pub mod logs;
pub mod meta;
pub mod movement;
pub mod msg_set;
pub mod nft;
pub mod opchild;
pub mod open;
pub mod ophost;
pub mod packets;
mod parallel;
pub mod parties;
pub mod payload;
pub mod postings;
mod progress;
pub mod records;
pub mod rewind;
pub mod rich;
pub mod search;
pub mod supply;
pub mod tokens;
pub mod tx;
pub mod undo;

use store::{Table, TableSpec};

/// The version of the on-disk format. Any change of a key or value layout increments it; [`open`] rejects a database of
/// another version.
pub const FORMAT: u32 = 9;

/// Tables whose values are compressed records.
pub const RECORDS: [&TableSpec; 3] = [tx::Txs::SPEC, evm_tx::EvmTxs::SPEC, internal_tx::Calls::SPEC];

/// Every optional index.
pub const INDEXES: &[&index::Index] = &[
    &parties::PARTIES,
    &logs::LOGS,
    &contracts::CONTRACTS,
    &evm_block::BLOCKS,
    &ledger::LEDGER,
    &balances::BALANCES,
    &call_errors::CALL_ERRORS,
    &tokens::TOKENS,
    &packets::PACKETS,
    &bridge::BRIDGE,
    &search::SEARCH,
    &activity::ACTIVITY,
];

/// A visitor over the table types, because Rust has no slice of types.
pub trait Visitor {
    /// Called once for each ordinary table.
    fn table<T: Table>(&mut self);
    /// Called once for each list.
    fn list<L: store::List>(&mut self);
    /// Called once for each ranked set. Its rows form an ordinary table.
    fn ranked<R: store::Ranked>(&mut self) {
        self.table::<R>();
    }
}

macro_rules! all_tables {
    (tables: $($table:ty),* ; lists: $($list:ty),* ; ranked: $($ranked:ty),* $(,)?) => {
        /// Every table of the database.
        pub const TABLES: &[&TableSpec] = &[
            store::list::COUNT,
            store::RANK,
            $(<$table as Table>::SPEC,)*
            $(<$list as store::List>::SPEC,)*
            $(<$ranked as Table>::SPEC,)*
        ];

        /// Every list of the database: rows `owner | first ordinal → up to 32 entries`, lengths in the table `count`.
        pub const LISTS: &[&TableSpec] = &[$(<$list as store::List>::SPEC),*];

        /// Every ranked set of the database: ordered rows, with lengths and skip-list nodes in the table `rank`.
        pub const RANKED: &[&TableSpec] = &[$(<$ranked as Table>::SPEC),*];

        /// Calls `visitor` for every table, list and ranked set.
        pub fn visit(visitor: &mut impl Visitor) {
            $(visitor.table::<$table>();)*
            $(visitor.list::<$list>();)*
            $(visitor.ranked::<$ranked>();)*
        }
    };
}

all_tables! {
    tables:
        meta::Meta, payload::Dictionary, descriptors::Descriptors, undo::UndoRecords,
        block::Blocks, block::BlockEvents,
        tx::Txs, tx::TxByHash,
        msg_set::MsgSets, msg_set::MsgSetByNames, msg_set::MsgSetByType,
        evm_tx::EvmTxs, evm_tx::EvmTxByHash, evm_block::EvmBlocks, evm_block::EvmBlockByHash,
        internal_tx::Calls, internal_tx::CallsByHeight, call_errors::CallErrors,
        nft::Collections, nft::TokenObjects, nft::ObjectTokens, nft::OriginNames, nft::CollectionsByName,
        nft::NameChanges, nft::NftLog, nft::NonCollections, nft::Questions, nft::PendingEvents,
        nft::Renewals,
        ledger::BalanceTotals,
        ledger::BalanceChanges, balances::Bases, balances::AskedAccounts, balances::TokenStates,
        supply::SupplyReplies,
        ledger::Movements, ledger::TokenDenoms, ledger::DenomTokens, ledger::WholeTokens,
        ledger::MovedNfts, ledger::NftObjects,
        tokens::Tokens, tokens::TokenNumbers, tokens::TokenQuestions, tokens::TokenReplies, tokens::TokenSearch,
        packets::Packets, packets::PacketNumbers, packets::Connections, packets::ChannelReplies,
        opchild::Withdrawals, opchild::FinalizedDeposits, opchild::BridgeStates,
        ophost::Bridges, ophost::ProposedOutputs, ophost::L1Deposits, ophost::Claims, ophost::ClaimNumbers,
        ophost::ClaimHashes, ophost::BridgeReplies,
        bridge_output::Outputs, bridge_output::L1Claims, bridge_output::OpenClaims,
        bridge_output::WithdrawalTrees, bridge_output::L1States,
        activity::Hours, activity::Days, activity::AccountHours,
        rich::Erc20s, rich::NewContracts, rich::Balances, rich::AccountTokens, rich::Denoms, rich::DenomsFolded, rich::RichUndo;
    lists:
        tx::AccountTxs, tx::AccountSetTxs, tx::SetTxs,
        evm_tx::AccountEvmTxs, parties::RecipientEvmTxs, logs::LogTxs, contracts::ContractTxs,
        internal_tx::AccountCalls,
        ledger::AccountMovements, ledger::AccountTokenMovements, ledger::TokenMovements,
        tokens::TokensByType,
        packets::EndPackets, packets::AccountPackets,
        opchild::ReceiverWithdrawals, opchild::SenderWithdrawals,
        opchild::ReceiverDeposits, opchild::SenderDeposits, ophost::Batches,
        search::AttributeTxs,
        nft::TokenTxs;
    ranked:
        nft::CollectionsByHeight, nft::OwnedCollections, nft::Tokens, nft::TokensByHeight,
        nft::OwnedTokens, nft::OwnedTokensByHeight, nft::Holdings, nft::HoldingsByHeight,
        rich::Holders, balances::TokenHolders,
        packets::PacketsByState, packets::Channels,
}

/// An error of reading or writing a database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The storage engine failed, or a row does not decode.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The database is empty, has another format or belongs to another chain.
    #[error("{0}")]
    Refused(#[from] open::OpenError),
    /// A stored record does not decompress, or violates the invariants of its table.
    #[error(
        "table `{table}`, key {key}: {reason}; restore a backup (cairn db restore), or index again (cairn db reindex)"
    )]
    Record {
        /// The table's name.
        table: &'static str,
        /// The key, formatted as in the table's documentation.
        key: String,
        /// The broken expectation.
        reason: String,
    },
}
