//! Random registries, the same for the same seed: chains, channels, bridges, vouchers, wrapped tokens and groups of
//! LayerZero tokens, with terms, pauses and quotes.
//!
//! The parts are drawn before they are assembled, so that the same parts can be assembled in another order or with one
//! of them missing; this module does not use the planner's search.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each of those who share it takes what it needs, and stops at the first surprise"
)]

mod build;

use std::collections::HashSet;

use chain::U256;
use planner::{Quotes, Request};
use registry::facts::Quote;
use registry::{AssetRef, Facts, OftRef, Registry, Terms, denom};

pub use build::build;

/// Pseudo-random numbers (splitmix64).
#[derive(Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end` - 1.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }
}

/// Maximum number of parts, and rate of troubled ones.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub chains: usize,
    pub assets: usize,
    pub ofts: usize,
    /// One in this many parts is paused, unknown or has a fee; 0 is none.
    pub trouble: usize,
}

/// The parts of a registry. Parts refer to each other by position.
#[derive(Clone, Default)]
pub struct Parts {
    pub chains: Vec<(Rc, bool)>,
    pub channels: Vec<Wire>,
    /// Rollup, and the channel of each migrated denomination by the position of its asset.
    pub bridges: Vec<BridgePart>,
    pub assets: Vec<AssetPart>,
    pub ofts: Vec<Vec<(usize, Terms, u8)>>,
    pub hooks: Vec<usize>,
    pub closed: Vec<usize>,
    pub seed: u64,
}

/// Kind of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rc {
    Layer1,
    Rollup,
    Outside,
    Ethereum,
}

#[derive(Clone)]
pub struct Wire {
    pub a: usize,
    pub b: usize,
    pub number: usize,
    pub paused: bool,
    pub seconds: Option<u32>,
}

#[derive(Clone)]
pub struct BridgePart {
    pub rollup: usize,
    pub paused: bool,
    pub disabled: bool,
    pub migrated: Vec<(String, usize)>,
}

#[derive(Clone)]
pub struct AssetPart {
    pub chain: usize,
    pub denom: String,
    path: String,
    pub decimals: u8,
    pub from: From,
    pub terms: Terms,
}

#[derive(Clone, Copy)]
pub enum From {
    Native,
    Ibc(usize, usize),
    Bridged(usize, usize),
    Wrapped(usize),
}

impl From {
    pub fn parent(self) -> Option<usize> {
        match self {
            Self::Native => None,
            Self::Ibc(_, parent) | Self::Bridged(_, parent) | Self::Wrapped(parent) => Some(parent),
        }
    }
}

/// A world for the planner.
pub struct GeneratedWorld {
    pub registry: Registry,
    pub facts: Facts,
    pub quotes: Priced,
    /// The assets in the order of the parts.
    pub assets: Vec<AssetRef>,
}

/// Quotes that depend on contracts only.
pub struct Priced {
    contracts: Vec<Vec<String>>,
    seed: u64,
    trouble: usize,
}

impl Quotes for Priced {
    fn quote(&self, oft: OftRef, from: usize, to: usize, amount: U256) -> Option<Quote> {
        let name = format!("{} {}", self.contracts[oft.index()][from], self.contracts[oft.index()][to]);
        let seed =
            name.bytes().fold(self.seed, |sum, byte| sum.wrapping_mul(131).wrapping_add(u64::from(byte)));
        let mut dice = Dice(seed);
        if self.trouble > 0 && dice.once_in(self.trouble * 2) {
            return None;
        }
        let costs = self.trouble > 0 && dice.once_in(self.trouble);
        let kept = if costs { amount / U256::from(100 + dice.below(900)) } else { U256::ZERO };
        Some(Quote { received: amount - kept, native_fee: U256::from(dice.below(1_000_000)) })
    }
}

