//! `cairn db rollback`: removes the last blocks.

use std::fmt::Write as _;

use schema::rewind::rewind;
use store::{RocksOptions, Store as _};

use super::{lanes, own_with};
use crate::output;
use crate::settings::Settings;

/// Removes all blocks above `to` by the undo log.
pub(super) fn roll_back(settings: &Settings, to: u64) -> anyhow::Result<()> {
    // Merging table files takes a third of the time, and the index can continue before it.
    let options = RocksOptions { compacts: false, ..RocksOptions::default() };
    let store = own_with(settings.data()?, options)?;
    let (before, calls_before) = lanes(&*store.snapshot()?)?;
    rewind(&store, to)?;
    let (after, calls) = lanes(&*store.snapshot()?)?;
    let mut text = String::new();
    writeln!(text, "rolled back from height {} to {}", before.height, after.height)?;
    if after.height < to {
        writeln!(text, "height {to} was committed together with those before it, so they were removed too")?;
    }
    writeln!(text, "blocks        {} fewer", before.height - after.height)?;
    writeln!(text, "transactions  {} fewer, {} left", before.txs - after.txs, after.txs)?;
    writeln!(text, "EVM           {} fewer, {} left", before.evm_txs - after.evm_txs, after.evm_txs)?;
    writeln!(text, "internal txs  height {} to {}, {} left", calls_before.height, calls.height, calls.calls)?;
    Ok(output::print(&text)?)
}
