//! Swap routes over the recorded chains with pools.

use std::future::pending;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use chain::U256;
use planner::swap::{Market, MinitswapPool, Pool, PoolState, WeightedPool, Weights};
use registry::{Endpoints, Registry};
use replay::{Addresses, Options, Recording, ReplayNode};
use serde_json::{Value, json};

use crate::client::recorded::between;
use crate::client::{Client, here};

pub(crate) const L1: &str = "swap-l1-1";
pub(crate) const L2: &str = "swap-l2-1";
pub(crate) const INIT: &str = "uinit";
pub(crate) const BRIDGED: &str = "l2/771d639f30fbe45e3fbca954ffbe2fcc26f915f5513c67a4a2d0bc1d635bdefd";
pub(crate) const RETURNED: &str = "ibc/82EB1C694C571F954E68BFD68CFCFCD6123B0EBB69AAA8BAB7A082939B45E802";
const FOLDER: &str = "../../testing/recordings/l1-l2-swaps";

fn recording(name: &str) -> Arc<Recording> {
    Arc::new(Recording::open(&here(FOLDER).join(name)).unwrap())
}

static PLAYED_L1: LazyLock<Arc<Recording>> = LazyLock::new(|| recording("l1"));
static PLAYED_L2: LazyLock<Arc<Recording>> = LazyLock::new(|| recording("l2"));

/// Both nodes and a client of the service over them.
pub(crate) struct Chains {
    l1: ReplayNode,
    _l2: ReplayNode,
    pub(crate) client: Client,
}

impl Chains {
    async fn start() -> Self {
        Self::start_with("", &[]).await
    }

    /// With facts and pools read, members added to the venue, and faults of the nodes.
    pub(crate) async fn start_with(venue: &str, faults: &[&str]) -> Self {
        let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let play = async |recording: &LazyLock<Arc<Recording>>| {
            let options = Options { faults: faults.clone(), ..Options::default() };
            ReplayNode::start(Arc::clone(recording), Addresses::default(), options).await.unwrap()
        };
        let (l1, l2) = (play(&PLAYED_L1).await, play(&PLAYED_L2).await);
        let client = Client::over(registry(&l1, &l2, venue));
        let chains = Self { l1, _l2: l2, client };
        chains.read().await;
        chains
    }

    async fn read(&self) {
        let service = self.client.service();
        let read = async {
            let known = async || {
                let hooks = service.world().facts.hooks.contains_key(L1);
                hooks && self.venues().await.contains(&"minitswap".to_owned())
            };
            while !known().await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = service.follow_pools(pending()) => {}
            () = service.refresh(pending()) => {}
            () = read => {}
        }
    }

    async fn venues(&self) -> Vec<String> {
        let venues = self.client.get("/v2/fungible/venues").await.ok();
        let name = |venue: &Value| venue["name"].as_str().unwrap().to_owned();
        venues["venues"].as_array().unwrap().iter().map(name).collect()
    }

    pub(crate) async fn route(&self, ask: &Value) -> Value {
        self.client.post("/v2/fungible/route", ask).await.ok()
    }

    /// Message of a refusal, which must be a 400.
    async fn refused(&self, ask: &Value) -> String {
        let (status, _, message) = self.client.post("/v2/fungible/route", ask).await.refusal();
        assert_eq!(status, 400, "{message}");
        message
    }
}

fn registry(l1: &ReplayNode, l2: &ReplayNode, venue: &str) -> Registry {
    let of = |node: &ReplayNode| Endpoints {
        rpc: vec![node.comet_url()],
        rest: vec![node.rest_url()],
        json_rpc: vec![node.json_rpc_url()],
        ..Endpoints::default()
    };
    let file = |name: &str| std::fs::read_to_string(here(FOLDER).join("registry").join(name)).unwrap();
    // The venue is the last part.
    let files = [file("assets.toml"), file("bridges.toml"), file("chains.toml"), venue.to_owned()];
    let registry = registry::load_text(&files.join("\n")).unwrap();
    registry.with_endpoints(|id| match id {
        L1 => Some(of(l1)),
        L2 => Some(of(l2)),
        _ => None,
    })
}

