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

    /// The nodes are asked for what could not be read.
    fn found(&self, outcome: Result<Option<IndexedTx>, String>) -> Option<IndexedTx> {
        outcome
            .inspect_err(|error| tracing::debug!(chain = self.chain, error, "not read from the own index"))
            .ok()
            .flatten()
    }
}
