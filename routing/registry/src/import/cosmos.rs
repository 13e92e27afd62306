//! Cosmos chain registry: a folder for each chain, and `_IBC` with a file for each pair.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::layout::{Json, list, text};
use super::{Imported, chains};
use crate::draft::{ChannelDraft, EndDraft, Located, Source};
use crate::files;
use crate::native_format::TRANSFER;
use crate::problem::{LoadError, Place};

impl Imported {
    /// Reads the chains of `folders` and the pairs beside them in `root`; files are named relative to `dir`.
    pub(super) fn cosmos(&mut self, dir: &Path, root: &Path, folders: &[PathBuf]) -> Result<(), LoadError> {
        let mut lists = Vec::new();
        for folder in folders {
            let json = match Json::read(dir, &folder.join("chain.json")) {
                Ok(json) => json,
                Err((place, what)) => {
                    self.left_out(&place, what);
                    continue;
                }
            };
            let part = match chains::chain(&json.value) {
                Ok(Some(part)) => part,
                Ok(None) => continue,
                Err(what) => {
                    self.left_out(&Place::new(&json.file, "*"), what);
                    continue;
                }
            };
            let name = part.name.clone().unwrap_or_else(|| part.id.clone());
            if !self.takes(&part.id, &name) {
                continue;
            }
            // The Initia registry's names and those of our own form stay.
            self.names.entry(name).or_insert_with(|| part.id.clone());
            lists.push((folder.join("assetlist.json"), part.id.clone()));
            let place = Place::new(&json.file, part.id.clone());
            self.draft.chains.push(Located { source: Source::Cosmos, place, part });
        }
        for (path, chain) in lists.into_iter().filter(|(path, _)| path.is_file()) {
            match Json::read(dir, &path) {
                Ok(json) => self.assets(&json, &chain, Source::Cosmos),
                Err((place, what)) => self.left_out(&place, what),
            }
        }
        let pairs = root.join("_IBC");
        if pairs.is_dir() {
            for path in files::entries(&pairs)?
                .iter()
                .filter(|path| path.extension().is_some_and(|end| end == "json"))
            {
                match Json::read(dir, path) {
                    Ok(json) => self.pair(&json),
                    Err((place, what)) => self.left_out(&place, what),
                }
            }
        }
        Ok(())
    }

    /// The transfer channels of two chains, where both are known.
    fn pair(&mut self, json: &Json) {
        let chain = |key: &str| {
            let chain = &json.value[key];
            let by_name = || self.names.get(chain["chain_name"].as_str()?).cloned();
            text(&chain["chain_id"]).or_else(by_name)
        };
        let (Some(one), Some(two)) = (chain("chain_1"), chain("chain_2")) else { return };
        for channel in list(&json.value["channels"]) {
            let (Some(a), Some(b)) = (end(&channel["chain_1"], &one), end(&channel["chain_2"], &two)) else {
                continue;
            };
            let status = channel["tags"]["status"].as_str().unwrap_or("ACTIVE");
            let paused = (status != "ACTIVE").then(|| format!("the chain registry says {status}"));
            let place = Place::new(&json.file, format!("{one} {}", a.channel));
            let part = ChannelDraft { a, b: Some(b), paused, seconds: None };
            self.draft.channels.push(Located { source: Source::Cosmos, place, part });
        }
    }
}

/// An end that transfers use; `*` stands for unlisted channels.
fn end(json: &Value, chain: &str) -> Option<EndDraft> {
    let channel = text(&json["channel_id"]).filter(|channel| channel != "*")?;
    let transfer = json["port_id"] == TRANSFER;
    transfer.then(|| EndDraft { chain: chain.to_owned(), port: TRANSFER.to_owned(), channel })
}
