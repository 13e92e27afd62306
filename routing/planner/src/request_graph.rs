//! Graph of one request: that of the lists, and derived vouchers at the ends of the request.
//!
//! A voucher that no list has is a leaf, connected with its parent alone. So it can only be an end of a path, and the
//! graph of the lists needs no node for it.

use registry::{AssetRef, Registry};

use crate::biconnected::BiconnectedComponents;
use crate::graph::{Edge, Graph, edges_to_parent};
use crate::plan::MAX_HOPS;

/// Graph of one request.
#[derive(Clone, Copy)]
pub(crate) struct RequestGraph<'a> {
    lists: &'a Graph,
    /// The edge to the parent and its opposite, for each end that is a derived voucher.
    added: [Option<[Edge; 2]>; 2],
}

impl<'a> RequestGraph<'a> {
    pub(crate) fn new(lists: &'a Graph, registry: &Registry, ends: [AssetRef; 2]) -> Self {
        let edges = |end: AssetRef| edges_to_parent(registry, end).filter(|_| registry.is_derived(end));
        Self { lists, added: ends.map(edges) }
    }

    /// Number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.lists.nodes() + self.added.len()
    }

    /// The number of an asset's node.
    pub(crate) fn node(&self, asset: AssetRef) -> usize {
        let is_added = |edges: &Option<[Edge; 2]>| edges.is_some_and(|[up, _]| up.from == asset);
        let added = self.added.iter().position(is_added);
        added.map_or(asset.index(), |position| self.lists.nodes() + position)
    }

    /// The nearest asset that is in the lists.
    pub(crate) fn listed(&self, asset: AssetRef) -> AssetRef {
        let up = self.added.iter().flatten().map(|[up, _]| up).find(|up| up.from == asset);
        up.map_or(asset, |up| up.to)
    }

    /// Whether hops without a swap may lead from one end of the request to the other.
    pub(crate) fn connects(&self, from: AssetRef, to: AssetRef) -> bool {
        let (from, to) = (self.listed(from).index(), self.listed(to).index());
        self.lists.components().between(from, to, MAX_HOPS).is_some()
    }

    /// A number that is the same for all connected assets.
    pub(crate) fn root(&self, asset: AssetRef) -> u32 {
        self.lists.components().root(self.listed(asset).index())
    }

    /// The edges that leave an asset, with their numbers.
    pub(crate) fn leaving(&self, asset: AssetRef) -> impl Iterator<Item = (u32, Edge)> + use<'a> {
        let added = self.added_edges().filter(move |(_, edge)| edge.from == asset);
        let listed = (asset.index() < self.lists.nodes()).then(|| self.lists.leaving(asset));
        listed.into_iter().flatten().map(|(number, edge)| (number, *edge)).chain(added)
    }

    pub(crate) fn edge(&self, number: u32) -> Edge {
        let added = self.added_edges().find(|(added, _)| *added == number);
        added.map_or_else(|| *self.lists.edge(number), |(_, edge)| edge)
    }

    /// Rank of an edge among those of its asset, by names; an added one is the last.
    pub(crate) fn rank(&self, edge: u32) -> (u32, u32) {
        let is_added = self.added_edges().any(|(added, _)| added == edge);
        if is_added { (u32::MAX, edge) } else { self.lists.rank(edge) }
    }

    pub(crate) fn components(&self) -> &'a BiconnectedComponents {
        self.lists.components()
    }

    /// The added edges, numbered down from the largest number.
    fn added_edges(&self) -> impl Iterator<Item = (u32, Edge)> + use<> {
        let numbered = |[up, down]: [Edge; 2], last: u32| [(last, up), (last - 1, down)];
        let [one, other] = self.added;
        let (one, other) =
            (one.map(|edges| numbered(edges, u32::MAX)), other.map(|edges| numbered(edges, u32::MAX - 2)));
        one.into_iter().chain(other).flatten()
    }
}
