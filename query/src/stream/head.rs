//! The head of the index.

use schema::Error;
use schema::ledger::LEDGER;
use schema::meta::{self, BlockLane, Rewinds};
use store::Snapshot;

/// The end of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The last indexed height.
    pub(crate) height: u64,
    /// The last sequence of a transaction.
    pub(crate) txs: u64,
    /// The last sequence of an EVM transaction.
    pub(crate) evm_txs: u64,
    /// The last sequence of a movement of tokens.
    pub(crate) movements: u64,
    /// The last block of the index of movements; 0 if it is not stored.
    pub(crate) ledger: u64,
    /// The rewind counter.
    pub(crate) rewinds: u64,
}

impl Head {
    pub(crate) fn read(snapshot: &dyn Snapshot) -> Result<Self, Error> {
        let lane = meta::read::<BlockLane>(snapshot)?.unwrap_or_default();
        let rewinds = meta::read::<Rewinds>(snapshot)?.unwrap_or_default().count;
        let (ledger, movements) =
            LEDGER.state(snapshot)?.map_or((0, 0), |state| (state.height, state.numbered));
        Ok(Self { height: lane.height, txs: lane.txs, evm_txs: lane.evm_txs, movements, ledger, rewinds })
    }
}
