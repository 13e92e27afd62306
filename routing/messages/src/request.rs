//! Input and output types of the message builder.

use std::ops::Range;

use chain::U256;
use planner::Plan;
use registry::{ChainRef, Facts, Registry};

/// Input of [`crate::transactions`].
#[derive(Clone, Copy)]
pub struct BuildRequest<'a> {
    /// The registry of the plan: its references point into it.
    pub registry: &'a Registry,
    /// Latest chain facts.
    pub facts: &'a Facts,
    /// Plan to execute.
    pub plan: &'a Plan,
    /// One for each of [`Plan::required_chains`], or else one for each of [`Plan::chains`]; the last is the
    /// recipient's, all others are the user's own.
    pub addresses: &'a [String],
    /// Unix time in nanoseconds.
    pub now_nanos: u64,
    /// Timeout of an IBC packet in seconds; 300 if the client gives none.
    pub timeout_seconds: u64,
    /// Slippage tolerance in percent: a decimal text from 0 to 100. It applies only to hops with an inexact amount out.
    pub slippage_percent: &'a str,
    /// The signed messages of [`crate::op_hook`]. Ignored if the plan has no deposit that needs a hook.
    pub signed_hook: Option<&'a SignedHook>,
}

/// A transaction of the rollup that the user signed and that a deposit carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedHook {
    /// Signer: bech32 or `0x…`.
    pub signer: String,
    /// A `cosmos.tx.v1beta1.Tx`, base64.
    pub hook: String,
}

/// The transactions of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltTxs {
    /// In order of execution.
    pub txs: Vec<Tx>,
    /// Minimum received, in base units of the destination asset.
    pub min_amount_out: U256,
}

/// One transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tx {
    /// Of a Cosmos chain.
    Cosmos {
        /// Where it is signed and sent.
        chain: ChainRef,
        /// The chains of its hops, in order, starting with `chain`; no chain twice in a row.
        path: Vec<ChainRef>,
        /// Signer, in the chain's address format.
        signer: String,
        /// In order.
        msgs: Vec<Msg>,
        /// Hops of the plan that it executes.
        hops: Range<usize>,
    },
    /// Of an EVM chain.
    Evm {
        /// Where it is signed and sent.
        chain: ChainRef,
        /// Called contract or receiver, `0x…`.
        to: String,
        /// Base units of the chain's coin.
        value: U256,
        /// Hex **without** `0x`; empty if nothing is called.
        data: String,
        /// Allowances that it requires.
        approvals: Vec<Approval>,
        /// Signer, `0x…`.
        signer: String,
        /// Hops of the plan that it executes.
        hops: Range<usize>,
    },
}

impl Tx {
    /// Hops of the plan that it executes.
    pub fn hops(&self) -> &Range<usize> {
        match self {
            Self::Cosmos { hops, .. } | Self::Evm { hops, .. } => hops,
        }
    }
}

/// A message of a Cosmos transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Msg {
    /// Its protobuf type URL.
    pub type_url: &'static str,
    /// Its amino JSON, members in the order of the protobuf fields.
    pub msg: String,
}

/// An ERC-20 allowance that a transaction needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The token, `0x…`.
    pub token: String,
    /// Spender, `0x…`.
    pub spender: String,
    /// Base units.
    pub amount: U256,
}
