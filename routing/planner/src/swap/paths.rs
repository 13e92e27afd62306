//! The best swap between two coins of a market.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use chain::U256;

use super::decimal;
use super::market::{Market, Way};
use super::{Refusal, Swap, SwapLeg, SwapPart};

/// Most legs of a swap.
pub(crate) const MAX_LEGS: usize = 3;
/// Most quotes of a search. Some dozens are usual; only a market whose pools refuse an amount has as many.
const MAX_QUOTES: usize = 10_000;
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

/// A coin that a search has reached.
struct Reached {
    path: Path,
    at: usize,
}

/// A way to go on from a reached coin; the greatest is tried first.
struct Candidate {
    /// What the path can give at most, at the prices without impact; with a set amount out, what it takes at least,
    /// negative.
    bound: f64,
    /// Numbers of the reached coin and of its way: among equal ones, the first that was found.
    from: Reverse<(usize, usize)>,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then(self.from.cmp(&other.from))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

/// Why pools refused an amount.
#[derive(Default)]
struct Refusals {
    /// Of a pool between the two coins.
    between: Option<Refusal>,
    on_the_way: Option<Refusal>,
}

impl Refusals {
    fn add(&mut self, refusal: Refusal, is_between: bool) {
        let kept = if is_between { &mut self.between } else { &mut self.on_the_way };
        *kept = Some(kept.map_or(refusal, |old| clearer(old, refusal)));
    }
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
    let mut refusals = Refusals::default();
    let search = |target: &usize| {
        let search = Search { market, limits, from, target: *target, is_out, refusals: &mut refusals };
        search.best(amount).map(|path| (*target, path))
    };
    let found: Vec<_> = targets.iter().filter(|target| **target != from).filter_map(search).collect();
    if found.is_empty() { Err(refusals.between.or(refusals.on_the_way)) } else { Ok(found) }
}

/// A search for the best path to one coin: candidates in the order of their bounds (A*), until none can be better than
/// the best that was found. The chain's series makes a quote microseconds, and a market has hundreds of pools around one
/// coin.
struct Search<'a> {
    market: &'a Market,
    limits: Limits<'a>,
    from: usize,
    target: usize,
    is_out: bool,
    refusals: &'a mut Refusals,
}

impl Search<'_> {
    fn best(self, amount: u64) -> Option<Path> {
        let (market, is_out) = (self.market, self.is_out);
        let rates = self.rates();
        let start = Path { ways: Vec::new(), amounts: vec![amount] };
        let mut reached = vec![Reached { path: start, at: self.from }];
        let mut candidates = BinaryHeap::new();
        self.leave(&reached, &rates, &mut candidates);
        let end = |path: &Path| if is_out { path.amount_in() } else { path.amount_out() };
        let is_better = |a: u64, b: u64| if is_out { a < b } else { a > b };
        let mut best: Option<Path> = None;
        for _ in 0..MAX_QUOTES {
            let Some(Candidate { bound, from: Reverse((number, way)) }) = candidates.pop() else { break };
            if best.as_ref().is_some_and(|best| self.is_hopeless(bound, end(best))) {
                break;
            }
            let Reached { path, at } = &reached[number];
            let way = market.leaving(*at)[way];
            let (forward, start) = if is_out { (opposite(market, way, *at), way.to) } else { (way, *at) };
            let quote = match market.quote(forward, end(path), is_out) {
                Ok(quote) => quote,
                Err(reason) => {
                    self.refusals.add(reason, way.to == self.target);
                    continue;
                }
            };
            let path = path.extended(forward, start, quote.amount, is_out);
            if way.to == self.target {
                if best.as_ref().is_none_or(|best| is_better(quote.amount, end(best))) {
                    best = Some(path);
                }
                continue;
            }
            reached.push(Reached { path, at: way.to });
            self.leave(&reached, &rates, &mut candidates);
        }
        best
    }

    /// Adds the ways to leave the coin that was reached last.
    fn leave(&self, reached: &[Reached], rates: &[Vec<f64>], candidates: &mut BinaryHeap<Candidate>) {
        let Some(Reached { path, at }) = reached.last() else { return };
        let Some(left) = self.limits.legs.checked_sub(path.ways.len() + 1) else { return };
        let seen = |way: &Way| {
            let is_seen =
                |(used, at): &(Way, usize)| used.pool == way.pool || *at == way.to || used.to == way.to;
            way.to == self.from || path.ways.iter().any(is_seen)
        };
        for (number, way) in self.market.leaving(*at).iter().enumerate() {
            let onward = rates[left][way.to];
            if onward <= 0.0 || seen(way) || !(self.limits.allows)(way.pool) {
                continue;
            }
            let (rate, slack) = (self.rate(*at, *way), self.market.slack());
            let bound = if self.is_out {
                -(as_f64(path.amount_in()) - slack).max(0.0) / rate / onward
            } else {
                (as_f64(path.amount_out()) * rate + slack) * onward
            };
            candidates.push(Candidate { bound, from: Reverse((reached.len() - 1, number)) });
        }
    }

    /// By legs and coin: the best product of prices without impact on a path to the target, at most so long; 0 if there is
    /// none.
    fn rates(&self) -> Vec<Vec<f64>> {
        let mut first = vec![0.0; self.market.coins().len()];
        first[self.target] = 1.0;
        let mut rates = vec![first];
        for legs in 1..self.limits.legs {
            let last = &rates[legs - 1];
            let mut next = last.clone();
            for (coin, rate) in next.iter_mut().enumerate() {
                for way in self.market.leaving(coin).iter().filter(|way| (self.limits.allows)(way.pool)) {
                    if last[way.to] > 0.0 {
                        *rate = f64::max(*rate, self.rate(coin, *way) * last[way.to]);
                    }
                }
            }
            rates.push(next);
        }
        rates
    }

    /// Returned for one offered, without impact, along the search's direction.
    fn rate(&self, at: usize, way: Way) -> f64 {
        if self.is_out { opposite(self.market, way, at).rate } else { way.rate }
    }

    /// Whether a bound is worse than an amount that was found, by more than the error of the chain's series and of the
    /// rounding to whole units.
    fn is_hopeless(&self, bound: f64, found: u64) -> bool {
        let found = as_f64(found);
        let slack = found * 1e-9 + self.market.slack();
        if self.is_out { -bound > found + slack } else { bound < found - slack }
    }
}

#[expect(clippy::cast_precision_loss, reason = "bounds have a slack")]
pub(crate) fn as_f64(amount: u64) -> f64 {
    amount as f64
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

#[cfg(test)]
mod tests;
