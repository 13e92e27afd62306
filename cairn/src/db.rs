//! `cairn db`: inspection, verification, repair, backup and export of a database.
//!
//! | module | purpose |
//! |---|---|
//! | `inspect` | `info` and `digest` |
//! | `rollback` | removes the last blocks |
//! | `copy` | copy between a directory and an object store |
//! | `backup` | backup and restore |
//! | `export` | export as NDJSON |
//! | `verify` | verification and repair |
//! | `reindex` | indexes the last blocks again |
//! | `optional` | builds or removes an optional index |
//! | `train_dictionary` | trains the compression of later records |
//! | `node` | client for the node to compare with |
//!
//! # Invariants
//! * Read-only commands write nothing to the directory, and work while another process writes the database.

mod backup;
mod copy;
mod export;
mod inspect;
mod node;
mod optional;
mod reindex;
mod rollback;
mod train_dictionary;
mod verify;

use std::fs;
use std::path::{Component, Path, PathBuf};

use schema::index::Index;
use schema::meta::{self, BlockLane, CallLane};
use store::{RocksOptions, RocksStore, Snapshot};

pub(crate) use self::verify::NotChecked;
use crate::database::check_format;
use crate::settings::sources::{DATA, Groups, LOG, NODE, Sources};
use crate::settings::{Settings, index, path};
use crate::temporary::Temporary;
use crate::{follow, logging};

/// What to do with the database.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Db {
    /// Prints the chain, the heights and the size of the database
    Info {
        #[command(flatten)]
        settings: Sources<{ LOG | DATA }>,
    },
    /// Prints one hash over all records: the same for the same chain and start height, on any machine
    Digest {
        /// Also one line for each table
        #[arg(long)]
        tables: bool,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA }>,
    },
    /// Removes all blocks above a height by the undo log; the indexer must not be running
    Rollback {
        /// The height that is the last afterwards
        #[arg(long, value_name = "HEIGHT")]
        to: u64,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA }>,
    },
    /// Copies the database to a directory of backups, also while it is written
    Backup {
        #[command(flatten)]
        how: backup::How,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA }>,
    },
    /// Copies the database between a directory and an object store, and compares the digests; it must not be written
    /// meanwhile. An interrupted copy continues if it is repeated
    Copy {
        #[command(flatten)]
        how: copy::How,
        #[command(flatten)]
        settings: Sources<LOG>,
    },
    /// Writes the database as lines of JSON (NDJSON, zstd), also while it is written
    Export {
        #[command(flatten)]
        what: export::What,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA }>,
    },
    /// Writes a backup to a data directory, which must be new or empty, and checks every file's checksum
    Restore {
        /// The directory of the backups
        #[arg(long, value_name = "DIR", value_parser = path)]
        from: PathBuf,
        /// The backup's number; the last one is restored if none is given
        #[arg(long, value_name = "N")]
        backup: Option<u32>,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA }>,
    },
    /// Looks for damage: the database against itself and against the node; exits with 0 if it is sound, with 1 if
    /// something is wrong, with 2 if it could not be checked
    Verify {
        #[command(flatten)]
        how: verify::How,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA | NODE }>,
    },
    /// Removes a height and all above it, and indexes them again; the indexer must not be running
    Reindex {
        /// The first height that is indexed again, inside the undo log. Without it all tables are emptied and everything is indexed again,
        /// also if files of the database cannot be read
        #[arg(long, value_name = "HEIGHT")]
        from: Option<u64>,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA | NODE }>,
    },
    /// Builds an optional index from the stored blocks, without a node, or continues an interrupted build; the indexer
    /// must not be running: it builds those of the setting `index` itself
    BuildIndex {
        /// Its name, as in the setting
        #[arg(value_name = "NAME", value_parser = index)]
        index: &'static Index,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA }>,
    },
    /// Removes an optional index, named in the setting `index` no longer; the indexer must not be running
    DropIndex {
        /// Its name, as in the setting
        #[arg(value_name = "NAME", value_parser = index)]
        index: &'static Index,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA }>,
    },
    /// Trains zstd dictionaries on the stored records and compresses later records with those that make them smaller;
    /// the indexer must not be running
    TrainDictionary {
        /// Only prints what would be saved
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        settings: Sources<{ LOG | DATA }>,
    },
}

/// Runs the command.
pub(crate) fn run(command: Db) -> anyhow::Result<()> {
    match command {
        Db::Info { settings } => inspect::info(&start(settings)?),
        Db::Digest { tables, settings } => inspect::print_digest(&start(settings)?, tables),
        Db::Rollback { to, settings } => rollback::roll_back(&start(settings)?, to),
        Db::Backup { how, settings } => backup::back_up(&start(settings)?, &how),
        Db::Copy { how, settings } => copy::copy(&start(settings)?, how),
        Db::Export { what, settings } => export::export(&start(settings)?, &what),
        Db::Restore { from, backup, settings } => backup::restore(&start(settings)?, &from, backup),
        Db::Verify { how, settings } => verify::verify(&start(settings)?, how),
        Db::Reindex { from, settings } => reindex::reindex(&start(settings)?, from),
        Db::BuildIndex { index, settings } => optional::build(&start(settings)?, index),
        Db::DropIndex { index, settings } => optional::remove(&start(settings)?, index),
        Db::TrainDictionary { dry_run, settings } => train_dictionary::train(&start(settings)?, dry_run),
    }
}

fn start<const G: Groups>(sources: Sources<G>) -> anyhow::Result<Settings> {
    let settings = sources.settings()?;
    logging::start(&settings)?;
    Ok(settings)
}

/// A read-only database, with its temporary directory.
struct Viewed {
    store: RocksStore,
    /// Removed on drop.
    own: Temporary,
}

fn view(data: &Path) -> anyhow::Result<Viewed> {
    check_format(data)?;
    let own = follow::own_dir()?;
    let store = RocksStore::follow(data, own.path(), schema::TABLES, RocksOptions::default())?;
    Ok(Viewed { store, own })
}

/// Opens a database of this format for writing.
fn own(data: &Path) -> anyhow::Result<RocksStore> {
    own_with(data, RocksOptions::default())
}

fn own_with(data: &Path, options: RocksOptions) -> anyhow::Result<RocksStore> {
    // Opening for writing creates a missing database, so check that there is one.
    schema::open::existing(&view(data)?.store)?;
    Ok(RocksStore::open(data, schema::TABLES, options)?)
}

/// Fails if `place`, which need not exist, is the directory `of` or inside it, also by symbolic links.
fn refuse_inside(place: &Path, of: &Path, what: &str) -> anyhow::Result<()> {
    let (real, outer) = (real(place)?, real(of)?);
    anyhow::ensure!(
        !real.starts_with(&outer),
        "{} is {} or inside it: name a place for {what} outside of it",
        place.display(),
        of.display()
    );
    Ok(())
}

/// The absolute path without symbolic links. What does not exist is appended to what does.
fn real(path: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            // Of a real path, this is the directory above.
            Component::ParentDir => {
                real.pop();
            }
            part => real.push(part),
        }
        if let Ok(found) = fs::canonicalize(&real) {
            real = found;
        }
    }
    Ok(real)
}

fn lanes(snapshot: &dyn Snapshot) -> anyhow::Result<(BlockLane, CallLane)> {
    Ok((meta::read(snapshot)?.unwrap_or_default(), meta::read(snapshot)?.unwrap_or_default()))
}
