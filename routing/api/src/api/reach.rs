//! Reachability between assets, without amounts, prices and nodes.

use std::collections::HashSet;

use chain::U256;
use planner::{Request, plan};
use registry::{AssetRef, BridgeKind, Registry};

use crate::quotes::QuoteSet;
use crate::service::World;

/// A route's number of transactions and its bridges.
pub(super) struct Way {
    pub(super) txs: usize,
    pub(super) bridges: Vec<&'static str>,
}

/// The best route between two assets.
pub(super) fn way(world: &World, from: AssetRef, to: AssetRef, multi_tx: bool) -> Option<Way> {
    let registry = &*world.registry;
    let quotes = QuoteSet::empty(registry);
    let view = planner::World { registry, facts: &world.facts, quotes: &quotes };
    // One whole token; if that is below a minimum, a very large amount.
    let whole = U256::from(10).pow(U256::from(registry[from].decimals));
    let amounts = [whole, whole.saturating_mul(U256::from(1_000_000_000_000_u64))];
    let best = amounts.into_iter().find_map(|amount_in| {
        let request =
            Request { from, to, amount_in, op_withdraw: false, multi_tx, op_hook: true, bridges: None };
        plan(&world.graph, view, &request).ok()?.into_iter().next()
    })?;
    let mut bridges: Vec<&str> = Vec::new();
    for hop in &best.hops {
        if let Some(kind) = hop.step.bridge_kind().map(BridgeKind::id)
            && !bridges.contains(&kind)
        {
            bridges.push(kind);
        }
    }
    Some(Way { txs: best.txs(), bridges })
}

/// All forms of one token. A step only converts between forms, so the search is limited to them: a few hundred of many
/// thousands in a large registry.
pub(super) struct Forms<'a> {
    registry: &'a Registry,
    roots: HashSet<AssetRef>,
}

impl<'a> Forms<'a> {
    /// All descendants of the ancestors of `asset`, and of the assets that LayerZero connects to them.
    pub(super) fn of(registry: &'a Registry, asset: AssetRef) -> Self {
        let mut roots = HashSet::from([registry.root(asset)]);
        loop {
            let before = roots.len();
            for (_, oft) in registry.ofts() {
                let joined: Vec<_> = oft.legs.iter().map(|leg| registry.root(leg.asset)).collect();
                if joined.iter().any(|root| roots.contains(root)) {
                    roots.extend(joined);
                }
            }
            if roots.len() == before {
                return Self { registry, roots };
            }
        }
    }

    pub(super) fn has(&self, asset: AssetRef) -> bool {
        self.roots.contains(&self.registry.root(asset))
    }
}
