//! The internal-transaction lane's source: the call traces of a height, derived.
//!
//! It follows the block lane: what a trace has to hold is known from the block's EVM transactions.

use std::sync::Arc;

use bytes::Bytes;
use node::Evm;
use schema::block::Blocks;
use store::{Message, Store};

use super::{Patience, Tools, insist};
use crate::Error;
use crate::derive::{self, BlockFrames, Failure, Retraced};
use crate::lane::Source;

/// The chain's first height cannot be traced: there is no state before it (`indexing.md` §7.1).
const FIRST_TRACEABLE: u64 = 2;

/// How often a transaction that the tracer failed on within its block is traced by itself.
const RETRACES: usize = 3;

/// Fetches call frames.
pub(crate) struct CallSource {
    pub(crate) tools: Tools,
    pub(crate) store: Arc<dyn Store>,
}

impl Source for CallSource {
    type Item = BlockFrames;

    async fn fetch(self: Arc<Self>, height: u64) -> Result<BlockFrames, Error> {
        let expected = self.expected(height)?;
        self.frames(height, expected).await
    }
}

impl CallSource {
    /// The call frames of `height`, which has `expected` EVM transactions.
    pub(crate) async fn frames(&self, height: u64, expected: u64) -> Result<BlockFrames, Error> {
        let (Some(evm), true) = (&self.tools.node.evm, expected > 0 && height >= FIRST_TRACEABLE) else {
            return Ok(BlockFrames { height, txs: Vec::new() });
        };
        let mut patience = Patience::new(height);
        let mut retraced = Retraced::new();
        loop {
            let trace = insist(height, "call traces", || evm.trace_block(height)).await?.bytes;
            let known = retraced.clone();
            let work = move |workshop: &mut derive::Workshop, _: &derive::Rules| {
                derive::frames(height, expected, &trace, &known, workshop)
            };
            match self.tools.derive(height, work).await? {
                Ok(frames) => return Ok(frames),
                Err(Failure::Untraced(hashes)) => {
                    for hash in hashes {
                        retraced.insert(hash, retrace(evm, height, hash).await);
                    }
                }
                Err(reason) => patience.wait(&reason).await,
            }
        }
    }

    /// Number of EVM transactions that the block lane has at `height`.
    fn expected(&self, height: u64) -> Result<u64, Error> {
        let snapshot = self.store.snapshot()?;
        match store::table::read::<Blocks>(&*snapshot, &height)? {
            Some(Message(block)) => Ok(block.evm_txs),
            None => Err(Error::BlockMissing { height }),
        }
    }
}

/// The call tree of one transaction, or `None` if the node fails on it again and again: a tracer that times out does so
/// for ever, and one transaction must not stop the lane (`indexing.md` T5).
async fn retrace(evm: &Evm, height: u64, hash: [u8; 32]) -> Option<Bytes> {
    let mut patience = Patience::new(height);
    for _ in 0..RETRACES {
        match evm.trace_tx(hash).await {
            Ok(tree) => return Some(tree),
            Err(error) => patience.wait(&error).await,
        }
    }
    tracing::error!(height, hash = %chain::hash::to_hex(&hash), "no call trace: the transaction is indexed without internal transactions");
    None
}
