//! Cosmos chain registry: a folder for each chain, and `_IBC` with a file for each pair.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Imported;
use super::layout::{Json, list, text};
use crate::denom::{TRANSFER_PORT, is_contract_port};
use crate::draft::{ChannelDraft, EndDraft, Located, Source};
use crate::files;
use crate::problem::{LoadError, Place};

impl Imported {
    /// Reads the chains of `folders` and the pairs beside them in `root`; files are named relative to `dir`.
    pub(super) fn cosmos(&mut self, dir: &Path, root: &Path, folders: &[PathBuf]) -> Result<(), LoadError> {
        let mut lists = Vec::new();
        for folder in folders {
            let Some(json) = self.read(dir, &folder.join("chain.json")) else { continue };
            let place = Place::new(&json.file, "*");
            let Some(part) = self.chain(&place, &json.value) else { continue };
            let name = part.name.clone().unwrap_or_else(|| part.id.clone());
            // Names of the native format and the Initia registry have precedence.
            self.names.entry(name).or_insert_with(|| part.id.clone());
            lists.push((folder.join("assetlist.json"), part.id.clone()));
            let place = Place { key: part.id.clone(), ..place };
            self.draft.chain.push(Located { source: Source::Cosmos, place, part });
        }
        for (path, chain) in lists.into_iter().filter(|(path, _)| path.is_file()) {
            if let Some(json) = self.read(dir, &path) {
                self.assets(&json, &chain, Source::Cosmos);
            }
        }
        let pairs = root.join("_IBC");
        if pairs.is_dir() {
            let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
            for path in files::entries(&pairs)?.into_iter().filter(is_json) {
                if let Some(json) = self.read(dir, &path) {
                    self.pair(&json);
                }
            }
        }
        Ok(())
    }

    /// The transfer channels of two chains, if both are known.
    fn pair(&mut self, json: &Json) {
        let chain = |key: &str| {
            let chain = &json.value[key];
            let by_name = || self.names.get(chain["chain_name"].as_str()?).cloned();
            text(&chain["chain_id"]).or_else(by_name)
        };
        let (Some(one), Some(two)) = (chain("chain_1"), chain("chain_2")) else { return };
        let is_ics20 = |channel: &&Value| {
            // Other protocols run between contracts, too.
            channel["version"].as_str().is_none_or(|version| version.contains("ics20"))
        };
        for channel in list(&json.value["channels"]).iter().filter(is_ics20) {
            let (Some(a), Some(b)) = (end(&channel["chain_1"], &one), end(&channel["chain_2"], &two)) else {
                continue;
            };
            let status = channel["tags"]["status"].as_str().unwrap_or("ACTIVE");
            let paused = (status != "ACTIVE").then(|| format!("the chain registry says {status}"));
            let place = Place::new(&json.file, format!("{one} {}", a.channel));
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
