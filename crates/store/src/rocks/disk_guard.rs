//! Disk-space guard: commits fail before they use the reserve that flushes and compactions need.
//!
//! If another program fills the disk to the last byte, a RocksDB write fails half-way. RocksDB then refuses all writes,
//! checks the free space every five seconds (`file/sst_file_manager_impl.cc`, `ClearError`), and after that flushes its
//! memtables and starts a new WAL; it does not read the WAL with the partial commit again.
//!
//! # Invariants
//!
//! * While there is space, the guard makes one `statvfs` call per [`CHECK_INTERVAL`] or [`CHECK_BYTES`].
//! * While there is none, every commit checks, so the first commit after space is freed succeeds.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{disk::free_bytes, errors::map_error};
use crate::error::Error;

/// A program that writes 1 GB/s takes 100 MB of the reserve between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes that commits may write between two checks.
const CHECK_BYTES: usize = 8 << 20;

pub(super) struct DiskGuard {
    path: PathBuf,
    reserve: u64,
    /// Time of the last check that found space, and the bytes written since.
    last: Mutex<Option<(Instant, usize)>>,
}

impl DiskGuard {
    pub(super) fn new(path: PathBuf, reserve: u64) -> Self {
        Self { path, reserve, last: Mutex::new(None) }
    }

    /// Fails if writing `bytes` would use the reserve. Skips the check soon after a successful one.
    pub(super) fn reserve(&self, bytes: usize) -> Result<(), Error> {
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, written)) = &mut *last
                && at.elapsed() < CHECK_INTERVAL
                && written.saturating_add(bytes) <= CHECK_BYTES
            {
                *written += bytes;
                return Ok(());
            }
        }
        self.check_for(bytes)
    }

    /// Fails if less than the reserve is free.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.check_for(0)
    }

    /// Fails if writing `bytes` would leave less than the reserve.
    fn check_for(&self, bytes: usize) -> Result<(), Error> {
        let free = free_bytes(&self.path)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if free < self.reserve.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX)) {
            *last = None;
            return Err(Error::NoSpace { path: self.path.clone(), free, reserve: self.reserve });
        }
        *last = Some((Instant::now(), bytes));
        Ok(())
    }

    /// Maps an error of the writing operation `doing`.
    pub(super) fn map_error(&self, doing: &'static str, error: rocksdb::Error) -> Error {
        match map_error(&self.path, doing, error) {
            Error::NoSpace { path, free, .. } => Error::NoSpace { path, free, reserve: self.reserve },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(guard: &DiskGuard) -> Option<usize> {
        guard.last.lock().unwrap().map(|(_, written)| written)
    }

    #[test]
    fn a_write_that_would_use_the_reserve_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        // Other programs take less than this meanwhile.
        let reserve = free_bytes(directory.path()).unwrap().saturating_sub(256 << 20);
        let guard = DiskGuard::new(directory.path().to_owned(), reserve);
        guard.check().unwrap();
        assert!(matches!(guard.reserve(usize::MAX / 2), Err(Error::NoSpace { .. })));
        assert_eq!(written(&guard), None);
        guard.reserve(CHECK_BYTES).unwrap();
        assert_eq!(written(&guard), Some(CHECK_BYTES));
        // The next byte needs a check.
        guard.reserve(1).unwrap();
        assert_eq!(written(&guard), Some(1));
    }
}
