//! Exhaustive search of all routes.
//!
//! Shares no code with the planner.

use std::cmp::Reverse;

use chain::U256;
use planner::{Hop, Plan, Quotes as _, Request, Step};
use registry::{AssetRef, BridgeKind, Origin, Terms};

use crate::random::GeneratedWorld;

/// Cost of a plan, in order of precedence.
pub(crate) type Cost = ((usize, usize), bool, usize, Reverse<U256>, u64, usize);

struct Every<'a> {
    made: &'a GeneratedWorld,
    request: &'a Request,
    /// Whether only connectivity counts.
    structure: bool,
    found: Vec<Plan>,
}

impl Every<'_> {
    fn go(&mut self, hops: &mut Vec<Hop>) {
        let at = hops.last().map_or(self.request.from, |hop| hop.to);
        if at == self.request.to {
            self.found.push(Plan { hops: hops.clone(), swap: None });
            return;
        }
        if hops.len() == planner::MAX_HOPS || self.structure && !self.found.is_empty() {
            return;
        }
        for (step, to) in self.steps(at) {
            let met = hops.iter().any(|hop| hop.from == to) || to == at;
            if met || !self.wanted(step, hops) {
                continue;
            }
            let amount_in = hops.last().map_or(self.request.amount_in, |hop| hop.amount_out);
            let Some((step, amount_out)) = self.carry(step, at, to, amount_in) else { continue };
            for tx in self.txs(step, at, hops) {
                let seconds = self.seconds(step, at, to);
                hops.push(Hop { step, from: at, to, amount_in, amount_out, tx, seconds });
                let plan = Plan { hops: hops.clone(), swap: None };
                let signed = self.request.multi_tx || tx == 0;
                let hooked = self.request.op_hook || !plan.required_op_hook();
                if self.structure || signed && hooked {
                    self.go(hops);
                }
                hops.pop();
            }
        }
    }

    /// Whether no wrapper can have made a token from its parent.
    fn faulty(&self, asset: AssetRef) -> bool {
        let registry = &self.made.registry;
        let Origin::Wrapped { parent, .. } = registry[asset].origin else { return false };
        let local = registry[asset].decimals == 18 && registry[parent].decimals < 18;
        !local && !self.reversed(asset)
    }

    /// Whether the wrapper made a token by `toRemote`.
    fn reversed(&self, asset: AssetRef) -> bool {
        let registry = &self.made.registry;
        let Origin::Wrapped { parent, .. } = registry[asset].origin else { return false };
        registry[asset].decimals == 6 && registry[parent].decimals > 6
    }

    fn steps(&self, at: AssetRef) -> Vec<(Step, AssetRef)> {
        if self.faulty(at) {
            return Vec::new();
        }
        let mut steps = self.any_steps(at);
        steps.retain(|(_, to)| !self.faulty(*to));
        steps
    }

    fn any_steps(&self, at: AssetRef) -> Vec<(Step, AssetRef)> {
        let registry = &self.made.registry;
        let mut steps = Vec::new();
        for (child, about) in registry.assets() {
            match &about.origin {
                Origin::Native => {}
                Origin::Ibc { channel, parent } => {
                    let step = Step::Ibc { channel: *channel };
                    if *parent == at {
                        // On arrival at its rollup, a migrated denomination becomes the bridged coin.
                        let bridge = registry.bridge_to(about.chain);
                        let caught = bridge.is_some_and(|bridge| {
                            registry[bridge].l1 == registry[at].chain
                                && self.migrated(bridge, at) == Some(*channel)
                        });
                        if !caught {
                            steps.push((step, child));
                        }
                    } else if child == at {
                        steps.push((step, *parent));
                    }
                }
                Origin::Bridged { bridge, parent } => {
                    let (bridge, channel) = (*bridge, self.migrated(*bridge, *parent));
                    if *parent == at {
                        let down = channel.map_or(Step::Deposit { bridge }, |channel| {
                            Step::MigratedDeposit { bridge, channel }
                        });
                        steps.push((down, child));
                    } else if child == at {
                        let up = channel.map_or(Step::Withdraw { bridge }, |channel| {
                            Step::MigratedWithdraw { bridge, channel }
                        });
                        steps.push((up, *parent));
                    }
                }
                Origin::Wrapped { parent, .. } => {
                    let (up, down) = if self.reversed(child) {
                        (Step::Wrap, Step::Unwrap)
                    } else {
                        (Step::Unwrap, Step::Wrap)
                    };
                    if *parent == at {
                        steps.push((down, child));
                    } else if child == at {
                        steps.push((up, *parent));
                    }
                }
            }
        }
        // Its fee must be paid in a registered coin.
        let chain = &registry[registry[at].chain];
        let fee = chain.fee_assets.first().and_then(|fee| registry.asset(registry[at].chain, &fee.denom));
        if fee.is_none() && chain.native.is_none() {
            return steps;
        }
        for (oft, group) in registry.ofts() {
            let Some(from) = group.legs.iter().position(|leg| leg.asset == at) else { continue };
            for (to, leg) in group.legs.iter().enumerate().filter(|(to, _)| *to != from) {
                steps.push((Step::LayerZero { oft, from, to, fee: U256::ZERO }, leg.asset));
            }
        }
        steps
    }

    fn migrated(&self, bridge: registry::BridgeRef, parent: AssetRef) -> Option<registry::ChannelRef> {
        let registry = &self.made.registry;
        self.made.facts.migrated(registry, bridge, &registry[parent].denom)
    }

    fn wanted(&self, step: Step, hops: &[Hop]) -> bool {
        let kind = match step {
            Step::Ibc { .. } | Step::MigratedDeposit { .. } | Step::MigratedWithdraw { .. } => {
                BridgeKind::Ibc
            }
            Step::Deposit { .. } | Step::Withdraw { .. } => BridgeKind::OpInit,
            Step::LayerZero { .. } => BridgeKind::LayerZero,
            _ => return !self.request.op_withdraw || step == Step::Unwrap && hops.is_empty(),
        };
        let forced = match step {
            Step::Withdraw { .. } | Step::MigratedWithdraw { .. } => {
                hops.iter().all(|hop| hop.step == Step::Unwrap)
            }
            _ => false,
        };
        (forced || !self.request.op_withdraw)
            && self.request.bridges.as_ref().is_none_or(|only| only.contains(&kind))
    }

    fn terms(&self, step: Step, at: AssetRef, to: AssetRef) -> &Terms {
        let registry = &self.made.registry;
        if let Step::LayerZero { oft, from, .. } = step {
            return &registry[oft].legs[from].terms;
        }
        let child = if registry[at].origin.parent() == Some(to) { at } else { to };
        &registry[child].terms
    }

    fn carry(&self, step: Step, at: AssetRef, to: AssetRef, amount: U256) -> Option<(Step, U256)> {
        let (registry, facts) = (&self.made.registry, &self.made.facts);
        if self.structure {
            return Some((step, amount));
        }
        let terms = self.terms(step, at, to);
        let stopped = match step {
            Step::Ibc { channel }
            | Step::MigratedDeposit { channel, .. }
            | Step::MigratedWithdraw { channel, .. } => facts.paused(registry, channel).is_some(),
            Step::Deposit { bridge } | Step::Withdraw { bridge } => facts.stopped(registry, bridge).is_some(),
            _ => false,
        };
        if stopped || terms.paused.is_some() || amount < terms.min_amount {
            return None;
        }
        // The remainder of each 10,000 parts, rounded down, is the amount minus the share rounded up.
        let wide = |value: U256| num(&value.to_string());
        let share = wide(amount).scaled(terms.fee_bps, 10_000);
        let (mut step, mut received) = (step, amount);
        if let Step::LayerZero { oft, from, to, .. } = step {
            let quote = self.made.quotes.quote(oft, from, to, amount)?;
            step = Step::LayerZero { oft, from, to, fee: quote.native_fee };
            received = received.min(quote.received);
        }
        let left = received.checked_sub(terms.fee_amount)?.checked_sub(share)?;
        if left.is_zero() {
            return None;
        }
        let (decimals_in, decimals_out) = (registry[at].decimals, registry[to].decimals);
        let ten = |power: u8| U256::from(10).checked_pow(U256::from(power)).unwrap();
        let out = match step {
            Step::Wrap | Step::Unwrap if decimals_out >= decimals_in => {
                left.checked_mul(ten(decimals_out - decimals_in))?
            }
            Step::Wrap | Step::Unwrap => {
                let unit = ten(decimals_in - decimals_out);
                if !(left % unit).is_zero() {
                    return None;
                }
                left / unit
            }
            Step::LayerZero { oft, from, .. } => {
                let shared = registry[oft].legs[from].shared_decimals;
                let sent = left / ten(decimals_in - shared);
                if sent.is_zero() || sent > U256::from(u64::MAX) {
                    return None;
                }
                sent * ten(decimals_out - shared)
            }
            _ => left,
        };
        Some((step, out))
    }

    /// Transactions that a step can belong to.
    fn txs(&self, step: Step, at: AssetRef, hops: &[Hop]) -> Vec<usize> {
        let registry = &self.made.registry;
        let Some(last) = hops.last() else { return vec![0] };
        let chain = registry[at].chain;
        let forwards = registry[chain].forwards;
        let hooks = self.made.facts.hooks_allowed(registry, chain);
        let packet = matches!(last.step, Step::Ibc { .. } | Step::MigratedWithdraw { .. });
        let arrives = packet || matches!(last.step, Step::MigratedDeposit { .. });
        let joins = match step {
            Step::Ibc { channel } => {
                let caught = match &registry[at].origin {
                    Origin::Bridged { bridge, parent } => self.migrated(*bridge, *parent) == Some(channel),
                    _ => false,
                };
                packet && forwards || last.step == Step::Unwrap && !caught
            }
            Step::MigratedDeposit { .. } => packet && forwards,
            Step::MigratedWithdraw { .. } | Step::Withdraw { .. } => last.step == Step::Unwrap,
            Step::Wrap if matches!(last.step, Step::Deposit { .. }) => return vec![last.tx, last.tx + 1],
            Step::Wrap => arrives && hooks,
            _ => false,
        };
        vec![last.tx + usize::from(!joins)]
    }

    fn seconds(&self, step: Step, at: AssetRef, to: AssetRef) -> u64 {
        let (registry, facts) = (&self.made.registry, &self.made.facts);
        let configured = self.terms(step, at, to).seconds.map(u64::from);
        let channel = |channel: registry::ChannelRef| {
            configured.or(registry[channel].seconds.map(u64::from)).unwrap_or(20)
        };
        match step {
            Step::Ibc { channel: over }
            | Step::MigratedDeposit { channel: over, .. }
            | Step::MigratedWithdraw { channel: over, .. } => channel(over),
            Step::Deposit { bridge } => {
                configured.or(registry[bridge].deposit_seconds.map(u64::from)).unwrap_or(30)
            }
            Step::Withdraw { bridge } => {
                let (finalization, submission) = facts.periods(registry, bridge);
                submission * 2 / 3 + finalization
            }
            Step::LayerZero { .. } => configured.unwrap_or_else(|| {
                let chain = &registry[registry[at].chain];
                u64::from(chain.confirmations) * u64::from(chain.block_seconds) + 60
            }),
            _ => configured.unwrap_or(0),
        }
    }
}

