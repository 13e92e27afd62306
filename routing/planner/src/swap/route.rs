//! Routes with a swap: hops to a coin of the pools, the swap, and hops on.
//!
//! The hops before and after are plans of their own, between assets that are connected without a swap. Plans are
//! compared by the amount out (or in, if the amount out is set), then by transactions, op hook, time and hops.

use std::cmp::Reverse;

use chain::U256;
use registry::{AssetRef, ChainRef, Registry};

use super::market::{CoinAsset, Market};
use super::paths::{Limits, MAX_LEGS, Path, best, details, split};
use super::{Exact, PoolKind, Refusal};
use crate::exact_out::{least_amount_in, same_value};
use crate::find;
use crate::graph::Graph;
use crate::plan::{Hop, NoRoute, Plan, Request, Step, World};
use crate::request_graph::RequestGraph;
use crate::search::MAX_PLANS;

/// Rounds in which an amount in is raised until enough arrives.
const ROUNDS: usize = 16;

/// What a request says about swaps.
#[derive(Debug, Clone, Default)]
pub struct SwapRules {
    /// Only pools of these kinds; all if there are none.
    pub kinds: Option<Vec<PoolKind>>,
    /// Only these pools, by [`super::Pool::id`].
    pub pools: Option<Vec<String>>,
    /// Whether an amount may be split over the pools of a pair.
    pub split: bool,
}

/// The amount of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwapAmount {
    /// Base units of the source asset.
    In(U256),
    /// Base units of the destination asset.
    Out(U256),
}

/// Plans with a swap in one market, best first; each ends before a withdrawal with days of waiting. The reason why hops
/// before or after the pools are impossible, which takes longer than to find that, is only computed with `explains`.
pub fn plan_swaps(
    graph: &Graph,
    world: World<'_>,
    market: &Market,
    request: &Request,
    rules: &SwapRules,
    amount: SwapAmount,
    explains: bool,
) -> Result<Vec<Plan>, NoRoute> {
    let none = || NoRoute::NoPool { from: name(world, request.from), to: name(world, request.to) };
    let chain = world.registry.chain(&market.chain).ok_or_else(none)?;
    let allowed: Vec<bool> = market.pools().iter().map(|pool| rules.allow(pool)).collect();
    let adapter = world.facts.adapter(world.registry, chain).is_some();
    let limits = Limits { legs: if adapter { MAX_LEGS } else { 1 }, allows: &|pool: usize| allowed[pool] };
    let swaps = Swaps { graph, world, market, request, rules, limits, adapter, explains };
    let outcome = match amount {
        SwapAmount::In(amount) => swaps.for_amount_in(chain, amount),
        SwapAmount::Out(amount) => swaps.for_amount_out(chain, amount),
    };
    let mut plans = outcome?;
    plans.sort_by_cached_key(|plan| amount.rank(world.registry, plan));
    plans.truncate(MAX_PLANS);
    if plans.is_empty() { Err(none()) } else { Ok(plans) }
}

impl SwapAmount {
    /// Whether a plan with a swap is better than one without: it gives more, or takes less; then fewer transactions, no op
    /// hook, less time, fewer hops. Days of waiting are worse than any amount, which a swap in a pool costs little of.
    pub fn prefers(self, registry: &Registry, swap: &Plan, plain: &Plan) -> bool {
        let waits = plain.hops.iter().any(|hop| matches!(hop.step, Step::Withdraw { .. }));
        waits || self.rank(registry, swap) < self.rank(registry, plain)
    }

    /// Sorts plans, the best first.
    fn rank(self, registry: &Registry, plan: &Plan) -> impl Ord + use<> {
        let (least_in, most_out) = match self {
            Self::In(_) => (U256::ZERO, plan.amount_out()),
            Self::Out(_) => (plan.amount_in(), U256::ZERO),
        };
        let effort = (plan.txs(), plan.required_op_hook(), plan.seconds(registry), plan.hops.len());
        (least_in, Reverse(most_out), effort)
    }
}

impl SwapRules {
    fn allow(&self, pool: &super::Pool) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&pool.kind()))
            && self.pools.as_ref().is_none_or(|pools| pools.contains(&pool.id))
    }
}

