//! Detection of unclean shutdowns: a marker file in the data directory that exists while a process writes the database.
//!
//! Read-only processes neither create nor check it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The file's name in the data directory.
const NAME: &str = "running";

/// The marker, removed on drop: an exit that unwinds the stack also closes the database.
#[derive(Debug)]
pub(crate) struct Running(PathBuf);

impl Running {
    /// Creates the marker in `data`. The flag is true if one was left by a kill, a power failure or a second signal.
    pub(crate) fn begin(data: &Path) -> io::Result<(Self, bool)> {
        let path = data.join(NAME);
        let left = fs::exists(&path)?;
        File::create(&path)?;
        Ok((Self(path), left))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The only effect of a failure is that the next start logs an unclean stop.
        drop(fs::remove_file(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_process_leaves_the_file_behind() {
        let dir = tempfile::tempdir().unwrap();
        let (first, left) = Running::begin(dir.path()).unwrap();
        assert!(!left);
        drop(first);
        let (killed, left) = Running::begin(dir.path()).unwrap();
        assert!(!left);
        std::mem::forget(killed);
        assert!(Running::begin(dir.path()).unwrap().1);
    }
}
