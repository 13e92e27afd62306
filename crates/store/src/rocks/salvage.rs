//! Salvage: rewrites corrupt tables without their unreadable rows.
//!
//! ```text
//! salvage/txs.part/    readable rows, incomplete: deleted at the next open
//! salvage/txs.ready/   complete and on the device: the next open replaces the table by it
//! salvage/txs.done/    installed, being deleted: deleted at the next open
//! ```
//!
//! `ready` contains a manifest of its files. If the directory does not match its manifest, another program has touched
//! it. Leave it alone: it may be the only copy of a table whose column family is already dropped.
//!
//! # Invariants
//!
//! * After a crash at any point, the next owner finds either the old table or the complete rewritten one.
//! * The rewritten table has all readable rows unchanged, and nothing from an unreadable range: no older version of a
//!   row that the range hides.
//! * Only the holder of the database lock writes to `salvage/`, and nothing commits during a salvage.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use rocksdb::{DB, IngestExternalFileOptions, Options, SstFileWriter};

use super::{
    Handle, RocksOptions, RocksStore,
    compaction_hold::CompactionHold,
    corruption::{CorruptRange, SalvageScan},
    directory,
    errors::map_error,
};
use crate::{error::Error, spec::TableSpec};

/// RocksDB's default table file size.
const FILE_BYTES: u64 = 64 << 20;

const DIRECTORY: &str = "salvage";

/// Manifest of a finished copy: its file names, one per line.
const MANIFEST: &str = "FILES";

/// State of the copy of a table.
#[derive(Clone, Copy)]
enum State {
    Part,
    Ready,
    Done,
}

impl State {
    /// Suffix of the directory name.
    fn ending(self) -> &'static str {
        match self {
            Self::Part => ".part",
            Self::Ready => ".ready",
            Self::Done => ".done",
        }
    }
}

impl RocksStore {
    /// Rewrites every corrupt table of the database in `path` without its unreadable rows, and returns their ranges.
    /// These rows are absent afterwards; the caller must derive them again.
    ///
    /// Needs exclusive access, the time of reading the whole database, and disk space for a copy of each corrupt table.
    pub fn salvage(
        path: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Vec<CorruptRange>, Error> {
        directory::check_owned(path, tables)?;
        let mut handle = open(path, tables, options)?;
        install_finished(&mut handle, path, tables)?;
        remove_leftovers(path)?;
        let mut found = Vec::new();
        for table in tables {
            let damage = rewrite(&handle.db, path, table)?;
            if !damage.is_empty() {
                replace(&mut handle.db, path, table)?;
            }
            found.extend(damage);
        }
        remove_leftovers(path)?;
        CompactionHold::clear(path)?;
        Ok(found)
    }
}

/// Installs the finished copies of an interrupted salvage.
pub(super) fn resume(
    path: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
) -> Result<(), Error> {
    if finished_copies(path)?.is_empty() {
        return Ok(());
    }
    let mut handle = open(path, tables, options)?;
    install_finished(&mut handle, path, tables)
}

/// Installs all finished copies, under the database lock.
fn install_finished(
    handle: &mut Handle,
    path: &Path,
    tables: &'static [&'static TableSpec],
) -> Result<(), Error> {
    let mut ready = finished_copies(path)?;
    for table in tables.iter().filter(|table| ready.remove(table.name)).collect::<Vec<_>>() {
        replace(&mut handle.db, path, table)?;
    }
    if ready.is_empty() {
        return Ok(());
    }
    Err(Error::UnknownTables { path: path.to_owned(), tables: ready.into_iter().collect() })
}

/// Names of the tables with a finished copy.
pub(super) fn finished_copies(path: &Path) -> Result<BTreeSet<String>, Error> {
    let names = match names(&path.join(DIRECTORY)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        names => names.map_err(|error| failed(path, &error))?,
    };
    Ok(names.iter().filter_map(|name| name.strip_suffix(State::Ready.ending())).map(str::to_owned).collect())
}

/// Opens with paranoid checks. If corruption prevents that, opens without them; RocksDB then skips corrupt WAL records
/// instead of stopping at the first one (`DBImpl::InitializeLogReader`).
fn open(path: &Path, tables: &'static [&'static TableSpec], options: RocksOptions) -> Result<Handle, Error> {
    let open = |how| DB::open_cf_descriptors(&how, path, options.families_on_hold(tables));
    let opened = match open(options.repair()) {
        Err(error) if matches!(map_error(path, "opening", error.clone()), Error::Damaged { .. }) => {
            let opened = open(options.repair_lenient());
            if opened.is_ok() {
                tracing::warn!(
                    database = %path.display(), %error,
                    "damage kept the database from opening with all checks, so it was opened without: if its log is damaged \
                     too, single ones of the last commits are missing; take the last heights back and index them again"
                );
            }
            opened
        }
        opened => opened,
    };
    opened.map(|db| Handle { db }).map_err(|error| map_error(path, "opening", error))
}

