//! RocksDB's errors in our words.
//!
//! What must hold: RocksDB gives no codes beyond the first words of its text, so all reading of that text
//! is here.

use std::path::Path;

use rocksdb::ErrorKind;

use super::disk::free_bytes;
use crate::{error::Error, spec::TableSpec};

/// The error that came of `doing` something with the database in `path`.
pub(super) fn map_error(path: &Path, doing: &'static str, error: rocksdb::Error) -> Error {
    let path = path.to_owned();
    let kind = error.kind();
    let message = error.into_string();
    match kind {
        ErrorKind::IOError if LOCKED.iter().any(|words| message.contains(words)) => Error::InUse { path },
        ErrorKind::IOError if message.contains(FULL) => {
            let free = free_bytes(&path).unwrap_or(0);
            Error::NoSpace { path, free, reserve: 0 }
        }
        ErrorKind::Corruption => {
            Error::Damaged { path, table: None, file: table_file(&message).map(str::to_owned), message }
        }
        _ => Error::Engine { path, doing, message },
    }
}

/// The same error, with the table that it is of.
pub(super) fn with_table(table: &'static TableSpec, error: Error) -> Error {
    match error {
        Error::Damaged { path, file, message, table: _ } => {
            Error::Damaged { path, table: Some(table.name), file, message }
        }
        other => other,
    }
}

/// The first name of a table file in RocksDB's words, which give it with its path or without, and with the marks of the
/// sentence behind it.
fn table_file(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(TABLE)?;
    let start = before.rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |at| at + 1);
    message.get(start..before.len() + TABLE.len()).filter(|name| name.len() > TABLE.len())
}

/// How the names of table files end.
const TABLE: &str = ".sst";

/// What RocksDB 11.8 says (`env/fs_posix.cc`, `LockFile`) of a lock in this process, and in another one.
const LOCKED: [&str; 2] = ["lock hold by current process", "While lock file"];

/// What RocksDB says of ENOSPC (`env/io_posix.cc`, `IOError`), and of every write until it has recovered from one.
const FULL: &str = "No space left on device";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_damaged_file_is_found_in_what_rocksdb_says() {
        let said = "Corruption: block checksum mismatch: stored = 1, computed = 2, type = 4  in /a/b.sst.d/000012.sst \
                    offset 0 size 4096";
        assert_eq!(table_file("Corruption: bad magic number in 000009.sst."), Some("000009.sst"));
        assert_eq!(table_file(&said.replace("/b.sst.d", "")), Some("000012.sst"));
        assert_eq!(table_file("Corruption: a bad record"), None);
        assert_eq!(table_file(".sst"), None);
    }
}
