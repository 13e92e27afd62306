//! Multi-criteria label-setting search (A*) for the best paths.
//!
//! A label is a path from the source to an asset; labels are expanded in order of cost. Paths differ in several
//! criteria (amount, open transaction, visited assets), so an asset keeps every label that no other label dominates.
//!
//! # Invariants
//!
//! * The first path is the best one under [`Cost`].
//! * A detour is left out: a path for which a better path visits only a subset of its assets.
//! * The result depends on names, not on the order of files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use chain::U256;
use registry::AssetRef;
use rustc_hash::FxHashMap;

use crate::chaining::{Joining, TxTail};
use crate::conditions::{Conditions, EdgeState, Relax};
use crate::graph::EdgeKind;
use crate::heuristic::{Heuristic, Trust};
use crate::plan::{MAX_HOPS, Request, Step};

/// Maximum number of paths: the best one and alternatives.
pub(crate) const MAX_PLANS: usize = 3;
/// Maximum number of labels of one search, which then returns the paths found so far. Registries of 200 chains need a
/// few hundred.
const MAX_LABELS: usize = 20_000;
/// Maximum number of labels expanded for alternatives after the best path is known.
const MAX_EXTRA: usize = 300;

/// One hop of a found path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathEdge {
    pub(crate) edge: u32,
    pub(crate) tx: u8,
}

/// A path from the source to an asset.
#[derive(Debug, Clone, Copy)]
struct Label {
    asset: AssetRef,
    /// Last edge and preceding label; the source has none.
    last: Option<(u32, u32)>,
    /// The next label of the same asset.
    sibling: Option<u32>,
    tail: TxTail,
    cost: Cost,
}

/// Cost of a path, compared lexicographically; smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    trust: Trust,
    hook: bool,
    txs: u8,
    amount: Reverse<U256>,
    seconds: u64,
    hops: u8,
}

/// The components of a cost that never decrease.
type Key = (Trust, bool, u8);

impl Cost {
    fn key(&self) -> Key {
        (self.trust, self.hook, self.txs)
    }

    /// Whether a path of this cost is better than one of cost `other` for every common continuation.
    fn beats(&self, other: &Self) -> bool {
        if self.trust != other.trust {
            return self.trust < other.trust;
        }
        // A later hop may need a hook, which both paths would need.
        let rest = |cost: &Self| (cost.txs, cost.seconds, cost.hops);
        self.hook <= other.hook && self.amount == other.amount && rest(self) < rest(other)
    }
}

/// Paths from `request.from` to `request.to`, best first, at most [`MAX_PLANS`].
pub(crate) fn search(conditions: &mut Conditions<'_>, request: &Request, relax: Relax) -> Vec<Vec<PathEdge>> {
    let Some(heuristic) = Heuristic::new(conditions, request.from, request.to) else { return Vec::new() };
    let mut search = Search {
        conditions,
        request,
        relax,
        heuristic,
        labels: Vec::with_capacity(32),
        of_node: FxHashMap::default(),
        open: BinaryHeap::with_capacity(32),
        arrived: Vec::new(),
    };
    search.run();
    search.best().into_iter().map(|label| search.path(label)).collect()
}

struct Search<'s, 'a> {
    conditions: &'s mut Conditions<'a>,
    request: &'s Request,
    relax: Relax,
    heuristic: Heuristic,
    labels: Vec<Label>,
    /// The newest label of each node that has one: a few of the thousands of a registry.
    of_node: FxHashMap<usize, u32>,
    /// Priority queue by lower bound of the cost, then hops, then age.
    open: BinaryHeap<Reverse<(Key, usize, u32)>>,
    arrived: Vec<u32>,
}

