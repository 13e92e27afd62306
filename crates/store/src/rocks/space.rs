//! Room on the device: commits leave a reserve free, so that what was committed can be flushed and compacted.
//!
//! What must hold: looking costs a call of the system at most every [`EVERY`] or [`EACH`] bytes while there is room; while
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

use super::{disk::free_bytes, fault::fault};
use crate::error::Error;

/// A disk that is filled at 1 GB/s loses 100 MB of the reserve between two looks.
const EVERY: Duration = Duration::from_millis(100);

/// What commits may write between two looks, however fast they are.
const EACH: usize = 8 << 20;

pub(super) struct Space {
    path: PathBuf,
    reserve: u64,
    /// The last look that found room, and what was written since.
    last: Mutex<Option<(Instant, usize)>>,
}

impl Space {
    pub(super) fn new(path: PathBuf, reserve: u64) -> Self {
        Self { path, reserve, last: Mutex::new(None) }
    }

    /// Fails if there is no room for `bytes` more beside the reserve. So few since the last look are not asked about.
    pub(super) fn spend(&self, bytes: usize) -> Result<(), Error> {
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, written)) = &mut *last
                && at.elapsed() < EVERY
                && written.saturating_add(bytes) <= EACH
            {
                *written += bytes;
                return Ok(());
            }
        }
        self.look_for(bytes)
    }

    /// Fails if less than the reserve is free now.
    pub(super) fn look(&self) -> Result<(), Error> {
        self.look_for(0)
    }

    /// Fails if `bytes` that are about to be written would leave less than the reserve.
    fn look_for(&self, bytes: usize) -> Result<(), Error> {
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
    pub(super) fn fault(&self, doing: &'static str, error: rocksdb::Error) -> Error {
        match fault(&self.path, doing, error) {
            Error::NoSpace { path, free, .. } => Error::NoSpace { path, free, reserve: self.reserve },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(space: &Space) -> Option<usize> {
        space.last.lock().unwrap().map(|(_, written)| written)
    }

    #[test]
    fn what_is_about_to_be_written_needs_room_beside_the_reserve() {
        let directory = tempfile::tempdir().unwrap();
        // Other programs take less than this meanwhile.
        let reserve = free_bytes(directory.path()).unwrap().saturating_sub(256 << 20);
        let space = Space::new(directory.path().to_owned(), reserve);
        space.look().unwrap();
        assert!(matches!(space.spend(usize::MAX / 2), Err(Error::NoSpace { .. })));
        assert_eq!(written(&space), None);
        space.spend(EACH).unwrap();
        assert_eq!(written(&space), Some(EACH));
        // The next byte is looked for.
        space.spend(1).unwrap();
        assert_eq!(written(&space), Some(1));
    }
}
