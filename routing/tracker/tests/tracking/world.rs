//! The recorded L1 and its rollup as two replay nodes, their registry, and a tracker.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chain::{Timestamp, Vm};
use registry::{Bridge, Builder, Chain, ChainKind, ChainRef, Channel, End, Endpoints, Registry};
use replay::{Addresses, Recording, ReplayNode};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tracker::{Options, Tracker};

pub(crate) const L1: &str = "e2e-l1-1";
pub(crate) const L2: &str = "e2e-l2-1";

pub(crate) fn recording(name: &str) -> Arc<Recording> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings").join(name);
    Arc::new(Recording::open(&dir).unwrap())
}

pub(crate) static RECORDED_L1: LazyLock<Arc<Recording>> = LazyLock::new(|| recording("l1-l2/l1"));
pub(crate) static RECORDED_L2: LazyLock<Arc<Recording>> = LazyLock::new(|| recording("l1-l2/l2"));

/// A chain with only the members that tracking needs.
pub(crate) fn chain(id: &str, kind: ChainKind, vm: Vm, endpoints: Endpoints) -> Chain {
    let is_cosmos = kind == ChainKind::Cosmos;
    Chain {
        id: id.to_owned(),
        name: id.to_owned(),
        pretty_name: id.to_owned(),
        kind,
        vm,
        initia: is_cosmos,
        l1: vm == Vm::Move,
        bech32_prefix: if is_cosmos { "init".to_owned() } else { String::new() },
        testnet: true,
        hidden: false,
        forwards: is_cosmos,
        forwards_given: false,
        logo_uri: None,
        fee_assets: Vec::new(),
        endpoints,
        explorer_tx: Some(format!("https://scan.test/{id}/txs/${{txHash}}")),
        native: None,
        layer_zero_eid: None,
        layer_zero_endpoint: None,
        confirmations: 0,
        block_seconds: 1,
    }
}

/// The services of a node, which a test can leave out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Services {
    All,
    RestOnly,
}

pub(crate) fn endpoints(node: &ReplayNode, services: Services) -> Endpoints {
    let rpc = if services == Services::All { vec![node.comet_url()] } else { Vec::new() };
    Endpoints {
        rpc,
        rest: vec![node.rest_url()],
        json_rpc: vec![node.json_rpc_url()],
        executor: node.executor_url().into_iter().collect(),
        ..Endpoints::default()
    }
}

/// Sent in block 1032 of the L1, received in block 448 of the rollup.
pub(crate) const UNDER_WAY: &str = "FA6141DF0F9C991E2F388FA267B6ACB5D6DBC28040BE8C2B9694A40ABCFCA435";

fn registry(l1: &ReplayNode, l2: &ReplayNode, services: Services) -> Registry {
    chains(endpoints(l1, services), endpoints(l2, services)).finish("test".to_owned())
}

/// A node that plays a recording.
pub(crate) async fn play(recording: &Arc<Recording>, up_to: Option<u64>, faults: &[&str]) -> ReplayNode {
    let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    let options = replay::Options { up_to, faults, ..replay::Options::default() };
    ReplayNode::start(Arc::clone(recording), Addresses::default(), options).await.unwrap()
}

/// The two chains and their connections.
pub(crate) fn chains(l1: Endpoints, l2: Endpoints) -> Builder {
    let channels = [("transfer", "channel-0", "channel-0"), ("nft-transfer", "channel-1", "channel-1")];
    connected((L1, l1), (L2, l2), &channels)
}

/// An L1 and its rollup, with channels by port and both ends.
pub(crate) fn connected(
    l1: (&str, Endpoints),
    l2: (&str, Endpoints),
    channels: &[(&str, &str, &str)],
) -> Builder {
    let mut builder = Builder::new();
    // The L1 has no EVM.
    let l1 = (l1.0, Endpoints { json_rpc: Vec::new(), ..l1.1 });
    let first = builder.chain(chain(l1.0, ChainKind::Cosmos, Vm::Move, l1.1)).unwrap();
    let second = builder.chain(chain(l2.0, ChainKind::Cosmos, Vm::Evm, l2.1)).unwrap();
    for &(port, a, b) in channels {
        let end = |chain: ChainRef, channel: &str| End {
            chain,
            port: port.to_owned(),
            channel: channel.to_owned(),
        };
        let (a, b) = (end(first, a), end(second, b));
        builder.channel(Channel { a, b, paused: None, seconds: None }).unwrap();
    }
    let bridge = Bridge {
        id: 1,
        l1: first,
        l2: second,
        paused: None,
        deposit_seconds: None,
        finalization_seconds: 20,
        submission_seconds: 15,
        migrated: Vec::new(),
    };
    builder.bridge(bridge).unwrap();
    builder
}

