//! The best swap between two coins of a market.

use chain::U256;

use super::decimal;
use super::market::{Market, Way};
use super::{Refusal, Swap, SwapLeg, SwapPart};

/// Most legs of a swap.
pub(crate) const MAX_LEGS: usize = 3;
/// Most parts of a split amount.
const MAX_PARTS: usize = 4;
/// Shares that a split is made of.
const SHARES: u64 = 64;

/// What a swap may use.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    /// Most legs, at most [`MAX_LEGS`].
    pub(crate) legs: usize,
    /// Whether a pool may be used.
    pub(crate) allows: &'a dyn Fn(usize) -> bool,
}

/// A path of pools with its amounts.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    ways: Vec<(Way, usize)>,
    amounts: Vec<u64>,
}

impl Path {
    pub(crate) fn amount_in(&self) -> u64 {
        self.amounts.first().copied().unwrap_or_default()
    }

    pub(crate) fn amount_out(&self) -> u64 {
        self.amounts.last().copied().unwrap_or_default()
    }

    /// The same pools for another amount in.
    pub(crate) fn for_amount(&self, market: &Market, amount: u64) -> Result<Self, Refusal> {
        let mut amounts = vec![amount];
        let mut at = amount;
        for (way, _) in &self.ways {
            at = market.quote(*way, at, false)?.amount;
            amounts.push(at);
        }
        Ok(Self { ways: self.ways.clone(), amounts })
    }

    pub(crate) fn part(&self, market: &Market) -> SwapPart {
        let leg = |((way, from), amounts): (&(Way, usize), &[u64])| SwapLeg {
            kind: market.pools()[way.pool].kind(),
            pool: market.pools()[way.pool].id.clone(),
            denom_in: market.coins()[*from].clone(),
            denom_out: market.coins()[way.to].clone(),
            amount_in: amounts[0],
            amount_out: amounts[1],
        };
        SwapPart { legs: self.ways.iter().zip(self.amounts.windows(2)).map(leg).collect() }
    }
}

/// A coin reached in a search.
struct Reached {
    path: Path,
    at: usize,
}

/// The best path for each target that a path reaches: most out for `amount` of `from`; with `is_out` least in of each
/// target for `amount` of `from`. The error is the reason of a pool between the two, or of one on the way, if no target is
/// reached.
pub(crate) fn best(
    market: &Market,
    limits: Limits<'_>,
    from: usize,
    targets: &[usize],
    amount: u64,
    is_out: bool,
) -> Result<Vec<(usize, Path)>, Option<Refusal>> {
    let distance = distances(market, limits, targets);
    let mut layer = vec![Reached { path: Path { ways: Vec::new(), amounts: vec![amount] }, at: from }];
    let mut found: Vec<(usize, Path)> = Vec::new();
    let (mut refusal, mut on_the_way) = (None, None);
    let better = |a: u64, b: u64| if is_out { a < b } else { a > b };
    let end = |path: &Path| if is_out { path.amount_in() } else { path.amount_out() };
    for leg in 0..limits.legs {
        let mut next: Vec<Reached> = Vec::new();
        for reached in &layer {
            for way in market.leaving(reached.at) {
                let is_target = targets.contains(&way.to);
                let in_reach = distance[way.to].is_some_and(|left| left + leg < limits.legs);
                let seen = way.to == from
                    || reached
                        .path
                        .ways
                        .iter()
                        .any(|(used, at)| used.pool == way.pool || *at == way.to || used.to == way.to);
                if !in_reach || seen || !(limits.allows)(way.pool) {
                    continue;
                }
                let (forward, start) =
                    if is_out { (opposite(market, *way, reached.at), way.to) } else { (*way, reached.at) };
                let last = end(&reached.path);
                let quote = match market.quote(forward, last, is_out) {
                    Ok(quote) => quote,
                    Err(reason) => {
                        let kept = if is_target { &mut refusal } else { &mut on_the_way };
                        *kept = Some(kept.map_or(reason, |old| clearer(old, reason)));
                        continue;
                    }
                };
                let path = reached.path.extended(forward, start, quote.amount, is_out);
                if is_target {
                    match found.iter_mut().find(|(target, _)| *target == way.to) {
                        Some((_, best)) if better(quote.amount, end(best)) => *best = path.clone(),
                        Some(_) => {}
                        None => found.push((way.to, path.clone())),
                    }
                }
                match next.iter_mut().find(|other| other.at == way.to) {
                    Some(other) if better(quote.amount, end(&other.path)) => other.path = path,
                    Some(_) => {}
                    None => next.push(Reached { path, at: way.to }),
                }
            }
        }
        layer = next;
    }
    if found.is_empty() { Err(refusal.or(on_the_way)) } else { Ok(found) }
}

