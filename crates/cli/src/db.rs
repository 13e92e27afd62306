//! `cairn db`: looks at a database and mends it.
//!
//! | module | one job |
//! |---|---|
//! | `inspect` | what it is of, and one hash over it |
//! | `rollback` | takes back blocks |
//! | `backup` | copies it, and makes a data directory of a copy |
//! | `export` | writes it as lines of JSON |
//! | `verify` | compares it with itself and with the chain, and heals it |
//! | `reindex` | indexes a stretch again |
//! | `node` | the node that it is compared with |
//!
//! What must hold: what only looks leaves no trace in the directory, and works while another process writes.

mod backup;
mod export;
mod inspect;
mod node;
mod reindex;
mod rollback;
mod verify;

use std::path::{Path, PathBuf};

use schema::meta::{self, BlockLane, CallLane};
use store::{RocksOptions, RocksStore, Snapshot};
use tempfile::TempDir;

use self::node::DataAndNode;
pub(crate) use self::verify::NotChecked;
use crate::settings::Settings;
use crate::settings::sources::{Data, Group, Sources};
use crate::{follow, logging};

/// What to do with the database.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Db {
    /// Prints what the database is of, how far it has come, and how large it is
    Info {
        #[command(flatten)]
        settings: Sources<Data>,
    },
    /// Prints one hash over all records: the same for the same chain and start height, on any machine
    Digest {
        /// Also one line for each table
        #[arg(long)]
        tables: bool,
        #[command(flatten)]
        settings: Sources<Data>,
    },
    /// Takes back all blocks above a height; what indexes must not be running
    Rollback {
        /// The height that is the last afterwards
        #[arg(long, value_name = "HEIGHT")]
        to: u64,
        #[command(flatten)]
        settings: Sources<Data>,
    },
    /// Copies the database to a directory of backups, also while it is written
    Backup {
        #[command(flatten)]
        how: backup::How,
        #[command(flatten)]
        settings: Sources<Data>,
    },
    /// Writes the database as lines of JSON (NDJSON, zstd), also while it is written
    Export {
        #[command(flatten)]
        what: export::What,
        #[command(flatten)]
        settings: Sources<Data>,
    },
    /// Writes a backup to a data directory, which must be new or empty, and checks every file's checksum
    Restore {
        /// The directory of the backups
        #[arg(long, value_name = "DIR")]
        from: PathBuf,
        /// The backup's number; the last one is restored if none is given
        #[arg(long, value_name = "N")]
        backup: Option<u32>,
        #[command(flatten)]
        settings: Sources<Data>,
    },
    /// Looks for damage: the database against itself and against the node; exits with 0 if it is sound, with 1 if
    /// something is wrong, with 2 if it could not be checked
    Verify {
        #[command(flatten)]
        how: verify::How,
        #[command(flatten)]
        settings: Sources<DataAndNode>,
    },
    /// Takes back a height and all above it, whatever state they are in, and indexes them again; what indexes must not
    /// be running
    Reindex {
        /// The first height that is indexed again; the database's first height begins it anew
        #[arg(long, value_name = "HEIGHT")]
        from: u64,
        #[command(flatten)]
        settings: Sources<DataAndNode>,
    },
}

/// Does it.
pub(crate) fn run(command: Db) -> anyhow::Result<()> {
    match command {
        Db::Info { settings } => inspect::info(&start(settings)?),
        Db::Digest { tables, settings } => inspect::print_digest(&start(settings)?, tables),
        Db::Rollback { to, settings } => rollback::roll_back(&start(settings)?, to),
        Db::Backup { how, settings } => backup::back_up(&start(settings)?, &how),
        Db::Export { what, settings } => export::export(&start(settings)?, &what),
        Db::Restore { from, backup, settings } => backup::restore(&start(settings)?, &from, backup),
        Db::Verify { how, settings } => verify::verify(&start(settings)?, how),
        Db::Reindex { from, settings } => reindex::reindex(&start(settings)?, from),
    }
}

fn start<G: Group>(sources: Sources<G>) -> anyhow::Result<Settings> {
    let settings = Settings::new(&sources.merged()?)?;
    logging::start(&settings.log)?;
    Ok(settings)
}

/// A database that is looked at, with the directory that looking needs.
struct Viewed {
    store: RocksStore,
    /// Gone when dropped.
    own: TempDir,
}

fn view(data: &Path) -> anyhow::Result<Viewed> {
    let own = follow::own_dir()?;
    let store = RocksStore::follow(data, own.path(), schema::TABLES, RocksOptions::default())?;
    Ok(Viewed { store, own })
}

/// A database that is changed.
fn own(data: &Path) -> anyhow::Result<RocksStore> {
    // To own a directory without a database is to make one: look before.
    drop(view(data)?);
    Ok(RocksStore::open(data, schema::TABLES, RocksOptions::default())?)
}

fn lanes(snapshot: &dyn Snapshot) -> anyhow::Result<(BlockLane, CallLane)> {
    Ok((meta::read(snapshot)?.unwrap_or_default(), meta::read(snapshot)?.unwrap_or_default()))
}
