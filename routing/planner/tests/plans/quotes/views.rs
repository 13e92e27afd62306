//! The recorded views.

use std::collections::HashMap;

use chain::U256;
use planner::swap::{MinitswapPool, PoolKind, Refusal, StablePool, WeightedPool, decimal};
use serde_json::Value;

use super::state::{INIT, Names, Pools, Step, questions, swaps};

/// Pools by height, `latest` for questions without one: from the questions about state among the others.
fn states(swaps: &Value, questions: &[Value]) -> HashMap<String, Pools> {
    let mut replies: HashMap<(String, String, String), Value> = HashMap::new();
    for question in questions.iter().filter(|question| question["error"].is_null()) {
        let pool = Names::pool(question["args"][0].as_str().unwrap_or_default());
        let function = question["function"].as_str().unwrap().to_owned();
        replies.insert((height(question), function, pool), question["answer"].clone());
    }
    let times = swaps["times"].as_object().unwrap();
    times
        .iter()
        .map(|(height, time)| {
            let of = |function: &str| {
                let here = replies.iter().filter(move |((at, name, _), _)| at == height && name == function);
                here.map(|((_, _, pool), reply)| (pool.clone(), reply.clone())).collect::<HashMap<_, _>>()
            };
            let (configs, infos) = (of("get_config"), of("get_pool_info"));
            let weighted = infos
                .iter()
                .map(|(pool, info)| (pool.clone(), WeightedPool::from_views(info, &configs[pool]).unwrap()));
            let stable =
                of("get_pool").into_iter().map(|(pool, view)| (pool, StablePool::from_view(&view).unwrap()));
            let module = of("get_module_store").into_values().next().unwrap();
            let detail = of("get_pools_detail").into_values().next();
            let minitswap = detail.map(|detail| MinitswapPool::from_views(&detail, &module).unwrap().1);
            let time = time.as_u64().unwrap();
            (
                height.clone(),
                Pools { time, weighted: weighted.collect(), stable: stable.collect(), minitswap },
            )
        })
        .collect()
}

fn height(question: &Value) -> String {
    question["height"].as_u64().map_or_else(|| "latest".to_owned(), |height| height.to_string())
}

/// The steps of an adapter's view.
fn steps<'a>(venues: &Value, pools: &'a Value, coins: &'a Value) -> Option<Vec<Step<'a>>> {
    let mut steps = Vec::new();
    for (leg, venue) in venues.as_array()?.iter().enumerate() {
        let kind = [PoolKind::Weighted, PoolKind::Stable, PoolKind::Minitswap]
            .into_iter()
            .find(|kind| Some(u64::from(kind.adapter_number())) == venue.as_u64())?;
        for (hop, pool) in pools[leg].as_array()?.iter().enumerate() {
            let coin = |at: usize| coins[leg][at].as_str();
            steps.push(Step { kind, pool: pool.as_str()?, offered: coin(hop)?, returned: coin(hop + 1)? });
        }
    }
    Some(steps)
}

