//! What the lane needs of coins of a bank that keeps balances itself.

use std::sync::OnceLock;

use tokio::sync::watch;

use crate::Progress;

/// Coins of a chain with cosmos/evm or ethermint.
pub(crate) struct Coins {
    /// The lane of internal transactions.
    pub(super) calls: watch::Receiver<Progress>,
    /// The denom of the native coin, once it is known.
    pub(super) native: OnceLock<String>,
}

impl Coins {
    /// Coins of a chain whose lane of internal transactions has this progress.
    pub(crate) fn new(calls: watch::Receiver<Progress>) -> Self {
        Self { calls, native: OnceLock::new() }
    }
}
