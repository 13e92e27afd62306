//! The `swap` operation: a swap in pools, or a conversion by the ERC20Wrapper.

use registry::{ChainRef, Origin, Registry};
use serde::{Deserialize, Serialize};

use super::Ends;
use crate::plan::Hop;
use crate::swap::{self, Exact, PoolKind, SwapLeg};

/// The venue of a conversion without an adjacent transfer.
pub const WRAPPER_VENUE: &str = "erc20-wrapper";
/// The venue of a swap in a pool of `minitswap`; clients print it up to its first `-`.
pub const MINITSWAP_VENUE: &str = "minitswap";
/// The venue of a swap in a pool of `dex` or `stableswap`, if the registry names none for the chain.
const DEX_VENUE: &str = "initia-dex";

/// A swap or conversion on one chain. It has exactly one of `swap_in`, `swap_out` and `smart_swap_in`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct Swap {
    /// All of an amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_in: Option<SwapIn>,
    /// For an amount out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_out: Option<SwapOut>,
    /// All of an amount, in parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smart_swap_in: Option<SmartSwapIn>,
    pub estimated_affiliate_fee: String,
    pub from_chain_id: String,
    pub chain_id: String,
    pub denom_in: String,
    pub denom_out: String,
    pub swap_venues: Vec<SwapVenue>,
}

/// How all of an amount is swapped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct SwapIn {
    pub swap_venue: SwapVenue,
    pub swap_operations: Vec<SwapOperation>,
    pub swap_amount_in: Option<String>,
    pub price_impact_percent: Option<String>,
    pub estimated_amount_out: Option<String>,
}

/// How an amount out is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct SwapOut {
    pub swap_venue: SwapVenue,
    pub swap_operations: Vec<SwapOperation>,
    pub swap_amount_out: String,
    pub price_impact_percent: Option<String>,
}

/// How an amount is swapped in parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct SmartSwapIn {
    pub swap_venue: SwapVenue,
    pub swap_routes: Vec<SwapRoute>,
    pub price_impact_percent: Option<String>,
    pub estimated_amount_out: Option<String>,
}

/// A part of an amount.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct SwapRoute {
    pub swap_venue: SwapVenue,
    pub swap_amount_in: String,
    pub denom_in: String,
    pub swap_operations: Vec<SwapOperation>,
}

/// One step of a swap; `pool` is the LP token, or the wrapper.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct SwapOperation {
    pub pool: String,
    pub denom_in: String,
    pub denom_out: String,
    pub interface: Option<String>,
}

/// Where a swap is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct SwapVenue {
    pub name: String,
    pub chain_id: String,
    pub logo_uri: Option<String>,
}

impl SwapVenue {
    /// The venue of a chain's pools of a kind.
    pub fn of(registry: &Registry, chain: ChainRef, kind: PoolKind) -> Self {
        let is_dex = |name: &str| name != WRAPPER_VENUE && name != MINITSWAP_VENUE;
        let name = match kind {
            PoolKind::Minitswap => MINITSWAP_VENUE,
            PoolKind::Weighted | PoolKind::Stable => {
                let mut listed = registry.venues().iter().filter(|venue| venue.chain == chain);
                listed.find(|venue| is_dex(&venue.name)).map_or(DEX_VENUE, |venue| &venue.name)
            }
        };
        Self::named(registry, chain, name)
    }

    fn named(registry: &Registry, chain: ChainRef, name: &str) -> Self {
        let known = registry.venues().iter().find(|venue| venue.chain == chain && venue.name == name);
        Self {
            name: name.to_owned(),
            chain_id: registry[chain].id.clone(),
            logo_uri: known.and_then(|venue| venue.logo_uri.clone()),
        }
    }
}

impl SwapOperation {
    fn of(leg: &SwapLeg) -> Self {
        Self {
            pool: leg.pool.clone(),
            denom_in: leg.denom_in.clone(),
            denom_out: leg.denom_out.clone(),
            interface: None,
        }
    }
}

