//! Current state of an edge: its step, whether it is usable, its cost and its duration.

use chain::U256;
use registry::denom::{self, is_contract_port};
use registry::facts::PairState;
use registry::{AssetRef, BridgeKind, BridgeRef, Channel, ChannelRef, Registry, Terms};
use rustc_hash::FxHashMap;

use crate::amount::{FeeSchedule, Rejection, Scale};
use crate::asset::fee_coin;
use crate::chaining::{ChainFeatures, TxTail};
use crate::graph::{Edge, EdgeKind, Graph};
use crate::plan::{Request, Step, World};
use crate::request_graph::RequestGraph;

/// Default duration of an IBC transfer in seconds.
const IBC_SECONDS: u64 = 20;
/// Default duration of a deposit in seconds.
const DEPOSIT_SECONDS: u64 = 30;
/// Seconds that LayerZero's verifiers and executor take once a transaction is final.
const LAYER_ZERO_SECONDS: u64 = 60;

/// Current state of an edge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeState<'a> {
    /// The step; without LayerZero's fee, which depends on the amount.
    pub(crate) step: Step,
    pub(crate) fees: FeeSchedule<'a>,
    pub(crate) paused: bool,
    pub(crate) seconds: u64,
    /// Whether it is an IBC transfer of a bridged coin over the channel that its bridge migrated to.
    pub(crate) migrated: bool,
    pub(crate) features: ChainFeatures,
    /// State of the transaction after the step.
    pub(crate) tail: TxTail,
}

/// Edge states during one planning run, cached.
pub(crate) struct Conditions<'a> {
    pub(crate) graph: RequestGraph<'a>,
    pub(crate) world: World<'a>,
    bridges: Option<&'a [BridgeKind]>,
    states: FxHashMap<u32, Option<EdgeState<'a>>>,
    /// Whether the facts have any migrated denomination.
    any_migrated: bool,
    /// Limits that excluded a continuation of some path.
    met: Vec<Relax>,
}

/// A limit that a search ignores, to find the one that blocks a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Relax {
    #[default]
    Nothing,
    Rejection(Rejection),
    Hook,
    Txs,
    Everything,
}

impl Relax {
    pub(crate) fn ignores(self, limit: Self) -> bool {
        self == limit || self == Self::Everything
    }
}

impl<'a> Conditions<'a> {
    pub(crate) fn new(graph: &'a Graph, world: World<'a>, request: &'a Request) -> Self {
        let mut migrated = world.facts.bridges.values().flat_map(|facts| facts.migrated.values());
        let any_migrated = migrated.any(Option::is_some);
        let graph = RequestGraph::new(graph, world.registry, [request.from, request.to]);
        let bridges = request.bridges.as_deref();
        Self { graph, world, bridges, states: FxHashMap::default(), any_migrated, met: Vec::new() }
    }

    /// Notes a limit that excluded a continuation of a path.
    pub(crate) fn met(&mut self, limit: Relax) {
        if !self.met.contains(&limit) {
            self.met.push(limit);
        }
    }

    /// Limits that excluded something in the searches until now. A search that ignores only another one finds nothing
    /// more.
    pub(crate) fn limits_met(&self) -> &[Relax] {
        &self.met
    }