struct Swaps<'a> {
    graph: &'a Graph,
    world: World<'a>,
    market: &'a Market,
    request: &'a Request,
    rules: &'a SwapRules,
    limits: Limits<'a>,
    adapter: bool,
    explains: bool,
}

/// A coin of the market and its asset.
#[derive(Clone, Copy)]
struct Port {
    coin: usize,
    asset: AssetRef,
}

impl Swaps<'_> {
    fn for_amount_in(&self, chain: ChainRef, amount: U256) -> Result<Vec<Plan>, NoRoute> {
        let entries = self.ports(chain, self.request.from);
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let exits = self.ports(chain, self.request.to);
        let targets: Vec<usize> = exits.iter().map(|exit| exit.coin).collect();
        let (mut plans, mut reason) = (Vec::new(), None);
        for entry in entries {
            // Coins of the pools that are connected without a swap are forms of one token.
            if targets.iter().all(|target| *target == entry.coin) {
                continue;
            }
            let Some(before) = self.plan(self.request.from, entry.asset, amount) else {
                reason.get_or_insert_with(|| self.why(self.request.from, entry.asset, amount));
                continue;
            };
            let sent = before.last().map_or(amount, |hop| hop.amount_out);
            let Ok(offered) = u64::try_from(sent) else {
                reason = Some(NoRoute::TooLarge { amount: sent, hop: "a swap".to_owned() });
                continue;
            };
            let paths = match best(self.market, self.limits, entry.coin, &targets, offered, false) {
                Ok(paths) => paths,
                Err(refusal) => {
                    let refusal = refusal.map(|refusal| self.refused(entry.asset, sent, refusal));
                    reason = refusal.or(reason);
                    continue;
                }
            };
            for (coin, path) in paths {
                let Some(exit) = exits.iter().find(|exit| exit.coin == coin) else { continue };
                let out = U256::from(path.amount_out());
                let Some(after) = self.plan(exit.asset, self.request.to, out) else {
                    reason.get_or_insert_with(|| self.why(exit.asset, self.request.to, out));
                    continue;
                };
                let alone = before.is_empty() && after.is_empty();
                let parts = (alone && self.rules.split)
                    .then(|| split(self.market, self.limits, (entry.coin, coin), offered, path.amount_out()))
                    .flatten();
                let paths = parts.unwrap_or_else(|| vec![path]);
                match self.join(&before, (entry, *exit), Exact::In, &paths, &after) {
                    Ok(plan) => plans.push(plan),
                    Err(why) => {
                        reason.get_or_insert(why);
                    }
                }
            }
        }
        found(plans, reason)
    }

    fn for_amount_out(&self, chain: ChainRef, wanted: U256) -> Result<Vec<Plan>, NoRoute> {
        let entries = self.ports(chain, self.request.from);
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let targets: Vec<usize> = entries.iter().map(|entry| entry.coin).collect();
        let (mut plans, mut reason) = (Vec::new(), None);
        for exit in self.ports(chain, self.request.to) {
            if targets.iter().all(|target| *target == exit.coin) {
                continue;
            }
            let Some(needed) = self.least(exit.asset, self.request.to, wanted) else { continue };
            let Ok(returned) = u64::try_from(needed) else {
                reason = Some(NoRoute::TooLarge { amount: needed, hop: "a swap".to_owned() });
                continue;
            };
            let paths = match best(self.market, self.limits, exit.coin, &targets, returned, true) {
                Ok(paths) => paths,
                Err(refusal) => {
                    let refusal = refusal.map(|refusal| self.refused(exit.asset, needed, refusal));
                    reason = refusal.or(reason);
                    continue;
                }
            };
            for (coin, path) in paths {
                let Some(entry) = entries.iter().find(|entry| entry.coin == coin) else { continue };
                match self.exact_out(*entry, exit, &path, returned) {
                    Ok(plan) => plans.push(plan),
                    Err(why) => {
                        reason.get_or_insert(why);
                    }
                }
            }
        }
        found(plans, reason)
    }

    /// A plan for an amount out. Its signer's own swap leaves the amount in open; a packet's is fixed, so it is raised
    /// until the chain's rounding gives enough.
    fn exact_out(&self, entry: Port, exit: Port, path: &Path, returned: u64) -> Result<Plan, NoRoute> {
        let to = self.request.to;
        // The adapter swaps what it simulates and accepts 99 % of what is wanted, which small amounts miss.
        let given = path.for_amount(self.market, path.amount_in()).map_or(0, |path| path.amount_out());
        let is_accepted = u128::from(given) * 100 >= u128::from(returned) * 99;
        if entry.asset == self.request.from && self.adapter && is_accepted {
            let after = self.planned(exit.asset, to, U256::from(returned))?;
            return self.join(&[], (entry, exit), Exact::Out, std::slice::from_ref(path), &after);
        }
        let refused = |refusal| self.refused(entry.asset, U256::from(path.amount_in()), refusal);
        let mut offered = path.amount_in();
        for _ in 0..ROUNDS {
            let sent = self.least(self.request.from, entry.asset, U256::from(offered));
            let before = self.planned(self.request.from, entry.asset, sent.unwrap_or(U256::from(offered)))?;
            let carried = before.last().map_or(U256::from(offered), |hop| hop.amount_out);
            let carried = u64::try_from(carried).map_err(|_| refused(Refusal::TooLarge))?;
            let path = match path.for_amount(self.market, carried) {
                Err(Refusal::TooSmall) => {
                    offered = carried.saturating_mul(2);
                    continue;
                }
                path => path.map_err(refused)?,
            };
            if path.amount_out() >= returned {
                let after = self.planned(exit.asset, to, U256::from(path.amount_out()))?;
                return self.join(&before, (entry, exit), Exact::In, &[path], &after);
            }
            let missing = u128::from(returned - path.amount_out()) * u128::from(carried);
            let more = u64::try_from(missing / u128::from(path.amount_out().max(1))).unwrap_or(u64::MAX);
            offered = carried.saturating_add(more).saturating_add(1);
        }
        Err(refused(Refusal::TooLarge))
    }

    /// The coins of the market that an asset is connected with.
    fn ports(&self, chain: ChainRef, asset: AssetRef) -> Vec<Port> {
        let registry = self.world.registry;
        let own = &registry[asset];
        let own_coin = (own.chain == chain).then(|| self.market.coin(&own.denom)).flatten();
        let root = |asset| RequestGraph::new(self.graph, registry, [asset, asset]).root(asset);
        let find =
            |denom: &str| registry.asset(chain, denom).map(|asset| CoinAsset { asset, root: root(asset) });
        let own_root = root(asset);
        let port = |(coin, other): (usize, &Option<CoinAsset>)| {
            if own_coin == Some(coin) {
                return Some(Port { coin, asset });
            }
            let CoinAsset { asset: other, .. } = other.filter(|other| other.root == own_root)?;
            let joined = RequestGraph::new(self.graph, registry, [asset, other]).connects(asset, other);
            joined.then_some(Port { coin, asset: other })
        };
        self.market.assets(registry.hash(), find).iter().enumerate().filter_map(port).collect()
    }

    /// Hops without a swap; none if there is nothing to do, `None` if there are none.
    fn plan(&self, from: AssetRef, to: AssetRef, amount: U256) -> Option<Vec<Hop>> {
        if from == to {
            return Some(Vec::new());
        }
        let plans = find::plans(self.graph, self.world, &self.part(from, to, amount));
        // A price of today says nothing about a swap in days.
        let quick = |plan: &Plan| !plan.hops.iter().any(|hop| matches!(hop.step, Step::Withdraw { .. }));
        plans.into_iter().find(quick).map(|plan| plan.hops)
    }

    fn planned(&self, from: AssetRef, to: AssetRef, amount: U256) -> Result<Vec<Hop>, NoRoute> {
        self.plan(from, to, amount).ok_or_else(|| self.why(from, to, amount))
    }

    /// Why there are no hops.
    fn why(&self, from: AssetRef, to: AssetRef, amount: U256) -> NoRoute {
        let none = || NoRoute::NoPath { from: name(self.world, from), to: name(self.world, to) };
        let explained = || find::plan(self.graph, self.world, &self.part(from, to, amount)).err();
        self.explains.then(explained).flatten().unwrap_or_else(none)
    }

    /// The request of the hops before or after a swap.
    fn part(&self, from: AssetRef, to: AssetRef, amount_in: U256) -> Request {
        Request { from, to, amount_in, op_withdraw: false, ..self.request.clone() }
    }

    /// The least amount of `from` that gives an amount of `to`.
    fn least(&self, from: AssetRef, to: AssetRef, wanted: U256) -> Option<U256> {
        let amount_in = same_value(self.world.registry, from, to, wanted);
        let hops = self.plan(from, to, amount_in)?;
        let request = self.part(from, to, amount_in);
        least_amount_in(self.graph, self.world, &request, &Plan { hops, swap: None }, wanted)
    }

    fn join(
        &self,
        before: &[Hop],
        (entry, exit): (Port, Port),
        exact: Exact,
        paths: &[Path],
        after: &[Hop],
    ) -> Result<Plan, NoRoute> {
        let registry = self.world.registry;
        let sum = |amount: fn(&Path) -> u64| paths.iter().map(|path| U256::from(amount(path))).sum();
        let tx = before.last().map_or(0, |hop| if self.calls_adapter(before) { hop.tx } else { hop.tx + 1 });
        let mut hops = before.to_vec();
        hops.push(Hop {
            step: Step::Swap,
            from: entry.asset,
            to: exit.asset,
            amount_in: sum(Path::amount_in),
            amount_out: sum(Path::amount_out),
            tx,
            seconds: u64::from(registry[registry[entry.asset].chain].block_seconds),
        });
        let continues = after.first().is_some_and(|hop| {
            self.adapter
                && matches!(hop.step, Step::Ibc { .. } | Step::MigratedDeposit { .. } | Step::Deposit { .. })
        });
        let first = tx + usize::from(!continues);
        hops.extend(after.iter().map(|hop| Hop { tx: first + hop.tx, ..hop.clone() }));
        let is_again = |(at, hop): (usize, &Hop)| {
            hop.to == hops[0].from || hops[..at].iter().any(|other| other.to == hop.to)
        };
        if hops.iter().enumerate().any(is_again) {
            return Err(NoRoute::NoPool {
                from: name(self.world, entry.asset),
                to: name(self.world, exit.asset),
            });
        }
        let plan = Plan { hops, swap: Some(details(self.market, exact, paths)) };
        if plan.txs() > 1 && !self.request.multi_tx {
            return Err(NoRoute::SeveralTxs { txs: plan.txs() });
        }
        if plan.required_op_hook() && !self.request.op_hook {
            return Err(NoRoute::NeedsHook);
        }
        Ok(plan)
    }

    /// Whether the last of the hops is a packet whose memo can call the adapter: the only one of the transaction that
    /// the user signs on its chain.
    fn calls_adapter(&self, hops: &[Hop]) -> bool {
        let packet = |step| matches!(step, Step::Ibc { .. } | Step::MigratedWithdraw { .. });
        let chain = |hop: &Hop| self.world.registry[hop.to].chain;
        self.adapter
            && hops
                .last()
                .is_some_and(|last| self.world.facts.hooks_allowed(self.world.registry, chain(last)))
            && match hops {
                [only] => packet(only.step),
                [first, last] => first.step == Step::Unwrap && packet(last.step) && first.tx == last.tx,
                _ => false,
            }
    }

    fn refused(&self, asset: AssetRef, amount: U256, refusal: Refusal) -> NoRoute {
        NoRoute::Swap { amount, denom: self.world.registry[asset].denom.clone(), refusal }
    }
}

fn found(plans: Vec<Plan>, reason: Option<NoRoute>) -> Result<Vec<Plan>, NoRoute> {
    match reason {
        Some(reason) if plans.is_empty() => Err(reason),
        _ => Ok(plans),
    }
}

fn name(world: World<'_>, asset: AssetRef) -> String {
    let (asset, _) = world.registry.passing(asset);
    format!("{} on {}", asset.denom, world.registry[asset.chain].id)
}
