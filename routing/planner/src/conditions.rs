//! Current state of an edge: its step, whether it is usable, its cost and its duration.

use chain::U256;
use registry::facts::PairState;
use registry::{BridgeKind, BridgeRef, ChannelRef, Registry, Terms};
use rustc_hash::FxHashMap;

use crate::amount::{FeeSchedule, Rejection, Scale};
use crate::asset::FeeCoin;
use crate::chaining::ChainFeatures;
use crate::graph::{Edge, EdgeKind, Graph};
use crate::plan::{Step, World};

/// Default duration of an IBC transfer in seconds.
const IBC_SECONDS: u64 = 20;
/// Default duration of a deposit in seconds.
const DEPOSIT_SECONDS: u64 = 30;
/// Seconds that LayerZero's verifiers and executor take once a transaction is final.
const LAYER_ZERO_SECONDS: u64 = 60;

/// Current state of an edge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeState<'a> {
    /// Without LayerZero's fee, which depends on the amount.
    pub(crate) step: Step,
    pub(crate) fees: FeeSchedule<'a>,
    pub(crate) paused: bool,
    pub(crate) seconds: u64,
    /// An IBC transfer over the channel of a migrated bridge, which the wrapper would convert.
    pub(crate) migrated: bool,
    pub(crate) features: ChainFeatures,
}

/// Edge states during one planning run, cached.
pub(crate) struct Conditions<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) world: World<'a>,
    bridges: Option<&'a [BridgeKind]>,
    ways: FxHashMap<u32, Option<EdgeState<'a>>>,
    /// Whether the facts have any migrated denomination.
    any_migrated: bool,
}

/// Constraints to relax in order to find the blocking one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Relax {
    pub(crate) paused: bool,
    pub(crate) small: bool,
    pub(crate) dust: bool,
    pub(crate) large: bool,
    pub(crate) quote: bool,
    pub(crate) hook: bool,
    pub(crate) txs: bool,
}

impl Relax {
    fn allows(self, rejection: Rejection) -> bool {
        match rejection {
            Rejection::Paused => self.paused,
            Rejection::TooSmall => self.small,
            Rejection::Dust => self.dust,
            Rejection::TooLarge => self.large,
            Rejection::NoQuote => self.quote,
        }
    }
}

impl<'a> Conditions<'a> {
    pub(crate) fn new(graph: &'a Graph, world: World<'a>, bridges: Option<&'a [BridgeKind]>) -> Self {
        let mut said = world.facts.bridges.values().flat_map(|facts| facts.migrated.values());
        let any_migrated = said.any(Option::is_some);
        Self { graph, world, bridges, ways: FxHashMap::default(), any_migrated }
    }

