//! Conversions by an ERC20Wrapper: a message names the tokens of the contract's pair, or is refused.
//!
//! `onyx/` is hand-written in the public layout of Initia's registry, in which the pair of ONYX is reversed: the token
//! in the L1's list is a voucher of `44CFAa…`, the remote token with 6 decimals that `toRemote` made of yominet's
//! `4BaDFb…`.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use registry::facts::{PairState, WrapperFacts};
use registry::{Endpoints, Facts, Registry};
use serde_json::{Value, json};
use tracker::ChainClients;

use crate::client::fixture::Fixture;
use crate::client::recorded::between;
use crate::client::{ASK, Client, USER, USER_HEX, here};
use crate::facts::refreshed;

const L1: &str = "interwoven-1";
const L2: &str = "yominet-1";
/// The original ONYX, with 18 decimals.
const LOCAL: &str = "evm/4BaDFb501Ab304fF11217C44702bb9E9732E7CF4";
/// The token that the wrapper made of it, with 6 decimals.
const REMOTE: &str = "evm/44CFAaB1cF49996540A6B6A87d1f0a604267E6b0";
/// Its voucher on the L1.
const VOUCHER: &str = "ibc/74CDBCE5F520CD29B32692645382E168032121F7DC3B3FDC79B0D37FB4E0916D";
const WRAPPER: &str = "0x4eb08D5c1B0A821303A86C7b3AC805c2793dE783";
/// INIT in its usual pair.
const INIT: &str = "evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96";
const BRIDGED: &str = "l2/8f73cfaf153520f511b4fc0bd71d60d64b4e19eff04a350e642718a3c1ab3b06";
const BRIDGED_ERC20: &str = "0x2eE7007DF876084d4C74685e90bB7f4cd7c86e22";

const ONE_LOCAL: &str = "1000000000000000000";
const ONE_REMOTE: &str = "1000000";

fn onyx(endpoints: &Endpoints) -> Registry {
    let loaded = registry::load(&here("tests/onyx")).unwrap();
    assert_eq!(loaded.problems, []);
    let errors: Vec<_> = registry::check(&loaded.registry)
        .into_iter()
        .filter(|problem| problem.severity == registry::Severity::Error)
        .collect();
    assert_eq!(errors, []);
    loaded.registry.with_endpoints(|id| Some(if id == L2 { endpoints.clone() } else { Endpoints::default() }))
}

/// Facts that let packets call the wrapper, and name the contract of the bridged coin.
fn open() -> Facts {
    let mut facts = Facts::default();
    facts.hooks.insert(L2.to_owned(), true);
    facts.contracts.insert((L2.to_owned(), BRIDGED.to_owned()), BRIDGED_ERC20.to_owned());
    facts
}

/// The messages of the only transaction: type and JSON.
async fn msgs(client: &Client, source: (&str, &str), dest: (&str, &str), amount: &str) -> Vec<Value> {
    let mut ask = between(source, dest, amount);
    ask["chain_ids_to_addresses"] = json!({ L1: USER, L2: USER });
    let answer = client.post("/v2/fungible/msgs_direct", &ask).await.ok();
    let txs = answer["txs"].as_array().unwrap();
    assert_eq!(txs.len(), 1, "{txs:?}");
    let msgs = txs[0]["cosmos_tx"]["msgs"].as_array().unwrap();
    msgs.iter().map(|msg| serde_json::from_str(msg["msg"].as_str().unwrap()).unwrap()).collect()
}

/// A word of calldata: hex digits with zeros before them.
fn word(digits: &str) -> String {
    format!("{:0>64}", digits.trim_start_matches("0x").to_ascii_lowercase())
}

/// A number as a word.
fn number(value: u128) -> String {
    format!("{value:064x}")
}

