//! Whether the process that wrote a database before this one ended in an orderly way: a file in the data directory, which is
//! there while one writes. Processes that only read neither make it nor look at it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The file's name in the data directory.
const NAME: &str = "running";

/// The file. Removed when it is dropped: whatever ends the process by unwinding its stack closes the database too.
#[derive(Debug)]
pub(crate) struct Running(PathBuf);

impl Running {
    /// Makes the file in `data`. Whether one was left behind, by a kill, a power failure or a second signal.
    pub(crate) fn begin(data: &Path) -> io::Result<(Self, bool)> {
        let path = data.join(NAME);
        let left = fs::exists(&path)?;
        File::create(&path)?;
        Ok((Self(path), left))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that stays makes the next start say that this one was killed, and nothing else.
        drop(fs::remove_file(&self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_did_not_end_by_itself_leaves_the_file_behind() {
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
