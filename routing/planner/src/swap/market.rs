//! The pools of one chain at one height.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use chain::U256;
use registry::AssetRef;

use super::{MinitswapPool, PoolKind, Quote, Refusal, StablePool, WeightedPool};

/// A pool and its coins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// As in [`super::SwapLeg::pool`].
    pub id: String,
    /// Denominations, in the order of the state; of a Minitswap pool the voucher, then the L1's coin.
    pub coins: Vec<String>,
    /// Reserves and parameters.
    pub state: PoolState,
}

/// State of a pool of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the kinds of `PoolKind`")]
pub enum PoolState {
    Weighted(WeightedPool),
    Stable(StablePool),
    Minitswap(MinitswapPool),
}

/// All pools of a chain at a height: immutable, so that all quotes of a request fit together.
#[derive(Debug, Clone, Default)]
pub struct Market {
    /// Chain id.
    pub chain: String,
    /// The state's height.
    pub height: u64,
    /// Unix seconds of that block; quotes are for it.
    pub time: u64,
    pools: Vec<Pool>,
    coins: Vec<String>,
    by_denom: HashMap<String, usize>,
    /// By coin: the ways to leave it.
    edges: Vec<Vec<Way>>,
    /// By how many base units a quote may be more than its way's rate gives.
    slack: f64,
    /// By coin: its asset, with the hash of the registry.
    assets: OnceLock<(String, Vec<Option<CoinAsset>>)>,
}

/// The asset of a coin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoinAsset {
    pub(crate) asset: AssetRef,
    /// The same for all assets that hops without a swap connect, however many.
    pub(crate) root: u32,
}

/// One direction of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) pool: usize,
    /// The other coin.
    pub(crate) to: usize,
    /// Returned for one offered at most: the price without impact.
    pub(crate) rate: f64,
    /// Positions in the pool.
    offered: usize,
    returned: usize,
}

impl Market {
    /// A chain's pools at a height.
    pub fn new(chain: String, height: u64, time: u64, pools: Vec<Pool>) -> Self {
        let mut market = Self { chain, height, time, ..Self::default() };
        for (number, pool) in pools.iter().enumerate() {
            let coins: Vec<usize> = pool.coins.iter().map(|coin| market.add(coin)).collect();
            for (offered, from) in coins.iter().enumerate() {
                for (returned, to) in coins.iter().enumerate().filter(|(returned, _)| *returned != offered) {
                    market.edges[*from].push(Way {
                        pool: number,
                        to: *to,
                        rate: f64::INFINITY,
                        offered,
                        returned,
                    });
                }
            }
        }
        market.pools = pools;
        let mut edges = std::mem::take(&mut market.edges);
        for way in edges.iter_mut().flatten() {
            way.rate = market.rate(*way);
        }
        market.edges = edges;
        let reserves = market.pools.iter().flat_map(Pool::reserves);
        market.slack =
            3.0 + 1e-11 * reserves.map(|reserve| super::paths::as_f64(*reserve)).fold(0.0, f64::max);
        market
    }

    fn add(&mut self, coin: &str) -> usize {
        if let Some(known) = self.by_denom.get(coin) {
            return *known;
        }
        self.coins.push(coin.to_owned());
        self.edges.push(Vec::new());
        self.by_denom.insert(coin.to_owned(), self.coins.len() - 1);
        self.coins.len() - 1
    }

    /// All pools.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// Denominations of all coins.
    pub fn coins(&self) -> &[String] {
        &self.coins
    }

    /// The number of a denomination's coin.
    pub(crate) fn coin(&self, denom: &str) -> Option<usize> {
        self.by_denom.get(denom).copied()
    }

    /// What `find` gives for each coin, in their order; kept for the registry, by its hash, that is asked about first.
    pub(crate) fn assets(
        &self,
        registry: &str,
        find: impl Fn(&str) -> Option<CoinAsset>,
    ) -> Cow<'_, [Option<CoinAsset>]> {
        let all = || self.coins.iter().map(|denom| find(denom)).collect::<Vec<_>>();
        let (hash, assets) = self.assets.get_or_init(|| (registry.to_owned(), all()));
        if hash == registry { Cow::Borrowed(assets) } else { Cow::Owned(all()) }
    }

    /// By how many base units a quote may be more than its way's rate gives: the rounding to whole units, and the terms
    /// below 10^-13 of the reserve at which the chain's series end.
    pub(crate) fn slack(&self) -> f64 {
        self.slack
    }

    pub(crate) fn leaving(&self, coin: usize) -> &[Way] {
        &self.edges[coin]
    }

    /// What a way gives for an amount, or takes for one.
    pub(crate) fn quote(&self, way: Way, amount: u64, is_out: bool) -> Result<Quote, Refusal> {
        let Way { offered, returned, .. } = way;
        let quote = match (&self.pools[way.pool].state, is_out) {
            (PoolState::Weighted(pool), false) => pool.amount_out(self.time, offered, amount),
            (PoolState::Weighted(pool), true) => pool.amount_in(self.time, offered, amount),
            (PoolState::Stable(pool), false) => pool.amount_out(offered, returned, amount),
            (PoolState::Stable(pool), true) => pool.amount_in(offered, returned, amount),
            (PoolState::Minitswap(pool), false) => pool.amount_out(self.time, offered == 0, amount),
            (PoolState::Minitswap(pool), true) => pool.amount_in(self.time, offered == 0, amount),
        }?;
        if quote.amount == 0 { Err(Refusal::TooSmall) } else { Ok(quote) }
    }

    /// [`Self::price`]; infinite for Minitswap, whose fee is not a rate, and for a pool without a price.
    fn rate(&self, way: Way) -> f64 {
        match &self.pools[way.pool].state {
            PoolState::Minitswap(_) => f64::INFINITY,
            _ => self
                .price(way)
                .map_or(f64::INFINITY, |price| f64::from(price) / f64::from(super::decimal::ONE)),
        }
    }

    /// Returned for one offered, after the fee's rate but without impact, in units of 10^-18.
    pub(crate) fn price(&self, way: Way) -> Result<U256, Refusal> {
        let Way { offered, returned, .. } = way;
        let (price, fee) = match &self.pools[way.pool].state {
            PoolState::Weighted(pool) => (pool.spot_price(self.time, offered)?, pool.fee_rate),
            PoolState::Stable(pool) => (pool.spot_price(offered, returned)?, pool.fee_rate),
            PoolState::Minitswap(pool) => (pool.spot_price(self.time, offered == 0)?, pool.fee_rate),
        };
        super::decimal::mul(price, super::decimal::ONE.saturating_sub(fee))
    }
}

impl Pool {
    fn reserves(&self) -> &[u64] {
        match &self.state {
            PoolState::Weighted(pool) => &pool.reserves,
            PoolState::Stable(pool) => &pool.reserves,
            // Its ways have no finite rate.
            PoolState::Minitswap(_) => &[],
        }
    }

    /// The kind of its module.
    pub fn kind(&self) -> PoolKind {
        match self.state {
            PoolState::Weighted(_) => PoolKind::Weighted,
            PoolState::Stable(_) => PoolKind::Stable,
            PoolState::Minitswap(_) => PoolKind::Minitswap,
        }
    }
}
