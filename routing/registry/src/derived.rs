//! Vouchers that no list has: what a token becomes on the other chain of each of its channels.
//!
//! # Invariants
//!
//! * Only tokens that originate on a chain, and its first fee coin, have derived vouchers, so their number is that of such
//!   tokens times the channels of their chains.
//! * A voucher that a list has is not derived.
//! * A derived voucher is a function of the lists: it is the same whenever it is made.

use crate::denom::{self, TRANSFER_PORT};
use crate::model::{AssetRef, ChainKind, ChainRef, Origin};
use crate::snapshot::{Part, Registry};
use crate::voucher_index::{Entry, VoucherIndex};

/// The vouchers of a registry with all its lists.
pub(crate) fn vouchers(registry: &Registry) -> VoucherIndex {
    let (mut on_chain, respells) = (vec![Vec::new(); registry.chains.len()], respelling(registry));
    for (asset, about) in registry.assets() {
        let is_respelled = about.denom.contains('/') && respells.contains(&about.chain);
        if !is_respelled && can_be_sent(registry, asset) {
            on_chain[about.chain.index()].push(asset);
        }
    }
    let mut entries = Vec::new();
    for (channel, ends) in registry.channels() {
        if ends.a.port != TRANSFER_PORT || ends.b.port != TRANSFER_PORT {
            continue;
        }
        for (from, to) in [(&ends.a, &ends.b), (&ends.b, &ends.a)] {
            for parent in &on_chain[from.chain.index()] {
                let path = registry.path_over(channel, *parent).unwrap_or_default();
                let key = (to.chain, denom::of_path(&path));
                // A token may also return to its chain.
                if denom::is_voucher(&key.1) && !registry.asset_by_denom.contains_key(&key) {
                    entries.push(Entry::new(key.0, &key.1, channel, *parent));
                }
            }
        }
    }
    VoucherIndex::new(entries)
}

/// Chains that spell denominations otherwise in packets, as the paths of listed vouchers show: Kujira writes `factory:…`.
fn respelling(registry: &Registry) -> Vec<ChainRef> {
    let vouchers = registry.assets().filter_map(|(asset, about)| match about.origin {
        Origin::Ibc { channel, parent } => Some((asset, channel, parent)),
        _ => None,
    });
    let respelled = vouchers.filter(|(asset, channel, parent)| {
        registry.path_over(*channel, *parent).as_deref() != Some(registry.path(*asset))
    });
    respelled.map(|(_, _, parent)| registry[parent].chain).collect()
}

/// Whether the transfer module of its chain can send an asset, with a path that is known.
fn can_be_sent(registry: &Registry, asset: AssetRef) -> bool {
    let about = &registry[asset];
    let chain = &registry[about.chain];
    let is_fee_coin = chain.fee_assets.first().is_some_and(|fee| fee.denom == about.denom);
    let is_voucher = denom::is_voucher(&about.denom);
    let is_opaque = is_voucher && registry.path(asset) == about.denom;
    chain.kind == ChainKind::Cosmos
        && registry.error(Part::Asset(asset)).is_none()
        && (!is_voucher || is_fee_coin && !is_opaque)
        && denom::cw20(&about.denom).is_none()
}