impl Search<'_, '_> {
    fn run(&mut self) {
        let cost = Cost {
            trust: (0, 0),
            hook: false,
            txs: 0,
            amount: Reverse(self.request.amount_in),
            seconds: 0,
            hops: 0,
        };
        self.labels.push(Label {
            asset: self.request.from,
            last: None,
            sibling: None,
            tail: TxTail::Start,
            cost,
        });
        self.open.push(Reverse((cost.key(), 0, 0)));
        // Keys of the best path and of the worst one still needed.
        let (mut first, mut last): (Option<Key>, Option<Key>) = (None, None);
        let (mut known, mut extra) = (0, 0);
        while let Some(Reverse((key, _, label))) = self.open.pop() {
            if known < self.arrived.len() {
                known = self.arrived.len();
                let best = self.best();
                first = best.first().map(|label| self.labels[*label as usize].cost.key());
                last = best.get(MAX_PLANS - 1).map(|label| self.labels[*label as usize].cost.key());
            }
            extra += usize::from(first.is_some_and(|first| key > first));
            let enough = last.is_some_and(|last| key > last);
            // A path with more withdrawals than the best one is never returned.
            let worse = first.is_some_and(|first| key.0.0 > first.0.0);
            if enough || worse || extra > MAX_EXTRA || self.labels.len() > MAX_LABELS {
                break;
            }
            self.expand(label);
        }
    }

    fn expand(&mut self, number: u32) {
        let label = self.labels[number as usize];
        let graph = self.conditions.graph;
        for (edge, about) in graph.leaving(label.asset) {
            let left = MAX_HOPS - usize::from(label.cost.hops);
            // Prunes assets whose lower bound exceeds the remaining hops.
            if self.heuristic.hops(graph.node(about.to)) >= left
                || !self.heuristic.allows(self.conditions, about.from, about.to)
                || self.request.op_withdraw && !allowed_in_withdrawal(label.tail, about.kind)
                || self.visits(number, about.to)
            {
                continue;
            }
            let Some(state) = self.conditions.state(edge) else { continue };
            let traversed = self.conditions.traverse(&state, label.cost.amount.0, self.relax);
            let amount = match traversed {
                Ok((_, amount)) => amount,
                Err(rejection) => {
                    self.conditions.met(Relax::Rejection(rejection));
                    continue;
                }
            };
            for (hook, new) in joinings(&label, &state) {
                self.add(number, (edge, about.to), &state, amount, (hook, new));
            }
        }
    }

    fn add(
        &mut self,
        before: u32,
        (edge, to): (u32, AssetRef),
        state: &EdgeState<'_>,
        amount: U256,
        (hook, new): (bool, bool),
    ) {
        let label = self.labels[before as usize];
        let (withdrawals, trusted) = trust(state.step);
        let cost = Cost {
            trust: (label.cost.trust.0 + withdrawals, label.cost.trust.1 + trusted),
            hook: label.cost.hook || hook,
            txs: label.cost.txs + u8::from(new),
            amount: Reverse(amount),
            seconds: label.cost.seconds.saturating_add(state.seconds),
            hops: label.cost.hops + 1,
        };
        let needs_hook = cost.hook && !self.request.op_hook && !self.relax.ignores(Relax::Hook);
        let needs_txs = cost.txs > 1 && !self.request.multi_tx && !self.relax.ignores(Relax::Txs);
        if needs_hook {
            self.conditions.met(Relax::Hook);
        }
        if needs_txs {
            self.conditions.met(Relax::Txs);
        }
        let node = self.conditions.graph.node(to);
        let sibling = self.of_node.get(&node).copied();
        let next = Label { asset: to, last: Some((edge, before)), sibling, tail: state.tail, cost };
        if needs_hook || needs_txs || self.is_dominated(&next) {
            return;
        }
        // There are fewer labels than `MAX_LABELS` and the edges of one asset.
        let Ok(number) = u32::try_from(self.labels.len()) else { return };
        self.labels.push(next);
        self.of_node.insert(node, number);
        if to == self.request.to {
            self.arrived.push(number);
            return;
        }
        let to_come = self.heuristic.trust(node);
        let least = (cost.trust.0.saturating_add(to_come.0), cost.trust.1.saturating_add(to_come.1));
        let hops = usize::from(cost.hops) + self.heuristic.hops(node);
        self.open.push(Reverse(((least, cost.hook, cost.txs), hops, number)));
    }