/// A text in calldata: its length, and its bytes padded to whole words.
fn tail(text: &str) -> String {
    let digits = hex(text);
    let padded = digits.len().div_ceil(64) * 64;
    format!("{}{digits:0<padded$}", number(text.len() as u128))
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// `MsgCall` of the user's account.
fn call(contract: &str, input: &str) -> Value {
    json!({
        "sender": USER, "contract_addr": contract, "input": format!("0x{input}"), "value": "0", "access_list": [],
    })
}

fn contract(denom: &str) -> String {
    format!("0x{}", denom.strip_prefix("evm/").unwrap())
}

fn approve(denom: &str, amount: u128) -> Value {
    call(&contract(denom), &format!("095ea7b3{}{}", word(WRAPPER), number(amount)))
}

/// `toLocal(address,string,uint256,uint8)`.
fn to_local(denom: &str, amount: u128, decimals: u128) -> String {
    let head = [word(USER_HEX), number(0x80), number(amount), number(decimals)].concat();
    format!("1efd1a84{head}{}", tail(denom))
}

#[tokio::test]
async fn a_reversed_pair_is_converted_as_its_contract_does_it() {
    let client = Client::over(onyx(&Endpoints::default()));
    client.service().learn(open());
    let (one_local, one_remote) = (1_000_000_000_000_000_000, 1_000_000);

    let there = msgs(&client, (L2, LOCAL), (L2, REMOTE), ONE_LOCAL).await;
    let head = [word(USER_HEX), number(0x60), number(one_local)].concat();
    let to_remote = format!("cf9ee0c3{head}{}", tail(LOCAL));
    assert_eq!(there, [approve(LOCAL, one_local), call(WRAPPER, &to_remote)]);

    let back = msgs(&client, (L2, REMOTE), (L2, LOCAL), ONE_REMOTE).await;
    assert_eq!(back, [approve(REMOTE, one_remote), call(WRAPPER, &to_local(REMOTE, one_remote, 6))]);

    // To the L1, in one call: toRemoteAndIBCTransfer(string,uint256,string,string,uint256).
    let out = msgs(&client, (L2, LOCAL), (L1, VOUCHER), ONE_LOCAL).await;
    assert_eq!(out[0], approve(LOCAL, one_local));
    let input = out[1]["input"].as_str().unwrap();
    let timeout = &input[10 + 4 * 64..10 + 5 * 64];
    let head = [number(0xa0), number(one_local), number(0x100), number(0x140), timeout.to_owned()].concat();
    let tails = [tail(LOCAL), tail("channel-0"), tail(USER)].concat();
    assert_eq!(out[1], call(WRAPPER, &format!("24721917{head}{tails}")));

    // And back, by a packet that calls the wrapper.
    let home = msgs(&client, (L1, VOUCHER), (L2, LOCAL), ONE_REMOTE).await;
    assert_eq!(
        (&home[0]["source_channel"], &home[0]["token"]["denom"]),
        (&json!("channel-25"), &json!(VOUCHER))
    );
    let memo: Value = serde_json::from_str(home[0]["memo"].as_str().unwrap()).unwrap();
    let message = json!({
        "contract_addr": WRAPPER, "input": format!("0x{}", to_local(REMOTE, one_remote, 6)), "value": "0",
        "access_list": [],
    });
    assert_eq!(memo, json!({ "evm": { "message": message } }));
}

#[tokio::test]
async fn no_message_names_a_token_that_the_wrapper_would_newly_make() {
    let client = Client::over(onyx(&Endpoints::default()));
    client.service().learn(open());
    let world = client.service().world();
    let registry = &world.registry;
    let assets: Vec<_> = registry
        .assets()
        .map(|(_, asset)| (registry[asset.chain].id.as_str(), asset.denom.as_str()))
        .collect();
    let mut converted = 0;
    for source in &assets {
        for dest in assets.iter().filter(|dest| *dest != source) {
            let mut ask = between(*source, *dest, ONE_LOCAL);
            ask["allow_multi_tx"] = json!(true);
            ask["chain_ids_to_addresses"] = json!({ L1: USER, L2: USER });
            let answer = client.post("/v2/fungible/msgs_direct", &ask).await;
            if answer.status != 200 {
                continue;
            }
            let text = answer.ok()["txs"].to_string();
            let calls = |selector: &str| {
                let selector = format!("0x{selector}");
                let found = text.match_indices(&selector);
                found.map(|(at, _)| text[at..].split(['"', '\\']).next().unwrap()).collect::<Vec<_>>()
            };
            for input in ["1efd1a84", "701dcf21"].into_iter().flat_map(calls) {
                converted += 1;
                assert!(input.contains(&hex(REMOTE)) || input.contains(&hex(BRIDGED)), "{ask} {input}");
                assert_eq!(input[10 + 3 * 64..10 + 4 * 64], number(6), "{input}");
            }
            for input in ["cf9ee0c3", "24721917", "f787cbdd", "b9cf3742"].into_iter().flat_map(calls) {
                converted += 1;
                assert!(input.contains(&hex(LOCAL)) || input.contains(&hex(INIT)), "{ask} {input}");
            }
        }
    }
    assert!(converted >= 8, "{converted}");
}

/// The wrapper's answers about ONYX: the remote token and its decimals.
type Told = Arc<Mutex<(Value, Value)>>;

/// A node of yominet; the pair of INIT agrees with the registry.
async fn node(reply: &Told) -> Fixture {
    let reply = Arc::clone(reply);
    let rest = |path: &str| {
        let known = path.starts_with("/minievm/evm/v1/contracts/by_denom?denom=l2%2F8f73");
        known.then(|| json!({ "address": BRIDGED_ERC20 })).ok_or(StatusCode::NOT_FOUND)
    };
    Fixture::calls(rest, move |ask| {
        let data = ask["params"][0]["data"].as_str().unwrap_or_default().to_ascii_lowercase();
        let (remote, decimals) = reply.lock().unwrap().clone();
        let of_onyx = data.ends_with(&word(&contract(LOCAL)));
        match (&data[..10.min(data.len())], of_onyx) {
            ("0x1de5537c", true) => remote,
            ("0x9f65ade5", true) => decimals,
            ("0x1de5537c", false) => json!(format!("0x{}", word(BRIDGED_ERC20))),
            ("0x9f65ade5", false) => json!(format!("0x{}", number(6))),
            _ => Value::Null,
        }
    })
    .await
}

fn answer(token: &str, decimals: u128) -> (Value, Value) {
    (json!(format!("0x{}", word(token))), json!(format!("0x{}", number(decimals))))
}

#[tokio::test]
async fn a_pair_has_no_route_while_its_contract_contradicts_it() {
    let reply: Told = Arc::new(Mutex::new(answer(&contract(REMOTE), 6)));
    let node = node(&reply).await;
    let at =
        Endpoints { rest: vec![node.url.clone()], json_rpc: vec![node.url.clone()], ..Endpoints::default() };
    let client = Client::over(onyx(&at));
    let service = client.service();
    let registry = Arc::clone(&service.world().registry);
    let chain = registry.chain(L2).unwrap();
    let pair = |denom: &str| registry.wrapper_pair(registry.asset(chain, denom).unwrap()).unwrap();
    let (of_onyx, of_init) = (pair(REMOTE), pair(INIT));
    let ways = [((L2, LOCAL), (L2, REMOTE), ONE_LOCAL), ((L2, REMOTE), (L2, LOCAL), ONE_REMOTE)];

    let nobody = "0x0000000000000000000000000000000000000000";
    let wrong = [
        (answer(&contract(INIT), 6), "stands for 0x856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96 with 6 decimals"),
        (answer(&contract(REMOTE), 8), "with 8 decimals, the registry says for"),
        (answer(nobody, 0), "stands for 0x0000000000000000000000000000000000000000 with 0"),
        ((json!("0x"), json!("0x")), "does not answer remoteTokens and remoteDecimals"),
    ];
    for (lie, why) in wrong {
        *reply.lock().unwrap() = lie;
        let contradicted = |facts: &Facts| matches!(facts.pair(&registry, &of_onyx), PairState::Contradicted(reason) if reason.contains(why));
        let facts = refreshed(service, contradicted, || {}).await;
        assert_eq!(facts.pair(&registry, &of_init), PairState::Confirmed, "{:?}", facts.wrappers);
        for (source, dest, amount) in ways {
            let ask = between(source, dest, amount);
            let (status, code, message) = client.post("/v2/fungible/route", &ask).await.refusal();
            assert_eq!((status, code), (400, 5), "{message}");
            assert!(message.contains(" is not safe: ") && message.contains(why), "{message}");
        }
        let paused = client.get("/v2/info/registry").await.ok()["paused"].clone();
        assert_eq!(
            paused.as_array().unwrap().iter().filter(|text| text.to_string().contains(why)).count(),
            1
        );
        let findings = routing_api::check::online(&ChainClients::new(ASK), &registry).await;
        assert!(
            findings.iter().any(|finding| !finding.unreachable && finding.to_string().contains(why)),
            "{findings:?}"
        );
    }
    *reply.lock().unwrap() = answer(&contract(REMOTE), 6);
    let confirmed = |facts: &Facts| facts.pair(&registry, &of_onyx) == PairState::Confirmed;
    refreshed(service, confirmed, || {}).await;
    for (source, dest, amount) in ways {
        client.post("/v2/fungible/route", &between(source, dest, amount)).await.ok();
    }
}

#[tokio::test]
async fn a_hook_is_not_made_for_a_pair_that_its_contract_contradicts() {
    let client = Client::over(onyx(&Endpoints::default()));
    let ask = json!({
        "source_address": USER, "source_asset_chain_id": L1, "source_asset_denom": "uinit",
        "dest_address": USER, "dest_asset_chain_id": L2, "dest_asset_denom": INIT,
    });
    let mut facts = open();
    client.service().learn(facts.clone());
    let hook = client.post("/op-hook", &ask).await.ok();
    assert!(hook["hook"][1]["msg"].as_str().unwrap().contains(&hex(BRIDGED)), "{hook}");
    let key = (L2.to_owned(), WRAPPER.to_owned(), INIT.to_owned());
    facts.wrappers.insert(key, WrapperFacts::Pair { remote: WRAPPER.to_owned(), decimals: 6 });
    client.service().learn(facts);
    let (status, _, message) = client.post("/op-hook", &ask).await.refusal();
    assert!(status == 400 && message.starts_with("no message may convert `evm/856aB2"), "{message}");
}

#[test]
fn an_asset_listed_twice_is_in_no_route() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["initia/chain.json", "initia/assetlist.json", "yominet/chain.json", "yominet/assetlist.json"]
    {
        let at = dir.path().join("mainnets").join(file);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        let mut value: Value =
            serde_json::from_slice(&std::fs::read(here("tests/onyx/mainnets").join(file)).unwrap()).unwrap();
        if file == "yominet/assetlist.json" {
            let twice = value["assets"][0].clone();
            value["assets"].as_array_mut().unwrap().push(twice);
        }
        std::fs::write(at, value.to_string()).unwrap();
    }
    let loaded = registry::load(dir.path()).unwrap();
    assert!(loaded.problems.iter().any(|problem| problem.to_string().contains("is there twice")));
    let registry = &loaded.registry;
    let chain = registry.chain(L2).unwrap();
    let asset = registry.asset(chain, LOCAL).unwrap();
    assert!(registry.error(registry::Part::Asset(asset)).unwrap().contains("is there twice"));
    let graph = planner::Graph::new(registry);
    let sound = onyx(&Endpoints::default());
    // The two directions of its only conversion.
    assert_eq!(graph.edges() + 2, planner::Graph::new(&sound).edges());
}
