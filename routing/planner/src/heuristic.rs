//! A* heuristic: lower bounds of the remaining cost, computed backwards from the target.
//!
//! # Invariants
//!
//! * A bound never exceeds the true cost (admissible); otherwise the search would miss the best path. Therefore a
//!   bridge with any migrated denomination counts as untrusted, and amounts, pauses and transactions are left out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use registry::AssetRef;
use rustc_hash::FxHashMap;

use crate::conditions::Conditions;
use crate::graph::EdgeKind;
use crate::plan::MAX_HOPS;

/// Hops from an asset that cannot reach the target.
const FAR: u8 = u8::MAX;

/// Lower bounds of one search.
pub(crate) struct Heuristic {
    /// Biconnected components that a path can use; a few.
    components: Vec<u32>,
    hops: Vec<u8>,
    /// By node, withdrawals and trusted steps; at least `far` for one that the backward search did not reach before the
    /// source.
    trust: FxHashMap<usize, Trust>,
    far: Trust,
}

/// Withdrawals, then all trusted steps.
pub(crate) type Trust = (u8, u8);

impl Heuristic {
    /// Computes the bounds; `None` if no path from `source` to `target` has at most [`MAX_HOPS`] hops.
    pub(crate) fn new(conditions: &Conditions<'_>, source: AssetRef, target: AssetRef) -> Option<Self> {
        let graph = conditions.graph;
        let (start, end) = (graph.listed(source), graph.listed(target));
        let components = graph.components().between(start.index(), end.index(), MAX_HOPS)?;
        let (hops, trust) = (vec![FAR; graph.nodes()], FxHashMap::default());
        let mut heuristic = Self { components, hops, trust, far: (0, 0) };
        heuristic.count_hops(conditions, target);
        if heuristic.hops(graph.node(source)) == usize::from(FAR) {
            return None;
        }
        heuristic.count_trust(conditions, source, target);
        Some(heuristic)
    }

    /// Whether a path can use the edge between two neighbours.
    pub(crate) fn allows(&self, conditions: &Conditions<'_>, from: AssetRef, to: AssetRef) -> bool {
        let graph = conditions.graph;
        // The edge of a derived voucher at an end of the request.
        let is_added = graph.listed(from) != from || graph.listed(to) != to;
        is_added || self.components.contains(&graph.components().of(from.index(), to.index()))
    }

    /// Lower bound of the hops from a node to the target.
    pub(crate) fn hops(&self, node: usize) -> usize {
        usize::from(self.hops[node])
    }

    /// Lower bound of withdrawals and trusted steps from a node to the target.
    pub(crate) fn trust(&self, node: usize) -> Trust {
        self.trust.get(&node).copied().unwrap_or(self.far)
    }

    fn count_hops(&mut self, conditions: &Conditions<'_>, target: AssetRef) {
        let mut layer = vec![target];
        let graph = conditions.graph;
        self.hops[graph.node(target)] = 0;
        for hops in (1u8..).take(MAX_HOPS) {
            let mut next = Vec::new();
            for to in layer {
                for (_, back) in graph.leaving(to) {
                    let from = graph.node(back.to);
                    if self.hops[from] == FAR && self.allows(conditions, back.to, to) {
                        self.hops[from] = hops;
                        next.push(back.to);
                    }
                }
            }
            layer = next;
        }
    }

    fn count_trust(&mut self, conditions: &Conditions<'_>, source: AssetRef, target: AssetRef) {
        let mut open = BinaryHeap::from([Reverse(((0, 0), target))]);
        while let Some(Reverse((trust, to))) = open.pop() {
            let node = conditions.graph.node(to);
            if self.trust.contains_key(&node) {
                continue;
            }
            self.trust.insert(node, trust);
            self.far = trust;
            if to == source {
                return;
            }
            for (_, back) in conditions.graph.leaving(to) {
                let from = back.to;
                // Unreachable assets need no bound.
                let node = conditions.graph.node(from);
                let reached = self.hops[node] != FAR && self.allows(conditions, from, to);
                if reached && !self.trust.contains_key(&node) {
                    let (withdrawals, trusted) = least(conditions, back.kind);
                    let next: Trust = (trust.0.saturating_add(withdrawals), trust.1.saturating_add(trusted));
                    open.push(Reverse((next, from)));
                }
            }
        }
    }
}

/// Lower bound of the cost of an edge's opposite.
fn least(conditions: &Conditions<'_>, back: EdgeKind) -> Trust {
    match back {
        EdgeKind::Ibc { .. } | EdgeKind::Wrap | EdgeKind::Unwrap => (0, 0),
        EdgeKind::Up(bridge) => (0, u8::from(!conditions.may_be_migrated(bridge))),
        EdgeKind::Down(bridge) => {
            let trusted = u8::from(!conditions.may_be_migrated(bridge));
            (trusted, trusted)
        }
        EdgeKind::LayerZero { .. } => (0, 1),
    }
}
