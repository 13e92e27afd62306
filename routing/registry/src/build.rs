//! Builder of a registry, part by part, with validation.
//!
//! The order is: chains, channels and bridges, assets (a parent before its child), OFTs. Each part is validated on its
//! own, so a loader can skip an invalid part, report it and continue.

use std::collections::hash_map::Entry;

use crate::check;
use crate::denom;
use crate::derived;
use crate::model::{
    Asset, AssetRef, Bridge, BridgeKind, BridgeRef, Chain, ChainKind, ChainRef, Channel, ChannelRef, End,
    Oft, OftRef, Origin, Venue,
};
use crate::snapshot::{Part, Registry};

/// Reason why a part is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPart {
    /// The name is already used.
    #[error("{0} is there twice")]
    Duplicate(String),
    /// A value is invalid.
    #[error("{what} `{value}`: {must}")]
    Value {
        /// Name of the value.
        what: &'static str,
        /// As given.
        value: String,
        /// Expected form.
        must: String,
    },
    /// A denomination differs from the one that its path or bridge gives.
    #[error("denom `{given}` cannot be: {how} gives `{computed}`")]
    Denom {
        /// As given.
        given: String,
        /// As computed.
        computed: String,
        /// Source of the computed denomination.
        how: String,
    },
    /// A channel or bridge does not end on the asset's chain.
    #[error("{0}")]
    Disconnected(String),
}

/// Maximum number of hops in the path of a denomination.
const MAX_HOPS: usize = 32;

/// A registry under construction.
#[derive(Debug, Default)]
pub struct Builder {
    registry: Registry,
}

impl Builder {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// The registry built so far.
    pub fn so_far(&self) -> &Registry {
        &self.registry
    }

    /// Adds a chain.
    pub fn chain(&mut self, chain: Chain) -> Result<ChainRef, BadPart> {
        let decimal = !chain.id.is_empty() && chain.id.bytes().all(|byte| byte.is_ascii_digit());
        if chain.kind == ChainKind::Evm && !decimal {
            return Err(value("chain_id", &chain.id, "the id of an EVM chain is its decimal number"));
        }
        if chain.kind == ChainKind::Cosmos && (chain.id.is_empty() || chain.bech32_prefix.is_empty()) {
            return Err(value("chain_id", &chain.id, "a cosmos chain has an id and a bech32_prefix"));
        }
        let reference = ChainRef(index(self.registry.chains.len()));
        match self.registry.chain_by_id.entry(chain.id.clone()) {
            Entry::Occupied(_) => return Err(BadPart::Duplicate(format!("chain `{}`", chain.id))),
            Entry::Vacant(entry) => entry.insert(reference),
        };
        self.registry.chains.push(chain);
        Ok(reference)
    }

    /// Adds a channel. If it exists already, named from either side, returns the existing one.
    pub fn channel(&mut self, channel: Channel) -> Result<ChannelRef, BadPart> {
        let key = |end: &End| (end.chain, end.port.clone(), end.channel.clone());
        let (a, b) = (key(&channel.a), key(&channel.b));
        if a.0 == b.0 {
            return Err(BadPart::Disconnected(format!("{} connects a chain with itself", channel.a.channel)));
        }
        let name =
            |end: &End| format!("{}/{} of chain `{}`", end.port, end.channel, self.registry[end.chain].id);
        let ends = &self.registry.channel_by_end;
        match (ends.get(&a), ends.get(&b)) {
            (Some(at_a), Some(at_b)) if at_a == at_b => return Ok(*at_a),
            (None, None) => {}
            (Some(_), _) => return Err(BadPart::Duplicate(name(&channel.a))),
            (_, Some(_)) => return Err(BadPart::Duplicate(name(&channel.b))),
        }
        let reference = ChannelRef(index(self.registry.channels.len()));
        self.registry.channel_by_end.extend([(a, reference), (b, reference)]);
        self.registry.channels.push(channel);
        Ok(reference)
    }

