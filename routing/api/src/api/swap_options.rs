//! What a request says about swaps.

use chain::truncated;
use planner::Operation;
use planner::operation::{MINITSWAP_VENUE, OperationKind, SwapVenue, WRAPPER_VENUE};
use planner::swap::{PoolKind, SwapRules};
use schemars::JsonSchema;
use serde::Deserialize;
use web::http_error::HttpError;

use crate::body::{EXCERPT, Object, Text, check_length};
use crate::errors;
use crate::service::World;

/// A venue that a client allows.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct AllowedVenue {
    /// As in /v2/fungible/venues.
    name: Text,
    /// Its chain; any.
    chain_id: Option<String>,
}

/// How swaps may be made.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct SmartSwapOptions {
    /// Whether an amount may be split over several pools; false.
    split_routes: Option<bool>,
    #[expect(dead_code, reason = "no swap is on an EVM chain")]
    evm_swaps: Option<bool>,
}

/// The venues of a world: those of the registry, and Minitswap where a chain has such a pool.
pub(super) fn venues(world: &World) -> Vec<SwapVenue> {
    let registry = &*world.registry;
    let listed = registry.venues().iter().map(|venue| SwapVenue {
        name: venue.name.clone(),
        chain_id: registry[venue.chain].id.clone(),
        logo_uri: venue.logo_uri.clone(),
    });
    let mut venues: Vec<SwapVenue> = listed.collect();
    for known in world.markets.values() {
        let has_pool = known.market.pools().iter().any(|pool| pool.kind() == PoolKind::Minitswap);
        if let Some(chain) = registry.chain(&known.market.chain).filter(|_| has_pool) {
            let venue = SwapVenue::of(registry, chain, PoolKind::Minitswap);
            if !venues.iter().any(|other| other.name == venue.name && other.chain_id == venue.chain_id) {
                venues.push(venue);
            }
        }
    }
    venues
}

/// Members of a request about swaps.
pub(super) struct SwapOptions {
    pub(super) are_allowed: Option<bool>,
    pub(super) venues: Option<Vec<Object<AllowedVenue>>>,
    pub(super) venue: Option<Object<AllowedVenue>>,
    pub(super) smart: Option<Object<SmartSwapOptions>>,
}

impl SwapOptions {
    /// The rules of a request; `None` if it allows no swap.
    pub(super) fn rules(self, world: &World) -> Result<Option<SwapRules>, HttpError> {
        let allowed: Vec<Object<AllowedVenue>> =
            self.venues.unwrap_or_default().into_iter().chain(self.venue).collect();
        check_length("swap_venues", allowed.len())?;
        let known = if allowed.is_empty() { Vec::new() } else { venues(world) };
        let mut kinds = Vec::new();
        for Object(AllowedVenue { name, chain_id }) in &allowed {
            let fits = |venue: &&SwapVenue| {
                venue.name == name.0 && chain_id.as_ref().is_none_or(|chain| *chain == venue.chain_id)
            };
            if !known.iter().any(|venue| fits(&venue)) {
                let shown = |text: &str| truncated(text, EXCERPT);
                let at = chain_id.as_ref().map(|chain| format!(" of chain `{}`", shown(chain)));
                let (name, at) = (shown(&name.0), at.unwrap_or_default());
                let why = format!("`{name}`{at} is no venue, see /v2/fungible/venues");
                return Err(errors::invalid("swap_venues", &why));
            }
            match name.0.as_str() {
                MINITSWAP_VENUE => kinds.push(PoolKind::Minitswap),
                WRAPPER_VENUE => {}
                _ => kinds.extend([PoolKind::Weighted, PoolKind::Stable]),
            }
        }
        if self.are_allowed == Some(false) {
            return Ok(None);
        }
        let split = self.smart.is_some_and(|Object(smart)| smart.split_routes == Some(true));
        Ok(Some(SwapRules { kinds: (!allowed.is_empty()).then_some(kinds), pools: None, split }))
    }
}

/// The rules that lead to a client's operations again: their pools; `None` if they have no swap.
pub(super) fn rules_of(echoed: &[Operation]) -> Option<SwapRules> {
    let swaps = echoed.iter().filter_map(|operation| match &operation.kind {
        OperationKind::Swap(swap) => Some(swap),
        _ => None,
    });
    let (mut pools, mut split) = (Vec::new(), false);
    for swap in swaps {
        pools.extend(swap.pools().map(str::to_owned));
        split |= swap.smart_swap_in.is_some();
    }
    (!pools.is_empty()).then_some(SwapRules { kinds: None, pools: Some(pools), split })
}

/// Whether a client's operations are those of a requested amount out.
pub(super) fn sets_amount_out(echoed: &[Operation]) -> bool {
    let is_out = |operation: &Operation| matches!(&operation.kind, OperationKind::Swap(swap) if swap.swap_out.is_some());
    echoed.iter().any(is_out)
}