    /// Current state of an edge; `None` if it is unusable or excluded by the request.
    pub(crate) fn state(&mut self, edge: u32) -> Option<EdgeState<'a>> {
        if let Some(state) = self.states.get(&edge) {
            return *state;
        }
        let state = self.look_up(self.graph.edge(edge));
        self.states.insert(edge, state);
        state
    }

    /// The step with its fee, and the amount after it. If `relax` ignores the rejection of `amount`, it is the amount
    /// after the next larger input that the hop accepts.
    pub(crate) fn traverse(
        &self,
        state: &EdgeState<'a>,
        amount: U256,
        relax: Relax,
    ) -> Result<(Step, U256), Rejection> {
        if state.paused && !relax.ignores(Relax::Rejection(Rejection::Paused)) {
            return Err(Rejection::Paused);
        }
        let (step, received) = self.received(state, amount, relax)?;
        let (rejection, least) = match state.fees.carry(amount, received) {
            Ok(out) => return Ok((step, out)),
            Err(Rejection::TooLarge) => (Rejection::TooLarge, U256::ZERO),
            Err(rejection) => (rejection, amount),
        };
        if !relax.ignores(Relax::Rejection(rejection)) {
            return Err(rejection);
        }
        // Near 2^256 there is no next amount, but a small one is accepted.
        let instead = state.fees.least(U256::ONE, least).or_else(|| state.fees.least(U256::ONE, U256::ZERO));
        let instead = instead.ok_or(rejection)?;
        Ok((step, state.fees.carry(instead, instead)?))
    }

    /// The step with its fee, and the amount that its contract quotes.
    fn received(&self, state: &EdgeState<'a>, amount: U256, relax: Relax) -> Result<(Step, U256), Rejection> {
        let Step::LayerZero { oft, from, to, .. } = state.step else { return Ok((state.step, amount)) };
        if amount < state.fees.terms.min_amount {
            return Ok((state.step, amount));
        }
        match self.world.quotes.quote(oft, from, to, amount) {
            Some(quote) => Ok((Step::LayerZero { oft, from, to, fee: quote.native_fee }, quote.received)),
            None if relax.ignores(Relax::Rejection(Rejection::NoQuote)) => Ok((state.step, amount)),
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
        // Only packets between transfer modules are forwarded.
        let of_contract = step.channel().is_some_and(|channel| {
            let Channel { a, b, .. } = &registry[channel];
            is_contract_port(&a.port) || is_contract_port(&b.port)
        });
        let sends_contract = of_contract && denom::cw20(&registry[edge.from].denom).is_some();
        Some(EdgeState {
            step,
            fees: FeeSchedule { terms, scale: scale(registry, edge) },
            paused: terms.paused.is_some() || self.pause(step).is_some() || self.doubt(edge).is_some(),
            seconds: self.seconds(edge, step, terms),
            migrated: self.takes_migrated_channel(edge, step),
            features: ChainFeatures {
                forwards: facts.forwards(registry, chain) && !sends_contract,
                hooks: step == Step::Wrap && facts.hooks_allowed(registry, chain),
            },
            tail: if of_contract { TxTail::Closed } else { TxTail::behind(step) },
        })
    }

    fn step(&self, edge: Edge) -> Option<Step> {
        let registry = self.world.registry;
        Some(match edge.kind {
            EdgeKind::Ibc { channel, rollup, .. } => {
                // The rollup converts the voucher of a migrated denomination into its bridged coin on arrival.
                if rollup.and_then(|bridge| self.migrated(bridge, &registry[edge.from].denom))
                    == Some(channel)
                {
                    return None;
                }
                if !can_send(registry, channel, edge.from) {
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
                // The operation names the coin that pays the fee, so the registry must have it.
                fee_coin(registry, registry[edge.from].chain)?;
                Step::LayerZero { oft, from: from as usize, to: to as usize, fee: U256::ZERO }
            }
        })
    }

    fn migrated(&self, bridge: BridgeRef, l1_denom: &str) -> Option<ChannelRef> {
        let World { registry, facts, .. } = self.world;
        let no_migration_known = facts.bridges.is_empty() && registry[bridge].migrated.is_empty();
        if no_migration_known { None } else { facts.migrated(registry, bridge, l1_denom) }
    }

    /// Why the channel or the bridge of a step must not be used now.
    pub(crate) fn pause(&self, step: Step) -> Option<&'a str> {
        let World { registry, facts, .. } = self.world;
        match step {
            Step::Deposit { bridge } | Step::Withdraw { bridge } => facts.stopped(registry, bridge),
            _ => facts.paused(registry, step.channel()?),
        }
    }

    /// Chain fact that contradicts a wrapper's pair.
    pub(crate) fn doubt(&self, edge: Edge) -> Option<String> {
        let World { registry, facts, .. } = self.world;
        let (EdgeKind::Wrap | EdgeKind::Unwrap) = edge.kind else { return None };
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
        let (configured, usual) = match step {
            Step::Deposit { bridge } => (registry[bridge].deposit_seconds, DEPOSIT_SECONDS),
            // Terms apply to both directions, but a withdrawal takes days and a deposit takes seconds.
            Step::Withdraw { bridge } => return withdrawal(facts.periods(registry, bridge)),
            Step::LayerZero { .. } => {
                let chain = &registry[registry[edge.from].chain];
                let blocks = u64::from(chain.confirmations) * u64::from(chain.block_seconds);
                (None, blocks + LAYER_ZERO_SECONDS)
            }
            _ => step.channel().map_or((None, 0), |channel| (registry[channel].seconds, IBC_SECONDS)),
        };
        terms.seconds.or(configured).map_or(usual, u64::from)
    }
}

/// Whether the owner of an asset can send it over a channel: a CW20 token over a contract's port, everything else over
/// the transfer module's.
fn can_send(registry: &Registry, channel: ChannelRef, asset: AssetRef) -> bool {
    let chain = registry[asset].chain;
    let by_contract = registry[channel].on(chain).is_some_and(|end| is_contract_port(&end.port));
    let is_cw20 = denom::cw20(&registry[asset].denom).is_some();
    by_contract == is_cw20 && !(is_cw20 && registry[chain].encrypts_calls())
}

/// The executor proposes an output every two thirds of the submission interval.
fn withdrawal((finalization, submission): (u64, u64)) -> u64 {
    (submission / 3 * 2 + submission % 3 * 2 / 3).saturating_add(finalization)
}

/// The terms of an edge: those of the child asset, or of the sending leg.
pub(crate) fn terms(registry: &Registry, edge: Edge) -> &Terms {
    match edge.kind {
        EdgeKind::Ibc { voucher, .. } => &registry[voucher].terms,
        EdgeKind::Down(_) => &registry[edge.to].terms,
        EdgeKind::Up(_) => &registry[edge.from].terms,
        // The terms are those of the token that the wrapper made, which may be either of the two.
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
