//! Room on the device: commits leave a reserve free, so that what was committed can be flushed and compacted.
//!
//! What must hold: looking costs a call of the system at most every [`CHECK_INTERVAL`] or [`CHECK_BYTES`] bytes while there is room; while
//! there is none, every commit looks, so that the first one after there is room goes through.
//!
//! If somebody else fills the disk to the last byte, a write of RocksDB fails in the middle. It then refuses all writes,
//! looks every five seconds whether there is room (`file/sst_file_manager_impl.cc`, `ClearError`), writes what is in memory
//! to table files and starts another log; the log with half of a commit is not read again.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{disk::free_bytes, errors::map_error};
use crate::error::Error;

/// A disk that is filled at 1 GB/s loses 100 MB of the reserve between two looks.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// What commits may write between two looks, however fast they are.
const CHECK_BYTES: usize = 8 << 20;

pub(super) struct DiskGuard {
    path: PathBuf,
    reserve: u64,
    /// The last look that found room, and what was written since.
    last: Mutex<Option<(Instant, usize)>>,
}

impl DiskGuard {
    pub(super) fn new(path: PathBuf, reserve: u64) -> Self {
        Self { path, reserve, last: Mutex::new(None) }
    }

    /// Fails if there is no room for `bytes` more beside the reserve. So few since the last look are not asked about.
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

    /// Fails if less than the reserve is free now.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.check_for(0)
    }

    /// Fails if `bytes` that are about to be written would leave less than the reserve.
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

    /// The error that came of `doing` something that writes.
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
    fn what_is_about_to_be_written_needs_room_beside_the_reserve() {
        let directory = tempfile::tempdir().unwrap();
        // Other programs take less than this meanwhile.
        let reserve = free_bytes(directory.path()).unwrap().saturating_sub(256 << 20);
        let guard = DiskGuard::new(directory.path().to_owned(), reserve);
        guard.check().unwrap();
        assert!(matches!(guard.reserve(usize::MAX / 2), Err(Error::NoSpace { .. })));
        assert_eq!(written(&guard), None);
        guard.reserve(CHECK_BYTES).unwrap();
        assert_eq!(written(&guard), Some(CHECK_BYTES));
        // The next byte is looked for.
        guard.reserve(1).unwrap();
        assert_eq!(written(&guard), Some(1));
    }
}
