//! The last good version of each file of the public registries.
//!
//! A public file may be broken for a while: a comma too many, a renamed member, an update that is half done. Its last
//! good version then stays in use, so that one file takes no chain from a running service.
//!
//! # Invariants
//!
//! * A file is replaced only by a version without a flaw that the version in use does not have.
//! * A file that is gone is kept for [`MISSING`] at most, unless its whole folder is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long a missing file stays in use: longer than an update takes, shorter than the time between two.
const MISSING: Duration = Duration::from_hours(1);

/// The files of the public registries that a registry was made of.
#[derive(Debug, Clone, Default)]
pub struct Files {
    good: BTreeMap<PathBuf, Version>,
    broken: Vec<BrokenFile>,
}

/// A version of a file that is in use.
#[derive(Debug, Clone)]
struct Version {
    text: Arc<str>,
    flaws: BTreeSet<String>,
    read: SystemTime,
    /// When the file was first found to be gone.
    missing_since: Option<SystemTime>,
}

/// A file of a public registry that was not taken as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenFile {
    /// Its name, relative to its registry.
    pub name: String,
    /// When its last good version was read, which stays in use; `None` if there is none, so that the file is left out or
    /// used without the flawed members.
    pub last_good: Option<SystemTime>,
}

/// What is known of a file on disk.
pub(crate) enum OnDisk {
    /// It can be used, at least in part.
    Usable {
        text: Arc<str>,
        /// Whether it has the right form. Parts of it may be invalid nevertheless.
        is_sound: bool,
        /// What is wrong with it and with its parts.
        flaws: BTreeSet<String>,
    },
    /// It cannot be used at all.
    Unusable,
    /// It is not there.
    Missing,
}

impl Files {
    /// The files that were not taken as they are, in the order in which they are read.
    pub fn broken(&self) -> &[BrokenFile] {
        &self.broken
    }

    /// Whether a version of the file is in use, and it is not gone for too long.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let now = SystemTime::now();
        let is_gone = |since: SystemTime| now.duration_since(since).unwrap_or_default() >= MISSING;
        self.good.get(path).is_some_and(|version| !version.missing_since.is_some_and(is_gone))
    }

    /// The files directly in `folder` of which a version is in use.
    pub(crate) fn of_folder(&self, folder: &Path) -> impl Iterator<Item = &PathBuf> {
        self.good.keys().filter(move |path| path.parent() == Some(folder) && self.has(path))
    }

    /// Decides which version of a file is in use from now on, and records it in `next`. Returns its text, and whether it
    /// is an older one than that on disk; `None` if there is none.
    pub(crate) fn choose(
        &self,
        next: &mut Self,
        path: &Path,
        name: &str,
        disk: OnDisk,
    ) -> Option<(Arc<str>, bool)> {
        let before = self.good.get(path);
        let now = SystemTime::now();
        let mut is_older = false;
        let mut broken = |last_good| next.broken.push(BrokenFile { name: name.to_owned(), last_good });
        let version = match (disk, before) {
            (OnDisk::Usable { text, is_sound, flaws }, before)
                if before.is_none_or(|before| flaws.is_subset(&before.flaws)) =>
            {
                if !is_sound {
                    broken(None);
                }
                Version { text, flaws, read: now, missing_since: None }
            }
            (OnDisk::Unusable | OnDisk::Missing, None) => {
                broken(None);
                return None;
            }
            (disk, Some(before)) => {
                is_older = true;
                broken(Some(before.read));
                let is_missing = matches!(disk, OnDisk::Missing);
                let missing_since = is_missing.then(|| before.missing_since.unwrap_or(now));
                Version { missing_since, ..before.clone() }
            }
            // The first arm takes it.
            (OnDisk::Usable { .. }, None) => return None,
        };
        let text = Arc::clone(&version.text);
        next.good.insert(path.to_owned(), version);
        Some((text, is_older))
    }

    /// Forgets a file that is not used after all.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.good.remove(path);
    }
}
