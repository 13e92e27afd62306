//! Free space of a file system.

use std::path::Path;

use crate::error::Error;

/// Bytes of the file system of `path` that are free to an unprivileged user (`f_bavail`).
pub(super) fn free_bytes(path: &Path) -> Result<u64, Error> {
    match rustix::fs::statvfs(path) {
        Ok(found) => Ok(found.f_bavail.saturating_mul(found.f_frsize)),
        Err(error) => Err(Error::Engine {
            path: path.to_owned(),
            doing: "asking for the free space",
            message: error.to_string(),
        }),
    }
}