/// The reply to a question of price, as this planner computes it, in the form of the chain's; None if it is no such
/// question.
fn computed(pools: &Pools, names: &Names, question: &Value) -> Option<Result<Value, Refusal>> {
    let (module, function) = (question["module"].as_str()?, question["function"].as_str()?);
    let args = &question["args"];
    let text = |at: usize| args[at].as_str().unwrap_or_default();
    let amount = |at: usize| text(at).parse::<u64>().unwrap();
    let is_out = function.contains("given_out") || function.contains("asset_out");
    let number = |number: u64| Value::from(number.to_string());
    match module {
        "dex" if function.starts_with("get_swap_simulation") || function.starts_with("get_spot_price") => {
            let (pool, offered) = (Names::pool(text(0)), names.denom(text(1)));
            if !names.coins.contains_key(&pool) {
                return None;
            }
            let step = Step { kind: PoolKind::Weighted, pool: &pool, offered: &offered, returned: "" };
            if function.starts_with("get_spot_price") {
                return Some(pools.spot(names, &step).map(spot));
            }
            let quote = pools.quote(names, &step, amount(2), is_out);
            let pair = function.ends_with("with_fee");
            Some(quote.map(|quote| {
                if pair {
                    Value::from(vec![number(quote.amount), number(quote.fee)])
                } else {
                    number(quote.amount)
                }
            }))
        }
        "stableswap" if function.starts_with("get_swap_simulation") || function == "spot_price" => {
            let (pool, offered, returned) =
                (Names::pool(text(0)), names.denom(text(1)), names.denom(text(2)));
            let step = Step { kind: PoolKind::Stable, pool: &pool, offered: &offered, returned: &returned };
            if function == "spot_price" {
                return Some(pools.spot(names, &step).map(spot));
            }
            Some(pools.quote(names, &step, amount(3), is_out).map(|quote| number(quote.amount)))
        }
        "minitswap" if function.starts_with("swap_simulation") || function == "spot_price" => {
            let (offered, returned) = (names.denom(text(0)), names.denom(text(1)));
            if !offered.starts_with("ibc/") && offered != INIT {
                return None;
            }
            let step = Step { kind: PoolKind::Minitswap, pool: "", offered: &offered, returned: &returned };
            if function == "spot_price" {
                return Some(pools.spot(names, &step).map(spot));
            }
            let quote = pools.quote(names, &step, amount(2), is_out);
            Some(quote.map(|quote| Value::from(vec![number(quote.amount), number(quote.fee)])))
        }
        "entry_point" if function == "get_spot_price" => {
            let steps = steps(&args[0], &args[1], &args[2])?;
            Some(spot_of(pools, names, &steps).map(spot))
        }
        "entry_point" if function.starts_with("simulate_swap_exact_asset") => {
            let steps = steps(&args[1], &args[2], &args[3]).filter(|steps| !steps.is_empty())?;
            let known =
                |step: &Step<'_>| step.kind != PoolKind::Weighted || names.coins.contains_key(step.pool);
            if !steps.iter().all(known) {
                return None;
            }
            let ordered: Vec<&Step<'_>> =
                if is_out { steps.iter().rev().collect() } else { steps.iter().collect() };
            let end = ordered.into_iter().try_fold(amount(0), |amount, step| {
                pools.quote(names, step, amount, is_out).map(|quote| quote.amount)
            });
            if !function.ends_with("with_metadata") {
                return Some(end.map(number));
            }
            let name = if is_out { "amount_in" } else { "amount_out" };
            let both = end.and_then(|end| Ok((end, spot_of(pools, names, &steps)?)));
            Some(
                both.map(
                    |(end, price)| serde_json::json!({ name: end.to_string(), "spot_price": spot(price) }),
                ),
            )
        }
        _ => None,
    }
}

fn spot_of(pools: &Pools, names: &Names, steps: &[Step<'_>]) -> Result<U256, Refusal> {
    let one = decimal::parse("1").unwrap();
    steps.iter().try_fold(one, |price, step| Ok(price * pools.spot(names, step)? / one))
}

/// A decimal as the chain writes it, without trailing zeros.
fn spot(price: U256) -> Value {
    let digits = format!("{price:0>19}");
    let (whole, fraction) = digits.split_at(digits.len() - 18);
    Value::from(format!("{whole}.{fraction}").trim_end_matches('0').trim_end_matches('.'))
}

#[test]
fn each_recorded_price_is_computed_to_the_unit_and_each_abort_refused() {
    let (swaps, questions) = (swaps(), questions());
    let names = Names::of(&swaps);
    let states = states(&swaps, &questions);
    let (mut equal, mut aborts) = (0, 0);
    for question in &questions {
        let Some(computed) = computed(&states[&height(question)], &names, question) else { continue };
        let what = format!(
            "{}::{} {} at {}",
            question["module"], question["function"], question["args"], question["height"]
        );
        match computed {
            Ok(mine) => assert_eq!(mine, question["answer"], "{what} {}", question["error"]),
            Err(refusal) => {
                assert!(
                    !question["error"].is_null(),
                    "{what} is refused ({refusal}), the chain says {}",
                    question["answer"]
                );
                aborts += 1;
            }
        }
        equal += 1;
    }
    assert_eq!((equal, aborts), (4_477, 451));
}
