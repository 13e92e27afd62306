//! Requests on a registry with 200 pools on its L1.

use anyhow::{Context as _, Result};
use chain::U256;
use planner::swap::{Market, Pool, PoolState, StablePool, WeightedPool, Weights, decimal};
use registry::{ChainRef, Registry};

/// Pools of the market.
const POOLS: usize = 200;

/// The chain with the most assets, with weighted and StableSwap pools between them: most have the first coin, as on the
/// mainnet.
pub(crate) fn market(registry: &Registry) -> Result<Market> {
    let on = |chain: ChainRef| registry.assets().filter(move |(_, asset)| asset.chain == chain);
    let (chain, about) = registry.chains().max_by_key(|(chain, _)| on(*chain).count()).context("no chain")?;
    let coins: Vec<String> = on(chain).map(|(_, asset)| asset.denom.clone()).collect();
    let parse = |text: &str| decimal::parse(text).context("no decimal");
    let (half, fee) = (parse("0.5")?, parse("0.003")?);
    let pools = (0..POOLS).map(|number| {
        let other = 1 + number % (coins.len() - 1);
        let first = if number % 3 == 0 { (other + 7) % coins.len() } else { 0 };
        let second = if first == other { (other + 1) % coins.len() } else { other };
        let reserve = 1_000_000_000_000 + 7_000_000_000 * u64::try_from(number).unwrap_or_default();
        let state = if number % 5 == 0 {
            PoolState::Stable(StablePool { reserves: vec![reserve, reserve], ann: 6_000, fee_rate: fee })
        } else {
            let weights = Weights { weights: [half, half], time: 0 };
            let (weights_before, weights_after) = (weights.clone(), weights);
            PoolState::Weighted(WeightedPool {
                reserves: [reserve, reserve / 2],
                weights_before,
                weights_after,
                fee_rate: fee,
            })
        };
        Pool {
            id: format!("move/{number:064x}"),
            coins: vec![coins[first].clone(), coins[second].clone()],
            state,
        }
    });
    Ok(Market::new(about.id.clone(), 1, 1, pools.collect()))
}

/// Bodies of requests between coins of a market.
pub(crate) fn bodies(market: &Market, count: usize) -> Vec<String> {
    let coins = market.coins();
    let body = |number: usize| {
        let (from, to) = (number * 31 % coins.len(), number * 57 % coins.len());
        let to = if from == to { (to + 1) % coins.len() } else { to };
        let amount = U256::from(1_000_000 + 977 * number);
        let chain = &market.chain;
        format!(
            r#"{{"amount_in":"{amount}","source_asset_denom":"{}","source_asset_chain_id":"{chain}","dest_asset_denom":"{}","dest_asset_chain_id":"{chain}"}}"#,
            coins[from], coins[to],
        )
    };
    (0..count).map(body).collect()
}