    /// Current state of an edge; `None` if it is unusable or excluded by the request.
    pub(crate) fn way(&mut self, edge: u32) -> Option<EdgeState<'a>> {
        if let Some(way) = self.ways.get(&edge) {
            return *way;
        }
        let way = self.look_up(*self.graph.edge(edge));
        self.ways.insert(edge, way);
        way
    }

    /// What arrives of `amount`, and the step with its fee. Where something is relaxed, what would arrive without
    /// it: of the next amount that gets through.
    pub(crate) fn take(
        &self,
        way: &EdgeState<'a>,
        amount: U256,
        relax: Relax,
    ) -> Result<(Step, U256), Rejection> {
        if way.paused && !relax.paused {
            return Err(Rejection::Paused);
        }
        let (step, received) = self.received(way, amount, relax)?;
        let (rejection, least) = match way.fees.carry(amount, received) {
            Ok(out) => return Ok((step, out)),
            Err(Rejection::TooLarge) => (Rejection::TooLarge, U256::ZERO),
            Err(rejection) => (rejection, amount),
        };
        if !relax.allows(rejection) {
            return Err(rejection);
        }
        // Near the end of 256 bits there is no next amount, but there is a small one.
        let instead = way.fees.least(U256::ONE, least).or_else(|| way.fees.least(U256::ONE, U256::ZERO));
        let instead = instead.ok_or(rejection)?;
        Ok((step, way.fees.carry(instead, instead)?))
    }

    /// The step with its fee, and the amount that its contract quotes.
    fn received(&self, way: &EdgeState<'a>, amount: U256, relax: Relax) -> Result<(Step, U256), Rejection> {
        let Step::LayerZero { oft, from, to, .. } = way.step else { return Ok((way.step, amount)) };
        if amount < way.fees.terms.min_amount {
            return Ok((way.step, amount));
        }
        match self.world.quotes.quote(oft, from, to, amount) {
            Some(quote) => Ok((Step::LayerZero { oft, from, to, fee: quote.native_fee }, quote.received)),
            None if relax.quote => Ok((way.step, amount)),
            None => Err(Rejection::NoQuote),
        }
    }

    /// Quick test whether a bridge may have migrated denominations.
    pub(crate) fn may_be_migrated(&self, bridge: BridgeRef) -> bool {
        self.any_migrated || !self.world.registry[bridge].migrated.is_empty()
    }

    fn look_up(&self, edge: Edge) -> Option<EdgeState<'a>> {
        let World { registry, facts, .. } = self.world;
        let step = self.step(edge)?;
        if let (Some(only), Some(kind)) = (self.bridges, step.bridge_kind())
            && !only.contains(&kind)
        {
            return None;
        }
        let chain = registry[edge.from].chain;
        let terms = terms(registry, edge);
        Some(EdgeState {
            step,
            fees: FeeSchedule { terms, scale: scale(registry, edge) },
            paused: terms.paused.is_some() || self.is_stopped(edge, step),
            seconds: self.seconds(edge, step, terms),
            migrated: self.takes_migrated_channel(edge, step),
            features: ChainFeatures {
                forwards: registry[chain].forwards,
                hooks: step == Step::Wrap && facts.hooks_allowed(registry, chain),
            },
        })
    }

    fn step(&self, edge: Edge) -> Option<Step> {
        let registry = self.world.registry;
        Some(match edge.kind {
            EdgeKind::Ibc { channel, rollup, .. } => {
                // The rollup turns the voucher of a migrated denomination into its bridged coin, so none arrives.
                if rollup.and_then(|bridge| self.migrated(bridge, &registry[edge.from].denom))
                    == Some(channel)
                {
                    return None;
                }
                Step::Ibc { channel }
            }
            EdgeKind::Down(bridge) => match self.migrated(bridge, &registry[edge.from].denom) {
                Some(channel) => Step::MigratedDeposit { bridge, channel },
                None => Step::Deposit { bridge },
            },
            EdgeKind::Up(bridge) => match self.migrated(bridge, &registry[edge.to].denom) {
                Some(channel) => Step::MigratedWithdraw { bridge, channel },
                None => Step::Withdraw { bridge },
            },
            EdgeKind::Wrap => Step::Wrap,
            EdgeKind::Unwrap => Step::Unwrap,
            EdgeKind::LayerZero { oft, from, to } => {
                // The fee is paid in the coin of the sending chain: it has to have a name.
                FeeCoin::of(registry, registry[edge.from].chain)?;
                Step::LayerZero { oft, from: from as usize, to: to as usize, fee: U256::ZERO }
            }
        })
    }

    fn migrated(&self, bridge: BridgeRef, l1_denom: &str) -> Option<ChannelRef> {
        let World { registry, facts, .. } = self.world;
        let no_migration_known = facts.bridges.is_empty() && registry[bridge].migrated.is_empty();
        if no_migration_known { None } else { facts.migrated(registry, bridge, l1_denom) }
    }

    fn is_stopped(&self, edge: Edge, step: Step) -> bool {
        let World { registry, facts, .. } = self.world;
        match step {
            Step::Ibc { channel }
            | Step::MigratedDeposit { channel, .. }
            | Step::MigratedWithdraw { channel, .. } => {
                registry[channel].paused.is_some()
                    || !facts.closed.is_empty() && facts.paused(registry, channel).is_some()
            }
            Step::Deposit { bridge } | Step::Withdraw { bridge } => facts.stopped(registry, bridge).is_some(),
            Step::Wrap | Step::Unwrap => self.doubt(edge).is_some(),
            Step::Send | Step::LayerZero { .. } => false,
        }
    }

    /// Chain fact that contradicts a wrapper's pair.
    pub(crate) fn doubt(&self, edge: Edge) -> Option<String> {
        let World { registry, facts, .. } = self.world;
        match facts.pair(registry, &registry.wrapper_pair_of(edge.from, edge.to)?) {
            PairState::Contradicted(why) => Some(why),
            PairState::Unknown | PairState::Confirmed => None,
        }
    }

    /// Whether the edge sends a bridged coin over the channel that its bridge migrated to.
    fn takes_migrated_channel(&self, edge: Edge, step: Step) -> bool {
        let registry = self.world.registry;
        match (step, &registry[edge.from].origin) {
            (Step::Ibc { channel }, registry::Origin::Bridged { bridge, parent }) => {
                self.migrated(*bridge, &registry[*parent].denom) == Some(channel)
            }
            _ => false,
        }
    }

    fn seconds(&self, edge: Edge, step: Step, terms: &Terms) -> u64 {
        let World { registry, facts, .. } = self.world;
        let (said, usual) = match step {
            Step::Ibc { channel }
            | Step::MigratedDeposit { channel, .. }
            | Step::MigratedWithdraw { channel, .. } => (registry[channel].seconds, IBC_SECONDS),
            Step::Deposit { bridge } => (registry[bridge].deposit_seconds, DEPOSIT_SECONDS),
            // Terms are of both directions, and a deposit's seconds are no withdrawal's days.
            Step::Withdraw { bridge } => return withdrawal(facts.periods(registry, bridge)),
            Step::Send | Step::Wrap | Step::Unwrap => (None, 0),
            Step::LayerZero { .. } => {
                let chain = &registry[registry[edge.from].chain];
                let blocks = u64::from(chain.confirmations) * u64::from(chain.block_seconds);
                (None, blocks + LAYER_ZERO_SECONDS)
            }
        };
        terms.seconds.or(said).map_or(usual, u64::from)
    }
}