/// Draws the parts of a registry.
pub fn parts(seed: u64, size: Size) -> Parts {
    let mut dice = Dice(seed);
    let mut parts = Parts { seed, ..Parts::default() };
    for number in 0..size.chains.max(1) {
        let kind = match (number, dice.below(10)) {
            (0, _) => Rc::Layer1,
            (_, 0..5) => Rc::Rollup,
            (_, 5..8) => Rc::Outside,
            _ => Rc::Ethereum,
        };
        parts.chains.push((kind, dice.below(4) > 0));
    }
    let trouble = |dice: &mut Dice| size.trouble > 0 && dice.once_in(size.trouble * 3);
    for chain in 1..parts.chains.len() {
        let kind = parts.chains[chain].0;
        if kind == Rc::Ethereum {
            continue;
        }
        let ways = 1 + usize::from(dice.once_in(4));
        for way in 0..ways {
            let others: Vec<_> = (1..chain).filter(|other| parts.chains[*other].0 == Rc::Outside).collect();
            let spoke = kind == Rc::Outside && way > 0 && !others.is_empty();
            let other = if spoke { others[dice.below(others.len())] } else { 0 };
            let seconds = dice.once_in(5).then(|| u32::try_from(dice.below(100)).unwrap());
            let number = parts.channels.len();
            let paused = trouble(&mut dice);
            parts.channels.push(Wire { a: other, b: chain, number, paused, seconds });
            if trouble(&mut dice) {
                parts.closed.push(number);
            }
        }
        if kind == Rc::Rollup {
            let (paused, disabled) = (trouble(&mut dice), trouble(&mut dice));
            parts.bridges.push(BridgePart { rollup: chain, paused, disabled, migrated: Vec::new() });
            if dice.once_in(2) {
                parts.hooks.push(chain);
            }
        }
    }
    draw_assets(&mut dice, &mut parts, size);
    for bridge in 0..parts.bridges.len() {
        migrate(&mut dice, &mut parts, bridge);
    }
    for _ in 0..size.ofts {
        draw_oft(&mut dice, &mut parts, size);
    }
    parts
}

fn draw_assets(dice: &mut Dice, parts: &mut Parts, size: Size) {
    let natives = size.chains + size.assets / 40;
    let mut wires = vec![Vec::new(); parts.chains.len()];
    for (number, wire) in parts.channels.iter().enumerate() {
        wires[wire.a].push(number);
        wires[wire.b].push(number);
    }
    let (mut tries, mut taken) = (0, HashSet::new());
    while parts.assets.len() < size.assets && tries < size.assets * 6 {
        tries += 1;
        let number = parts.assets.len();
        let drawn = if number < natives.min(size.assets / 2) {
            let chain = if number < size.chains { number } else { dice.below(size.chains) };
            let decimals = [6, 6, 8, 18][dice.below(4)];
            let denom = match parts.chains[chain].0 {
                Rc::Ethereum if number < size.chains => format!("coin{chain}-native"),
                Rc::Ethereum => format!("0x{:040x}", number + 1),
                _ => format!("utoken{number}"),
            };
            Some(AssetPart {
                chain,
                path: denom.clone(),
                denom,
                decimals,
                from: From::Native,
                terms: Terms::default(),
            })
        } else {
            child(dice, parts, &wires, number)
        };
        let Some(mut drawn) = drawn else { continue };
        if !taken.insert((drawn.chain, drawn.denom.clone())) {
            continue;
        }
        drawn.terms = terms(dice, size);
        parts.assets.push(drawn);
    }
}

fn child(dice: &mut Dice, parts: &Parts, wires: &[Vec<usize>], number: usize) -> Option<AssetPart> {
    let parent = dice.below(parts.assets.len());
    let from = &parts.assets[parent];
    let terms = Terms::default();
    let is_rollup = parts.chains[from.chain].0 == Rc::Rollup;
    if is_rollup && from.denom.starts_with(['l', 'i']) && dice.once_in(2) {
        // Digits only, because case would be part of the denomination.
        let denom = format!("evm/{number:040}");
        let decimals = [18, 18, 18, 6][dice.below(4)];
        let (chain, path) = (from.chain, denom.clone());
        return Some(AssetPart { chain, path, denom, decimals, from: From::Wrapped(parent), terms });
    }
    if from.chain == 0 && !parts.bridges.is_empty() && dice.once_in(2) {
        let bridge = dice.below(parts.bridges.len());
        let denom = denom::bridged(bridge_id(parts, bridge), &from.denom);
        let (chain, path) = (parts.bridges[bridge].rollup, denom.clone());
        let decimals = from.decimals;
        return Some(AssetPart { chain, path, denom, decimals, from: From::Bridged(bridge, parent), terms });
    }
    let wires = &wires[from.chain];
    let wire = *wires.get(dice.below(wires.len()))?;
    let chain = parts.channels[wire].a + parts.channels[wire].b - from.chain;
    let [near, far] = [end(&parts.channels[wire], from.chain), end(&parts.channels[wire], chain)];
    let path = denom::received(&from.path, ("transfer", &near), ("transfer", &far));
    let denom = denom::of_path(&path);
    Some(AssetPart { chain, denom, path, decimals: from.decimals, from: From::Ibc(wire, parent), terms })
}

