//! Bounded reading of files and folders, in the order of their names.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::problem::LoadError;

/// Maximum size of a file in bytes: ten times the largest known asset list.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Maximum number of entries of a folder.
const MAX_ENTRIES: usize = 20_000;

/// The text of a file.
pub(crate) fn text(path: &Path) -> Result<String, LoadError> {
    let failed = |reason: String| LoadError::Read { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(failed(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    // A byte order mark, which some editors write.
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Entries of a folder, by name, without hidden ones.
pub(crate) fn entries(dir: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let failed = |error: std::io::Error| LoadError::Read { path: dir.to_owned(), reason: error.to_string() };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
        if paths.len() > MAX_ENTRIES {
            let reason = format!("it has more than {MAX_ENTRIES} entries");
            return Err(LoadError::Read { path: dir.to_owned(), reason });
        }
    }
    paths.sort();
    Ok(paths)
}

/// A file's name in messages: relative to the loaded folder.
pub(crate) fn name(dir: &Path, path: &Path) -> String {
    path.strip_prefix(dir).unwrap_or(path).display().to_string()
}

/// The files in the native format in a folder: `*.toml`, `registry.json` and `*.registry.json`. Other JSON files belong
/// to other programs.
pub(crate) fn native_files(dir: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let native = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let json = name == "registry.json" || name.ends_with(".registry.json");
        path.is_file() && (json || path.extension().is_some_and(|end| end == "toml"))
    };
    Ok(entries(dir)?.into_iter().filter(native).collect())
}
