//! A* heuristic: lower bounds of the remaining cost, computed backwards from the target.
//!
//! # Invariants
//!
//! * A bound never exceeds the true cost (admissible); otherwise the search would miss the best path. Therefore a
//!   bridge with any migrated denomination counts as untrusted, and amounts, pauses and transactions are left out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use registry::AssetRef;

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
    /// Withdrawals and trusted steps; at least `far` for an asset that the backward search did not reach before the
    /// source.
    trust: Vec<Option<Trust>>,
    far: Trust,
}

/// Withdrawals, then all trusted steps.
pub(crate) type Trust = (u8, u8);

impl Heuristic {
    /// Computes the bounds; `None` if no path from `source` to `target` has at most [`MAX_HOPS`] hops.
    pub(crate) fn new(conditions: &Conditions<'_>, source: AssetRef, target: AssetRef) -> Option<Self> {
        let graph = conditions.graph;
        let components = graph.components().between(source.index(), target.index(), MAX_HOPS)?;
        let (hops, trust) = (vec![FAR; graph.nodes()], vec![None; graph.nodes()]);
        let mut heuristic = Self { components, hops, trust, far: (0, 0) };
        heuristic.count_hops(conditions, target);
        if heuristic.hops[source.index()] == FAR {
            return None;
        }
        heuristic.count_trust(conditions, source, target);
        Some(heuristic)
    }

    /// Whether a path can use the edge between two neighbours.
    pub(crate) fn allows(&self, conditions: &Conditions<'_>, from: AssetRef, to: AssetRef) -> bool {
        self.components.contains(&conditions.graph.components().of(from.index(), to.index()))
    }

    /// Lower bound of the hops to the target.
    pub(crate) fn hops(&self, asset: AssetRef) -> usize {
        usize::from(self.hops[asset.index()])
    }

    /// Lower bound of withdrawals and trusted steps to the target.
    pub(crate) fn trust(&self, asset: AssetRef) -> Trust {
        self.trust[asset.index()].unwrap_or(self.far)
    }

    fn count_hops(&mut self, conditions: &Conditions<'_>, target: AssetRef) {
        let mut layer = vec![target];
        self.hops[target.index()] = 0;
        for hops in (1u8..).take(MAX_HOPS) {
            let mut next = Vec::new();
            for to in layer {
                for (_, back) in conditions.graph.leaving(to) {
                    let from = back.to;
                    if self.hops[from.index()] == FAR && self.allows(conditions, from, to) {
                        self.hops[from.index()] = hops;
                        next.push(from);
                    }
                }
            }
            layer = next;
        }
    }

    fn count_trust(&mut self, conditions: &Conditions<'_>, source: AssetRef, target: AssetRef) {
        let mut open = BinaryHeap::from([Reverse(((0, 0), target))]);
        while let Some(Reverse((trust, to))) = open.pop() {
            if self.trust[to.index()].is_some() {
                continue;
            }
            self.trust[to.index()] = Some(trust);
            self.far = trust;
            if to == source {
                return;
            }
            for (_, back) in conditions.graph.leaving(to) {
                let from = back.to;
                // Unreachable assets need no bound.
                let reached = self.hops[from.index()] != FAR && self.allows(conditions, from, to);
                if reached && self.trust[from.index()].is_none() {
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
