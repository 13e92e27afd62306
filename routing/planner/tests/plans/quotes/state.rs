//! The recorded pools.

use std::collections::HashMap;
use std::path::PathBuf;

use planner::swap::{MinitswapPool, PoolKind, Quote, Refusal, StablePool, WeightedPool};
use serde_json::Value;

pub(super) const INIT: &str = "uinit";

fn file(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/l1-l2-swaps");
    std::fs::read(folder.join(name)).unwrap()
}

/// `swaps.json`.
pub(super) fn swaps() -> Value {
    serde_json::from_slice(&file("swaps.json")).unwrap()
}

/// The lines of `simulations.ndjson.zst`.
pub(super) fn questions() -> Vec<Value> {
    let bytes = zstd::decode_all(file("simulations.ndjson.zst").as_slice()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Pools at a height.
#[derive(Default)]
pub(super) struct Pools {
    pub(super) time: u64,
    pub(super) weighted: HashMap<String, WeightedPool>,
    pub(super) stable: HashMap<String, (Vec<String>, StablePool)>,
    pub(super) minitswap: Option<MinitswapPool>,
}

/// What the recording calls things.
pub(super) struct Names {
    /// Denominations by metadata address.
    denoms: HashMap<String, String>,
    /// Coins of the weighted pools.
    pub(super) coins: HashMap<String, [String; 2]>,
}

impl Names {
    pub(super) fn of(swaps: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let tokens = swaps["tokens"].as_array().unwrap();
        let denoms = tokens.iter().map(|token| (text(&token["metadata"]), text(&token["denom"]))).collect();
        let pools = swaps["pools"].as_array().unwrap().iter().filter(|pool| pool["venue"] == "dex");
        let coins = |pool: &Value| [text(&pool["coins"][0]), text(&pool["coins"][1])];
        Self { denoms, coins: pools.map(|pool| (text(&pool["pool"]), coins(pool))).collect() }
    }

    /// The denomination of a coin that a question names by either.
    pub(super) fn denom(&self, name: &str) -> String {
        self.denoms.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// The denomination of an LP token.
    pub(super) fn pool(name: &str) -> String {
        name.strip_prefix("0x").map_or_else(|| name.to_owned(), |digits| format!("move/{digits:0>64}"))
    }
}

/// A step of a chain of venues.
pub(super) struct Step<'a> {
    pub(super) kind: PoolKind,
    pub(super) pool: &'a str,
    pub(super) offered: &'a str,
    pub(super) returned: &'a str,
}

impl Pools {
    /// The quote of a step; None if the question names a coin that is not in the pool, which is no question of price.
    pub(super) fn quote(
        &self,
        names: &Names,
        step: &Step<'_>,
        amount: u64,
        is_out: bool,
    ) -> Result<Quote, Refusal> {
        match step.kind {
            PoolKind::Weighted => {
                let pool = self.weighted.get(step.pool).ok_or(Refusal::NoSuchCoin)?;
                let offered = position(&names.coins[step.pool], step.offered)?;
                if is_out {
                    pool.amount_in(self.time, offered, amount)
                } else {
                    pool.amount_out(self.time, offered, amount)
                }
            }
            PoolKind::Stable => {
                let (coins, pool) = self.stable.get(step.pool).ok_or(Refusal::NoSuchCoin)?;
                let (offered, returned) = (position(coins, step.offered)?, position(coins, step.returned)?);
                if is_out {
                    pool.amount_in(offered, returned, amount)
                } else {
                    pool.amount_out(offered, returned, amount)
                }
            }
            PoolKind::Minitswap => {
                let pool = self.minitswap.as_ref().ok_or(Refusal::SwitchedOff)?;
                let sells = step.offered != INIT;
                if is_out {
                    pool.amount_in(self.time, sells, amount)
                } else {
                    pool.amount_out(self.time, sells, amount)
                }
            }
        }
    }

    pub(super) fn spot(&self, names: &Names, step: &Step<'_>) -> Result<chain::U256, Refusal> {
        match step.kind {
            PoolKind::Weighted => {
                let offered = position(&names.coins[step.pool], step.offered)?;
                self.weighted[step.pool].spot_price(self.time, offered)
            }
            PoolKind::Stable => {
                let (coins, pool) = &self.stable[step.pool];
                pool.spot_price(position(coins, step.offered)?, position(coins, step.returned)?)
            }
            PoolKind::Minitswap => {
                let pool = self.minitswap.as_ref().ok_or(Refusal::SwitchedOff)?;
                pool.spot_price(self.time, step.offered != INIT)
            }
        }
    }
}

fn position(coins: &[String], coin: &str) -> Result<usize, Refusal> {
    coins.iter().position(|known| known == coin).ok_or(Refusal::NoSuchCoin)
}
