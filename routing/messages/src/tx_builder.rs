//! The input of one transaction's message builders: its hops, its signer and the account that receives the tokens.

use planner::{Hop, Step};
use registry::{AssetRef, ChainRef};

use crate::address::{Party, Signers};
use crate::error::BuildError;
use crate::request::BuildRequest;
use crate::slippage::Slippage;

/// Builder of one transaction's messages.
pub(crate) struct TxBuilder<'a> {
    pub(crate) request: &'a BuildRequest<'a>,
    /// Not empty.
    pub(crate) hops: &'a [Hop],
    pub(crate) signer: &'a Party,
    /// Account that has the tokens afterwards.
    pub(crate) end: &'a Party,
    /// Time at which packets are returned, Unix time in nanoseconds.
    pub(crate) timeout: u64,
    pub(crate) slippage: Slippage,
    /// All addresses of the request.
    pub(crate) signers: &'a Signers,
}

impl TxBuilder<'_> {
    pub(crate) fn chain_of(&self, asset: AssetRef) -> ChainRef {
        self.request.registry[asset].chain
    }

    /// Names of the hops, for an error message.
    pub(crate) fn describe(&self) -> String {
        let words: Vec<&str> = self.hops.iter().map(|hop| step_name(hop.step)).collect();
        words.join(", ")
    }
}

pub(crate) fn step_name(step: Step) -> &'static str {
    match step {
        Step::Send => "send",
        Step::Ibc { .. } => "IBC transfer",
        Step::MigratedDeposit { .. } => "migrated deposit",
        Step::MigratedWithdraw { .. } => "migrated withdrawal",
        Step::Deposit { .. } => "deposit",
        Step::Withdraw { .. } => "withdrawal",
        Step::Wrap => "wrap",
        Step::Unwrap => "unwrap",
        Step::Swap => "swap",
        Step::LayerZero { .. } => "LayerZero transfer",
    }
}

pub(crate) fn invalid_plan(what: impl Into<String>) -> BuildError {
    BuildError::Plan(what.into())
}
