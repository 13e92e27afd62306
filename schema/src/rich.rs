//! The rich list of an EVM chain: ERC-20 balances, and the holders of each token ordered by amount.
//!
//! Amounts are 256-bit integers in base units. An account without a balance has no row, except in a token whose earlier
//! holders are unknown: there a row of zero records that the balance was queried.

mod balance;
mod undo;

pub use self::balance::{amount_of, balance, set_balance};
pub use self::undo::{RewindOutcome, UNDO_HEIGHTS, Undo, UndoBuilder, UndoRow, clear, put_undo, rewind};

use store::key::Text;
use store::{Access, Message, Ranked, Table, TableSpec};

/// An EVM address.
pub type Address = [u8; 20];

/// ERC-20 contracts with at least one observed transfer, or with a denom in the chain's bank module.
///
/// | contract (20) | → [`Erc20`] (protobuf)
#[derive(Debug)]
pub struct Erc20s;

impl Table for Erc20s {
    const SPEC: &'static TableSpec = &TableSpec { name: "erc20", tag: 0x60, access: Access::Point };
    type Key = Address;
    type Value = Message<Erc20>;
}

/// The state of an ERC-20 in the rich list.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Erc20 {
    /// Every holder is known: an account without a row has balance zero. True of a token that was created after the
    /// baseline or is in the bank, until the known balances turn out to be another sum than its total supply; true again,
    /// or of an older token, as soon as they are that.
    #[prost(bool, tag = "1")]
    pub complete: bool,
    /// Balances change without transfer events: the balance of a touched account is queried, not
    /// summed.
    #[prost(bool, tag = "2")]
    pub drifting: bool,
    /// The contract does not answer balance queries, so balances are sums of the observed transfers.
    #[prost(bool, tag = "3")]
    pub silent: bool,
}

/// Contracts created after the baseline of the rich list, without a transfer so far. All their holders are known.
///
/// | contract (20) | → nothing
#[derive(Debug)]
pub struct NewContracts;

impl Table for NewContracts {
    const SPEC: &'static TableSpec = &TableSpec { name: "newborn", tag: 0x66, access: Access::Point };
    type Key = Address;
    type Value = ();
}

/// Balances.
///
/// | contract (20) | account (20) | → amount (big-endian, without leading zeros; empty is 0)
#[derive(Debug)]
pub struct Balances;

impl Table for Balances {
    const SPEC: &'static TableSpec = &TableSpec { name: "balance", tag: 0x61, access: Access::Point };
    type Key = (Address, Address);
    type Value = Vec<u8>;
}

/// Holders of an ERC-20 by amount, then by address.
///
/// | contract (20) | amount (32, BE) | account (20) | → nothing
#[derive(Debug)]
pub struct Holders;

impl Table for Holders {
    const SPEC: &'static TableSpec = &TableSpec { name: "holder", tag: 0x62, access: Access::Ranked };
    type Key = (Address, ([u8; 32], Address));
    type Value = ();
}

impl Ranked for Holders {
    type Owner = Address;
    type Item = ([u8; 32], Address);
}

/// Contracts of the denoms in the chain's bank module. `evm/<contract>` needs no row.
///
/// | denom as the chain writes it (escaped text) | → contract (20)
#[derive(Debug)]
pub struct Denoms;

impl Table for Denoms {
    const SPEC: &'static TableSpec = &TableSpec { name: "denom", tag: 0x63, access: Access::Point };
    type Key = Text;
    type Value = Vec<u8>;
}

/// Denoms by their lower-case form, for case-insensitive lookup; of several the first by bytes is used.
///
/// | denom in lower case (escaped text) | denom (escaped text) | → nothing
#[derive(Debug)]
pub struct DenomsFolded;

impl Table for DenomsFolded {
    const SPEC: &'static TableSpec = &TableSpec { name: "denom_folded", tag: 0x64, access: Access::Scan };
    type Key = (Text, Text);
    type Value = ();
}

/// The undo log of the rich list, for the last [`UNDO_HEIGHTS`] heights: a record for each group of heights, by the last one.
///
/// | height (8, BE) | → [`Undo`] (protobuf)
#[derive(Debug)]
pub struct RichUndo;

impl Table for RichUndo {
    const SPEC: &'static TableSpec = &TableSpec { name: "rich_undo", tag: 0x65, access: Access::Scan };
    type Key = u64;
    type Value = Message<Undo>;
}
