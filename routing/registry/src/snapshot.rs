//! Immutable registry with its lookups.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Index;

use rustc_hash::FxHashMap;

use crate::denom;
use crate::model::{
    Asset, AssetRef, Bridge, BridgeKind, BridgeRef, Chain, ChainKind, ChainRef, Channel, ChannelRef,
    Endpoints, Oft, OftRef, Origin, Terms, Venue,
};
use crate::voucher_index::{Entry, Voucher, VoucherIndex};

/// A part that the graph makes edges from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// A token.
    Asset(AssetRef),
    /// An optimistic bridge.
    Bridge(BridgeRef),
    /// A group of tokens that LayerZero connects.
    Oft(OftRef),
}

/// Chains, assets and their connections.
#[derive(Debug, Default)]
pub struct Registry {
    pub(crate) chains: Vec<Chain>,
    pub(crate) chain_by_id: FxHashMap<String, ChainRef>,
    pub(crate) assets: Vec<Asset>,
    /// The full ICS-20 path of each asset on its chain; the denomination of an asset without one.
    pub(crate) paths: Vec<String>,
    pub(crate) asset_by_denom: FxHashMap<(ChainRef, String), AssetRef>,
    pub(crate) channels: Vec<Channel>,
    /// By (chain, port, channel) of either end.
    pub(crate) channel_by_end: FxHashMap<(ChainRef, String, String), ChannelRef>,
    pub(crate) bridges: Vec<Bridge>,
    pub(crate) ofts: Vec<Oft>,
    pub(crate) venues: Vec<Venue>,
    pub(crate) bridge_logos: BTreeMap<BridgeKind, String>,
    pub(crate) hash: String,
    /// Error of a part, which excludes it from routes.
    pub(crate) errors: FxHashMap<Part, String>,
    pub(crate) derived: VoucherIndex,
}

macro_rules! indexed {
    ($($reference:ty => $list:ident: $part:ty),* $(,)?) => {
        $(impl Index<$reference> for Registry {
            type Output = $part;

            fn index(&self, reference: $reference) -> &$part {
                &self.$list[reference.index()]
            }
        })*
    };
}

indexed! {
    ChainRef => chains: Chain,
    ChannelRef => channels: Channel,
    BridgeRef => bridges: Bridge,
    OftRef => ofts: Oft,
}

impl Index<AssetRef> for Registry {
    type Output = Asset;

    fn index(&self, reference: AssetRef) -> &Asset {
        match self.derived_at(reference) {
            Some(at) => &self.derived.get(at, || self.make(at)).asset,
            None => &self.assets[reference.index()],
        }
    }
}

/// The references of a list, in order.
macro_rules! references {
    ($list:expr, $reference:ident) => {
        (0u32..).zip(&$list).map(|(index, part)| ($reference(index), part))
    };
}

impl Registry {
    /// All chains. Loaded from files: the L1 first, then cosmos chains, then EVM chains, each by id.
    pub fn chains(&self) -> impl Iterator<Item = (ChainRef, &Chain)> {
        references!(self.chains, ChainRef)
    }

    /// All assets of the lists; a parent comes before its child. Loaded from files: by number of steps from the origin,
    /// then by chain and denomination.
    pub fn assets(&self) -> impl Iterator<Item = (AssetRef, &Asset)> {
        references!(self.assets, AssetRef)
    }