    /// Adds an optimistic bridge.
    pub fn bridge(&mut self, bridge: Bridge) -> Result<BridgeRef, BadPart> {
        let taken =
            |other: &Bridge| (other.l1 == bridge.l1 && other.id == bridge.id) || other.l2 == bridge.l2;
        if bridge.id == 0 {
            return Err(value("bridge id", "0", "bridges count from 1"));
        }
        if self.registry.bridges.iter().any(taken) {
            return Err(BadPart::Duplicate(format!("bridge {} or its rollup", bridge.id)));
        }
        self.registry.bridges.push(bridge);
        Ok(BridgeRef(index(self.registry.bridges.len() - 1)))
    }

    /// Adds an asset. Its denomination must equal the one computed from its origin, where that is possible.
    pub fn asset(&mut self, asset: Asset) -> Result<AssetRef, BadPart> {
        self.checked(&asset)?;
        let path = self.path(&asset)?;
        self.add(asset, path)
    }

    /// Adds an ICS-20 voucher by its full path.
    ///
    /// Without an origin, because its other chain is unknown, it has no edge to a parent and counts as native, but its
    /// descendants on other chains get the right denominations. With an origin, the path may only spell the parent as
    /// its chain does in packets: Kujira writes `factory:…` for `factory/…`.
    pub fn voucher(&mut self, asset: Asset, path: &str) -> Result<AssetRef, BadPart> {
        if denom::split(path).0.is_empty() || !self.leads_to_parent(&asset, path)? {
            return Err(value(
                "path",
                path,
                "of a voucher: port, channel, …, base, over the channel of its origin",
            ));
        }
        let computed = denom::of_path(path);
        if computed != asset.denom {
            return Err(BadPart::Denom { given: asset.denom, computed, how: format!("path `{path}`") });
        }
        self.checked(&asset)?;
        self.add(asset, path.to_owned())
    }

    /// Whether a path continues with that of the asset's parent, but for its spelling.
    fn leads_to_parent(&self, asset: &Asset, path: &str) -> Result<bool, BadPart> {
        let computed = self.denom_of(asset.chain, &asset.origin)?.map(|(_, path)| path);
        Ok(asset.origin == Origin::Native || computed == Some(path.replace(':', "/")))
    }

    fn checked(&self, asset: &Asset) -> Result<(), BadPart> {
        if asset.symbol.is_empty() {
            return Err(value("symbol", "", "clients sort by it, so it cannot be empty"));
        }
        if asset.decimals > 36 {
            return Err(value("decimals", &asset.decimals.to_string(), "at most 36"));
        }
        let kind = self.registry[asset.chain].kind;
        if kind == ChainKind::Cosmos && !denom::is_denom(&asset.denom) {
            return Err(value("denom", &asset.denom, "a letter, then 2 to 127 letters, digits and /:._-"));
        }
        Ok(())
    }

    fn add(&mut self, mut asset: Asset, path: String) -> Result<AssetRef, BadPart> {
        if denom::split(&path).0.len() > MAX_HOPS {
            return Err(value("denom", &asset.denom, "a path of at most 32 hops"));
        }
        let reference = AssetRef(index(self.registry.assets.len()));
        let key = Registry::denom_key(&self.registry[asset.chain], &asset.denom);
        match self.registry.asset_by_denom.entry((asset.chain, key)) {
            Entry::Occupied(_) => {
                let chain = &self.registry.chains[asset.chain.index()].id;
                return Err(BadPart::Duplicate(format!("denom `{}` of chain `{chain}`", asset.denom)));
            }
            Entry::Vacant(entry) => entry.insert(reference),
        };
        asset.contract = asset.contract.or_else(|| denom::contract(&asset.denom));
        self.registry.assets.push(asset);
        self.registry.paths.push(path);
        Ok(reference)
    }

