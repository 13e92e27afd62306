//! The recorded chains, served by replay nodes, with the example registry.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::sync::{Arc, LazyLock};

use registry::{Endpoints, Registry};
use replay::{Addresses, Options, Recording, ReplayNode};
use serde_json::{Value, json};

use super::{Client, here};

/// An account with a balance of every kind on both recorded chains.
pub(crate) const USER: &str = "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
/// Another account.
pub(crate) const OTHER: &str = "init1sleg2k5c54fytsae3jdk9mrn27yw4qc4mgxkfg";
/// An account of the recorded EVM chains.
pub(crate) const HOLDER: &str = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";
/// INIT in its forms on the rollup.
pub(crate) const VOUCHER: &str = "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";
pub(crate) const BRIDGED: &str = "l2/771d639f30fbe45e3fbca954ffbe2fcc26f915f5513c67a4a2d0bc1d635bdefd";
pub(crate) const WRAPPED: &str = "evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2";
/// A token that LayerZero moves, on both chains.
pub(crate) const TOKEN_A: &str = "0xC3931Da4f49Bdae5F28F070B5b9f0e3af4486061";
pub(crate) const TOKEN_B: &str = "0x8E554e26bA3C2f3E6E20b5fd875D39059AAf2d4f";

/// The two chains that a bridge connects.
pub(crate) const L1: &str = "e2e-l1-1";
pub(crate) const L2: &str = "e2e-l2-1";

/// A route request for `amount` between two assets, each as (chain, denomination).
pub(crate) fn between(source: (&str, &str), dest: (&str, &str), amount: &str) -> Value {
    json!({
        "amount_in": amount,
        "source_asset_chain_id": source.0, "source_asset_denom": source.1,
        "dest_asset_chain_id": dest.0, "dest_asset_denom": dest.1,
    })
}

/// The four nodes.
pub(crate) struct Chains {
    pub(crate) l1: ReplayNode,
    pub(crate) l2: ReplayNode,
    pub(crate) a: ReplayNode,
    pub(crate) b: ReplayNode,
}

fn recording(name: &str) -> Arc<Recording> {
    Arc::new(Recording::open(&here("../../testing/recordings").join(name)).unwrap())
}

pub(crate) static PLAYED_L1: LazyLock<Arc<Recording>> = LazyLock::new(|| recording("l1-l2/l1"));
static PLAYED_L2: LazyLock<Arc<Recording>> = LazyLock::new(|| recording("l1-l2/l2"));
static PLAYED_A: LazyLock<Arc<Recording>> = LazyLock::new(|| recording("evm-oft/a"));
static PLAYED_B: LazyLock<Arc<Recording>> = LazyLock::new(|| recording("evm-oft/b"));

impl Chains {
    pub(crate) async fn start() -> Self {
        let play = async |recording: &LazyLock<Arc<Recording>>| {
            ReplayNode::start(Arc::clone(recording), Addresses::default(), Options::default()).await.unwrap()
        };
        Self {
            l1: play(&PLAYED_L1).await,
            l2: play(&PLAYED_L2).await,
            a: play(&PLAYED_A).await,
            b: play(&PLAYED_B).await,
        }
    }

    /// A registry with the addresses of these nodes.
    pub(crate) fn found(&self, registry: Registry) -> Registry {
        let cosmos = |node: &ReplayNode| Endpoints {
            rpc: vec![node.comet_url()],
            rest: vec![node.rest_url()],
            json_rpc: vec![node.json_rpc_url()],
            executor: node.executor_url().into_iter().collect(),
            ..Endpoints::default()
        };
        let evm =
            |node: &ReplayNode| Endpoints { json_rpc: vec![node.json_rpc_url()], ..Endpoints::default() };
        registry.with_endpoints(|id| match id {
            "e2e-l1-1" => Some(cosmos(&self.l1)),
            "e2e-l2-1" => Some(cosmos(&self.l2)),
            "31337" => Some(evm(&self.a)),
            "31338" => Some(evm(&self.b)),
            _ => None,
        })
    }

    pub(crate) fn registry(&self) -> Registry {
        self.found(example())
    }

    /// The example registry with parts of its text replaced; each part must occur.
    pub(crate) fn altered(&self, changes: &[(&str, &str)]) -> Registry {
        let mut texts = texts();
        for (old, new) in changes {
            let found = texts.iter_mut().filter(|(_, text)| text.contains(old));
            let changed = found.map(|(_, text)| *text = text.replace(old, new)).count();
            assert!(changed > 0, "`{old}` is in no file of the example");
        }
        let texts: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        self.found(registry::load_texts(&texts).unwrap())
    }

    pub(crate) fn client(&self) -> Client {
        Client::over(self.registry())
    }
}

pub(crate) fn example() -> Registry {
    registry::load(&here("../registry/example")).unwrap().registry
}

/// The files of the example registry.
pub(crate) fn texts() -> Vec<(String, String)> {
    let read = |name: &str| std::fs::read_to_string(here("../registry/example").join(name)).unwrap();
    ["chains.toml", "bridges.toml", "assets.toml"].map(|name| (name.to_owned(), read(name))).into()
}

/// The replies of a recorded node, by path.
pub(crate) fn answers(recording: &str) -> BTreeMap<String, Value> {
    let path = here("../../testing/recordings").join(recording).join("extra.ndjson.zst");
    let lines = zstd::Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut answers = BTreeMap::new();
    for line in BufReader::new(lines).lines() {
        let mut line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["kind"] == "rest" && line["status"] == 200 {
            answers.insert(line["path"].as_str().unwrap().to_owned(), line["answer"].take());
        }
    }
    answers
}
