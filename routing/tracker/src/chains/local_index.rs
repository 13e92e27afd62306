//! The index of a chain in this process: transactions are read from it, whatever the chain's nodes have indexed.
//!
//! # Invariants
//!
//! * What it lacks is asked of the nodes: it may be behind them, or begin after the transaction.

use std::sync::Arc;

use chain::Timestamp;
use chain::hash::Hash;
use node::TxSearchHit;

/// A transaction with the time of its block.
pub type IndexedTx = (TxSearchHit, Timestamp);

/// A step of a packet on a chain.
#[derive(Debug, Clone, Copy)]
pub struct PacketStep<'a> {
    /// The type of its event, such as `recv_packet`.
    pub event: &'a str,
    /// The port of its end on the chain.
    pub port: &'a str,
    /// The channel there.
    pub channel: &'a str,
    /// Its number among the packets of its source.
    pub sequence: u64,
}

/// A step of a transfer over an optimistic bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BridgeStep {
    /// On a rollup, which has one bridge: the deposit with this number was finalized.
    Finalized {
        /// Counts the deposits of the bridge.
        l1_sequence: u64,
    },
    /// On a layer one: an output was proposed. Where one was deleted and proposed again, the last proposal.
    Proposed {
        /// The bridge.
        bridge: u64,
        /// The number of the output.
        output: u64,
    },
    /// On a layer one: a withdrawal was claimed.
    Claimed {
        /// The bridge.
        bridge: u64,
        /// Counts the withdrawals of the rollup.
        l2_sequence: u64,
    },
}

/// The index of one or several chains. Its reads take as long as one of a disk.
pub trait LocalIndex: Send + Sync {
    /// The transaction of `chain` with this hash; `None` if it has no such one, or another chain.
    ///
    /// # Errors
    /// The reason why it could not be read.
    fn tx(&self, chain: &str, hash: Hash) -> Result<Option<IndexedTx>, String>;

    /// The transaction in which a packet went a step on `chain`; `None` as of [`LocalIndex::tx`].
    ///
    /// # Errors
    /// The reason why it could not be read.
    fn packet(&self, chain: &str, step: PacketStep<'_>) -> Result<Option<IndexedTx>, String>;

    /// The transaction in which a transfer over an optimistic bridge went a step on `chain`; `None` as of [`LocalIndex::tx`].
    ///
    /// # Errors
    /// The reason why it could not be read.
    fn bridge(&self, chain: &str, step: BridgeStep) -> Result<Option<IndexedTx>, String>;
}

/// The local index, if there is one, for the queries of one chain.
#[derive(Clone)]
pub(crate) struct LocalChain {
    pub(crate) chain: String,
    pub(crate) index: Option<Arc<dyn LocalIndex>>,
}

impl LocalChain {
    pub(crate) fn tx(&self, hash: Hash) -> Option<IndexedTx> {
        let index = self.index.as_ref()?;
        self.found(index.tx(&self.chain, hash))
    }

    pub(crate) fn packet(&self, step: PacketStep<'_>) -> Option<IndexedTx> {
        let index = self.index.as_ref()?;
        self.found(index.packet(&self.chain, step))
    }

    pub(crate) fn bridge(&self, step: BridgeStep) -> Option<IndexedTx> {
        let index = self.index.as_ref()?;
        self.found(index.bridge(&self.chain, step))
    }

    /// The nodes are asked for what could not be read.
    fn found(&self, outcome: Result<Option<IndexedTx>, String>) -> Option<IndexedTx> {
        outcome
            .inspect_err(|error| tracing::debug!(chain = self.chain, error, "not read from the own index"))
            .ok()
            .flatten()
    }
}
