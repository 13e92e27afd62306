//! Who holds how much of each ERC-20: the rich list of an EVM chain.
//!
//! Amounts are base units, 256 bits. A holder of nothing has no row, but in a token whose earlier holders are not known:
//! there a row of nothing says that the account has been asked about.

mod balance;
mod undo;

pub use self::balance::{amount_of, balance, set_balance};
pub use self::undo::{Before, UNDO_HEIGHTS, Undo, UndoRow, Undone, clear, finish_pending, go_back, put_undo};

use store::key::Text;
use store::{Access, Message, Ranked, Table, TableSpec};

/// An EVM address.
pub type Address = [u8; 20];

/// ERC-20 contracts of which a transfer was seen, or that the chain's bank knows.
///
/// | contract (20) | → [`Erc20`] (protobuf)
#[derive(Debug)]
pub struct Erc20s;

impl Table for Erc20s {
    const SPEC: &'static TableSpec = &TableSpec { name: "erc20", tag: 0x60, access: Access::Point };
    type Key = Address;
    type Value = Message<Erc20>;
}

/// What is known of an ERC-20.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Erc20 {
    /// Every holder is known: an account without a row holds nothing.
    #[prost(bool, tag = "1")]
    pub complete: bool,
    /// Its balances change in ways that its events do not tell: who is touched is asked for, not added up.
    #[prost(bool, tag = "2")]
    pub drifting: bool,
    /// The node cannot tell its balances, so they are sums of what was seen.
    #[prost(bool, tag = "3")]
    pub silent: bool,
}

/// Contracts that came to be since the rich list began and of which no transfer was seen yet: nobody held any of them
/// before.
///
/// | contract (20) | → nothing
#[derive(Debug)]
pub struct Newborns;

impl Table for Newborns {
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
    const SPEC: &'static TableSpec = &TableSpec { name: "holder", tag: 0x62, access: Access::Scan };
    type Key = (Address, ([u8; 32], Address));
    type Value = ();
}

impl Ranked for Holders {
    type Owner = Address;
    type Item = ([u8; 32], Address);
}

/// Contracts of the chain's bank denoms. `evm/<contract>` needs no row.
///
/// | denom as the chain writes it (escaped text) | → contract (20)
#[derive(Debug)]
pub struct Denoms;

impl Table for Denoms {
    const SPEC: &'static TableSpec = &TableSpec { name: "denom", tag: 0x63, access: Access::Point };
    type Key = Text;
    type Value = Vec<u8>;
}

/// Denoms by their lower-case form, for those who spell them otherwise; of several the first by bytes is meant.
///
/// | denom in lower case (escaped text) | denom (escaped text) | → nothing
#[derive(Debug)]
pub struct DenomsFolded;

impl Table for DenomsFolded {
    const SPEC: &'static TableSpec = &TableSpec { name: "denom_folded", tag: 0x64, access: Access::Scan };
    type Key = (Text, Text);
    type Value = ();
}

/// What the rich list was before a block, for the last [`UNDO_HEIGHTS`] heights.
///
/// | height (8, BE) | → [`Undo`] (protobuf)
#[derive(Debug)]
pub struct RichUndo;

impl Table for RichUndo {
    const SPEC: &'static TableSpec = &TableSpec { name: "rich_undo", tag: 0x65, access: Access::Scan };
    type Key = u64;
    type Value = Message<Undo>;
}
