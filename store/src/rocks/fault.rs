//! RocksDB's errors in our words.
//!
//! What must hold: RocksDB gives no codes beyond the first words of its text, so all reading of that text
//! is here.

use std::path::Path;

use rocksdb::ErrorKind;

use crate::error::Error;

/// The error that came of `doing` something with the database in `path`.
pub(super) fn fault(path: &Path, doing: &'static str, error: rocksdb::Error) -> Error {
    let path = path.to_owned();
    let kind = error.kind();
    let message = error.into_string();
    match kind {
        ErrorKind::IOError if LOCKED.iter().any(|words| message.contains(words)) => Error::InUse { path },
        ErrorKind::Corruption => Error::Damaged { path, message },
        _ => Error::Engine { path, doing, message },
    }
}

/// What RocksDB 11.8 says (`env/fs_posix.cc`, `LockFile`) of a lock in this process, and in another one.
const LOCKED: [&str; 2] = ["lock hold by current process", "While lock file"];
