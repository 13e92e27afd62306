//! The rich list of an EVM chain: ERC-20 balances, and the holders of each token ordered by amount.
//!
//! Amounts are 256-bit integers in base units. An account without a balance has no row, except in a token whose earlier
//! holders are unknown: there a row of zero records that the balance was queried.

mod account_tokens;
mod balance;
mod undo;

pub use self::account_tokens::{has_account_tokens, list_account_tokens, tokens_of};
pub use self::balance::{amount_of, balance, set_balance};
pub use self::undo::{RewindOutcome, UNDO_HEIGHTS, Undo, UndoBuilder, UndoRow, clear, put_undo, rewind};

use store::Message;
use store::key::Text;

/// An EVM address.
pub type Address = [u8; 20];

store::tables! {
    /// ERC-20 contracts with at least one observed transfer, or with a denom in the chain's bank module.
    ///
    /// | contract (20) | → [`Erc20`] (protobuf)
    pub table Erc20s("erc20", 0x60, Point): Address => Message<Erc20>;
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
    /// A coin of a bank that keeps balances itself: they follow from events of the bank, and not from logs.
    #[prost(bool, tag = "4")]
    pub coin: bool,
}

store::tables! {
    /// Contracts created after the baseline of the rich list, without a transfer so far. All their holders are known.
    ///
    /// | contract (20) | → nothing
    pub table NewContracts("newborn", 0x66, Point): Address => ();

    /// Balances.
    ///
    /// | contract (20) | account (20) | → amount (big-endian, without leading zeros; empty is 0)
    pub table Balances("balance", 0x61, Point): (Address, Address) => Vec<u8>;

    /// The tokens of an account: those with a row of it in `balance`. Not part of the digest, because they follow from that table.
    ///
    /// | account (20) | contract (20) | → nothing
    pub table AccountTokens("account_token", 0x69, Scan): (Address, Address) => ();

    /// Holders of an ERC-20 by amount, then by address.
    ///
    /// | contract (20) | amount (32, BE) | account (20) | → nothing
    pub set Holders("holder", 0x62): Address, ([u8; 32], Address) => ();

    /// Contracts of the denoms in the chain's bank module. `evm/<contract>` needs no row.
    ///
    /// | denom as the chain writes it (escaped text) | → contract (20)
    pub table Denoms("denom", 0x63, Point): Text => Vec<u8>;

    /// Denoms by their lower-case form, for case-insensitive lookup; of several the first by bytes is used.
    ///
    /// | denom in lower case (escaped text) | denom (escaped text) | → nothing
    pub table DenomsFolded("denom_folded", 0x64, Scan): (Text, Text) => ();

    /// The undo log of the rich list, for the last [`UNDO_HEIGHTS`] heights: a record for each group of heights, by the last one.
    ///
    /// | height (8, BE) | → [`Undo`] (protobuf)
    pub table RichUndo("rich_undo", 0x65, Scan): u64 => Message<Undo>;
}
