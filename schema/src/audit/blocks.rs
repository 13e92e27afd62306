//! Check of blocks against each other, against the rows of their transactions, and against the block lane.

use serde_json::Value;
use store::{Bounds, Message, Table};

use super::{Ground, Remedy, Report};
use crate::Error;
use crate::block::{Block, Blocks};
use crate::evm_tx::EvmTxs;
use crate::meta::{self, BlockLane, Meta};
use crate::tx::Txs;

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    chain(ground, report)?;
    let blocks = &ground.blocks;
    dense::<Txs>(ground, blocks.txs, &|seq| ground.heights.of_tx(seq), report)?;
    dense::<EvmTxs>(ground, blocks.evm_txs, &|seq| ground.heights.of_evm_tx(seq), report)
}

fn chain(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    let start = ground.identity.start_height;
    let mut walk = Walk { start, next: start, at: BlockLane::default(), end: ground.blocks.height };
    let mut n = 0;
    store::for_each_row(ground.snapshot, Blocks::SPEC, Bounds::all(), |key, value| {
        n += 1;
        if let Ok((height, Message(block))) = store::table::decode_row::<Blocks>(key, value) {
            walk.row(height, &block, (key, value), report);
        }
        Ok::<(), Error>(())
    })?;
    report.checked("blocks", n);
    let expected = walk.at;
    if ground.blocks != expected {
        let key = store::Key::to_bytes(&meta::key::<BlockLane>());
        let from = ground.blocks.height.min(expected.height).max(start);
        let (stored, expected) = (format!("{:?}", ground.blocks), format!("{expected:?} by the last block"));
        let row = (Meta::SPEC, key.as_slice(), Some(stored.as_bytes()));
        report.row("lane of blocks", row, expected, Remedy::Index(from));
    }
    Ok(())
}

/// Blocks while they are read in order.
struct Walk {
    start: u64,
    next: u64,
    /// The lane as the last block leaves it.
    at: BlockLane,
    /// The last height that the lane says.
    end: u64,
}

impl Walk {
    fn row(&mut self, height: u64, block: &Block, (key, value): (&[u8], &[u8]), report: &mut Report) {
        let remedy = |height: u64| Remedy::Index(height.max(self.start));
        let row = (Blocks::SPEC, key, Some(value));
        if height < self.start || height > self.end {
            let expected = format!("no block beyond {} to {}", self.start, self.end);
            report.row("stray block", row, expected, remedy(self.end));
            return;
        }
        if height != self.next {
            let missing = (Blocks::SPEC, &self.next.to_be_bytes()[..], None);
            // What the missing block had is known from its neighbours at best.
            report.row(
                "missing block",
                missing,
                format!("a block: the next one is {height}"),
                remedy(self.next),
            );
        }
        let firsts = (block.first_tx, block.first_evm_tx);
        let expected = (self.at.txs + 1, self.at.evm_txs + 1);
        if height == self.next && firsts != expected {
            let expected =
                format!("first transactions {expected:?}, as the block before ends, not {firsts:?}");
            report.row("sequences of a block", row, expected, remedy(height - 1));
        }
        let hash = match hash_of(height, block) {
            Ok(hash) => hash,
            Err(reason) => {
                report.row("record of a block", row, reason, remedy(height));
                Vec::new()
            }
        };
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

/// The block's hash, if its record is of it.
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

/// The rows of `T` are 1 to `last`.
fn dense<T: Table<Key = u64>>(
    ground: &Ground<'_>,
    last: u64,
    height: &dyn Fn(u64) -> u64,
    report: &mut Report,
) -> Result<(), Error> {
    let mut next = 1;
    store::for_each_row(ground.snapshot, T::SPEC, Bounds::all(), |key, value| {
        let Some(seq) = <u64 as store::Key>::from_bytes(key) else { return Ok(()) };
        if seq > last {
            let remedy = Remedy::Index(ground.blocks.height.max(ground.identity.start_height));
            report.row("stray record", (T::SPEC, key, Some(value)), format!("none above {last}"), remedy);
        } else if seq != next {
            missing::<T>(next, height(next), report);
        }
        next = seq.saturating_add(1);
        Ok::<(), Error>(())
    })?;
    if next <= last {
        missing::<T>(next, height(next), report);
    }
    Ok(())
}

fn missing<T: Table>(seq: u64, height: u64, report: &mut Report) {
    let row = (T::SPEC, &seq.to_be_bytes()[..], None);
    report.row("missing record", row, "a record", Remedy::Index(height));
}