/// The recorded views at the last height: function, arguments, reply.
fn recorded(function: &str) -> Vec<(Value, Value)> {
    let bytes = std::fs::read(here(FOLDER).join("simulations.ndjson.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(bytes.as_slice()).unwrap()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let fits =
        |line: &Value| line["function"] == function && line["height"].is_null() && line["error"].is_null();
    lines.filter(fits).map(|line| (line["args"].clone(), line["answer"].clone())).collect()
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_swap_on_the_l1_gives_what_the_best_recorded_quote_gives_or_more() {
    let chains = Chains::start().await;
    let mut equal = 0;
    for (args, reply) in recorded("get_swap_simulation_by_denom") {
        let (pool, offered, amount) =
            (args[0].as_str().unwrap(), args[1].as_str().unwrap(), args[2].as_str().unwrap());
        if !pool.starts_with("move/3da49084") || number(&reply) == 0 {
            continue;
        }
        let wanted = if offered == INIT { "uusdc" } else { INIT };
        let route = chains.route(&between((L1, offered), (L1, wanted), amount)).await;
        assert!(number(&route["amount_out"]) >= number(&reply), "{route}");
        let [operation] = route["operations"].as_array().unwrap().as_slice() else { panic!("{route}") };
        let swap = &operation["swap"]["swap_in"];
        let steps = swap["swap_operations"].as_array().unwrap();
        assert!((1..=3).contains(&steps.len()));
        if steps.len() == 1 && steps[0]["pool"] == pool {
            assert_eq!(route["amount_out"], reply);
            equal += 1;
        }
        assert_eq!(route["does_swap"], true);
        assert_eq!(route["swap_venues"][0]["name"], "initia-dex");
        assert_eq!(route["swap_venue"], route["swap_venues"][0]);
        assert_eq!(route["swap_price_impact_percent"], swap["price_impact_percent"]);
        assert_eq!(operation["swap"]["estimated_affiliate_fee"], format!("0{wanted}"));
        assert_eq!(route["required_chain_addresses"], json!([L1, L1]));
        let block = json!({ "chain_id": L1, "height": 570, "time": "2026-11-26T19:04:14Z" });
        assert_eq!(route["quoted_at"], block);
    }
    assert!(equal > 0, "no route was over the recorded pool alone");
}

#[tokio::test]
async fn legs_over_several_kinds_of_pools_give_what_the_adapter_quotes() {
    let chains = Chains::start().await;
    let mut compared = 0;
    for (args, reply) in recorded("simulate_swap_exact_asset_in") {
        let coins = |at: usize| args[3][at].as_array();
        let Some(first) = coins(0).and_then(|coins| coins.first()) else { continue };
        let last = args[3].as_array().unwrap().last().unwrap().as_array().unwrap().last().unwrap();
        let ask =
            between((L1, first.as_str().unwrap()), (L1, last.as_str().unwrap()), args[0].as_str().unwrap());
        let answer = chains.client.post("/v2/fungible/route", &ask).await;
        if answer.status != 200 {
            // No amount out is no route.
            assert_eq!(number(&reply), 0, "{ask} {reply} {}", answer.json());
            continue;
        }
        assert!(number(&answer.ok()["amount_out"]) >= number(&reply), "{ask} {reply} {}", answer.json());
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
}

#[tokio::test]
async fn a_fast_withdrawal_is_the_default_and_the_bridge_is_the_other() {
    let chains = Chains::start().await;
    let mut ask = between((L2, BRIDGED), (L1, INIT), "41000000");
    let fast = chains.route(&ask).await;
    let kinds: Vec<&String> = fast["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| operation.as_object().unwrap().keys().next().unwrap())
        .collect();
    assert_eq!(kinds.len(), 2, "{fast}");
    assert!(fast["operations"][0]["transfer"].is_object(), "{fast}");
    let swap = &fast["operations"][1]["swap"];
    assert_eq!((&swap["denom_in"], &swap["denom_out"]), (&json!(RETURNED), &json!(INIT)));
    assert_eq!(swap["swap_venues"][0]["name"], "minitswap");
    assert_eq!((&fast["does_swap"], &fast["txs_required"]), (&json!(true), &json!(1)));
    ask["is_op_withdraw"] = json!(true);
    let lossless = chains.route(&ask).await;
    assert!(lossless["operations"][0]["op_init_transfer"].is_object(), "{lossless}");
    assert_eq!((&lossless["does_swap"], &lossless["amount_out"]), (&json!(false), &json!("41000000")));
    let seconds = |route: &Value| route["estimated_route_duration_seconds"].as_u64().unwrap();
    assert!(seconds(&lossless) > seconds(&fast));
}

#[tokio::test]
async fn hops_before_and_after_a_swap_are_of_one_signature() {
    let chains = Chains::start().await;
    for (source, dest, operations) in [((L1, "uusdc"), (L2, BRIDGED), 2), ((L2, BRIDGED), (L1, "uusdc"), 2)] {
        let route = chains.route(&between(source, dest, "30000000")).await;
        assert_eq!(route["operations"].as_array().unwrap().len(), operations, "{route}");
        assert_eq!(route["txs_required"], 1);
        assert_eq!(route["does_swap"], true);
    }
}

#[tokio::test]
async fn an_amount_out_takes_what_the_adapter_quotes_or_less() {
    let chains = Chains::start().await;
    let mut compared = 0;
    for (args, reply) in recorded("simulate_swap_exact_asset_out") {
        let Some(first) = args[3][0].as_array().and_then(|coins| coins.first()) else { continue };
        let last = args[3].as_array().unwrap().last().unwrap().as_array().unwrap().last().unwrap();
        if number(&reply) == 0 {
            continue;
        }
        let mut ask = between((L1, first.as_str().unwrap()), (L1, last.as_str().unwrap()), "1");
        ask.as_object_mut().unwrap().remove("amount_in");
        ask["amount_out"] = args[0].clone();
        let route = chains.route(&ask).await;
        // Where the chain's own quote gives less than 99 % of what is wanted, more is offered.
        let is_out = route["operations"][0]["swap"]["swap_out"].is_object();
        assert!(!is_out || number(&route["amount_in"]) <= number(&reply), "{ask} {reply} {route}");
        assert!(number(&route["amount_out"]) >= number(&args[0]), "{route}");
        let swap = &route["operations"][0]["swap"];
        let out =
            swap["swap_out"]["swap_amount_out"].as_str().or(swap["swap_in"]["estimated_amount_out"].as_str());
        assert!(number(&json!(out)) >= number(&args[0]), "{route}");
        compared += usize::from(is_out);
    }
    assert!(compared > 10, "{compared}");
}

#[tokio::test]
async fn an_amount_out_of_a_fast_withdrawal_takes_the_same_out_of_the_wrapper() {
    let chains = Chains::start().await;
    let wrapped = "evm/1EBEB4AA9d6b7ad48E093A336FEb6C17358250e2";
    for wanted in ["2", "1000000", "4999999999"] {
        let ask = |denom| {
            let mut ask = between((L2, denom), (L1, INIT), "1");
            ask.as_object_mut().unwrap().remove("amount_in");
            ask["amount_out"] = json!(wanted);
            ask
        };
        let plain = chains.route(&ask(BRIDGED)).await;
        let route = chains.route(&ask(wrapped)).await;
        assert_eq!(route["does_swap"], true, "{route}");
        assert_eq!(route["amount_out"], plain["amount_out"]);
        assert!(number(&route["amount_out"]) >= number(&json!(wanted)));
        let amount_in = format!("{}000000000000", plain["amount_in"].as_str().unwrap());
        assert_eq!(route["amount_in"], amount_in);
    }
}

#[tokio::test]
async fn an_amount_is_split_where_that_gives_more_and_the_client_asks_for_it() {
    let chains = Chains::start().await;
    let mut ask = between((L1, INIT), (L1, "uusdc"), "6000000000000");
    let whole = chains.route(&ask).await;
    ask["smart_swap_options"] = json!({ "split_routes": true });
    let split = chains.route(&ask).await;
    assert!(number(&split["amount_out"]) > number(&whole["amount_out"]));
    let parts = split["operations"][0]["swap"]["smart_swap_in"]["swap_routes"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| number(&part["swap_amount_in"])).sum();
    assert!(parts.len() > 1 && sum == 6_000_000_000_000);
}

#[tokio::test]
async fn what_cannot_be_swapped_is_refused_with_the_reason() {
    let chains = Chains::start().await;
    let usdc = between((L1, "uusdc"), (L1, INIT), "1000000");
    let with = |name: &str, value: Value| {
        let mut ask = usdc.clone();
        ask[name] = value;
        ask
    };
    let message = chains
        .refused(&with("swap_venues", json!([{ "name": "osmosis-poolmanager", "chain_id": L1 }])))
        .await;
    assert!(message.contains("`osmosis-poolmanager` of chain `swap-l1-1` is no venue"), "{message}");
    let message =
        chains.refused(&with("swap_venues", json!([{ "name": "minitswap", "chain_id": L1 }]))).await;
    assert!(message.contains("no pool swaps uusdc on swap-l1-1 for uinit on swap-l1-1"), "{message}");
    let message = chains.refused(&with("allow_swaps", json!(false))).await;
    assert!(message.contains("nothing connects uusdc on swap-l1-1"), "{message}");
    let message = chains.refused(&with("amount_in", json!("18446744073709551616"))).await;
    assert!(message.contains("an amount of 18446744073709551616 is more than a swap can carry"), "{message}");
    for (name, array) in [
        ("swap_venue", json!(["initia-dex", null])),
        ("swap_venues", json!([["initia-dex", null]])),
        ("smart_swap_options", json!([true, false])),
    ] {
        let message = chains.refused(&with(name, array)).await;
        assert!(
            message.starts_with(&format!("invalid {name}")) && message.contains("expected an object"),
            "{message}"
        );
    }
    let message = chains.refused(&with("swap_venue", json!({ "name": "n".repeat(5_000) }))).await;
    assert!(message.contains("nnn…` is no venue") && message.len() < 200, "{message}");
    let message = chains.refused(&with("amount_in", json!("18446744073709551615"))).await;
    assert!(message.contains("the amount is more than the pool can swap"), "{message}");
    let mut ask = between((L1, "uusdc"), (L1, INIT), "1");
    ask.as_object_mut().unwrap().remove("amount_in");
    ask["amount_out"] = json!("20000000000000000");
    let message = chains.refused(&ask).await;
    assert!(message.contains("cannot be swapped: the amount is more than the pool can swap"), "{message}");
    ask["amount_out"] = json!("1000000");
    let route = chains.route(&ask).await;
    let mut messages = ask.clone();
    for name in ["amount_in", "operations"] {
        messages[name] = route[name].clone();
    }
    messages.as_object_mut().unwrap().remove("amount_out");
    let (status, _, message) = chains.client.post("/v2/fungible/msgs", &messages).await.refusal();
    assert_eq!(status, 400);
    assert!(message.starts_with("invalid amount_out: it is missing"), "{message}");
}

#[tokio::test]
async fn a_node_that_fails_leaves_the_last_pools() {
    let chains = Chains::start().await;
    let ask = between((L1, "uusdc"), (L1, INIT), "1000000");
    let before = chains.route(&ask).await;
    chains.l1.set_faults(vec!["rest:500".parse().unwrap()]);
    let failed = async {
        while chains.l1.faulted() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = chains.client.service().follow_pools(pending()) => {}
        () = failed => {}
    }
    assert_eq!(chains.route(&ask).await, before);
}

#[tokio::test]
async fn chains_that_fail_at_the_start_are_asked_again_before_the_next_refresh() {
    let l1 =
        ReplayNode::start(Arc::clone(&PLAYED_L1), Addresses::default(), Options::default()).await.unwrap();
    let l2 =
        ReplayNode::start(Arc::clone(&PLAYED_L2), Addresses::default(), Options::default()).await.unwrap();
    l1.set_faults(vec!["rest:500".parse().unwrap()]);
    let client = Client::over(registry(&l1, &l2, ""));
    let service = client.service();
    let known = async {
        while l1.faulted() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        l1.set_faults(Vec::new());
        while !service.world().facts.hooks.contains_key(L1) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = service.refresh(pending()) => {}
        known = tokio::time::timeout(Duration::from_mins(1), known) => known.unwrap(),
    }
}

/// One pool of each kind that a test alters.
fn market(alter: impl Fn(&mut WeightedPool, &mut MinitswapPool)) -> Market {
    let one = U256::from(1_000_000_000_000_000_000u64);
    let weights = Weights { weights: [one / U256::from(2); 2], time: 0 };
    let mut weighted = WeightedPool {
        reserves: [1_000_000_000; 2],
        weights_before: weights.clone(),
        weights_after: weights,
        fee_rate: U256::ZERO,
    };
    let mut minitswap = MinitswapPool {
        init: 1_000_000_000,
        voucher: 1_000_000_000,
        size: 1_000_000_000,
        peg_keeper_owned: 0,
        ann: 3_000,
        recover_velocity: one,
        max_ratio: one / U256::from(10) * U256::from(7),
        recover_param: one,
        last_recovered: 0,
        active: true,
        fee_rate: U256::ZERO,
        arb_fee_rate: U256::ZERO,
    };
    alter(&mut weighted, &mut minitswap);
    let pool = |id: &str, coins: [&str; 2], state| Pool {
        id: id.to_owned(),
        coins: coins.map(str::to_owned).into(),
        state,
    };
    let pools = vec![
        pool("move/1", [INIT, "uusdc"], PoolState::Weighted(weighted)),
        pool(RETURNED, [RETURNED, INIT], PoolState::Minitswap(minitswap)),
    ];
    Market::new(L1.to_owned(), 1, 1, pools)
}

/// A service that knows only these pools.
fn with_pools(alter: impl Fn(&mut WeightedPool, &mut MinitswapPool), age: Duration) -> Client {
    let registry = registry::load(&here(FOLDER).join("registry")).unwrap().registry;
    let client = Client::over(registry.with_endpoints(|_| Some(Endpoints::default())));
    client.service().learn_market(market(alter), Instant::now().checked_sub(age).unwrap());
    client
}

#[tokio::test]
async fn messages_of_a_fast_withdrawal_that_cannot_swap_any_more_are_refused_with_the_reason() {
    let chains = Chains::start().await;
    let user = "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
    let mut ask = between((L2, BRIDGED), (L1, INIT), "41000000");
    let route = chains.route(&ask).await;
    ask["operations"] = route["operations"].clone();
    ask["address_list"] = json!([user, user]);
    chains.client.post("/v2/fungible/msgs", &ask).await.ok();
    let old = Instant::now().checked_sub(Duration::from_secs(31)).unwrap();
    let off = market(|_, minitswap| minitswap.active = false);
    for (market, read_at, why) in [
        (off, Instant::now(), "cannot be swapped: the pool is switched off"),
        (market(|_, _| {}), old, "the pools of swap-l1-1 were last read 31 s ago"),
    ] {
        chains.client.service().learn_market(market, read_at);
        let (status, _, message) = chains.client.post("/v2/fungible/msgs", &ask).await.refusal();
        assert!(status == 400 && message.contains(why), "{message}");
        // A new route is over the bridge.
        let ask = between((L2, BRIDGED), (L1, INIT), "41000000");
        assert_eq!(chains.route(&ask).await["does_swap"], false);
        // The pool is the first of two.
        let message = chains.refused(&between((L2, BRIDGED), (L1, "uusdc"), "41000000")).await;
        assert!(message.contains(why), "{message}");
    }
}

#[tokio::test]
async fn a_pool_that_is_empty_off_or_known_of_old_is_not_quoted() {
    let now = Duration::ZERO;
    let usdc = between((L1, INIT), (L1, "uusdc"), "1000000");
    let returned = between((L1, RETURNED), (L1, INIT), "1000000");
    let bought = between((L1, INIT), (L1, RETURNED), "1000000");
    for ask in [&usdc, &returned] {
        let client = with_pools(|_, _| {}, now);
        assert_eq!(client.post("/v2/fungible/route", ask).await.ok()["does_swap"], true);
    }
    let cases: [(_, &Value, &str); 5] = [
        (
            with_pools(|weighted, _| weighted.reserves[1] = 0, now),
            &usdc,
            "cannot be swapped: the pool is empty",
        ),
        (with_pools(|weighted, _| weighted.weights_before.time = 2, now), &usdc, "the pool has not started"),
        (with_pools(|_, minitswap| minitswap.active = false, now), &returned, "the pool is switched off"),
        (with_pools(|_, _| {}, now), &bought, "has sold too little of the coin"),
        (
            with_pools(|_, _| {}, Duration::from_secs(31)),
            &usdc,
            "the pools of swap-l1-1 were last read 31 s ago",
        ),
    ];
    for (client, ask, why) in cases {
        let (status, _, message) = client.post("/v2/fungible/route", ask).await.refusal();
        assert!(status == 400 && message.contains(why), "{message}");
    }
}

#[tokio::test]
async fn messages_of_a_swap_carry_the_minimum_of_the_route_and_keep_its_pools() {
    let chains = Chains::start().await;
    let user = "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
    let cases = [
        ((L1, "uusdc"), (L1, INIT), "/initia.move.v1.MsgExecute"),
        ((L1, "uusdc"), (L2, BRIDGED), "/initia.move.v1.MsgExecute"),
        ((L2, BRIDGED), (L1, INIT), "/ibc.applications.transfer.v1.MsgTransfer"),
        ((L2, BRIDGED), (L1, "uusdc"), "/ibc.applications.transfer.v1.MsgTransfer"),
    ];
    for (source, dest, kind) in cases {
        let mut ask = between(source, dest, "41000000");
        let route = chains.route(&ask).await;
        for name in ["amount_out", "operations"] {
            ask[name] = route[name].clone();
        }
        ask["address_list"] = json!([user, user]);
        ask["slippage_tolerance_percent"] = json!("1");
        let made = chains.client.post("/v2/fungible/msgs", &ask).await.ok();
        let msgs = made["txs"][0]["cosmos_tx"]["msgs"].as_array().unwrap();
        assert_eq!(msgs[0]["msg_type_url"], kind, "{made}");
        let out = number(&route["amount_out"]);
        assert_eq!(number(&made["min_amount_out"]), (out * 99).div_ceil(100), "{made}");
        for (slippage, why) in
            [("0", "must be more than 0"), ("100", "less than 100"), ("11", "allow_unsafe permits it")]
        {
            ask["slippage_tolerance_percent"] = json!(slippage);
            let (status, _, message) = chains.client.post("/v2/fungible/msgs", &ask).await.refusal();
            assert!(status == 400 && message.contains(why), "{message}");
        }
        ask["slippage_tolerance_percent"] = json!("11");
        ask["allow_unsafe"] = json!(true);
        chains.client.post("/v2/fungible/msgs", &ask).await.ok();
    }
    let mut ask = between((L1, "uusdc"), (L1, INIT), "41000000");
    let route = chains.route(&ask).await;
    ask["operations"] = route["operations"].clone();
    ask["operations"][0]["swap"]["swap_in"]["swap_operations"][0]["pool"] = json!("move/00");
    ask["address_list"] = json!([user, user]);
    let (status, _, message) = chains.client.post("/v2/fungible/msgs", &ask).await.refusal();
    assert!(status == 400 && message.contains("no pool swaps uusdc"), "{message}");
}