impl Swap {
    /// Whether it has exactly one form.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let out = self.swap_out.as_ref().filter(|swap| !swap.swap_operations.is_empty());
        let smart = self.smart_swap_in.as_ref().filter(|swap| !swap.swap_routes.is_empty());
        match [self.swap_in.is_some(), out.is_some(), smart.is_some()].into_iter().filter(|has| *has).count()
        {
            0 => Err("missing field `swap_in`, or `swap_out` or `smart_swap_in` with operations"),
            1 => Ok(()),
            _ => Err("more than one of swap_in, swap_out and smart_swap_in"),
        }
    }

    /// Pools that it names, in order.
    pub fn pools(&self) -> impl Iterator<Item = &str> {
        let routes = self.smart_swap_in.iter().flat_map(|smart| &smart.swap_routes);
        let steps = self.swap_in.iter().flat_map(|swap| &swap.swap_operations);
        let steps = steps.chain(self.swap_out.iter().flat_map(|swap| &swap.swap_operations));
        steps.chain(routes.flat_map(|route| &route.swap_operations)).map(|step| step.pool.as_str())
    }

    pub(super) fn in_pools(registry: &Registry, hop: &Hop, swap: &swap::Swap, ends: Ends) -> Self {
        let chain = registry[hop.from].chain;
        let venue = |leg: &SwapLeg| SwapVenue::of(registry, chain, leg.kind);
        let legs = |part: &swap::SwapPart| part.legs.iter().map(SwapOperation::of).collect::<Vec<_>>();
        let mut swap_venues: Vec<SwapVenue> = Vec::new();
        for venue in swap.parts.iter().flat_map(|part| &part.legs).map(venue) {
            if !swap_venues.contains(&venue) {
                swap_venues.push(venue);
            }
        }
        let swap_venue = swap_venues.first().cloned().unwrap_or_default();
        let price_impact_percent = swap.price_impact_percent.clone();
        let whole = swap.parts.first().map(legs).unwrap_or_default();
        let (swap_amount_in, amount_out) = (hop.amount_in.to_string(), hop.amount_out.to_string());
        let mut operation = Self { swap_venues, ..Self::between(ends) };
        match swap.exact {
            Exact::Out => {
                operation.swap_out = Some(SwapOut {
                    swap_venue,
                    swap_operations: whole,
                    swap_amount_out: amount_out,
                    price_impact_percent,
                });
            }
            Exact::In if swap.parts.len() > 1 => {
                let route = |part: &swap::SwapPart| SwapRoute {
                    swap_venue: part.legs.first().map(venue).unwrap_or_default(),
                    swap_amount_in: part.amount_in().to_string(),
                    denom_in: operation.denom_in.clone(),
                    swap_operations: legs(part),
                };
                operation.smart_swap_in = Some(SmartSwapIn {
                    swap_venue,
                    swap_routes: swap.parts.iter().map(route).collect(),
                    price_impact_percent,
                    estimated_amount_out: Some(amount_out),
                });
            }
            Exact::In => {
                operation.swap_in = Some(SwapIn {
                    swap_venue,
                    swap_operations: whole,
                    swap_amount_in: Some(swap_amount_in),
                    price_impact_percent,
                    estimated_amount_out: Some(amount_out),
                });
            }
        }
        operation
    }

    pub(super) fn by_wrapper(registry: &Registry, hop: &Hop, ends: Ends) -> Self {
        let venue = SwapVenue::named(registry, registry[hop.from].chain, WRAPPER_VENUE);
        let pool = [hop.from, hop.to].into_iter().find_map(|asset| match &registry[asset].origin {
            Origin::Wrapped { contract, parent } if [hop.from, hop.to].contains(parent) => {
                Some(contract.clone())
            }
            _ => None,
        });
        let step = SwapOperation {
            pool: pool.unwrap_or_default(),
            denom_in: ends.denom_in.clone(),
            denom_out: ends.denom_out.clone(),
            interface: None,
        };
        Self {
            swap_in: Some(SwapIn {
                swap_venue: venue.clone(),
                swap_operations: vec![step],
                swap_amount_in: Some(hop.amount_in.to_string()),
                price_impact_percent: None,
                estimated_amount_out: Some(hop.amount_out.to_string()),
            }),
            swap_venues: vec![venue],
            ..Self::between(ends)
        }
    }

    fn between(ends: Ends) -> Self {
        Self {
            estimated_affiliate_fee: format!("0{}", ends.denom_out),
            from_chain_id: ends.from_chain_id.clone(),
            chain_id: ends.from_chain_id,
            denom_in: ends.denom_in,
            denom_out: ends.denom_out,
            ..Self::default()
        }
    }
}
