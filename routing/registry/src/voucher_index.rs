//! Index of derived vouchers, by the hash in their denominations.
//!
//! 32 bytes a voucher. The asset itself is made at its first use and kept: a large registry has tens of thousands of
//! derived vouchers, and few are asked for.

use std::ops::Range;
use std::sync::OnceLock;

use crate::denom;
use crate::model::{Asset, AssetRef, ChainRef, ChannelRef};

/// Derived vouchers of a registry.
#[derive(Debug, Default)]
pub(crate) struct VoucherIndex {
    /// Sorted.
    entries: Vec<Entry>,
    made: Box<[OnceLock<Box<Voucher>>]>,
}

/// A voucher, before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) chain: ChainRef,
    /// The first digits of the hash in its denomination.
    hash: u32,
    pub(crate) channel: ChannelRef,
    pub(crate) parent: AssetRef,
}

/// An asset with its path.
#[derive(Debug)]
pub(crate) struct Voucher {
    pub(crate) asset: Asset,
    pub(crate) path: String,
}

impl Entry {
    pub(crate) fn new(chain: ChainRef, denom: &str, channel: ChannelRef, parent: AssetRef) -> Self {
        Self { chain, hash: prefix(denom), channel, parent }
    }
}

impl VoucherIndex {
    pub(crate) fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_unstable();
        entries.shrink_to_fit();
        Self { made: entries.iter().map(|_| OnceLock::new()).collect(), entries }
    }

    /// The vouchers of a chain that may have a denomination, with their positions.
    pub(crate) fn alike(&self, chain: ChainRef, denom: &str) -> impl Iterator<Item = (usize, &Entry)> {
        let key = (chain, prefix(denom));
        let first = self.entries.partition_point(|entry| (entry.chain, entry.hash) < key);
        let is_alike = move |(_, entry): &(usize, &Entry)| (entry.chain, entry.hash) == key;
        (first..).zip(&self.entries[first..]).take_while(is_alike)
    }

    /// The positions of the vouchers of a chain.
    pub(crate) fn of_chain(&self, chain: ChainRef) -> Range<usize> {
        let first = self.entries.partition_point(|entry| entry.chain < chain);
        first..self.entries.partition_point(|entry| entry.chain <= chain)
    }

    /// The positions of the vouchers whose parent is one of some assets.
    pub(crate) fn of_parents(&self, parents: Vec<AssetRef>) -> impl Iterator<Item = usize> {
        (0..).zip(&self.entries).filter(move |(_, entry)| parents.contains(&entry.parent)).map(|(at, _)| at)
    }

    pub(crate) fn entry(&self, at: usize) -> Entry {
        self.entries[at]
    }

    /// The voucher at a position, which `make` makes if this is its first use.
    pub(crate) fn get(&self, at: usize, make: impl FnOnce() -> Voucher) -> &Voucher {
        self.made[at].get_or_init(|| Box::new(make()))
    }
}

fn prefix(denom: &str) -> u32 {
    let digits = denom.strip_prefix(denom::VOUCHER).and_then(|hash| hash.get(..8));
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}
