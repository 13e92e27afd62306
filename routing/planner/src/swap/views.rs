//! Pool states from the JSON of the chain's views.

use chain::U256;
use serde_json::Value;

use super::decimal::parse;
use super::{MinitswapPool, StablePool, WeightedPool, Weights};

/// A view's reply does not have the expected shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is missing or no number")]
pub struct Unreadable(&'static str);

impl WeightedPool {
    /// From `dex::get_pool_info` and `dex::get_config`.
    pub fn from_views(info: &Value, config: &Value) -> Result<Self, Unreadable> {
        let weights = |when: &'static str| {
            let weights = &config["weights"][when];
            Ok(Weights {
                weights: [decimal(weights, "coin_a_weight")?, decimal(weights, "coin_b_weight")?],
                time: number(weights, "timestamp")?,
            })
        };
        Ok(Self {
            reserves: [number(info, "coin_a_amount")?, number(info, "coin_b_amount")?],
            weights_before: weights("weights_before")?,
            weights_after: weights("weights_after")?,
            fee_rate: rate(config, "swap_fee_rate")?,
        })
    }
}

impl StablePool {
    /// From `stableswap::get_pool`: the denominations of its coins, and its state.
    pub fn from_view(pool: &Value) -> Result<(Vec<String>, Self), Unreadable> {
        let texts = |name: &'static str| -> Result<Vec<String>, Unreadable> {
            let items = pool[name].as_array().ok_or(Unreadable(name))?;
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or(Unreadable(name))).collect()
        };
        let (denoms, balances) = (texts("coin_denoms")?, texts("coin_balances")?);
        let reserves: Result<Vec<u64>, _> =
            balances.iter().map(|balance| balance.parse().map_err(|_| Unreadable("coin_balances"))).collect();
        let reserves = reserves?;
        if reserves.len() != denoms.len() || !(2..=5).contains(&denoms.len()) {
            return Err(Unreadable("coin_balances"));
        }
        let (ann, fee_rate) = (number(pool, "current_ann")?, rate(pool, "swap_fee_rate")?);
        Ok((denoms, Self { reserves, ann, fee_rate }))
    }
}

impl MinitswapPool {
    /// From `minitswap::get_pools_detail` and `minitswap::get_module_store`: the denomination of its voucher, and its
    /// state.
    pub fn from_views(detail: &Value, module: &Value) -> Result<(String, Self), Unreadable> {
        let pool = &detail["virtual_pool"];
        let denom = detail["ibc_op_init_denom"].as_str().ok_or(Unreadable("ibc_op_init_denom"))?;
        let state = Self {
            init: number(pool, "init_pool_amount")?,
            voucher: number(pool, "ibc_op_init_pool_amount")?,
            size: number(pool, "pool_size")?,
            peg_keeper_owned: number(pool, "peg_keeper_owned_ibc_op_init_balance")?,
            ann: number(pool, "ann")?,
            recover_velocity: decimal(pool, "recover_velocity")?,
            max_ratio: rate(pool, "max_ratio")?,
            recover_param: decimal(pool, "recover_param")?,
            last_recovered: number(pool, "last_recovered_timestamp")?,
            // The module stops all pools in an emergency.
            active: pool["active"].as_bool().ok_or(Unreadable("active"))?
                && module["emergency_state"] != true,
            fee_rate: rate(module, "swap_fee_rate")?,
            arb_fee_rate: rate(module, "arb_fee_rate")?,
        };
        Ok((denom.to_owned(), state))
    }
}

fn text<'a>(object: &'a Value, name: &'static str) -> Result<&'a str, Unreadable> {
    object[name].as_str().ok_or(Unreadable(name))
}

fn number(object: &Value, name: &'static str) -> Result<u64, Unreadable> {
    text(object, name)?.parse().map_err(|_| Unreadable(name))
}

fn decimal(object: &Value, name: &'static str) -> Result<U256, Unreadable> {
    parse(text(object, name)?).ok_or(Unreadable(name))
}

/// A share below 1.
fn rate(object: &Value, name: &'static str) -> Result<U256, Unreadable> {
    decimal(object, name)
        .and_then(|rate| if rate < super::decimal::ONE { Ok(rate) } else { Err(Unreadable(name)) })
}
