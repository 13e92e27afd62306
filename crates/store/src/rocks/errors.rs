//! Mapping of RocksDB errors to [`Error`].
//!
//! # Invariants
//!
//! RocksDB reports little beyond the text of its messages, so this module alone parses that text.

use std::path::Path;

use rocksdb::ErrorKind;

use super::disk::free_bytes;
use crate::{error::Error, spec::TableSpec};

/// Maps an error of the operation `doing` on the database in `path`.
pub(super) fn map_error(path: &Path, doing: &'static str, error: rocksdb::Error) -> Error {
    let path = path.to_owned();
    let kind = error.kind();
    let message = error.into_string();
    match kind {
        ErrorKind::IOError if LOCKED.iter().any(|text| message.contains(text)) => Error::InUse { path },
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

/// Adds the table name to a corruption error.
pub(super) fn with_table(table: &'static TableSpec, error: Error) -> Error {
    match error {
        Error::Damaged { path, file, message, table: _ } => {
            Error::Damaged { path, table: Some(table.name), file, message }
        }
        other => other,
    }
}

/// The first table file name in a RocksDB message. The name may follow a path and precede punctuation.
fn table_file(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(TABLE)?;
    let start = before.rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |at| at + 1);
    message.get(start..before.len() + TABLE.len()).filter(|name| name.len() > TABLE.len())
}

/// Extension of table files.
const TABLE: &str = ".sst";

/// RocksDB 11.8's messages (`env/fs_posix.cc`, `LockFile`) for a lock of this process and of another one.
const LOCKED: [&str; 2] = ["lock hold by current process", "While lock file"];

/// RocksDB's message for ENOSPC (`env/io_posix.cc`, `IOError`) and for every write until it has recovered from it.
const FULL: &str = "No space left on device";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corrupt_file_is_parsed_from_the_message() {
        let message = "Corruption: block checksum mismatch: stored = 1, computed = 2, type = 4  in /a/b.sst.d/000012.sst \
                    offset 0 size 4096";
        assert_eq!(table_file("Corruption: bad magic number in 000009.sst."), Some("000009.sst"));
        assert_eq!(table_file(&message.replace("/b.sst.d", "")), Some("000012.sst"));
        assert_eq!(table_file("Corruption: a bad record"), None);
        assert_eq!(table_file(".sst"), None);
    }
}
