//! Initia registry, as a checkout or as the built site.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chain::Vm;
use serde_json::Value;

use super::Imported;
use super::layout::{Json, Layout, list, text};
use crate::denom::{self, TRANSFER_PORT};
use crate::draft::{
    AssetDraft, BridgeDraft, BridgedDraft, ChainDraft, ChannelDraft, EndDraft, Located, Source,
};
use crate::problem::{LoadError, Place};

/// A chain that is imported.
struct ChainFiles {
    place: Place,
    draft: ChainDraft,
    metadata: Value,
    assets: Option<Json>,
}

impl Imported {
    /// Reads an Initia registry; files are named relative to `dir`.
    pub(super) fn initia(&mut self, dir: &Path, layout: &Layout) -> Result<(), LoadError> {
        let chains = match layout {
            Layout::Site(chains) => self.site(dir, chains)?,
            Layout::Chains(folders) | Layout::Network(folders) => folders
                .iter()
                .filter_map(|folder| {
                    let json = self.read(dir, &folder.join("chain.json"))?;
                    let place = Place::new(&json.file, "*");
                    self.chain_files(place, json.value, Some(folder.join("assetlist.json")), dir)
                })
                .collect(),
        };
        for chain in &chains {
            let name = chain.draft.name.clone().unwrap_or_else(|| chain.draft.id.clone());
            self.names.insert(name, chain.draft.id.clone());
        }
        let l1 = chains.iter().find(|chain| chain.draft.l1 == Some(true)).map(|chain| chain.draft.id.clone());
        self.listed_channels(&chains);
        for chain in chains {
            if let (Some(l1), false) = (&l1, chain.draft.l1 == Some(true)) {
                self.bridge(&chain, l1);
            }
            if let Some(assets) = &chain.assets {
                self.assets(assets, &chain.draft.id, Source::Initia);
            }
            let ChainFiles { place, draft: part, .. } = chain;
            self.draft.chain.push(Located { source: Source::Initia, place, part });
        }
        Ok(())
    }

    /// The chains of a built site.
    fn site(&mut self, dir: &Path, chains: &Path) -> Result<Vec<ChainFiles>, LoadError> {
        let json = Json::read(dir, chains)?;
        let Value::Array(entries) = json.value else {
            return Err(Place::new(&json.file, "*").error("must be an array of chains").into());
        };
        let folder = chains.with_file_name("chains");
        let mut found = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let name = text(&entry["chain_name"]);
            let place = Place::new(&json.file, name.clone().unwrap_or_else(|| format!("[{index}]")));
            // A name must not lead out of the folder.
            let name = name.filter(|name| !name.contains(['/', '\\']) && !name.starts_with('.'));
            let assets = name.map(|name| folder.join(name).join("assetlist.json"));
            found.extend(self.chain_files(place, entry, assets, dir));
        }
        Ok(found)
    }

    /// A chain and its asset list, if it is imported and valid.
    fn chain_files(
        &mut self,
        place: Place,
        mut json: Value,
        assets: Option<PathBuf>,
        dir: &Path,
    ) -> Option<ChainFiles> {
        let draft = self.chain(&place, &json)?;
        let assets = assets.filter(|path| path.is_file()).and_then(|path| self.read(dir, &path));
        let metadata = json["metadata"].take();
        let draft = of_initia(draft, &metadata);
        Some(ChainFiles { place: Place { key: draft.id.clone(), ..place }, draft, metadata, assets })
    }

    /// The optimistic bridge of a rollup, and the bridged coins that its operator lists.
    fn bridge(&mut self, chain: &ChainFiles, l1: &str) {
        let metadata = &chain.metadata;
        let id = text(&metadata["op_bridge_id"]).and_then(|id| id.parse::<u64>().ok());
        let Some(id) = id.filter(|id| *id > 0) else { return };
        let l2 = chain.draft.id.clone();
        let place = Place { key: format!("{l2} op_bridge_id"), ..chain.place.clone() };
        let part =
            BridgeDraft { l2: l2.clone(), id: Some(id), l1: Some(l1.to_owned()), ..BridgeDraft::default() };
        self.draft.bridge.push(Located { source: Source::Initia, place: place.clone(), part });
        for from in list(&metadata["op_denoms"]).iter().filter_map(text) {
            // The operator's list does not prove use (§1.1, 5): hidden, unless the asset list has it.
            let part = AssetDraft {
                chain: l2.clone(),
                denom: Some(denom::bridged(id, &from)),
                hidden: Some(true),
                bridged: Some(BridgedDraft { from }),
                ..AssetDraft::default()
            };
            self.draft.asset.push(Located { source: Source::Implied, place: place.clone(), part });
        }
    }

    /// Channels in the lists of chains. A list has one end of each channel, so a channel takes two lists.
    fn listed_channels(&mut self, chains: &[ChainFiles]) {
        let mut ends: BTreeMap<(String, String), Vec<(String, Place)>> = BTreeMap::new();
        for chain in chains {
            let here = &chain.draft.id;
            for entry in list(&chain.metadata["ibc_channels"]).iter().filter(|entry| is_transfer(entry)) {
                let (Some(there), Some(channel)) = (text(&entry["chain_id"]), text(&entry["channel_id"]))
                else {
                    continue;
                };
                let key = format!("{here} {channel} to {there}");
                let place = Place { key, ..chain.place.clone() };
                ends.entry((here.clone(), there)).or_default().push((channel, place));
            }
        }
        for ((here, there), mine) in &ends {
            let theirs = ends.get(&(there.clone(), here.clone())).map_or(&[][..], Vec::as_slice);
            match (&mine[..], theirs) {
                ([(channel, place)], [(other, _)]) if here < there => {
                    let other = Some(EndDraft::transfer(there, other));
                    self.listed(place, Source::Paired, EndDraft::transfer(here, channel), other);
                }
                ([_], [_]) => {}
                // With several channels, only traces show which ends belong together.
                _ => {
                    for (channel, place) in mine {
                        self.listed(place, Source::Initia, EndDraft::transfer(here, channel), None);
                    }
                }
            }
        }
    }

    fn listed(&mut self, place: &Place, source: Source, a: EndDraft, b: Option<EndDraft>) {
        let part = ChannelDraft { a, b, paused: None, seconds: None };
        self.draft.channel.push(Located { source, place: place.clone(), part });
    }
}

/// `ics20-1`, also within the JSON of a channel that pays relayers.
fn is_transfer(entry: &Value) -> bool {
    let version = entry["version"].as_str().unwrap_or_default();
    entry["port_id"] == TRANSFER_PORT && (version.is_empty() || version.contains("ics20"))
}

/// Chain members that only this registry has.
fn of_initia(mut draft: ChainDraft, metadata: &Value) -> ChainDraft {
    let l1 = metadata["is_l1"] == true;
    let vm = match metadata["minitia"]["type"].as_str() {
        _ if l1 => Vm::Move,
        Some("minimove") => Vm::Move,
        Some("miniwasm") => Vm::Wasm,
        Some("minievm") => Vm::Evm,
        _ => Vm::None,
    };
    draft.endpoints.executor = text(&metadata["executor_uri"]).map(|uri| vec![uri]);
    ChainDraft { l1: Some(l1), initia: Some(true), vm: Some(vm), ..draft }
}
