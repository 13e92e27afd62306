//! `cairn db info` and `cairn db digest`: summary and content hash of a database.

use std::fmt::Write as _;

use bytesize::ByteSize;
use schema::undo::{self, Lane};
use schema::{digest, index};
use store::Store as _;

use super::{Viewed, lanes, view};
use crate::database::{Opener, check_format};
use crate::settings::Settings;
use crate::{follow, output};

/// Prints the identity, the heights and the size of the database.
pub(super) fn info(settings: &Settings) -> anyhow::Result<()> {
    let data = settings.data()?;
    let Viewed { store, own: _own } = view(data)?;
    let identity = schema::open::existing(&store)?;
    let (blocks, calls) = lanes(&*store.snapshot()?)?;
    let (undo, undo_calls) = {
        let snapshot = store.snapshot()?;
        (undo::extent(&*snapshot, Lane::Blocks)?, undo::extent(&*snapshot, Lane::InternalTxs)?)
    };
    let bytes = store.disk_bytes()?;
    let mut text = String::new();
    writeln!(text, "directory     {}", data.display())?;
    writeln!(text, "chain         {}, vm {}, prefix {}", identity.chain_id, identity.vm, identity.prefix)?;
    writeln!(text, "format        {}", identity.format)?;
    writeln!(text, "first height  {}", identity.start_height)?;
    writeln!(
        text,
        "blocks        height {}, {} transactions, {} EVM transactions",
        blocks.height, blocks.txs, blocks.evm_txs
    )?;
    write!(text, "internal txs  height {}, {} call frames", calls.height, calls.calls)?;
    match calls.complete_from {
        0 => writeln!(text)?,
        from => writeln!(text, ", some before height {from} missing (pruned by the node)")?,
    }
    for (index, state) in index::stored(&*store.snapshot()?)? {
        writeln!(text, "{:<13} heights {} to {}", format!("index {}", index.name), state.from, state.height)?;
    }
    let undo_bytes = ByteSize::b(undo.bytes.saturating_add(undo_calls.bytes));
    let lowest = undo.lowest.max(if calls.height > undo.lowest { undo_calls.lowest } else { 0 });
    writeln!(text, "undo log      back to height {lowest}, {undo_bytes}")?;
    let each = bytes
        .checked_div(blocks.txs)
        .map_or_else(String::new, |each| format!(", {each} bytes a transaction"));
    writeln!(text, "on disk       {} ({bytes} bytes, logs included{each})", ByteSize::b(bytes))?;
    writeln!(text, "\n{:<20} {:>14} {:>12} {:>12}", "table", "rows, about", "in files", "in memory")?;
    for size in store.table_sizes()? {
        let (files, memory) = (ByteSize::b(size.file_bytes), ByteSize::b(size.memory_bytes));
        writeln!(text, "{:<20} {:>14} {files:>12} {memory:>12}", size.name, size.estimated_rows)?;
    }
    Ok(output::print(&text)?)
}

/// Prints one hash over all records, and with `with_tables` one for each table.
pub(super) fn print_digest(settings: &Settings, with_tables: bool) -> anyhow::Result<()> {
    if let Ok(data) = settings.data() {
        check_format(data)?;
    }
    let own = follow::own_dir()?;
    let database = Opener::new(settings, own.path())?.open()?;
    let store = database.store();
    schema::open::existing(&*store)?;
    let tables = digest::tables(&*store.snapshot()?)?;
    let mut text = String::new();
    for table in tables.iter().filter(|_| with_tables) {
        writeln!(text, "table {:<20} {:>12} rows {}", table.table, table.rows, hex::encode(table.sha256))?;
    }
    writeln!(text, "digest {}", hex::encode(digest::total(&tables)))?;
    Ok(output::print(&text)?)
}
