//! Detection of a folder's public layout from its contents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::draft::NETWORKS;
use crate::files;
use crate::problem::LoadError;

/// A public registry on disk.
pub(crate) enum Layout {
    /// Folders with a `chain.json` each.
    Chains(Vec<PathBuf>),
    /// A checkout of the Initia registry: the chains' folders of one network.
    Network(Vec<PathBuf>),
    /// The built site of the Initia registry: its `chains.json`.
    Site(PathBuf),
}

/// The layout of `dir`, if it has one. `network` selects one of several networks of a checkout; the default is the
/// first.
pub(crate) fn recognize(dir: &Path, network: Option<&str>) -> Result<Option<Layout>, LoadError> {
    let site = dir.join("chains.json");
    if site.is_file() {
        return Ok(Some(Layout::Site(site)));
    }
    let chains = chain_folders(dir)?;
    if !chains.is_empty() {
        return Ok(Some(Layout::Chains(chains)));
    }
    let networks = NETWORKS.into_iter().filter(|name| network.is_none_or(|network| network == *name));
    for name in networks {
        let folder = dir.join(name);
        if folder.is_dir() {
            return Ok(Some(Layout::Network(chain_folders(&folder)?)));
        }
    }
    Ok(None)
}

/// The folders in `dir` with a `chain.json`; a folder whose name begins with `_` is not a chain.
pub(crate) fn chain_folders(dir: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let chain = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('_') && path.join("chain.json").is_file()
    };
    Ok(files::entries(dir)?.into_iter().filter(chain).collect())
}

/// A JSON file of a public registry.
pub(crate) struct Json {
    /// Its name in messages.
    pub(crate) file: Arc<str>,
    pub(crate) value: Value,
}

/// A text that is not empty.
pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The members of a list; empty if it is not a list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
