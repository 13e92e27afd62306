//! The files of the public registries, read on their own and leniently: only what the checks need.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A token: chain id and denomination.
pub(super) type Token = (String, String);

/// One end of a channel: port and name.
pub(super) type End = (String, String);

/// What the files state.
#[derive(Default)]
pub(super) struct Lists {
    /// Symbol and decimals.
    pub(super) assets: BTreeMap<Token, (String, u64)>,
    /// Full paths of vouchers whose hash is their denomination.
    pub(super) paths: BTreeMap<Token, String>,
    /// Last steps of assets over channels of the transfer module.
    pub(super) steps: Vec<Step>,
    /// The same over channels of contracts.
    pub(super) contract_steps: Vec<Step>,
    /// First fee coins over open channels: the coin, the sending end, and the voucher.
    pub(super) gas_coins: Vec<(Token, End, Token)>,
}

/// The step from an asset to its parent.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) asset: Token,
    pub(super) end: End,
    pub(super) parent: Token,
    pub(super) parent_end: End,
    /// Whether the path that the files state begins with this end, continues with the parent's path, and has the hash in the
    /// denomination. Otherwise the files contradict themselves.
    pub(super) is_sound: bool,
}

impl Lists {
    pub(super) fn read(initia: &Path, cosmos: &Path) -> Self {
        let (mut chains, mut lists) = (BTreeMap::new(), Vec::new());
        // A name means a chain of its own registry.
        let mut names = [BTreeMap::new(), BTreeMap::new()];
        let of = |registry: usize, root| folders(root).into_iter().map(move |folder| (registry, folder));
        for (registry, folder) in of(0, initia).chain(of(1, cosmos)) {
            let Some(chain) = json(&folder.join("chain.json")) else { continue };
            let live = chain["status"] != "killed"
                && chain["chain_type"].as_str().is_none_or(|kind| kind == "cosmos");
            if let (true, Some(id)) = (live, text(&chain["chain_id"])) {
                let name = text(&chain["chain_name"]).unwrap_or_default();
                names[registry].entry(name).or_insert_with(|| id.clone());
                lists.push((registry, id.clone(), json(&folder.join("assetlist.json")).unwrap_or_default()));
                chains.entry(id).or_insert(chain);
            }
        }
        let mut found = Self::default();
        for (registry, chain, list) in &lists {
            for asset in list["assets"].as_array().into_iter().flatten() {
                found.asset(chain, asset, &names[*registry]);
            }
        }
        for step in found.steps.iter_mut().chain(&mut found.contract_steps) {
            let rest = found
                .paths
                .get(&step.asset)
                .and_then(|path| path.strip_prefix(&format!("{}/{}/", step.end.0, step.end.1)));
            let parent = found.paths.get(&step.parent).unwrap_or(&step.parent.1);
            // Kujira writes `factory:` in packets.
            step.is_sound = rest.is_some_and(|rest| rest == parent || rest.replace(':', "/") == *parent);
        }
        for pair in files(&cosmos.join("_IBC")) {
            let Some(pair) = json(&pair) else { continue };
            let id = |key: &str| names[1].get(pair[key]["chain_name"].as_str()?);
            let (Some(one), Some(two)) = (id("chain_1"), id("chain_2")) else { continue };
            for channel in pair["channels"].as_array().into_iter().flatten() {
                let open = channel["tags"]["status"].as_str().is_none_or(|status| status == "ACTIVE");
                let ends = (pair_end(&channel["chain_1"]), pair_end(&channel["chain_2"]));
                if let (true, Some(a), Some(b)) = (open && one != two, ends.0, ends.1) {
                    found.gas_coin(&chains, (one, &a), (two, &b));
                    found.gas_coin(&chains, (two, &b), (one, &a));
                }
            }
        }
        found
    }

    fn asset(&mut self, chain: &str, asset: &Value, ids: &BTreeMap<String, String>) {
        let Some(denom) = text(&asset["base"]) else { return };
        let token = (chain.to_owned(), denom);
        if self.assets.contains_key(&token) {
            return;
        }
        let symbol = text(&asset["symbol"]).unwrap_or_default();
        self.assets.insert(token.clone(), (symbol, exponent(asset).unwrap_or(u64::MAX)));
        let Some(step) = asset["traces"].as_array().and_then(|traces| traces.last()) else { return };
        let (here, there) = (&step["chain"], &step["counterparty"]);
        if let Some(path) = text(&here["path"]).filter(|path| hashed(path) == token.1) {
            self.paths.insert(token.clone(), path);
        }
        let by_name = || ids.get(there["chain_name"].as_str()?).cloned();
        let parent = text(&there["chain_id"]).or_else(by_name).zip(text(&there["base_denom"]));
        let (Some(end), Some(parent_end), Some(parent)) = (trace_end(here), trace_end(there), parent) else {
            return;
        };
        let step_of = Step { asset: token, end, parent, parent_end, is_sound: false };
        match step["type"].as_str() {
            Some("ibc") => self.steps.push(step_of),
            Some("ibc-cw20") => self.contract_steps.push(step_of),
            _ => {}
        }
    }

    fn gas_coin(&mut self, chains: &BTreeMap<String, Value>, from: (&String, &End), to: (&String, &End)) {
        let Some(denom) = text(&chains[from.0]["fees"]["fee_tokens"][0]["denom"]) else { return };
        let coin = (from.0.clone(), denom);
        let path = if coin.1.starts_with("ibc/") { self.paths.get(&coin) } else { Some(&coin.1) };
        let (Some(path), true) = (path, self.assets.contains_key(&coin)) else { return };
        let arrived = match path.strip_prefix(&format!("{}/{}/", from.1.0, from.1.1)) {
            Some(home) => home.to_owned(),
            None => format!("{}/{}/{path}", to.1.0, to.1.1),
        };
        let is_voucher = arrived.split('/').nth(1).is_some_and(|channel| channel.starts_with("channel-"));
        let denom = if is_voucher { hashed(&arrived) } else { arrived };
        self.gas_coins.push((coin, from.1.clone(), (to.0.clone(), denom)));
    }
}

pub(super) fn hashed(path: &str) -> String {
    format!("ibc/{}", alloy::hex::encode_upper(Sha256::digest(path.as_bytes())))
}

fn exponent(asset: &Value) -> Option<u64> {
    let units = asset["denom_units"].as_array()?;
    let named = |unit: &&Value| {
        let aliases = unit["aliases"].as_array().into_iter().flatten();
        std::iter::once(&unit["denom"]).chain(aliases).any(|name| *name == asset["display"])
    };
    units.iter().rfind(named)?["exponent"].as_u64()
}

fn trace_end(json: &Value) -> Option<End> {
    Some((text(&json["port"]).unwrap_or_else(|| "transfer".to_owned()), text(&json["channel_id"])?))
}

fn pair_end(json: &Value) -> Option<End> {
    let channel = text(&json["channel_id"]).filter(|channel| channel != "*")?;
    (json["port_id"] == "transfer").then(|| ("transfer".to_owned(), channel))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Folders of chains.
fn folders(root: &Path) -> Vec<std::path::PathBuf> {
    let is_chain = |path: &std::path::PathBuf| !path.file_name().unwrap().to_string_lossy().starts_with('_');
    files(root).into_iter().filter(|path| path.is_dir() && is_chain(path)).collect()
}