fn bridge_id(parts: &Parts, bridge: usize) -> u64 {
    u64::try_from(parts.bridges[bridge].rollup).unwrap() + 100
}

/// Both ends have different names, and the names do not depend on the order.
fn end(wire: &Wire, chain: usize) -> String {
    format!("channel-{}", wire.number * 2 + usize::from(chain == wire.b))
}

fn migrate(dice: &mut Dice, parts: &mut Parts, bridge: usize) {
    let rollup = parts.bridges[bridge].rollup;
    let Some(wire) = parts.channels.iter().position(|wire| wire.a == 0 && wire.b == rollup) else { return };
    for asset in 0..parts.assets.len() {
        if parts.assets[asset].chain == 0 && dice.once_in(5) {
            parts.bridges[bridge].migrated.push((parts.assets[asset].denom.clone(), wire));
        }
    }
}

fn draw_oft(dice: &mut Dice, parts: &mut Parts, size: Size) {
    let mut legs: Vec<(usize, Terms, u8)> = Vec::new();
    for _ in 0..2 + dice.below(4) {
        let asset = dice.below(parts.assets.len());
        let chain = |leg: &(usize, Terms, u8)| parts.assets[leg.0].chain;
        if legs.iter().all(|leg| chain(leg) != parts.assets[asset].chain) {
            legs.push((asset, terms(dice, size), 0));
        }
    }
    let shared = legs.iter().map(|leg| parts.assets[leg.0].decimals).min().unwrap_or(0).min(6);
    for leg in &mut legs {
        leg.2 = shared;
    }
    if legs.len() > 1 {
        parts.ofts.push(legs);
    }
}

fn terms(dice: &mut Dice, size: Size) -> Terms {
    let mut terms = Terms::default();
    if size.trouble == 0 || !dice.once_in(size.trouble) {
        return terms;
    }
    match dice.below(5) {
        0 => terms.paused = Some("repairs".to_owned()),
        1 => terms.min_amount = U256::from(dice.below(5_000_000)),
        2 => terms.fee_amount = U256::from(dice.below(2_000)),
        3 => terms.fee_bps = u32::try_from(dice.below(200)).unwrap(),
        _ => terms.seconds = Some(u32::try_from(dice.below(300)).unwrap()),
    }
    terms
}

/// The connected parts, for [`request`].
pub fn neighbours(parts: &Parts) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); parts.assets.len()];
    for (child, part) in parts.assets.iter().enumerate() {
        if let Some(parent) = part.from.parent() {
            next[child].push(parent);
            next[parent].push(child);
        }
    }
    for legs in &parts.ofts {
        for (leg, other) in legs.iter().flat_map(|leg| legs.iter().map(move |other| (leg.0, other.0))) {
            if leg != other {
                next[leg].push(other);
            }
        }
    }
    next
}

/// A request: two assets, of which the second can often be reached from the first, and an amount of any size.
pub fn request(dice: &mut Dice, made: &GeneratedWorld, neighbours: &[Vec<usize>]) -> Request {
    let from = dice.below(neighbours.len());
    let to = if dice.once_in(4) { dice.below(neighbours.len()) } else { walk(dice, neighbours, from) };
    let amount_in = match dice.below(8) {
        0 => U256::from(dice.below(5_000)),
        1 => U256::MAX >> dice.below(200),
        2 => U256::from(1 + dice.below(999)) * U256::from(10u128.pow(18)),
        _ => {
            U256::from(1 + dice.below(999))
                * U256::from(10u128.pow(u32::try_from(3 + dice.below(14)).unwrap()))
        }
    };
    Request {
        from: made.assets[from],
        to: made.assets[to],
        amount_in,
        op_withdraw: dice.once_in(10),
        multi_tx: !dice.once_in(3),
        op_hook: !dice.once_in(3),
        bridges: dice.once_in(10).then(|| {
            let kinds = registry::BridgeKind::ALL;
            vec![kinds[dice.below(3)], kinds[dice.below(3)]]
        }),
    }
}

/// A walk over a few connections.
fn walk(dice: &mut Dice, neighbours: &[Vec<usize>], from: usize) -> usize {
    let mut at = from;
    for _ in 0..=dice.below(5) {
        at = neighbours[at].get(dice.below(neighbours[at].len())).copied().unwrap_or(at);
    }
    at
}