    /// Adds a group of tokens that LayerZero connects.
    pub fn oft(&mut self, oft: Oft) -> Result<OftRef, BadPart> {
        let chains: Vec<_> = oft.legs.iter().map(|leg| self.registry[leg.asset].chain).collect();
        if oft.legs.len() < 2 || (1..chains.len()).any(|i| chains[..i].contains(&chains[i])) {
            return Err(value("oft", &oft.symbol, "two legs or more, each on another chain"));
        }
        for leg in &oft.legs {
            if leg.shared_decimals > self.registry[leg.asset].decimals {
                return Err(value("shared_decimals", &oft.symbol, "at most the decimals of every leg"));
            }
        }
        self.registry.ofts.push(oft);
        Ok(OftRef(index(self.registry.ofts.len() - 1)))
    }

    /// Adds a venue.
    pub fn venue(&mut self, venue: Venue) {
        self.registry.venues.push(venue);
    }

    /// Sets the image of a kind of bridge.
    pub fn bridge_logo(&mut self, kind: BridgeKind, logo_uri: String) {
        self.registry.bridge_logos.insert(kind, logo_uri);
    }

    /// Records an error of an asset: it stays in the lists, but no route uses it.
    pub(crate) fn fault(&mut self, asset: AssetRef, what: String) {
        self.registry.errors.entry(Part::Asset(asset)).or_insert(what);
    }

    /// Completes the registry. `hash` is the hash of its content.
    pub fn finish(mut self, hash: String) -> Registry {
        self.registry.hash = hash;
        for (part, what) in check::errors(&self.registry) {
            self.registry.errors.entry(part).or_insert(what);
        }
        self.registry.derived = derived::vouchers(&self.registry);
        self.registry
    }

    /// The denomination that an asset with this origin has on `chain`, and its full ICS-20 path there; `None` if only
    /// the chain can give it (a wrapped token) or any denomination is possible (a native one).
    pub fn denom_of(&self, chain: ChainRef, origin: &Origin) -> Result<Option<(String, String)>, BadPart> {
        let registry = &self.registry;
        match origin {
            Origin::Native => Ok(None),
            Origin::Wrapped { parent, .. } if registry[*parent].chain == chain => Ok(None),
            Origin::Wrapped { .. } => Err(BadPart::Disconnected(
                "a wrapped token and what it wraps are on the same chain".to_owned(),
            )),
            Origin::Bridged { bridge, parent } => {
                let (bridge, parent) = (&registry[*bridge], &registry[*parent]);
                if bridge.l2 != chain || bridge.l1 != parent.chain {
                    let id = bridge.id;
                    return Err(BadPart::Disconnected(format!(
                        "bridge {id} does not lead from its parent's chain to this one"
                    )));
                }
                let denom = denom::bridged(bridge.id, &parent.denom);
                Ok(Some((denom.clone(), denom)))
            }
            Origin::Ibc { channel, parent } => {
                let channel = &registry[*channel];
                let (Some(from), Some(to)) = (channel.on(registry[*parent].chain), channel.on(chain)) else {
                    let (port, name) = (&channel.a.port, &channel.a.channel);
                    return Err(BadPart::Disconnected(format!(
                        "{port}/{name} does not lead from its parent's chain to this one"
                    )));
                };
                let (from, to) = ((&*from.port, &*from.channel), (&*to.port, &*to.channel));
                let path = denom::received(registry.path(*parent), from, to);
                Ok(Some((denom::of_path(&path), path)))
            }
        }
    }

    fn path(&self, asset: &Asset) -> Result<String, BadPart> {
        let Some((computed, path)) = self.denom_of(asset.chain, &asset.origin)? else {
            return Ok(asset.denom.clone());
        };
        if computed != asset.denom {
            let how = match asset.origin {
                Origin::Ibc { .. } => format!("path `{path}`"),
                _ => "the bridge".to_owned(),
            };
            return Err(BadPart::Denom { given: asset.denom.clone(), computed, how });
        }
        Ok(path)
    }
}

fn value(what: &'static str, value: &str, must: &str) -> BadPart {
    BadPart::Value { what, value: value.to_owned(), must: must.to_owned() }
}

/// A registry of four billion parts exceeds memory.
fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
