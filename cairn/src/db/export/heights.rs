//! NDJSON with a line for each height: the block and its records, as they are served.
//!
//! ```text
//! {"height":7,"block":{…},"txs":[…],"evm_txs":[…],"internal_txs":[…]}
//! ```
//!
//! `internal_txs` is null where the call frames are missing: above the last height that has them, and where the node
//! had pruned the state that traces need.

use std::fmt::Write as _;
use std::path::Path;

use schema::block::{Block, Blocks};
use schema::evm_tx::EvmTxs;
use schema::internal_tx::{self, Calls};
use schema::meta::{self, BlockLane, CallLane};
use schema::payload::Codec;
use schema::records::Records;
use schema::tx::Txs;
use store::{Bounds, Message, Snapshot, Table as _};

use super::Lines;
use super::tables::{raw, records};

/// Writes the file; returns its name and number of lines.
pub(super) fn write(snapshot: &dyn Snapshot, directory: &Path) -> anyhow::Result<Vec<(String, u64)>> {
    let heights = Heights {
        snapshot,
        codec: Codec::load(snapshot)?,
        last: meta::read::<BlockLane>(snapshot)?.unwrap_or_default().height,
        calls: meta::read(snapshot)?.unwrap_or_default(),
    };
    let mut out = Lines::create(directory, "blocks")?;
    let mut line = String::new();
    store::for_each_row(snapshot, Blocks::SPEC, Bounds::all(), |key, value| -> anyhow::Result<()> {
        let (height, Message(block)) = store::table::decode_row::<Blocks>(key, value)?;
        if height > heights.last {
            return Ok(());
        }
        line.clear();
        heights.line(height, &block, &mut line)?;
        out.put(&line)
    })?;
    Ok(vec![out.finish()?])
}

struct Heights<'a> {
    snapshot: &'a dyn Snapshot,
    codec: Codec,
    last: u64,
    calls: CallLane,
}

impl Heights<'_> {
    fn line(&self, height: u64, block: &Block, line: &mut String) -> anyhow::Result<()> {
        write!(line, "{{\"height\":{height},\"block\":{},\"txs\":[", raw(&block.json)?)?;
        self.records::<Txs>(block.first_tx, block.txs, line)?;
        line.push_str("],\"evm_txs\":[");
        self.records::<EvmTxs>(block.first_evm_tx, block.evm_txs, line)?;
        line.push(']');
        let calls = internal_tx::of_block(self.snapshot, height)?;
        if height > self.calls.height || (height < self.calls.complete_from && calls.is_none()) {
            line.push_str(",\"internal_txs\":null}");
            return Ok(());
        }
        line.push_str(",\"internal_txs\":[");
        if let Some(calls) = calls {
            self.records::<Calls>(calls.first, calls.count(), line)?;
        }
        line.push_str("]}");
        Ok(())
    }

    /// Appends the records from `first` on and before `first + count`.
    fn records<T: Records>(&self, first: u64, count: u64, line: &mut String) -> anyhow::Result<()> {
        let (start, end) = (first.to_be_bytes(), first.saturating_add(count).to_be_bytes());
        let mut chunk = Vec::new();
        let bounds = Bounds { start: &start, end: Some(&end) };
        store::for_each_row(self.snapshot, T::SPEC, bounds, |key, value| {
            let seq = <[u8; 8]>::try_from(key).map_or(0, u64::from_be_bytes);
            chunk.clear();
            self.codec.decode_into(T::SPEC, seq, value, &mut chunk)?;
            separated(line, records(&chunk)?);
            Ok(())
        })
    }
}

/// Appends elements of an array that may have some already.
fn separated<'a>(line: &mut String, elements: impl IntoIterator<Item = &'a str>) {
    for element in elements {
        if !line.ends_with('[') {
            line.push(',');
        }
        line.push_str(element);
    }
}