/// The executor proposes an output every two thirds of the submission interval (`router-mechanics.md` §3.4).
fn withdrawal((finalization, submission): (u64, u64)) -> u64 {
    (submission / 3 * 2 + submission % 3 * 2 / 3).saturating_add(finalization)
}

/// The terms of an edge: those of the child, or of the leg that sends.
pub(crate) fn terms(registry: &Registry, edge: Edge) -> &Terms {
    match edge.kind {
        EdgeKind::Ibc { voucher, .. } => &registry[voucher].terms,
        EdgeKind::Down(_) => &registry[edge.to].terms,
        EdgeKind::Up(_) => &registry[edge.from].terms,
        // Either of a pair may be the one that was made.
        EdgeKind::Wrap | EdgeKind::Unwrap => {
            let made = registry[edge.from].origin.parent() == Some(edge.to);
            &registry[if made { edge.from } else { edge.to }].terms
        }
        EdgeKind::LayerZero { oft, from, .. } => &registry[oft].legs[from as usize].terms,
    }
}

fn scale(registry: &Registry, edge: Edge) -> Scale {
    let (from, to) = (registry[edge.from].decimals, registry[edge.to].decimals);
    match edge.kind {
        EdgeKind::Ibc { .. } | EdgeKind::Down(_) | EdgeKind::Up(_) => Scale::Same,
        EdgeKind::Wrap | EdgeKind::Unwrap => Scale::Wrapper { from, to },
        EdgeKind::LayerZero { oft, from: sending, to: receiving } => {
            let shared = |leg: u32| registry[oft].legs[leg as usize].shared_decimals;
            Scale::LayerZero { from, to, shared: shared(sending).min(shared(receiving)) }
        }
    }
}
