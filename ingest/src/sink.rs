//! Sinks of the lanes: a derived height → rows of all indexes, and the lane's own row.

use schema::call_errors;
use schema::index::PackedBlock;
use schema::meta::{self, BlockLane, CallLane, MAX_UNTRACED, Meta, Unconfirmed};
use schema::undo;
use store::{Snapshot, Txn};

use crate::Error;
use crate::Progress;
use crate::derive::{Block, BlockFrames};
use crate::index::{self, BlockIndex, IndexContext};
use crate::lane::Sink;
use crate::nft::LateReply;

/// Indexes blocks.
pub(crate) struct BlockSink {
    lane: BlockLane,
    indexes: Vec<Box<dyn BlockIndex>>,
}

impl BlockSink {
    /// Continues the database of `snapshot`, which is at `lane`.
    pub(crate) fn new(
        lane: BlockLane,
        context: IndexContext,
        snapshot: &dyn Snapshot,
    ) -> Result<Self, Error> {
        Ok(Self { lane, indexes: index::of_blocks(context, snapshot)? })
    }

    /// A block must follow the one before: two histories are never mixed.
    fn check_parent(&self, block: &Block) -> Result<(), Error> {
        if self.lane.height == 0 || block.parent.is_some_and(|parent| parent.as_slice() == self.lane.hash) {
            return Ok(());
        }
        let origin = block.origins.as_ref().map(|origins| origins.block.clone());
        Err(Error::fork(block.height, block.parent, &self.lane.hash, origin))
    }
}

impl Sink<Block> for BlockSink {
    const LANE: undo::Lane = undo::Lane::Blocks;

    fn apply(&mut self, block: &Block, txn: &mut Txn<'_>) -> Result<(), Error> {
        self.check_parent(block)?;
        for index in &mut self.indexes {
            index.apply(block, &self.lane, txn)?;
        }
        self.lane = BlockLane {
            height: block.height,
            txs: self.lane.txs + block.txs.len() as u64,
            evm_txs: self.lane.evm_txs + block.evm_txs.len() as u64,
            time: block.time.unix_nanos(),
            hash: block.hash.to_vec(),
        };
        meta::put(txn, &self.lane);
        match &block.claims {
            Some(claims) => {
                let (results_hash, app_hash) = (claims.results_hash.to_vec(), claims.app_hash.clone());
                meta::put(txn, &Unconfirmed { height: block.height, results_hash, app_hash });
            }
            // The stored row may belong to another history, and would be checked against the next block.
            None => txn.delete::<Meta>(&meta::key::<Unconfirmed>()),
        }
        Ok(())
    }

    fn packed<'a>(&self, block: &'a Block) -> Option<PackedBlock<'a>> {
        Some(PackedBlock {
            height: block.height,
            time: block.time.unix_nanos(),
            first_tx: self.lane.txs + 1,
            txs: &block.tx_records,
            first_evm_tx: self.lane.evm_txs + 1,
            evm_txs: &block.evm_tx_records,
            events: &block.events,
        })
    }

    fn late(&mut self, late: &LateReply, txn: &mut Txn<'_>) -> Result<(), Error> {
        self.indexes.iter_mut().try_for_each(|index| index.late(late, txn))
    }

    fn progress(&self) -> Progress {
        Progress { height: self.lane.height, records: self.lane.txs }
    }
}

/// Indexes call frames.
pub(crate) struct CallSink {
    lane: CallLane,
    /// If they are indexed.
    errors: Option<call_errors::Writer>,
}

impl CallSink {
    pub(crate) fn new(lane: CallLane, errors: Option<call_errors::Writer>) -> Self {
        Self { lane, errors }
    }
}

impl Sink<BlockFrames> for CallSink {
    const LANE: undo::Lane = undo::Lane::InternalTxs;

    fn apply(&mut self, frames: &BlockFrames, txn: &mut Txn<'_>) -> Result<(), Error> {
        index::write_calls(frames, &self.lane, txn)?;
        if let Some(errors) = &mut self.errors {
            let first = self.lane.calls + 1;
            let of_frames = frames.errors.iter().map(|(place, error)| (first + place, &**error));
            errors.write(txn, frames.height, of_frames);
        }
        let added: usize = frames.txs.iter().map(Vec::len).sum();
        self.lane.height = frames.height;
        self.lane.calls += added as u64;
        if frames.untraced && self.lane.untraced.len() < MAX_UNTRACED {
            self.lane.untraced.push(frames.height);
        }
        meta::put(txn, &self.lane);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { height: self.lane.height, records: self.lane.calls }
    }
}