/// Writes the readable rows of `table` to a finished copy, unless all rows are readable.
fn rewrite(db: &DB, path: &Path, table: &'static TableSpec) -> Result<Vec<CorruptRange>, Error> {
    let scan = SalvageScan::lossless(db, path, table);
    let found = scan.rows(|_, _| Ok(()))?;
    if found.is_empty() {
        return Ok(found);
    }
    let part = state_dir(path, table, State::Part);
    remove(path, &part)?;
    fs::create_dir_all(&part).map_err(|error| failed(path, &error))?;
    let options = RocksOptions::table(table);
    let mut copy = TableCopy { path, part: &part, options: &options, writer: None, files: 0 };
    let found = scan.rows(|key, value| copy.put(key, value))?;
    copy.finish()?;
    write_manifest(&part).map_err(|error| failed(path, &error))?;
    sync(path, &part)?;
    advance(path, table, State::Part, State::Ready)?;
    sync(path, path)?;
    Ok(found)
}

/// Writer of a table copy.
struct TableCopy<'a> {
    path: &'a Path,
    part: &'a Path,
    options: &'a Options,
    writer: Option<SstFileWriter<'a>>,
    files: u32,
}

impl TableCopy<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let fail = |error| map_error(self.path, "rewriting a table", error);
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
        finished.map_err(|error| map_error(self.path, "rewriting a table", error))
    }
}

/// Replaces `table` by its finished copy. Idempotent after an interruption.
fn replace(db: &mut DB, path: &Path, table: &'static TableSpec) -> Result<(), Error> {
    install(db, path, table)?;
    remove(path, &state_dir(path, table, State::Done))
}

/// Ingests the finished copy and marks it as done.
fn install(db: &mut DB, path: &Path, table: &'static TableSpec) -> Result<(), Error> {
    let fail = |error| map_error(path, "replacing a table", error);
    let files = complete_files(path, table)?;
    // The corrupt files are dropped below, and every later open resumes here first, so the hold can end.
    CompactionHold::clear_table(path, table)?;
    if db.cf_handle(table.name).is_some() {
        db.drop_cf(table.name).map_err(fail)?;
    }
    db.create_cf(table.name, &RocksOptions::table(table)).map_err(fail)?;
    if !files.is_empty() {
        // Copies instead of moving, so that an interrupted installation can start again.
        let family = super::family(db, table)?;
        db.ingest_external_file_cf_opts(family, &IngestExternalFileOptions::default(), files)
            .map_err(fail)?;
    }
    // Renamed before deletion, so that a partly deleted copy is not taken for a complete one.
    advance(path, table, State::Ready, State::Done)
}

/// Writes the manifest of `part`, after all other files.
fn write_manifest(part: &Path) -> io::Result<()> {
    let names = names(part)?.into_iter().fold(String::new(), |names, name| names + &name + "\n");
    let list = part.join(MANIFEST);
    fs::write(&list, names)?;
    fs::File::open(list)?.sync_all()
}

/// The files of the finished copy of `table`, in order; an error if they differ from its manifest.
fn complete_files(path: &Path, table: &'static TableSpec) -> Result<Vec<PathBuf>, Error> {
    let ready = state_dir(path, table, State::Ready);
    let listed = fs::read_to_string(ready.join(MANIFEST));
    let mut there = names(&ready).map_err(|error| failed(path, &error))?;
    there.remove(MANIFEST);
    if listed.is_ok_and(|listed| listed.lines().eq(&there)) {
        return Ok(there.iter().map(|name| ready.join(name)).collect());
    }
    let message = format!(
        "the readable rows of table `{}` in {} are not all there, and the table itself may be gone; restore a backup, or \
         remove that directory, repair and index again",
        table.name,
        ready.display()
    );
    Err(Error::Engine { path: path.to_owned(), doing: "replacing a table", message })
}

fn names(directory: &Path) -> io::Result<BTreeSet<String>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn state_dir(path: &Path, table: &TableSpec, state: State) -> PathBuf {
    path.join(DIRECTORY).join(format!("{}{}", table.name, state.ending()))
}

/// Moves the copy of `table` to the next state, durably.
fn advance(path: &Path, table: &TableSpec, from: State, to: State) -> Result<(), Error> {
    fs::rename(state_dir(path, table, from), state_dir(path, table, to))
        .map_err(|error| failed(path, &error))?;
    sync(path, &path.join(DIRECTORY))
}

/// Deletes unfinished and installed copies. The caller holds the database lock.
pub(super) fn remove_leftovers(path: &Path) -> Result<(), Error> {
    remove(path, &path.join(DIRECTORY))
}

fn remove(path: &Path, directory: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn sync(path: &Path, directory: &Path) -> Result<(), Error> {
    fs::File::open(directory).and_then(|file| file.sync_all()).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::Engine { path: path.to_owned(), doing: "rewriting a table", message: error.to_string() }
}

#[cfg(test)]
mod tests;
