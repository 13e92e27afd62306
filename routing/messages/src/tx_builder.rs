//! The input of one transaction's message builders: its hops, its signer and the account that receives the tokens.

use planner::{Hop, Step};
use registry::{AssetRef, ChainRef};

use crate::address::Person;
use crate::ask::Ask;
use crate::refused::Refused;
use crate::slippage::Slippage;

/// One transaction's hops and whose it is.
pub(crate) struct Stretch<'a> {
    pub(crate) ask: &'a Ask<'a>,
    /// One at least.
    pub(crate) hops: &'a [Hop],
    pub(crate) signer: &'a Person,
    /// Who has the tokens when it is done.
    pub(crate) end: &'a Person,
    /// When packets are returned, Unix time in nanoseconds.
    pub(crate) timeout: u64,
    pub(crate) slippage: Slippage,
}

impl Stretch<'_> {
    pub(crate) fn chain_of(&self, asset: AssetRef) -> ChainRef {
        self.ask.registry[asset].chain
    }

    /// The hops in words, for a refusal.
    pub(crate) fn told(&self) -> String {
        let words: Vec<&str> = self.hops.iter().map(|hop| word(hop.step)).collect();
        words.join(", ")
    }
}

pub(crate) fn word(step: Step) -> &'static str {
    match step {
        Step::Send => "send",
        Step::Ibc { .. } => "IBC transfer",
        Step::MigratedDeposit { .. } => "migrated deposit",
        Step::MigratedWithdraw { .. } => "migrated withdrawal",
        Step::Deposit { .. } => "deposit",
        Step::Withdraw { .. } => "withdrawal",
        Step::Wrap => "wrap",
        Step::Unwrap => "unwrap",
        Step::LayerZero { .. } => "LayerZero transfer",
    }
}

pub(crate) fn odd(what: impl Into<String>) -> Refused {
    Refused::Plan(what.into())
}
