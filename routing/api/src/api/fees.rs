//! Fees of a plan beyond the amount out, and warnings to show before signing.

use chain::Timestamp;
use planner::{Hop, Plan, Step, WireAsset, usd};
use schemars::JsonSchema;
use serde::Serialize;

use crate::service::World;

/// Fee deducted in transit or paid in addition.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.Fee")]
#[allow(clippy::struct_field_names, reason = "the names of the wire")]
pub(super) struct Fee<'a> {
    /// Always `BRIDGE`.
    fee_type: &'static str,
    bridge_id: &'static str,
    /// Base units.
    amount: String,
    /// In US dollars, if there is a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_amount: Option<String>,
    origin_asset: WireAsset,
    chain_id: &'a str,
    denom: String,
    /// The transaction that pays it.
    tx_index: usize,
    /// Always null.
    operation_index: Option<usize>,
    /// `FEE_BEHAVIOR_DEDUCTED` or `FEE_BEHAVIOR_ADDITIONAL`.
    fee_behavior: &'static str,
}

/// Fees that a plan deducts in transit, and fees paid in addition.
pub(super) fn fees<'a>(world: &'a World, plan: &Plan) -> Vec<Fee<'a>> {
    plan.hops.iter().filter_map(|hop| fee(world, hop)).filter(|fee| fee.amount != "0").collect()
}

fn fee<'a>(world: &'a World, hop: &Hop) -> Option<Fee<'a>> {
    let registry = &*world.registry;
    let bridge = hop.step.bridge_kind()?;
    let chain = registry[hop.from].chain;
    let (origin_asset, amount, fee_behavior) = if let Step::LayerZero { fee, .. } = hop.step {
        (WireAsset::coin(registry, chain)?, fee, "FEE_BEHAVIOR_ADDITIONAL")
    } else {
        let kept = hop.amount_in.saturating_sub(hop.amount_out);
        (WireAsset::of(registry, hop.from), kept, "FEE_BEHAVIOR_DEDUCTED")
    };
    let priced = registry.asset(chain, &origin_asset.denom);
    Some(Fee {
        fee_type: "BRIDGE",
        bridge_id: bridge.id(),
        amount: amount.to_string(),
        usd_amount: priced.and_then(|asset| usd::of(registry, &world.facts, asset, amount)),
        chain_id: &registry[chain].id,
        denom: origin_asset.denom.clone(),
        origin_asset,
        tx_index: hop.tx,
        operation_index: None,
        fee_behavior,
    })
}

/// Warnings to show before signing.
pub(super) fn warnings(world: &World, plan: &Plan) -> Vec<String> {
    let registry = &*world.registry;
    let warning = |hop: &Hop| match hop.step {
        Step::Withdraw { bridge } => {
            let (finalization, _) = world.facts.periods(registry, bridge);
            let l1 = &registry[registry[bridge].l1].pretty_name;
            Some(format!(
                "This withdrawal has to be claimed on {l1}, about {} after the transaction.",
                spoken(hop.seconds.max(finalization))
            ))
        }
        Step::Swap => {
            let chain = &registry[registry[hop.from].chain];
            let known = world.markets.get(&chain.id).filter(|known| known.stands_still())?;
            let (name, height, time) = (&chain.pretty_name, known.market.height, known.market.time);
            let time = Timestamp::from_unix_nanos(i64::try_from(time).ok()?.checked_mul(1_000_000_000)?);
            Some(format!(
                "The pools are those of block {height} of {name}, the last since {}.",
                time.seconds()
            ))
        }
        _ => None,
    };
    plan.hops.iter().filter_map(warning).collect()
}

/// A duration as text, in the largest unit that it is a whole number of, to a twentieth.
fn spoken(seconds: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "day"), (3_600, "hour"), (60, "minute")];
    let rounded = |unit: u64| (seconds + unit / 2) / unit;
    let fits = |unit: u64| seconds.abs_diff(rounded(unit) * unit) * 20 <= seconds;
    let unit = UNITS.into_iter().find(|(unit, _)| seconds >= *unit && fits(*unit));
    let (unit, name) = unit.unwrap_or((1, "second"));
    let count = rounded(unit);
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rendered_in_words() {
        for (seconds, words) in [
            (30, "30 seconds"),
            (60, "1 minute"),
            (61, "1 minute"),
            (90, "90 seconds"),
            (7_200, "2 hours"),
            (100_000, "28 hours"),
            (604_800, "7 days"),
            (607_200, "7 days"),
            (700_000, "8 days"),
        ] {
            assert_eq!(spoken(seconds), words);
        }
    }
}