    /// All channels.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelRef, &Channel)> {
        references!(self.channels, ChannelRef)
    }

    /// All optimistic bridges.
    pub fn bridges(&self) -> impl Iterator<Item = (BridgeRef, &Bridge)> {
        references!(self.bridges, BridgeRef)
    }

    /// All groups of tokens that LayerZero connects.
    pub fn ofts(&self) -> impl Iterator<Item = (OftRef, &Oft)> {
        references!(self.ofts, OftRef)
    }

    /// Address of a chain's swap adapter, `0x…` as the files spell it.
    pub fn adapter(&self, chain: ChainRef) -> Option<&str> {
        self.venues.iter().filter(|venue| venue.chain == chain).find_map(|venue| venue.adapter.as_deref())
    }

    /// All venues.
    pub fn venues(&self) -> &[Venue] {
        &self.venues
    }

    /// The kinds of bridges that any route could use, with their images; empty if there is none.
    pub fn bridge_kinds(&self) -> impl Iterator<Item = (BridgeKind, &str)> {
        let used = |kind: &BridgeKind| match kind {
            BridgeKind::Ibc => !self.channels.is_empty(),
            BridgeKind::OpInit => !self.bridges.is_empty(),
            BridgeKind::LayerZero => !self.ofts.is_empty(),
        };
        let logo = |kind| self.bridge_logos.get(&kind).map_or("", String::as_str);
        BridgeKind::ALL.into_iter().filter(used).map(move |kind| (kind, logo(kind)))
    }

    /// A copy with other node addresses, by chain id; a chain without an entry keeps its own.
    #[must_use]
    pub fn with_endpoints(mut self, given: impl Fn(&str) -> Option<Endpoints>) -> Self {
        for chain in &mut self.chains {
            if let Some(endpoints) = given(&chain.id) {
                chain.endpoints = endpoints;
            }
        }
        self
    }

    /// Hash of the content.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Reason why no route may use a part: its first error.
    pub fn error(&self, part: Part) -> Option<&str> {
        self.errors.get(&part).map(String::as_str)
    }

    /// A chain by its id.
    pub fn chain(&self, id: &str) -> Option<ChainRef> {
        self.chain_by_id.get(id).copied()
    }

    /// An asset by chain and denomination. `0x…` and `evm/…` denominations match case-insensitively, all others
    /// exactly.
    pub fn asset(&self, chain: ChainRef, denom: &str) -> Option<AssetRef> {
        let listed = self.asset_by_denom.get(&(chain, Self::denom_key(&self[chain], denom))).copied();
        listed.or_else(|| self.derived(chain, denom))
    }

    /// Whether an asset is a voucher that no list has.
    pub fn is_derived(&self, asset: AssetRef) -> bool {
        self.derived_at(asset).is_some()
    }

    /// The vouchers that no list has, on one chain: those of tokens that originate on its neighbours.
    pub fn derived_on(&self, chain: ChainRef) -> impl Iterator<Item = AssetRef> {
        self.derived.of_chain(chain).map(|at| self.derived_ref(at))
    }

    /// The vouchers that no list has of an asset and of its ancestors.
    pub fn derived_from(&self, asset: AssetRef) -> impl Iterator<Item = AssetRef> {
        let listed = self.derived_at(asset).map_or(asset, |at| self.derived.entry(at).parent);
        let ancestors = std::iter::successors(Some(listed), |asset| self[*asset].origin.parent());
        self.derived.of_parents(ancestors.collect()).map(|at| self.derived_ref(at))
    }

    /// The chain of an asset, without making a derived voucher.
    pub fn chain_of(&self, asset: AssetRef) -> ChainRef {
        self.derived_at(asset).map_or_else(|| self[asset].chain, |at| self.derived.entry(at).chain)
    }

    /// An asset and its path. A derived voucher is made without keeping it, so that a list of all of them costs no memory
    /// afterwards.
    pub fn passing(&self, asset: AssetRef) -> (Cow<'_, Asset>, Cow<'_, str>) {
        match self.derived_at(asset) {
            Some(at) => {
                let Voucher { asset, path } = self.make(at);
                (Cow::Owned(asset), Cow::Owned(path))
            }
            None => (Cow::Borrowed(&self[asset]), Cow::Borrowed(self.path(asset))),
        }
    }

    /// The voucher with a denomination that no list has.
    fn derived(&self, chain: ChainRef, denom: &str) -> Option<AssetRef> {
        let mut alike = self.derived.alike(chain, denom).filter(|_| denom::is_voucher(denom));
        let has_it = |(_, entry): &(usize, &Entry)| {
            let path = self.path_over(entry.channel, entry.parent);
            path.is_some_and(|path| denom::of_path(&path) == denom)
        };
        alike.find(has_it).map(|(at, _)| self.derived_ref(at))
    }

    /// The path of an asset after a transfer over a channel of its chain.
    pub(crate) fn path_over(&self, channel: ChannelRef, asset: AssetRef) -> Option<String> {
        let (channel, chain) = (&self[channel], self[asset].chain);
        let (from, to) = (channel.on(chain)?, channel.beyond(chain)?);
        Some(denom::received(self.path(asset), (&from.port, &from.channel), (&to.port, &to.channel)))
    }

    /// Makes a derived voucher. It inherits from its parent.
    fn make(&self, at: usize) -> Voucher {
        let Entry { chain, channel, parent, .. } = self.derived.entry(at);
        let path = self.path_over(channel, parent).unwrap_or_default();
        let asset = Asset {
            chain,
            denom: denom::of_path(&path),
            contract: None,
            description: None,
            hidden: true,
            origin: Origin::Ibc { channel, parent },
            terms: Terms::default(),
            ..self[parent].clone()
        };
        Voucher { asset, path }
    }

    fn derived_at(&self, asset: AssetRef) -> Option<usize> {
        asset.index().checked_sub(self.assets.len())
    }

    fn derived_ref(&self, at: usize) -> AssetRef {
        AssetRef(u32::try_from(self.assets.len() + at).unwrap_or(u32::MAX))
    }

    /// The channel with this end.
    pub fn channel_at(&self, chain: ChainRef, port: &str, channel: &str) -> Option<ChannelRef> {
        self.channel_by_end.get(&(chain, port.to_owned(), channel.to_owned())).copied()
    }

    /// The bridge with this number on the L1 `l1`.
    pub fn bridge_of(&self, l1: ChainRef, id: u64) -> Option<BridgeRef> {
        self.bridges().find(|(_, bridge)| bridge.l1 == l1 && bridge.id == id).map(|(reference, _)| reference)
    }

    /// The bridge of the rollup `l2`.
    pub fn bridge_to(&self, l2: ChainRef) -> Option<BridgeRef> {
        self.bridges().find(|(_, bridge)| bridge.l2 == l2).map(|(reference, _)| reference)
    }

    /// The full ICS-20 path of an asset on its chain; its denomination if it did not come over a channel.
    pub fn path(&self, asset: AssetRef) -> &str {
        match self.derived_at(asset) {
            Some(at) => &self.derived.get(at, || self.make(at)).path,
            None => &self.paths[asset.index()],
        }
    }

    /// The hops of an asset's path, `port/channel/…`, latest first; empty if it did not come over a channel. A wrapped
    /// token has the trace of the token that it wraps.
    pub fn trace(&self, asset: AssetRef) -> String {
        let mut asset = asset;
        while let Some(Asset { origin: Origin::Wrapped { parent, .. }, .. }) = self.assets.get(asset.index())
        {
            asset = *parent;
        }
        let (_, path) = self.passing(asset);
        let (hops, _) = denom::split(&path);
        hops.iter().map(|(port, channel)| format!("{port}/{channel}")).collect::<Vec<_>>().join("/")
    }

    /// The origin of an asset: the end of its chain of parents.
    pub fn root(&self, asset: AssetRef) -> AssetRef {
        let mut root = self.derived_at(asset).map_or(asset, |at| self.derived.entry(at).parent);
        // Parents come before children, so the loop ends.
        while let Some(parent) = self[root].origin.parent() {
            root = parent;
        }
        root
    }

    /// The token that an asset was issued as; `None` for a voucher or a bridged coin whose origin is in no list.
    pub fn issued(&self, asset: AssetRef) -> Option<AssetRef> {
        let root = self.root(asset);
        let denom = &self[root].denom;
        (!denom::is_voucher(denom) && !denom.starts_with("l2/")).then_some(root)
    }

    /// The asset on an EVM chain that is its coin.
    pub fn native_asset(&self, chain: ChainRef) -> Option<AssetRef> {
        self.asset(chain, &self[chain].native.as_ref()?.denom)
    }

    /// Lookup key: hex in a denomination is case-insensitive on EVM chains; on minievm its case is only a checksum.
    pub(crate) fn denom_key(chain: &Chain, denom: &str) -> String {
        let hex = denom.starts_with("0x") || denom.starts_with("0X") || denom.starts_with("evm/");
        if chain.kind == ChainKind::Evm || hex { denom.to_ascii_lowercase() } else { denom.to_owned() }
    }
}