    /// Whether another label of the asset is better and has every continuation of this one: the same open transaction
    /// and amount, and a proper subset of its assets.
    fn is_dominated(&self, label: &Label) -> bool {
        let mut other = label.sibling;
        while let Some(number) = other {
            let candidate = &self.labels[number as usize];
            let alike = candidate.tail == label.tail && candidate.cost.amount == label.cost.amount;
            if alike
                && candidate.cost.hops < label.cost.hops
                && candidate.cost.beats(&label.cost)
                && self.assets(candidate).all(|asset| self.assets(label).any(|mine| mine == asset))
            {
                return true;
            }
            other = candidate.sibling;
        }
        false
    }

    fn visits(&self, label: u32, asset: AssetRef) -> bool {
        self.assets(&self.labels[label as usize]).any(|visited| visited == asset)
    }

    /// Assets of a path, last first.
    fn assets<'b>(&'b self, label: &'b Label) -> impl Iterator<Item = AssetRef> + 'b {
        std::iter::successors(Some(label), |label| {
            label.last.map(|(_, before)| &self.labels[before as usize])
        })
        .map(|label| label.asset)
    }

    /// Completed paths without detours, best first, at most [`MAX_PLANS`].
    fn best(&self) -> Vec<u32> {
        let graph = self.conditions.graph;
        let mut arrived: Vec<_> = self
            .arrived
            .iter()
            .map(|number| {
                let path = self.path(*number);
                let names: Vec<_> = path.iter().map(|hop| graph.rank(hop.edge)).collect();
                (self.labels[*number as usize].cost, names, *number)
            })
            .collect();
        arrived.sort_unstable();
        let mut best: Vec<(u32, Vec<(u32, u32)>)> = Vec::new();
        let withdrawals = arrived.first().map(|(cost, ..)| cost.trust.0);
        let mut better: Vec<u32> = Vec::new();
        for (cost, names, number) in arrived {
            let label = &self.labels[number as usize];
            let detour = better.iter().any(|other| {
                let other = &self.labels[*other as usize];
                other.cost.hops < cost.hops
                    && self.assets(other).all(|asset| self.assets(label).any(|mine| mine == asset))
            });
            better.push(number);
            let same_steps = best.iter().any(|(_, other)| *other == names);
            if !detour && !same_steps && Some(cost.trust.0) == withdrawals {
                best.push((number, names));
                if best.len() == MAX_PLANS {
                    break;
                }
            }
        }
        best.into_iter().map(|(number, _)| number).collect()
    }

    fn path(&self, label: u32) -> Vec<PathEdge> {
        let mut path = Vec::with_capacity(MAX_HOPS);
        let mut at = &self.labels[label as usize];
        while let Some((edge, before)) = at.last {
            path.push(PathEdge { edge, tx: at.cost.txs.saturating_sub(1) });
            at = &self.labels[before as usize];
        }
        path.reverse();
        path
    }
}

/// Ways in which a hop can join: (with op hook, in a new transaction).
fn joinings(label: &Label, state: &EdgeState<'_>) -> impl Iterator<Item = (bool, bool)> + use<> {
    let (one, other) = match label.tail.joining(state.step, state.features, state.migrated) {
        Joining::Same => ((false, false), None),
        Joining::New => ((false, true), None),
        Joining::Hook => ((true, false), Some((false, true))),
    };
    std::iter::once(one).chain(other)
}

/// Edges of a requested withdrawal: unwrap the wrapped token, then withdraw the bridged coin.
fn allowed_in_withdrawal(tail: TxTail, next: EdgeKind) -> bool {
    match next {
        EdgeKind::Unwrap => tail == TxTail::Start,
        EdgeKind::Up(_) => matches!(tail, TxTail::Start | TxTail::Unwrapped),
        _ => false,
    }
}

/// Withdrawals, and steps that trust a party other than the two chains.
fn trust(step: Step) -> Trust {
    match step {
        Step::Withdraw { .. } => (1, 1),
        Step::Deposit { .. } | Step::LayerZero { .. } => (0, 1),
        Step::Send
        | Step::Ibc { .. }
        | Step::MigratedDeposit { .. }
        | Step::MigratedWithdraw { .. }
        | Step::Wrap
        | Step::Unwrap
        | Step::Swap => (0, 0),
    }
}
