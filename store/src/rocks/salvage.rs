//! Rewriting damaged tables without the rows that cannot be read.
//!
//! What must hold: whenever the process ends, the next owner finds either the table as it was or the rewritten one; a row
//! that could be read is in the rewritten one, as it was; of an unreadable stretch nothing is, also no older row that it
//! hides.
//!
//! ```text
//! salvage/txs.part/    readable rows, being written: thrown away at the next open
//! salvage/txs.ready/   all of them, on the device: from here on the next open puts them in place of the table
//! ```
//!
//! While it works, the database is open without RocksDB's "paranoid checks": with them a database whose index blocks are
//! damaged does not open. Nobody commits meanwhile.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rocksdb::{DB, IngestExternalFileOptions, Options, ReadOptions, SstFileWriter};

use super::{
    Handle, RocksOptions, RocksStore,
    damage::{Damage, Scan},
    directory,
    fault::fault,
    still::Still,
};
use crate::{engine::TableSpec, error::Error};

/// As large as a table file of RocksDB's becomes.
const FILE_BYTES: u64 = 64 << 20;

const DIRECTORY: &str = "salvage";

impl RocksStore {
    /// Rewrites every table of the database in `path` that has unreadable rows without those rows, and reports them. They
    /// are absent afterwards: whoever knows what belongs there has to write it again.
    ///
    /// Takes the database for itself, as long as reading all of it, and room for a second copy of each damaged table.
    pub fn salvage(
        path: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Vec<Damage>, Error> {
        directory::check_owned(path, tables)?;
        finish(path, tables, options)?;
        let mut handle = open(path, tables, options)?;
        let mut found = Vec::new();
        for table in tables {
            let damage = rewrite(&handle.db, path, table)?;
            if !damage.is_empty() {
                replace(&mut handle.db, path, table)?;
            }
            found.extend(damage);
        }
        tidy(path)?;
        Still::forget(path)?;
        Ok(found)
    }
}

/// Puts rewritten tables in place whose rewriting was interrupted after it was complete.
pub(super) fn finish(
    path: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
) -> Result<(), Error> {
    if !path.join(DIRECTORY).exists() {
        return Ok(());
    }
    let ready: Vec<_> = tables.iter().filter(|table| place(path, table, "ready").exists()).collect();
    if !ready.is_empty() {
        let mut handle = open(path, tables, options)?;
        for table in ready {
            replace(&mut handle.db, path, table)?;
        }
    }
    tidy(path)
}

fn open(path: &Path, tables: &'static [&'static TableSpec], options: RocksOptions) -> Result<Handle, Error> {
    DB::open_cf_descriptors(&options.salvager(), path, options.still_families(tables))
        .map(|db| Handle { db })
        .map_err(|error| fault(path, "opening", error))
}

/// Writes the readable rows of `table` to files; leaves none if every row is readable.
fn rewrite(db: &DB, path: &Path, table: &'static TableSpec) -> Result<Vec<Damage>, Error> {
    let scan = Scan { db, store: path, table };
    let found = scan.rows(ReadOptions::default(), |_, _| Ok(()))?;
    if found.is_empty() {
        return Ok(found);
    }
    let part = place(path, table, "part");
    remove(path, &part)?;
    fs::create_dir_all(&part).map_err(|error| failed(path, &error))?;
    let options = RocksOptions::table(table);
    let mut copy = Copy { path, part: &part, options: &options, writer: None, files: 0 };
    let found = scan.rows(ReadOptions::default(), |key, value| copy.put(key, value))?;
    copy.finish()?;
    let ready = place(path, table, "ready");
    sync(path, &part)?;
    fs::rename(&part, &ready).map_err(|error| failed(path, &error))?;
    sync(path, &path.join(DIRECTORY))?;
    sync(path, path)?;
    Ok(found)
}

/// Rows on their way to files.
struct Copy<'a> {
    path: &'a Path,
    part: &'a Path,
    options: &'a Options,
    writer: Option<SstFileWriter<'a>>,
    files: u32,
}

impl Copy<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let fail = |error| fault(self.path, "rewriting a table", error);
        if self.writer.as_ref().is_some_and(|writer| writer.file_size() >= FILE_BYTES) {
            self.writer.take().map_or(Ok(()), |mut writer| writer.finish()).map_err(fail)?;
        }
        let mut writer = if let Some(writer) = self.writer.take() {
            writer
        } else {
            let writer = SstFileWriter::create(self.options);
            writer.open(self.part.join(format!("{:06}.sst", self.files))).map_err(fail)?;
            self.files += 1;
            writer
        };
        writer.put(key, value).map_err(fail)?;
        self.writer = Some(writer);
        Ok(())
    }

    fn finish(mut self) -> Result<(), Error> {
        let finished = self.writer.take().map_or(Ok(()), |mut writer| writer.finish());
        finished.map_err(|error| fault(self.path, "rewriting a table", error))
    }
}

/// Replaces `table` by what was written of it. May be interrupted and called again.
fn replace(db: &mut DB, path: &Path, table: &'static TableSpec) -> Result<(), Error> {
    let fail = |error| fault(path, "replacing a table", error);
    let ready = place(path, table, "ready");
    let files = files(&ready).map_err(|error| failed(path, &error))?;
    if db.cf_handle(table.name).is_some() {
        db.drop_cf(table.name).map_err(fail)?;
    }
    db.create_cf(table.name, &RocksOptions::table(table)).map_err(fail)?;
    if !files.is_empty() {
        // Copied and not moved: until all is done, it must be possible to begin again.
        let family = super::family(db, table)?;
        db.ingest_external_file_cf_opts(family, &IngestExternalFileOptions::default(), files)
            .map_err(fail)?;
    }
    remove(path, &ready)
}

fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

fn place(path: &Path, table: &TableSpec, state: &str) -> PathBuf {
    path.join(DIRECTORY).join(format!("{}.{state}", table.name))
}

/// Removes what is not needed any more.
fn tidy(path: &Path) -> Result<(), Error> {
    remove(path, &path.join(DIRECTORY))
}

fn remove(path: &Path, directory: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn sync(path: &Path, directory: &Path) -> Result<(), Error> {
    fs::File::open(directory).and_then(|file| file.sync_all()).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::Engine { path: path.to_owned(), doing: "rewriting a table", message: error.to_string() }
}
