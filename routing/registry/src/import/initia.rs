//! Initia registry, as a checkout or as the built site.

use std::collections::BTreeMap;
use std::path::Path;

use chain::Vm;
use serde_json::Value;

use super::layout::{Json, Layout, list, text};
use super::{Imported, chains};
use crate::denom;
use crate::draft::{
    AssetDraft, BridgeDraft, ChainDraft, ChannelDraft, EndDraft, Located, OriginDraft, Source,
};
use crate::native_format::TRANSFER;
use crate::problem::{LoadError, Place};

/// A chain of it that is taken.
struct Taken {
    place: Place,
    draft: ChainDraft,
    metadata: Value,
    assets: Option<Json>,
}

impl Imported {
    /// Reads an Initia registry; files are named relative to `dir`.
    pub(super) fn initia(&mut self, dir: &Path, layout: &Layout) -> Result<(), LoadError> {
        let taken = match layout {
            Layout::Site(chains) => self.site(dir, chains)?,
            Layout::Chains(folders) | Layout::Network(folders) => folders
                .iter()
                .filter_map(|folder| {
                    let json = self.read(dir, &folder.join("chain.json"))?;
                    let place = Place::new(&json.file, "*");
                    self.take(place, json.value, || Some(folder.join("assetlist.json")), dir)
                })
                .collect(),
        };
        for chain in &taken {
            let name = chain.draft.name.clone().unwrap_or_else(|| chain.draft.id.clone());
            self.names.insert(name, chain.draft.id.clone());
        }
        let l1 = taken.iter().find(|chain| chain.draft.l1 == Some(true)).map(|chain| chain.draft.id.clone());
        self.listed_channels(&taken);
        for chain in taken {
            if let (Some(l1), false) = (&l1, chain.draft.l1 == Some(true)) {
                self.bridge(&chain, l1);
            }
            if let Some(assets) = &chain.assets {
                self.assets(assets, &chain.draft.id, Source::Initia);
            }
            let Taken { place, draft: part, .. } = chain;
            self.draft.chains.push(Located { source: Source::Initia, place, part });
        }
        Ok(())
    }

    /// The chains of a built site.
    fn site(&mut self, dir: &Path, chains: &Path) -> Result<Vec<Taken>, LoadError> {
        let read = |(place, what): (Place, String)| LoadError::from(place.error(what));
        let json = Json::read(dir, chains).map_err(read)?;
        let Value::Array(entries) = json.value else {
            return Err(Place::new(&json.file, "*").error("must be an array of chains").into());
        };
        let folder = chains.with_file_name("chains");
        let mut taken = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let name = text(&entry["chain_name"]);
            let place = Place::new(&json.file, name.clone().unwrap_or_else(|| format!("[{index}]")));
            // A name is one folder, wherever it comes from.
            let name = name.filter(|name| !name.contains(['/', '\\']) && !name.starts_with('.'));
            let assets = || name.map(|name| folder.join(name).join("assetlist.json"));
            taken.extend(self.take(place, entry, assets, dir));
        }
        Ok(taken)
    }

    fn read(&mut self, dir: &Path, path: &Path) -> Option<Json> {
        Json::read(dir, path).map_err(|(place, what)| self.left_out(&place, what)).ok()
    }

    /// A chain and its assets, if it is wanted and makes sense.
    fn take(
        &mut self,
        place: Place,
        mut json: Value,
        assets: impl FnOnce() -> Option<std::path::PathBuf>,
        dir: &Path,
    ) -> Option<Taken> {
        let draft = match chains::chain(&json) {
            Ok(draft) => draft?,
            Err(what) => {
                self.left_out(&place, what);
                return None;
            }
        };
        if !self.takes(&draft.id, draft.name.as_deref().unwrap_or_default()) {
            return None;
        }
        let assets = assets().filter(|path| path.is_file()).and_then(|path| self.read(dir, &path));
        let metadata = json["metadata"].take();
        let draft = of_initia(draft, &metadata);
        Some(Taken { place: Place { key: draft.id.clone(), ..place }, draft, metadata, assets })
    }

    /// The optimistic bridge of a rollup, and what its operator says is bridged.
    fn bridge(&mut self, chain: &Taken, l1: &str) {
        let metadata = &chain.metadata;
        let id = text(&metadata["op_bridge_id"]).and_then(|id| id.parse::<u64>().ok());
        let Some(id) = id.filter(|id| *id > 0) else { return };
        let l2 = chain.draft.id.clone();
        let place = Place { key: format!("{l2} op_bridge_id"), ..chain.place.clone() };
        let part =
            BridgeDraft { l2: l2.clone(), id: Some(id), l1: Some(l1.to_owned()), ..BridgeDraft::default() };
        self.draft.bridges.push(Located { source: Source::Initia, place: place.clone(), part });
        for from in list(&metadata["op_denoms"]).iter().filter_map(text) {
            // Not proof of what people hold there (§1.1, 5): hidden, unless the asset list has it.
            let part = AssetDraft {
                chain: l2.clone(),
                denom: Some(denom::bridged(id, &from)),
                hidden: Some(true),
                origin: Some(OriginDraft::Bridged { from }),
                ..AssetDraft::default()
            };
            self.draft.assets.push(Located { source: Source::Implied, place: place.clone(), part });
        }
    }

    /// Channels that chains list: each knows its own end only, so two lists make one.
    fn listed_channels(&mut self, taken: &[Taken]) {
        let mut ends: BTreeMap<(String, String), Vec<(String, Place)>> = BTreeMap::new();
        for chain in taken {
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
                    self.listed(place, Source::Paired, end(here, channel), Some(end(there, other)));
                }
                ([_], [_]) => {}
                // Which belongs to which only traces tell.
                _ => {
                    for (channel, place) in mine {
                        self.listed(place, Source::Initia, end(here, channel), None);
                    }
                }
            }
        }
    }

    fn listed(&mut self, place: &Place, source: Source, a: EndDraft, b: Option<EndDraft>) {
        let part = ChannelDraft { a, b, paused: None, seconds: None };
        self.draft.channels.push(Located { source, place: place.clone(), part });
    }
}

fn end(chain: &str, channel: &str) -> EndDraft {
    EndDraft { chain: chain.to_owned(), port: TRANSFER.to_owned(), channel: channel.to_owned() }
}

/// `ics20-1`, or that within the JSON of a channel that pays relayers.
fn is_transfer(entry: &Value) -> bool {
    let version = entry["version"].as_str().unwrap_or_default();
    entry["port_id"] == TRANSFER && (version.is_empty() || version.contains("ics20"))
}

/// Members that only this registry has for a chain.
fn of_initia(draft: ChainDraft, metadata: &Value) -> ChainDraft {
    let l1 = metadata["is_l1"] == true;
    let vm = match metadata["minitia"]["type"].as_str() {
        _ if l1 => Vm::Move,
        Some("minimove") => Vm::Move,
        Some("miniwasm") => Vm::Wasm,
        Some("minievm") => Vm::Evm,
        _ => Vm::None,
    };
    ChainDraft {
        l1: Some(l1),
        initia: Some(true),
        vm: Some(vm),
        executor: text(&metadata["executor_uri"]).map(|uri| vec![uri]),
        ..draft
    }
}
