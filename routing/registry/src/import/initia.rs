//! Initia registry, as a checkout or as the built site.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chain::Vm;
use serde_json::Value;

use super::Imported;
use super::layout::{Json, Layout, list, text};
use super::names::Names;
use super::shape::Kind;
use super::words::{OF_ICS20, ROLLUP_TYPE, is_ics20};
use crate::denom::{self, TRANSFER_PORT};
use crate::draft::{
    AssetDraft, BridgeDraft, BridgedDraft, ChainDraft, ChannelDraft, EndDraft, Located, Source,
};
use crate::problem::{LoadError, Place};

/// The place of a chain, its entry, and the path of its asset list.
type Listed = (Place, Value, Option<PathBuf>);

/// A chain that is imported.
struct ChainFiles {
    place: Place,
    draft: ChainDraft,
    metadata: Value,
    assets: Option<Json>,
}

impl Imported<'_> {
    /// Reads an Initia registry in `root`; files are named relative to `dir`.
    pub(super) fn initia(&mut self, dir: &Path, root: &Path, layout: &Layout) -> Result<(), LoadError> {
        let found = match layout {
            Layout::Site(chains) => self.site(dir, root, chains)?,
            Layout::Chains(folders) | Layout::Network(folders) => self.network(dir, root, folders)?,
        };
        let (names, problems) = Names::from_chains(found.iter().map(|(place, value, _)| (value, place)));
        self.problems.extend(problems);
        let (mut chains, mut ids) = (Vec::new(), BTreeMap::new());
        for (place, value, assets) in found {
            chains.extend(self.chain_files(&mut ids, place, value, assets, dir, root));
        }
        let l1 = chains.iter().find(|chain| chain.draft.l1 == Some(true)).map(|chain| chain.draft.id.clone());
        self.listed_channels(&chains);
        for chain in chains {
            if let (Some(l1), false) = (&l1, chain.draft.l1 == Some(true)) {
                self.bridge(&chain, l1);
            }
            if let Some(assets) = &chain.assets {
                self.assets(assets, &chain.draft.id, Source::Initia, &names);
            }
            let ChainFiles { place, draft: part, .. } = chain;
            self.draft.chain.push(Located { source: Source::Initia, place, part });
        }
        Ok(())
    }

    /// The chains of a network of a checkout.
    fn network(&mut self, dir: &Path, root: &Path, folders: &[PathBuf]) -> Result<Vec<Listed>, LoadError> {
        let network = folders.first().and_then(|folder| folder.parent());
        let network = network.ok_or_else(|| LoadError::Empty(root.to_owned()))?;
        let mut found = Vec::new();
        for folder in self.folders(network, folders)? {
            if let Some(Json { file, value }) = self.read(dir, root, &folder.join("chain.json"), Kind::Chain)
            {
                found.push((Place::new(&file, "*"), value, Some(folder.join("assetlist.json"))));
            }
        }
        Ok(found)
    }

    /// The chains of a built site.
    fn site(&mut self, dir: &Path, root: &Path, chains: &Path) -> Result<Vec<Listed>, LoadError> {
        let json = self.read(dir, root, chains, Kind::Chains);
        let Some(Json { file, value: Value::Array(entries) }) = json else {
            let broken =
                self.problems.pop().unwrap_or_else(|| Place::about("chains.json").error("is not a list"));
            return Err(broken.into());
        };
        let folder = chains.with_file_name("chains");
        let mut found = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let name = text(&entry["chain_name"]);
            let place = Place::new(&file, name.clone().unwrap_or_else(|| format!("[{index}]")));
            // A name must not lead out of the folder.
            let name = name.filter(|name| !name.contains(['/', '\\']) && !name.starts_with('.'));
            found.push((place, entry, name.map(|name| folder.join(name).join("assetlist.json"))));
        }
        Ok(found)
    }

    /// A chain and its asset list, if it is imported and valid.
    fn chain_files(
        &mut self,
        ids: &mut BTreeMap<String, Place>,
        place: Place,
        mut json: Value,
        assets: Option<PathBuf>,
        dir: &Path,
        root: &Path,
    ) -> Option<ChainFiles> {
        let draft = self.chain(&place, &json)?;
        if !self.is_first(ids, &draft, &place) {
            if let Some(folder) = assets.as_deref().and_then(Path::parent) {
                self.files.forget(&folder.join("chain.json"));
            }
            return None;
        }
        let assets =
            assets.filter(|path| self.has(path)).and_then(|path| self.read(dir, root, &path, Kind::Assets));
        let metadata = json["metadata"].take();
        let draft = self.of_initia(draft, &metadata, &place);
        Some(ChainFiles { place: Place { key: draft.id.clone(), ..place }, draft, metadata, assets })
    }

    /// Chain members that only this registry has.
    fn of_initia(&mut self, mut draft: ChainDraft, metadata: &Value, place: &Place) -> ChainDraft {
        let l1 = metadata["is_l1"] == true;
        let rollup = self.words.meaning(&ROLLUP_TYPE, &metadata["minitia"]["type"], place);
        let vm = if l1 { Vm::Move } else { rollup.unwrap_or(Vm::None) };
        draft.endpoints.executor = text(&metadata["executor_uri"]).map(|uri| vec![uri]);
        // A chain that will stop soon is not to be offered.
        if metadata["deprecated"] == true {
            draft.hidden = Some(true);
        }
        ChainDraft { l1: Some(l1), initia: Some(true), vm: Some(vm), ..draft }
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
            // The operator's list does not prove use: hidden, unless the asset list has it.
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
            for entry in list(&chain.metadata["ibc_channels"]) {
                if !self.is_transfer(entry, &chain.place) {
                    continue;
                }
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

    /// Whether an entry is a channel of the transfer module.
    fn is_transfer(&mut self, entry: &Value, place: &Place) -> bool {
        if entry["port_id"] != TRANSFER_PORT {
            return false;
        }
        let version = entry["version"].as_str().filter(|version| !version.is_empty() && !is_ics20(version));
        if let Some(version) = version {
            self.words.add("ibc_channels.version", version, OF_ICS20, place);
        }
        true
    }

    fn listed(&mut self, place: &Place, source: Source, a: EndDraft, b: Option<EndDraft>) {
        let part = ChannelDraft { a, b, paused: None, seconds: None };
        self.draft.channel.push(Located { source, place: place.clone(), part });
    }
}