/// Decimal digits of any number.
struct Wide(Vec<u32>);

fn num(text: &str) -> Wide {
    Wide(text.chars().map(|digit| digit.to_digit(10).unwrap()).collect())
}

impl Wide {
    /// `self * by / over`, rounded up.
    fn scaled(&self, by: u32, over: u64) -> U256 {
        let (mut digits, mut carry) = (Vec::new(), 0u64);
        for digit in self.0.iter().rev() {
            let sum = u64::from(*digit) * u64::from(by) + carry;
            digits.push(sum % 10);
            carry = sum / 10;
        }
        while carry > 0 {
            digits.push(carry % 10);
            carry /= 10;
        }
        let (mut text, mut rest) = (String::from("0"), 0);
        for digit in digits.into_iter().rev() {
            let sum = rest * 10 + digit;
            text.push(char::from_digit(u32::try_from(sum / over).unwrap(), 10).unwrap());
            rest = sum % over;
        }
        U256::from_str_radix(&text, 10).unwrap() + U256::from(rest > 0)
    }
}

pub(crate) fn cost(plan: &Plan) -> Cost {
    let steps = || plan.hops.iter().map(|hop| hop.step);
    let withdrawals = steps().filter(|step| matches!(step, Step::Withdraw { .. })).count();
    let others = steps().filter(|step| matches!(step, Step::Deposit { .. } | Step::LayerZero { .. })).count();
    let seconds = plan.hops.iter().map(|hop| hop.seconds).sum();
    (
        (withdrawals, withdrawals + others),
        plan.required_op_hook(),
        plan.txs(),
        Reverse(plan.amount_out()),
        seconds,
        plan.hops.len(),
    )
}

