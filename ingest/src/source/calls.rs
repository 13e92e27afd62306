//! The internal-transaction lane's source: the call traces of a height, derived.
//!
//! It follows the block lane: which transactions a trace has to hold is known from the block's.

use std::sync::Arc;

use bytes::Bytes;
use node::{Evm, Kind};
use schema::block::Blocks;
use schema::evm_tx::EvmTxs;
use serde::Deserialize;
use store::{Bounds, Message, Order, Row, Store, Table as _};

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
        self.frames(height, expected.into()).await
    }
}

impl CallSource {
    /// The call frames of `height`, whose EVM transactions have the hashes `expected`.
    pub(crate) async fn frames(&self, height: u64, expected: Arc<[[u8; 32]]>) -> Result<BlockFrames, Error> {
        let (Some(evm), true) = (&self.tools.node.evm, !expected.is_empty() && height >= FIRST_TRACEABLE)
        else {
            return Ok(BlockFrames { height, txs: Vec::new() });
        };
        let mut patience = Patience::new(height);
        let mut retraced = Retraced::new();
        loop {
            let trace = insist(height, "call traces", || evm.trace_block(height)).await?.bytes;
            let (known, expected) = (retraced.clone(), Arc::clone(&expected));
            let work = move |workshop: &mut derive::Workshop, _: &derive::Rules| {
                derive::frames(height, &expected, &trace, &known, workshop)
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

    /// The EVM hashes of the transactions that the block lane has at `height`, in order.
    fn expected(&self, height: u64) -> Result<Vec<[u8; 32]>, Error> {
        let snapshot = self.store.snapshot()?;
        let Some(Message(block)) = store::table::read::<Blocks>(&*snapshot, &height)? else {
            return Err(Error::BlockMissing { height });
        };
        let (first, end) =
            (block.first_evm_tx.to_be_bytes(), (block.first_evm_tx + block.evm_txs).to_be_bytes());
        let bounds = Bounds { start: &first, end: Some(&end) };
        let many = usize::try_from(block.evm_txs).map_err(|_| Error::BlockMissing { height })?;
        let rows = snapshot.scan(EvmTxs::SPEC, bounds, Order::Asc, many)?;
        let codec = self.tools.workshops.codec();
        let mut record = Vec::new();
        let hash = |(seq, (_, row)): (u64, &Row)| -> Result<[u8; 32], Error> {
            record.clear();
            codec.decode_into(EvmTxs::SPEC, seq, row, &mut record)?;
            hash_of(&record).ok_or(Error::BlockMissing { height })
        };
        (block.first_evm_tx..).zip(&rows).map(hash).collect()
    }
}

/// The EVM hash that a stored record names.
fn hash_of(record: &[u8]) -> Option<[u8; 32]> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Record<'a> {
        #[serde(borrow)]
        transaction_hash: &'a str,
    }
    let record: Record<'_> = serde_json::from_slice(record).ok()?;
    let mut hash = [0; 32];
    hex::decode_to_slice(record.transaction_hash.strip_prefix("0x")?, &mut hash).ok()?;
    Some(hash)
}

/// Whether a tracer failed, and not the way to it: the latter says nothing about the transaction.
fn is_of_the_tracer(error: &node::Error) -> bool {
    matches!(error, node::Error::Faulty { .. } | node::Error::TimedOut { .. })
        || error.kind() == Kind::Permanent
}

/// The call tree of one transaction, or `None` if the node fails on it again and again: a tracer that times out does so
/// for ever, and one transaction must not stop the lane (`indexing.md` T5).
async fn retrace(evm: &Evm, height: u64, hash: [u8; 32]) -> Option<Bytes> {
    let mut patience = Patience::new(height);
    let mut failures = 0;
    while failures < RETRACES {
        match evm.trace_tx(hash).await {
            Ok(tree) => return Some(tree),
            Err(error) => {
                failures += usize::from(is_of_the_tracer(&error));
                patience.wait(&error).await;
            }
        }
    }
    tracing::error!(height, hash = %chain::hash::to_hex(&hash), "no call trace: the transaction is indexed without internal transactions");
    None
}
