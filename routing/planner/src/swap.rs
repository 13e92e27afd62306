//! Swaps of Initia's L1: what a plan says about one, and the routes with one.
//!
//! | module | one job |
//! |---|---|
//! | `weighted`, `stable`, `minitswap`, `decimal` | arithmetic of the three kinds of pools |
//! | `views` | their states from the chain's JSON |
//! | `market` | the pools of a chain at a height |
//! | `paths` | the best legs between two coins |
//! | `route` | routes: hops before, the swap, hops after |
//!
//! The arithmetic of the three kinds of pools is that of the modules `dex`, `stableswap` and `minitswap` of movevm, with
//! the chain's own rounding, so a quote equals what the chain would give at that height and time.

pub mod decimal;
mod market;
mod minitswap;
mod paths;
mod route;
mod stable;
mod views;
mod weighted;

pub use market::{Market, Pool, PoolState};
pub use minitswap::{MinitswapPool, Recovered};
pub use route::{SwapAmount, SwapRules, plan_swaps};
pub use stable::StablePool;
pub use views::Unreadable;
pub use weighted::{WeightedPool, Weights};

/// An amount that a pool gives or takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote {
    /// Base units returned after the fee, or offered with it.
    pub amount: u64,
    /// Base units, in the coin that the pool takes its fee from.
    pub fee: u64,
}

/// Why a pool does not swap an amount. The chain aborts where one is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing is offered.
    #[error("the amount is 0")]
    Zero,
    /// More than the pool can take or give: a weighted pool takes less than 99 times its reserve, and gives less than
    /// half of it where the amount out is set.
    #[error("the amount is more than the pool can swap")]
    TooLarge,
    /// Fees or rounding leave nothing.
    #[error("the amount is too small for the pool to give anything")]
    TooSmall,
    /// The weights' first time is to come.
    #[error("the pool has not started")]
    NotStarted,
    /// Governance switched the pool off.
    #[error("the pool is switched off")]
    SwitchedOff,
    /// The voucher of a Minitswap pool can be bought only as far as it was sold.
    #[error("the pool has sold too little of the coin to buy that much of it back")]
    AtPar,
    /// A reserve is 0.
    #[error("the pool is empty")]
    Empty,
    /// The pool does not have the coin.
    #[error("the pool does not have the coin")]
    NoSuchCoin,
}

/// The kinds of pools, which are modules at `0x1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolKind {
    /// `dex`: two coins with weights.
    Weighted,
    /// `stableswap`: two to five coins of about the same value.
    Stable,
    /// `minitswap`: the L1's coin and the same coin of a rollup that came back by IBC.
    Minitswap,
}

impl PoolKind {
    /// Its number in the adapter's `venues`.
    pub fn adapter_number(self) -> u8 {
        match self {
            Self::Weighted => 0,
            Self::Stable => 1,
            Self::Minitswap => 2,
        }
    }

    /// The module that swaps.
    pub fn module(self) -> &'static str {
        match self {
            Self::Weighted => "dex",
            Self::Stable => "stableswap",
            Self::Minitswap => "minitswap",
        }
    }
}

/// Which of the two amounts of a swap the user set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    /// All of the amount in is swapped; the amount out depends on the pools at execution.
    In,
    /// The amount out is wanted; the amount in depends on the pools at execution. Only for a swap that its signer
    /// executes, because a packet carries a fixed amount.
    Out,
}

/// The swap of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// Which amount is fixed.
    pub exact: Exact,
    /// At least one. More than one only if the swap is all of its transaction and exact in: then each is a message of
    /// its own, and they are between the same two coins.
    pub parts: Vec<SwapPart>,
    /// How much worse than the spot price it is, fees apart: percent with two decimals, for example `0.48`. None if a
    /// pool has no spot price.
    pub price_impact_percent: Option<String>,
}

/// A share of a swap, over one pool after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwapPart {
    /// One to three; each starts with the coin and the amount that the one before gave.
    pub legs: Vec<SwapLeg>,
}

/// A swap in one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwapLeg {
    /// The pool's module.
    pub kind: PoolKind,
    /// As the adapter takes it: the denomination of the LP token, `move/` and 64 hex digits; of a Minitswap pool, which
    /// has none, that of its IBC voucher, which is not read.
    pub pool: String,
    /// Denomination of the coin offered.
    pub denom_in: String,
    /// Denomination of the coin returned.
    pub denom_out: String,
    /// Base units offered, fee included.
    pub amount_in: u64,
    /// Base units returned, after the fee.
    pub amount_out: u64,
}

impl SwapPart {
    /// Base units offered.
    pub fn amount_in(&self) -> u64 {
        self.legs.first().map_or(0, |leg| leg.amount_in)
    }

    /// Base units returned.
    pub fn amount_out(&self) -> u64 {
        self.legs.last().map_or(0, |leg| leg.amount_out)
    }
}
