//! Vouchers that no list has: what an asset becomes on the other chain of each of its channels.
//!
//! An index by the hash in the denomination, of 16 bytes a voucher; the asset itself is made at its first use and kept.
//! A large registry has 30,000 of them, and few are asked for.
//!
//! # Invariants
//!
//! * Only tokens that originate on a chain, and its fee coins, have derived vouchers, so their number is that of such
//!   tokens times the channels of their chains.
//! * A voucher that a list has is not derived.
//! * A derived voucher is a function of the lists: it is the same whenever it is made.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::build::MOST_HOPS;
use crate::denom::{self, TRANSFER_PORT};
use crate::model::{Asset, AssetRef, Chain, ChainKind, ChainRef, ChannelRef, Origin, Terms};
use crate::snapshot::{Part, Registry};

/// Derived vouchers of a registry.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// Sorted.
    entries: Vec<Entry>,
    made: Box<[OnceLock<Box<Voucher>>]>,
}

/// A voucher, before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    chain: ChainRef,
    /// The first digits of the hash in its denomination.
    hash: u32,
    channel: ChannelRef,
    parent: AssetRef,
}

/// An asset with its path.
#[derive(Debug)]
pub(crate) struct Voucher {
    pub(crate) asset: Asset,
    pub(crate) path: String,
}

impl Derived {
    /// Finds the vouchers of a registry with all its lists.
    pub(crate) fn new(registry: &Registry) -> Self {
        let mut on_chain: Vec<Vec<AssetRef>> = vec![Vec::new(); registry.chains.len()];
        for (asset, about) in registry.assets() {
            if can_be_sent(registry, asset) {
                on_chain[about.chain.index()].push(asset);
            }
        }
        let mut entries = BTreeSet::new();
        for (channel, ends) in registry.channels() {
            if ends.a.port != TRANSFER_PORT || ends.b.port != TRANSFER_PORT {
                continue;
            }
            for (from, to) in [(&ends.a, &ends.b), (&ends.b, &ends.a)] {
                for parent in &on_chain[from.chain.index()] {
                    let Some(denom) = path(registry, channel, *parent).as_deref().and_then(voucher) else {
                        continue;
                    };
                    let entry = Entry { chain: to.chain, hash: prefix(&denom), channel, parent: *parent };
                    if !registry.asset_by_denom.contains_key(&(to.chain, denom)) {
                        entries.insert(entry);
                    }
                }
            }
        }
        let entries: Vec<_> = entries.into_iter().collect();
        Self { made: entries.iter().map(|_| OnceLock::new()).collect(), entries }
    }

    /// The position of the voucher with a denomination.
    pub(crate) fn find(&self, registry: &Registry, chain: ChainRef, denom: &str) -> Option<usize> {
        let hash = denom::is_voucher(denom).then(|| prefix(denom))?;
        let key = |entry: &Entry| (entry.chain, entry.hash);
        let first = self.entries.partition_point(|entry| key(entry) < (chain, hash));
        let alike = self.entries[first..].iter().take_while(|entry| key(entry) == (chain, hash));
        (first..).zip(alike).find_map(|(at, entry)| {
            let path = path(registry, entry.channel, entry.parent)?;
            (denom::of_path(&path) == denom).then_some(at)
        })
    }

    pub(crate) fn parent(&self, at: usize) -> AssetRef {
        self.entries[at].parent
    }

    pub(crate) fn chain(&self, at: usize) -> ChainRef {
        self.entries[at].chain
    }

    /// The positions of the vouchers of some assets.
    pub(crate) fn of_parents(&self, is_one: impl Fn(AssetRef) -> bool) -> impl Iterator<Item = usize> {
        (0..).zip(&self.entries).filter(move |(_, entry)| is_one(entry.parent)).map(|(at, _)| at)
    }

    pub(crate) fn get(&self, registry: &Registry, at: usize) -> &Voucher {
        self.made[at].get_or_init(|| Box::new(self.make(registry, at)))
    }

    /// The positions of the vouchers of a chain.
    pub(crate) fn of_chain(&self, chain: ChainRef) -> std::ops::Range<usize> {
        let before = |than: ChainRef| self.entries.partition_point(|entry| entry.chain < than);
        before(chain)..self.entries.partition_point(|entry| entry.chain <= chain)
    }

    /// Makes a voucher without keeping it.
    pub(crate) fn make(&self, registry: &Registry, at: usize) -> Voucher {
        let Entry { chain, channel, parent, .. } = self.entries[at];
        let path = path(registry, channel, parent).unwrap_or_default();
        let of = &registry[parent];
        let asset = Asset {
            chain,
            denom: denom::of_path(&path),
            symbol: of.symbol.clone(),
            name: of.name.clone(),
            decimals: of.decimals,
            contract: None,
            logo_uri: of.logo_uri.clone(),
            description: None,
            coingecko_id: of.coingecko_id.clone(),
            price_usd: of.price_usd.clone(),
            hidden: true,
            origin: Origin::Ibc { channel, parent },
            terms: Terms::default(),
        };
        Voucher { asset, path }
    }
}

/// Whether the transfer module of its chain can send an asset, with a path that is known.
fn can_be_sent(registry: &Registry, asset: AssetRef) -> bool {
    let Asset { chain, denom, .. } = &registry[asset];
    let about: &Chain = &registry[*chain];
    let hops = denom::split(registry.path(asset)).0.len();
    let (of_path, is_fee) = (hops > 0, about.fee_assets.iter().any(|fee| fee.denom == *denom));
    about.kind == ChainKind::Cosmos
        && registry.error(Part::Asset(asset)).is_none()
        && (of_path && is_fee || !of_path && !denom::is_voucher(denom))
        && hops < MOST_HOPS
        && denom::cw20(denom).is_none()
}

/// The path of a token after a transfer over a channel.
fn path(registry: &Registry, channel: ChannelRef, parent: AssetRef) -> Option<String> {
    let (channel, chain) = (&registry[channel], registry[parent].chain);
    let (from, to) = (channel.on(chain)?, channel.beyond(chain)?);
    Some(denom::received(registry.path(parent), (&from.port, &from.channel), (&to.port, &to.channel)))
}

/// The denomination of a path; `None` for a token that returned to its chain.
fn voucher(path: &str) -> Option<String> {
    Some(denom::of_path(path)).filter(|denom| denom::is_voucher(denom))
}

fn prefix(denom: &str) -> u32 {
    let digits = denom.get("ibc/".len().."ibc/".len() + 8);
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}
