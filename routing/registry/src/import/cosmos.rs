//! Cosmos chain registry: a folder for each chain, and `_IBC` with a file for each pair.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Imported;
use super::layout::{Json, list, text};
use super::names::Names;
use super::shape::Kind;
use super::words::{CHANNEL_STATUS, OF_ICS20, is_ics20};
use crate::denom::{TRANSFER_PORT, is_contract_port};
use crate::draft::{ChannelDraft, EndDraft, Located, Source};
use crate::files;
use crate::problem::{LoadError, Place};

impl Imported<'_> {
    /// Reads the chains of `folders` and the pairs next to them in `root`; files are named relative to `dir`.
    pub(super) fn cosmos(&mut self, dir: &Path, root: &Path, folders: &[PathBuf]) -> Result<(), LoadError> {
        let mut chains = Vec::new();
        for folder in self.folders(root, folders)? {
            if let Some(Json { file, value }) = self.read(dir, root, &folder.join("chain.json"), Kind::Chain)
            {
                chains.push((folder, Place::new(&file, "*"), value));
            }
        }
        let (names, problems) = Names::from_chains(chains.iter().map(|(_, place, value)| (value, place)));
        self.problems.extend(problems);
        let (mut lists, mut ids) = (Vec::new(), BTreeMap::new());
        for (folder, place, value) in chains {
            let Some(part) = self.chain(&place, &value) else { continue };
            if !self.is_first(&mut ids, &part, &place) {
                self.files.forget(&folder.join("chain.json"));
                continue;
            }
            lists.push((folder.join("assetlist.json"), part.id.clone()));
            let place = Place { key: part.id.clone(), ..place };
            self.draft.chain.push(Located { source: Source::Cosmos, place, part });
        }
        for (path, chain) in lists {
            if self.has(&path)
                && let Some(json) = self.read(dir, root, &path, Kind::Assets)
            {
                self.assets(&json, &chain, Source::Cosmos, &names);
            }
        }
        for path in self.pairs(&root.join("_IBC"))? {
            if let Some(json) = self.read(dir, root, &path, Kind::Pair) {
                self.pair(&json, &names);
            }
        }
        Ok(())
    }

    /// The files of `_IBC`, also those that are gone.
    fn pairs(&self, folder: &Path) -> Result<BTreeSet<PathBuf>, LoadError> {
        let mut paths: BTreeSet<_> = self.before.of_folder(folder).cloned().collect();
        if folder.is_dir() {
            let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
            paths.extend(files::entries(folder)?.into_iter().filter(is_json));
        }
        Ok(paths)
    }

    /// The transfer channels of two chains, if both are known.
    fn pair(&mut self, json: &Json, names: &Names) {
        let chain = |key: &str| names.meant(&json.value[key]);
        let (Some(one), Some(two)) = (chain("chain_1"), chain("chain_2")) else { return };
        for channel in list(&json.value["channels"]) {
            let (Some(a), Some(b)) = (end(&channel["chain_1"], &one), end(&channel["chain_2"], &two)) else {
                continue;
            };
            let place = Place::new(&json.file, format!("{one} {}", a.channel));
            let is_module = a.port == TRANSFER_PORT && b.port == TRANSFER_PORT;
            match channel["version"].as_str().filter(|version| !is_ics20(version)) {
                None => {}
                Some(version) if is_module => self.words.add("version", version, OF_ICS20, &place),
                // Other protocols run between contracts, too.
                Some(_) => continue,
            }
            let status = &channel["tags"]["status"];
            let is_open = self.words.meaning(&CHANNEL_STATUS, status, &place).unwrap_or(true);
            let paused = (!is_open)
                .then(|| format!("the chain registry says {}", status.as_str().unwrap_or_default()));
            let part = ChannelDraft { a, b: Some(b), paused, seconds: None };
            self.draft.channel.push(Located { source: Source::Cosmos, place, part });
        }
    }
}

/// An end of the transfer module or of a contract; `*` means unlisted ones.
fn end(json: &Value, chain: &str) -> Option<EndDraft> {
    let named = |key: &str| text(&json[key]).filter(|name| !name.contains('*'));
    let port = named("port_id").filter(|port| port == TRANSFER_PORT || is_contract_port(port))?;
    Some(EndDraft { chain: chain.to_owned(), port, channel: named("channel_id")? })
}
