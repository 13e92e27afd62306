//! `cairn db`: looks at a database and mends it.
//!
//! What must hold: what only looks leaves no trace in the directory, and works while another process writes.

use std::fmt::Write as _;
use std::path::Path;

use schema::meta::{self, BlockLane, CallLane};
use schema::{digest, rollback};
use store::{RocksOptions, RocksStore, Snapshot, Store as _};
use tempfile::TempDir;

use crate::settings::Settings;
use crate::settings::given::{Data, Given};
use crate::settings::units::bytes_text;
use crate::{follow, logging, output};

/// What to do with the database.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Db {
    /// Prints what the database is of, how far it has come, and how large it is
    Info {
        #[command(flatten)]
        settings: Given<Data>,
    },
    /// Prints one hash over all records: the same for the same chain and start height, on any machine
    Digest {
        /// Also one line for each table
        #[arg(long)]
        tables: bool,
        #[command(flatten)]
        settings: Given<Data>,
    },
    /// Takes back all blocks above a height; what indexes must not be running
    Rollback {
        /// The height that is the last afterwards
        #[arg(long, value_name = "HEIGHT")]
        to: u64,
        #[command(flatten)]
        settings: Given<Data>,
    },
}

/// Does it.
pub(crate) fn run(command: Db) -> anyhow::Result<()> {
    match command {
        Db::Info { settings } => info(&start(settings)?),
        Db::Digest { tables, settings } => print_digest(&start(settings)?, tables),
        Db::Rollback { to, settings } => roll_back(&start(settings)?, to),
    }
}

fn start(given: Given<Data>) -> anyhow::Result<Settings> {
    let settings = Settings::new(&given.merged()?)?;
    logging::start(&settings.log)?;
    Ok(settings)
}

/// A database that is looked at, with the directory that looking needs.
struct Viewed {
    store: RocksStore,
    _own: TempDir,
}

fn view(data: &Path) -> anyhow::Result<Viewed> {
    let own = follow::own_dir()?;
    let store = RocksStore::follow(data, own.path(), schema::TABLES, RocksOptions::default())?;
    Ok(Viewed { store, _own: own })
}

fn lanes(snapshot: &dyn Snapshot) -> anyhow::Result<(BlockLane, CallLane)> {
    Ok((meta::read(snapshot)?.unwrap_or_default(), meta::read(snapshot)?.unwrap_or_default()))
}

fn info(settings: &Settings) -> anyhow::Result<()> {
    let data = settings.data()?;
    let Viewed { store, _own } = view(data)?;
    let identity = schema::open::existing(&store)?;
    let (blocks, calls) = lanes(&*store.snapshot()?)?;
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
    writeln!(text, "internal txs  height {}, {} call frames", calls.height, calls.calls)?;
    let each = bytes
        .checked_div(blocks.txs)
        .map_or_else(String::new, |each| format!(", {each} bytes a transaction"));
    writeln!(text, "on disk       {} ({bytes} bytes, logs included{each})", bytes_text(bytes))?;
    writeln!(text, "\n{:<20} {:>14} {:>12} {:>12}", "table", "rows, about", "in files", "in memory")?;
    for size in store.table_sizes()? {
        let (files, memory) = (bytes_text(size.file_bytes), bytes_text(size.memory_bytes));
        writeln!(text, "{:<20} {:>14} {files:>12} {memory:>12}", size.name, size.estimated_rows)?;
    }
    Ok(output::print(&text)?)
}

fn print_digest(settings: &Settings, with_tables: bool) -> anyhow::Result<()> {
    let Viewed { store, _own } = view(settings.data()?)?;
    schema::open::existing(&store)?;
    let tables = digest::tables(&*store.snapshot()?)?;
    let mut text = String::new();
    for table in tables.iter().filter(|_| with_tables) {
        writeln!(text, "table {:<20} {:>12} rows {}", table.table, table.rows, hex::encode(table.sha256))?;
    }
    writeln!(text, "digest {}", hex::encode(digest::total(&tables)))?;
    Ok(output::print(&text)?)
}

fn roll_back(settings: &Settings, to: u64) -> anyhow::Result<()> {
    let data = settings.data()?;
    // To own a directory without a database is to make one: look before.
    drop(view(data)?);
    let store = RocksStore::open(data, schema::TABLES, RocksOptions::default())?;
    rollback::finish_pending(&store)?;
    let (before, calls_before) = lanes(&*store.snapshot()?)?;
    rollback::rollback(&store, to)?;
    let (after, calls) = lanes(&*store.snapshot()?)?;
    let mut text = String::new();
    writeln!(text, "rolled back from height {} to {}", before.height, after.height)?;
    writeln!(text, "blocks        {} fewer", before.height - after.height)?;
    writeln!(text, "transactions  {} fewer, {} left", before.txs - after.txs, after.txs)?;
    writeln!(text, "EVM           {} fewer, {} left", before.evm_txs - after.evm_txs, after.evm_txs)?;
    writeln!(text, "internal txs  height {} to {}, {} left", calls_before.height, calls.height, calls.calls)?;
    Ok(output::print(&text)?)
}