impl Path {
    fn extended(&self, way: Way, start: usize, amount: u64, is_out: bool) -> Self {
        let mut path = self.clone();
        if is_out {
            path.ways.insert(0, (way, start));
            path.amounts.insert(0, amount);
        } else {
            path.ways.push((way, start));
            path.amounts.push(amount);
        }
        path
    }
}

/// The reason to report of two: the first that another amount avoids.
fn clearer(a: Refusal, b: Refusal) -> Refusal {
    if matches!(a, Refusal::SwitchedOff | Refusal::NotStarted | Refusal::Empty) { b } else { a }
}

/// The same pool in the other direction.
fn opposite(market: &Market, way: Way, back_to: usize) -> Way {
    let ways = market.leaving(way.to).iter();
    ways.copied().find(|other| other.pool == way.pool && other.to == back_to).unwrap_or(way)
}

/// Legs from each coin to the nearest target.
fn distances(market: &Market, limits: Limits<'_>, targets: &[usize]) -> Vec<Option<usize>> {
    let mut distance = vec![None; market.coins().len()];
    let mut layer = targets.to_vec();
    for target in targets {
        distance[*target] = Some(0);
    }
    for legs in 1..limits.legs {
        let mut next = Vec::new();
        for coin in layer {
            for way in market.leaving(coin).iter().filter(|way| (limits.allows)(way.pool)) {
                if distance[way.to].is_none() {
                    distance[way.to] = Some(legs);
                    next.push(way.to);
                }
            }
        }
        layer = next;
    }
    distance
}

/// All of an amount in parts over several pools of a pair, if that gives more than `least`.
pub(crate) fn split(
    market: &Market,
    limits: Limits<'_>,
    (from, to): (usize, usize),
    amount: u64,
    least: u64,
) -> Option<Vec<Path>> {
    let ways: Vec<Way> = market
        .leaving(from)
        .iter()
        .filter(|way| way.to == to && (limits.allows)(way.pool))
        .copied()
        .collect();
    let share = amount / SHARES;
    if ways.len() < 2 || share == 0 {
        return None;
    }
    let out = |way: Way, amount: u64| market.quote(way, amount, false).map_or(0, |quote| quote.amount);
    let mut parts: Vec<(Way, u64, u64)> = ways.into_iter().map(|way| (way, 0, 0)).collect();
    let mut left = amount;
    while left > 0 {
        let step = if left < 2 * share { left } else { share };
        let started = parts.iter().filter(|(_, amount, _)| *amount > 0).count();
        // Each share goes where it adds most.
        let (best, total) = parts
            .iter()
            .enumerate()
            .filter(|(_, (_, amount, _))| *amount > 0 || started < MAX_PARTS)
            .map(|(number, (way, amount, _))| (number, out(*way, amount + step)))
            .max_by_key(|(number, total)| {
                (total.saturating_sub(parts[*number].2), std::cmp::Reverse(*number))
            })?;
        if total <= parts[best].2 {
            return None;
        }
        parts[best] = (parts[best].0, parts[best].1 + step, total);
        left -= step;
    }
    parts.retain(|(_, amount, _)| *amount > 0);
    let total: u64 = parts.iter().try_fold(0u64, |sum, (_, _, out)| sum.checked_add(*out))?;
    let path =
        |(way, amount, out): (Way, u64, u64)| Path { ways: vec![(way, from)], amounts: vec![amount, out] };
    (parts.len() > 1 && total > least).then(|| parts.into_iter().map(path).collect())
}

/// Percent by which paths give less than their spot prices after fees, with two decimals; 0 if they give more.
pub(crate) fn price_impact(market: &Market, paths: &[Path]) -> Option<String> {
    let mut expected = U256::ZERO;
    let mut out = U256::ZERO;
    for path in paths {
        let start = decimal::times(U256::from(path.amount_in()), decimal::ONE).ok()?;
        let at_spot = path.ways.iter().try_fold(start, |at, (way, _)| decimal::mul(at, market.price(*way)?));
        expected = expected.checked_add(at_spot.ok()?)?;
        out = out.checked_add(U256::from(path.amount_out()) * decimal::ONE)?;
    }
    let lost = expected.saturating_sub(out);
    let hundredths =
        (lost.checked_mul(U256::from(20_000))?.checked_div(expected)? + U256::ONE) / U256::from(2);
    let (whole, part) = hundredths.div_rem(U256::from(100));
    Some(format!("{whole}.{part:0>2}"))
}

/// The details of a swap over these paths.
pub(crate) fn details(market: &Market, exact: super::Exact, paths: &[Path]) -> Swap {
    Swap {
        exact,
        parts: paths.iter().map(|path| path.part(market)).collect(),
        price_impact_percent: price_impact(market, paths),
    }
}