/// Two nodes and a tracker that can be killed.
pub(crate) struct World {
    pub(crate) l1: ReplayNode,
    pub(crate) l2: ReplayNode,
    pub(crate) registry: watch::Receiver<Arc<Registry>>,
    registries: watch::Sender<Arc<Registry>>,
    dir: TempDir,
    tracker: Option<Tracker>,
}

impl World {
    /// All recorded heights are visible.
    pub(crate) async fn whole(services: Services) -> Self {
        Self::showing(None, services).await
    }

    /// Only the first height of both chains is visible.
    pub(crate) async fn at_the_beginning() -> Self {
        Self::showing(Some((RECORDED_L1.first(), RECORDED_L2.first())), Services::All).await
    }

    /// The heights up to these are visible.
    pub(crate) async fn showing(up_to: Option<(u64, u64)>, services: Services) -> Self {
        let l1 = play(&RECORDED_L1, up_to.map(|heights| heights.0), &[]).await;
        let l2 = play(&RECORDED_L2, up_to.map(|heights| heights.1), &[]).await;
        let (registries, registry) = watch::channel(Arc::new(registry(&l1, &l2, services)));
        let dir = TempDir::new().unwrap();
        let mut world = Self { l1, l2, registry, registries, dir, tracker: None };
        world.restart();
        world
    }

    /// [`UNDER_WAY`] is registered and sent, and the rollup does not show yet that it received it.
    pub(crate) async fn with_packet_under_way(start: Timestamp) -> Self {
        let world = Self::showing(Some((1_040, 447)), Services::All).await;
        world.tracker().track(L1, UNDER_WAY, start).unwrap();
        world.tracker().poll_due(start).await.unwrap();
        assert_eq!(world.status(L1, UNDER_WAY)["state"], "STATE_PENDING");
        world
    }

    /// The tracker uses this registry from now on.
    pub(crate) fn reload(&self, registry: Registry) {
        self.registries.send_replace(Arc::new(registry));
    }

    /// Both nodes play these faults from now on.
    pub(crate) fn play(&self, l1: &[&str], l2: &[&str]) {
        let faults = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        self.l1.set_faults(faults(l1));
        self.l2.set_faults(faults(l2));
    }

    pub(crate) fn node(&self, chain: &str) -> &ReplayNode {
        if chain == L1 { &self.l1 } else { &self.l2 }
    }

    pub(crate) fn tracker(&self) -> &Tracker {
        self.tracker.as_ref().unwrap()
    }

    /// Kills the tracker, if it runs, and opens its database again.
    pub(crate) fn restart(&mut self) {
        self.restart_with(Duration::from_mins(1));
    }

    /// The same, with another timeout of a query.
    pub(crate) fn restart_with(&mut self, question_timeout: Duration) {
        drop(self.tracker.take());
        let options = Options { question_timeout, ..Options::default() };
        self.tracker = Some(Tracker::open(self.dir.path(), self.registry.clone(), options).unwrap());
    }

    pub(crate) fn text(&self, chain: &str, hash: &str) -> String {
        String::from_utf8(self.tracker().status(chain, hash).unwrap().unwrap()).unwrap()
    }

    pub(crate) fn status(&self, chain: &str, hash: &str) -> Value {
        serde_json::from_str(&self.text(chain, hash)).unwrap()
    }

    /// Checks that neither node got an unrecorded request, except for the EVM's hash of a transaction: few were
    /// recorded, and no result depends on it.
    pub(crate) fn check_missing(&self) {
        for node in [&self.l1, &self.l2] {
            let missing = node.missing().questions;
            let mut missing =
                missing.iter().filter(|question| !question.contains("cosmos_txHashByCosmosTxHash"));
            assert_eq!(missing.next(), None);
        }
    }
}

/// A block of either chain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Block {
    pub(crate) time: Timestamp,
    pub(crate) chain: &'static str,
    pub(crate) height: u64,
}

/// The blocks of both chains in the order of their times.
pub(crate) fn blocks() -> Vec<Block> {
    let of = |chain: &'static str, recording: &Recording| {
        let heights = recording.first()..=recording.last();
        let times: Vec<_> = heights
            .map(|height| {
                let json: Value = serde_json::from_slice(&recording.height(height).unwrap().block).unwrap();
                let time = json["block"]["header"]["time"].as_str().unwrap();
                Block { time: Timestamp::parse(time).unwrap(), chain, height }
            })
            .collect();
        times
    };
    let mut all = of(L1, &RECORDED_L1);
    all.extend(of(L2, &RECORDED_L2));
    all.sort();
    all
}

/// Height of every transaction of the tables, by chain and hash.
pub(crate) type Heights = HashMap<(String, String), u64>;
