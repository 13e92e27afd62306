//! `cairn db copy`: copies a database between a directory and an object store, and compares the digests.
//!
//! # Invariants
//! * Until its last commit the copy has the format of an unfinished copy, which no other command accepts.
//! * An interrupted copy continues after the last row of each table.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::ensure;
use schema::meta::{self, Identity, Meta};
use schema::{TABLES, digest, open};
use store::{
    Batch, Bounds, BulkWriter, CopyOnWrite, Durability, MemStore, Order, Snapshot, Store, Table as _,
    TableSpec, for_each_row, key::successor,
};

use super::refuse_inside;
use crate::database::{Opener, Written, check_format};
use crate::settings::{Settings, path};
use crate::{follow, output};

/// Flags of `cairn db copy`.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// The database to copy: a directory, or an object store as in s3://bucket/prefix; not written meanwhile
    #[arg(long, value_name = "LOCATION", value_parser = path)]
    from: PathBuf,
    /// The new database, or an unfinished copy
    #[arg(long, value_name = "LOCATION", value_parser = path)]
    to: PathBuf,
    /// The chain's id: its name in an object store
    #[arg(long, value_name = "ID")]
    chain_id: String,
}

pub(super) fn copy(settings: &Settings, how: How) -> anyhow::Result<()> {
    let at = |data| settings.of_database(data, how.chain_id.clone());
    let (from, to) = (at(how.from), at(how.to));
    // An object store is inside of no directory.
    if let (Ok(from), Ok(to)) = (from.data(), to.data()) {
        refuse_inside(to, from, "the copy")?;
    }
    if let Ok(from) = from.data() {
        check_format(from)?;
    }
    let own = follow::own_dir()?;
    let source = Opener::new(&from, own.path())?.open()?.store();
    let identity = open::existing(&*source)?;
    let source = source.snapshot()?;
    ensure!(
        identity.chain_id == how.chain_id,
        "the database is of chain `{}`, not `{}`: correct --chain-id",
        identity.chain_id,
        how.chain_id
    );
    let database = Written::open(&to)?;
    let target = database.store();
    let unfinished = Identity { format: open::UNFINISHED_COPY, ..identity.clone() };
    match meta::read::<Identity>(&*target.snapshot()?)? {
        None => {
            store::commit_rows::<schema::Error>(&*target, Durability::Synced, |txn| {
                meta::put(txn, &unfinished);
                Ok(())
            })?;
        }
        Some(found) if found == identity => {
            let there = digest::total(&digest::tables(&*target.snapshot()?)?);
            ensure!(
                there == digest::total(&digest::tables(&*source)?),
                "{} has another state of this database already: name another location",
                database.name().display()
            );
            return Ok(output::print(&format!("complete already, digest {}\n", hex::encode(there)))?);
        }
        Some(found) => ensure!(
            found == unfinished,
            "{} has a database of chain `{}` already: name another location",
            database.name().display(),
            found.chain_id
        ),
    }
    for table in TABLES.iter().filter(|table| **table != Meta::SPEC) {
        let rows = copy_table(&*source, &*target, table)?;
        output::print(&format!("{:<20} {rows:>12} rows\n", table.name))?;
    }
    let whole = CopyOnWrite::new(Arc::clone(&target), Arc::new(MemStore::new()));
    whole.commit(named_rows(&*source)?, Durability::Synced)?;
    let copied = digest::total(&digest::tables(&*whole.snapshot()?)?);
    let expected = digest::total(&digest::tables(&*source)?);
    ensure!(
        copied == expected,
        "the copy differs from the database, which was written meanwhile: delete {} and copy again",
        database.name().display()
    );
    // The identity among them: from this commit on it is a database.
    target.commit(named_rows(&*source)?, Durability::Synced)?;
    database.flush()?;
    Ok(output::print(&format!("digest {}\n", hex::encode(copied)))?)
}

/// The rows of the table of named rows.
fn named_rows(source: &dyn Snapshot) -> Result<Batch, store::Error> {
    let mut batch = Batch::new();
    for_each_row::<store::Error>(source, Meta::SPEC, Bounds::all(), |key, value| {
        batch.put(Meta::SPEC, key.to_vec(), value.to_vec());
        Ok(())
    })?;
    Ok(batch)
}

/// Copies the rows after the last one that is there; returns their number.
fn copy_table(
    source: &dyn Snapshot,
    target: &dyn Store,
    table: &'static TableSpec,
) -> Result<u64, store::Error> {
    let last = target.snapshot()?.scan(table, Bounds::all(), Order::Desc, 1)?.pop();
    let start = last.map_or_else(Vec::new, |(key, _)| successor(&key));
    let (mut writer, mut rows) = (BulkWriter::new(target), 0);
    for_each_row(source, table, Bounds { start: &start, end: None }, |key, value| {
        rows += 1;
        writer.put(table, key.to_vec(), value.to_vec())
    })?;
    writer.finish(Durability::Synced)?;
    Ok(rows)
}
