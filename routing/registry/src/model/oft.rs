//! Omnichain fungible tokens of LayerZero.

use chain::U256;
use serde::{Deserialize, Serialize};

use super::{AssetRef, Terms};
use crate::serde_forms;

/// A group of tokens on several chains that LayerZero moves one to one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Oft {
    /// Symbol of the group.
    pub symbol: String,
    /// At least two, one per chain.
    pub legs: Vec<Leg>,
}

/// One chain's end of an [`Oft`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leg {
    /// The token.
    pub asset: AssetRef,
    /// Kind of the contract.
    pub kind: LegKind,
    /// The OFT contract, `0x…` (EVM), or the address of the module (Move).
    pub contract: String,
    /// LayerZero endpoint id of the chain.
    pub eid: u32,
    /// Decimals of amounts in cross-chain messages.
    pub shared_decimals: u8,
    /// Options of every message, hex with `0x`; `0x` selects the contract's own.
    pub options: String,
    /// Default messaging fee in base units of the chain's coin, if the contract does not answer.
    #[serde(serialize_with = "serde_forms::display_option")]
    pub messaging_fee: Option<U256>,
    /// Terms of sending from this leg.
    pub terms: Terms,
}

/// Kind of an OFT contract, by its custody of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "snake_case"))]
pub enum LegKind {
    /// The token itself is the OFT: it is burnt and minted.
    Token,
    /// The token is locked in an adapter, which needs an allowance.
    Adapter,
    /// The chain's coin is locked in an adapter; it is sent as value.
    NativeAdapter,
    /// A module of a Move chain.
    Move,
}
