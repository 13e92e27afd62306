//! Directed graph of a registry's assets and their connections.
//!
//! Built once per registry and immutable. It has the assets of the lists; `request_graph` adds derived vouchers of one request.
//!
//! # Invariants
//!
//! * Each edge has an opposite edge, so paths can be followed backwards.
//! * Edges of a node are ordered by names, not by file positions.
//! * No edge uses a part of the registry that has an error.

use registry::{AssetRef, BridgeRef, ChannelRef, OftRef, Origin, Part, Registry};

use crate::biconnected::BiconnectedComponents;

/// Graph of a registry's assets.
#[derive(Debug)]
pub struct Graph {
    /// First edge of each asset; one more entry at the end.
    starts: Vec<u32>,
    edges: Vec<Edge>,
    /// Rank of each asset in the order of (chain id, denomination).
    ranks: Vec<u32>,
    components: BiconnectedComponents,
}

/// One direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: AssetRef,
    pub(crate) to: AssetRef,
    pub(crate) kind: EdgeKind,
}

/// How two assets are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeKind {
    /// Between a voucher and its parent, in either direction. `rollup` is set towards a voucher on a rollup of a coin
    /// of its L1: the bridge may convert it on arrival, if the denomination was migrated.
    Ibc { channel: ChannelRef, voucher: AssetRef, rollup: Option<BridgeRef> },
    /// From the L1 to the bridged coin.
    Down(BridgeRef),
    /// From the bridged coin to the L1.
    Up(BridgeRef),
    /// From the remote token of a wrapper's pair to the local one.
    Wrap,
    /// From the local token of a wrapper's pair to the remote one.
    Unwrap,
    /// Between two legs of a group.
    LayerZero { oft: OftRef, from: u32, to: u32 },
}

impl Graph {
    /// Builds the graph of a registry.
    pub fn new(registry: &Registry) -> Self {
        let mut found: Vec<Edge> = Vec::new();
        let sound = |part: Part| registry.error(part).is_none();
        for (asset, _) in registry.assets().filter(|(asset, _)| sound(Part::Asset(*asset))) {
            let edges = edges_to_parent(registry, asset).filter(|[up, _]| sound(Part::Asset(up.to)));
            found.extend(edges.into_iter().flatten());
        }
        for (oft, group) in registry.ofts().filter(|(oft, _)| sound(Part::Oft(*oft))) {
            for (from, to) in (0u32..).zip(&group.legs).flat_map(|leg| {
                (0u32..).zip(&group.legs).filter(move |other| other.0 != leg.0).map(move |other| (leg, other))
            }) {
                let kind = EdgeKind::LayerZero { oft, from: from.0, to: to.0 };
                if sound(Part::Asset(from.1.asset)) && sound(Part::Asset(to.1.asset)) {
                    found.push(Edge { from: from.1.asset, to: to.1.asset, kind });
                }
            }
        }
        let ranks = ranks(registry);
        found.sort_by_cached_key(|edge| {
            (edge.from, ranks[edge.to.index()], edge.kind.rank(), oft_name(registry, edge.kind))
        });
        let mut starts = vec![0u32; ranks.len() + 1];
        for edge in &found {
            starts[edge.from.index() + 1] += 1;
        }
        for node in 1..starts.len() {
            starts[node] += starts[node - 1];
        }
        let components = BiconnectedComponents::new(
            ranks.len(),
            |node| starts[node] as usize..starts[node + 1] as usize,
            |edge| found[edge].to.index(),
        );
        Self { starts, edges: found, ranks, components }
    }

    /// Number of assets.
    pub fn nodes(&self) -> usize {
        self.ranks.len()
    }

    /// Number of connections, each direction counted.
    pub fn edges(&self) -> usize {
        self.edges.len()
    }

    /// The edges that leave an asset, with their numbers.
    pub(crate) fn leaving(&self, asset: AssetRef) -> impl Iterator<Item = (u32, &Edge)> {
        let (start, end) = (self.starts[asset.index()], self.starts[asset.index() + 1]);
        (start..end).zip(&self.edges[start as usize..end as usize])
    }

    pub(crate) fn edge(&self, number: u32) -> &Edge {
        &self.edges[number as usize]
    }

    /// Rank of an edge among those of its asset, by names.
    pub(crate) fn rank(&self, edge: u32) -> (u32, u32) {
        let of = self.edge(edge);
        (self.ranks[of.to.index()], edge - self.starts[of.from.index()])
    }

    pub(crate) fn components(&self) -> &BiconnectedComponents {
        &self.components
    }
}

impl EdgeKind {
    fn rank(self) -> u8 {
        match self {
            Self::Ibc { .. } => 0,
            Self::Down(_) => 1,
            Self::Up(_) => 2,
            Self::Wrap => 3,
            Self::Unwrap => 4,
            Self::LayerZero { .. } => 5,
        }
    }
}

/// The edge to the parent and its opposite.
pub(crate) fn edges_to_parent(registry: &Registry, asset: AssetRef) -> Option<[Edge; 2]> {
    let (parent, up, down) = match registry[asset].origin {
        Origin::Native => return None,
        Origin::Ibc { channel, parent } => {
            let (l1, l2) = (registry[parent].chain, registry[asset].chain);
            let rollup = registry.bridge_to(l2).filter(|bridge| registry[*bridge].l1 == l1);
            let ibc = |rollup| EdgeKind::Ibc { channel, voucher: asset, rollup };
            (parent, ibc(None), ibc(rollup))
        }
        Origin::Bridged { bridge, .. } if registry.error(Part::Bridge(bridge)).is_some() => return None,
        Origin::Bridged { bridge, parent } => (parent, EdgeKind::Up(bridge), EdgeKind::Down(bridge)),
        Origin::Wrapped { parent, .. } => {
            let made_local = registry.wrapper_pair(asset)?.local == asset;
            let (up, down) = if made_local {
                (EdgeKind::Unwrap, EdgeKind::Wrap)
            } else {
                (EdgeKind::Wrap, EdgeKind::Unwrap)
            };
            (parent, up, down)
        }
    };
    Some([Edge { from: asset, to: parent, kind: up }, Edge { from: parent, to: asset, kind: down }])
}

fn ranks(registry: &Registry) -> Vec<u32> {
    let mut names: Vec<_> = registry
        .assets()
        .map(|(asset, about)| ((registry[about.chain].id.as_str(), about.denom.as_str()), asset))
        .collect();
    names.sort_unstable();
    let mut ranks = vec![0; names.len()];
    for (rank, (_, asset)) in (0u32..).zip(names) {
        ranks[asset.index()] = rank;
    }
    ranks
}

/// Sort key for OFT groups that connect the same two assets.
fn oft_name(registry: &Registry, kind: EdgeKind) -> Option<(String, String)> {
    let EdgeKind::LayerZero { oft, from, .. } = kind else { return None };
    let group = &registry[oft];
    Some((group.symbol.clone(), group.legs[from as usize].contract.clone()))
}
