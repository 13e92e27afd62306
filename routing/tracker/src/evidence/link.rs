//! Links of the evidence: to transactions, and of a hop to the previous one. They are stored as hops are.

use serde::{Deserialize, Serialize};

/// A transaction in a block, or a state that shows its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TxRef {
    /// The chain's id.
    pub chain: String,
    /// The hash in display form: upper-case hex, or `0x` and lower-case hex on an EVM chain; none if no node has the
    /// transaction, and only the chain's state shows its effect.
    pub hash: Option<String>,
    /// The block, or the height of the state.
    pub height: u64,
    /// The block's time in nanoseconds since 1970; none if no node has its header any more.
    pub time: Option<i64>,
}

/// Relation of a hop to the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    /// First hop.
    Start,
    /// The receiving chain forwarded the packet: if this hop fails, the previous one fails.
    Forward,
    /// A contract called by the packet sent it: if this hop fails, the tokens stay where it began.
    Hook,
    /// Returns the tokens of a failed hop.
    Refund,
}

impl TxRef {
    /// Whether a node has the transaction.
    pub fn is_found(&self) -> bool {
        self.hash.is_some()
    }
}