/// The names of all assets, for ties.
pub(crate) fn names(made: &GeneratedWorld, plan: &Plan) -> Vec<(String, String, u8, String)> {
    let registry = &made.registry;
    let kind = |step: Step| match step {
        Step::Ibc { .. } => 0,
        Step::Deposit { .. } | Step::MigratedDeposit { .. } => 1,
        Step::Withdraw { .. } | Step::MigratedWithdraw { .. } => 2,
        Step::Wrap => 3,
        Step::Unwrap => 4,
        Step::LayerZero { .. } => 5,
        Step::Send | Step::Swap => 6,
    };
    let group = |step: Step| match step {
        Step::LayerZero { oft, from, .. } => {
            format!("{} {}", registry[oft].symbol, registry[oft].legs[from].contract)
        }
        _ => String::new(),
    };
    let name = |hop: &Hop| {
        let to = &registry[hop.to];
        (registry[to.chain].id.clone(), to.denom.clone(), kind(hop.step), group(hop.step))
    };
    plan.hops.iter().map(name).collect()
}

pub(crate) fn met(plan: &Plan) -> Vec<AssetRef> {
    plan.hops.iter().take(1).map(|hop| hop.from).chain(plan.hops.iter().map(|hop| hop.to)).collect()
}

/// The expected result of the planner.
pub(crate) fn expected(made: &GeneratedWorld, request: &Request) -> Vec<Plan> {
    let mut every = Every { made, request, structure: false, found: Vec::new() };
    every.go(&mut Vec::new());
    let mut found = every.found;
    found.sort_by_cached_key(|plan| (cost(plan), names(made, plan)));
    let mut best: Vec<Plan> = Vec::new();
    for (place, plan) in found.iter().enumerate() {
        let detour = found[..place].iter().any(|better| {
            let (better, mine) = (met(better), met(plan));
            better.len() < mine.len() && better.iter().all(|asset| mine.contains(asset))
        });
        let same = best.iter().any(|other| names(made, other) == names(made, plan));
        if !detour && !same && cost(plan).0.0 == cost(&found[0]).0.0 {
            best.push(plan.clone());
        }
    }
    best.truncate(3);
    best
}

pub(crate) fn connected(made: &GeneratedWorld, request: &Request) -> bool {
    let mut every = Every { made, request, structure: true, found: Vec::new() };
    every.go(&mut Vec::new());
    !every.found.is_empty()
}
