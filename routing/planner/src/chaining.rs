//! Transaction chaining: which hops one signature covers (`router-mechanics.md` §3.3).
//!
//! The possible continuations of a transaction depend only on its last step, so a search keeps only that step as state.

use crate::plan::Step;

/// Last step of the open transaction, which determines its possible continuations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxTail {
    /// Nothing is signed yet.
    Start,
    /// A packet arrives: it can be forwarded, or call the wrapper.
    Packet,
    /// A packet arrives and is turned into a bridged coin on the path: it can call the wrapper, but forwarding would
    /// move the voucher that is no more.
    Migrated,
    /// The wrapper released a bridged coin and can send it on itself.
    Unwrapped,
    /// A deposit arrives: it can carry a transaction of the rollup that the user signed before.
    Deposited,
    /// Nothing: what comes next is signed where the asset is.
    Closed,
}

/// Relation of a hop to the open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joining {
    /// It is part of the open one.
    Same,
    /// It needs one of its own.
    New,
    /// It is part of the open one if the user signs an op hook, else it needs one of its own.
    Hook,
}

/// Packet features of a hop's source chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainFeatures {
    /// It runs the packet forward middleware.
    pub(crate) forwards: bool,
    /// Packets may call its wrapper.
    pub(crate) hooks: bool,
}

impl TxTail {
    /// State after `step`.
    pub(crate) fn behind(step: Step) -> Self {
        match step {
            Step::Ibc { .. } | Step::MigratedWithdraw { .. } => Self::Packet,
            Step::MigratedDeposit { .. } => Self::Migrated,
            Step::Unwrap => Self::Unwrapped,
            Step::Deposit { .. } => Self::Deposited,
            Step::Send | Step::Withdraw { .. } | Step::Wrap | Step::LayerZero { .. } => Self::Closed,
        }
    }

    /// How `step` follows. `migrated` is a transfer that the wrapper would turn into one of the migrated denomination,
    /// had it to send it itself.
    pub(crate) fn joining(self, step: Step, features: ChainFeatures, migrated: bool) -> Joining {
        let same = match (self, step) {
            (Self::Packet, Step::Ibc { .. } | Step::MigratedDeposit { .. }) => features.forwards,
            (Self::Packet | Self::Migrated, Step::Wrap) => features.hooks,
            (Self::Unwrapped, Step::Ibc { .. }) => !migrated,
            (Self::Unwrapped, Step::Withdraw { .. } | Step::MigratedWithdraw { .. }) => true,
            (Self::Deposited, Step::Wrap) => return Joining::Hook,
            _ => false,
        };
        if same { Joining::Same } else { Joining::New }
    }
}
