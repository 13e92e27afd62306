//! Swaps of Initia's L1: what a plan says about one.
//!
//! The arithmetic of the three kinds of pools is that of the modules `dex`, `stableswap` and `minitswap` of movevm, with
//! the chain's own rounding, so a quote equals what the chain would give at that height and time.

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
