//! Check of blocks against each other and against the lanes.

use serde_json::Value;
use store::{Bounds, Key as _, Message, Table as _};

use super::{AuditContext, Report};
use crate::Error;
use crate::block::{Block, Blocks};
use crate::meta::{self, BlockLane, Meta, RichLane};

pub(super) fn check(context: &AuditContext<'_>, report: &mut Report) -> Result<(), Error> {
    let blocks = &context.blocks;
    chain(context, report)?;
    if let Some(lane) = context.rich.as_ref().filter(|lane| lane.height > blocks.height) {
        let (key, stored) = (meta::key::<RichLane>().to_bytes(), format!("{lane:?}"));
        let expected = format!("not above the block lane's {}", blocks.height);
        report.row("lane of the rich list", (Meta::SPEC, &key, Some(stored.as_bytes())), expected);
    }
    Ok(())
}

fn chain(context: &AuditContext<'_>, report: &mut Report) -> Result<(), Error> {
    let start = context.identity.start_height;
    let mut walk = Walk { start, next: start, at: BlockLane::default(), end: context.blocks.height };
    let mut n = 0;
    store::for_each_row(context.snapshot, Blocks::SPEC, Bounds::all(), |key, value| {
        n += 1;
        if let Ok((height, Message(block))) = store::table::decode_row::<Blocks>(key, value) {
            walk.row(height, &block, (key, value), report);
        }
        Ok::<(), Error>(())
    })?;
    report.checked("blocks", n);
    let expected = walk.at;
    if context.blocks != expected {
        let key = meta::key::<BlockLane>().to_bytes();
        let (stored, expected) = (format!("{:?}", context.blocks), format!("{expected:?} by the last block"));
        report.row("lane of blocks", (Meta::SPEC, &key, Some(stored.as_bytes())), expected);
    }
    Ok(())
}

/// Blocks while they are read in order.
struct Walk {
    start: u64,
    next: u64,
    /// The lane after the last block.
    at: BlockLane,
    /// The last height according to the lane.
    end: u64,
}

impl Walk {
    fn row(&mut self, height: u64, block: &Block, (key, value): (&[u8], &[u8]), report: &mut Report) {
        let row = (Blocks::SPEC, key, Some(value));
        if height < self.start || height > self.end {
            report.row("stray block", row, format!("no block beyond {} to {}", self.start, self.end));
            return;
        }
        let firsts = (block.first_tx, block.first_evm_tx);
        let expected = (self.at.txs + 1, self.at.evm_txs + 1);
        if height != self.next {
            let missing = (Blocks::SPEC, &self.next.to_be_bytes()[..], None);
            report.row("missing block", missing, format!("a block: the next one is {height}"));
        } else if firsts != expected {
            let expected =
                format!("first transactions {expected:?}, as the block before ends, not {firsts:?}");
            report.row("sequences of a block", row, expected);
        }
        let hash = hash_of(height, block).unwrap_or_else(|reason| {
            report.row("record of a block", row, reason);
            Vec::new()
        });
        self.next = height + 1;
        self.at = BlockLane {
            height,
            txs: (block.first_tx + block.txs).saturating_sub(1),
            evm_txs: (block.first_evm_tx + block.evm_txs).saturating_sub(1),
            time: block.time,
            hash,
        };
    }
}

/// The block's hash, if its record is of this block.
fn hash_of(height: u64, block: &Block) -> Result<Vec<u8>, String> {
    let json: Value = serde_json::from_slice(&block.json).map_err(|error| format!("JSON: {error}"))?;
    for (member, number) in [("height", height), ("tx_count", block.txs)] {
        let wanted = number.to_string();
        if json[member] != wanted {
            return Err(format!("{member} {wanted}, not {}", json[member]));
        }
    }
    let seconds = chain::Timestamp::from_unix_nanos(block.time).seconds();
    if json["timestamp"] != seconds {
        return Err(format!("timestamp {seconds}, not {}", json["timestamp"]));
    }
    let hash = json["hash"].as_str().and_then(|hash| hex::decode(hash).ok());
    hash.filter(|hash| hash.len() == 32).ok_or_else(|| "a hash".to_owned())
}
