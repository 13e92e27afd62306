//! Transaction chaining: which hops one signature covers.
//!
//! The possible continuations of a transaction depend only on its last step, so a search keeps only that step as state.

use crate::plan::Step;

/// Last step of the open transaction, which determines its possible continuations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TxTail {
    /// No transaction is open.
    Start,
    /// A packet, which can be forwarded or call the wrapper.
    Packet,
    /// A packet that arrives as a bridged coin: it can call the wrapper, but not be forwarded, because the voucher no
    /// longer exists.
    Migrated,
    /// An unwrapped coin, which the wrapper can transfer or withdraw in the same call.
    Unwrapped,
    /// A deposit, which can carry a transaction of the rollup that the user signed before.
    Deposited,
    /// A swapped coin, which the swap's adapter can transfer or deposit in the same call.
    Swapped,
    /// No continuation: the next hop needs a transaction on the chain of the asset.
    Closed,
}

/// Relation of a hop to the open transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joining {
    /// It is part of the open transaction.
    Same,
    /// It needs a new transaction.
    New,
    /// It is part of the open transaction if the user signs an op hook, else it needs a new one.
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
            Step::Swap => Self::Swapped,
            Step::Send | Step::Withdraw { .. } | Step::Wrap | Step::LayerZero { .. } => Self::Closed,
        }
    }

    /// Whether `step` joins the open transaction. The wrapper itself must not send a `migrated` transfer, because it
    /// would migrate the coin first.
    pub(crate) fn joining(self, step: Step, features: ChainFeatures, migrated: bool) -> Joining {
        let same = match (self, step) {
            (Self::Packet, Step::Ibc { .. } | Step::MigratedDeposit { .. }) => features.forwards,
            (Self::Packet | Self::Migrated, Step::Wrap) => features.hooks,
            (Self::Unwrapped, Step::Ibc { .. }) => !migrated,
            (Self::Unwrapped, Step::Withdraw { .. } | Step::MigratedWithdraw { .. })
            | (Self::Swapped, Step::Ibc { .. } | Step::MigratedDeposit { .. } | Step::Deposit { .. }) => true,
            (Self::Deposited, Step::Wrap) => return Joining::Hook,
            _ => false,
        };
        if same { Joining::Same } else { Joining::New }
    }
}
