//! The worked examples in `examples/` equal the responses of the service.

use planner::Operation;
use registry::Endpoints;
use serde_json::{Value, json};

use crate::client::fixture::Fixture;
use crate::client::signing::sign;
use crate::client::{Answer, Client, USER, USER_HEX, example};

/// Members that the service gives and the examples lack: optional members of the wire format, and members that clients
/// ignore.
const BEYOND: [&str; 6] =
    ["alternatives", "coingecko_id", "hidden", "price_usd", "recommended_symbol", "token_contract"];

/// The examples' placeholder for a wallet's transaction.
const PLACEHOLDER: &str = "PHByb3RvYnVmIGNvc21vcy50eC52MWJldGExLlR4IGJ5dGVzPg==";

/// Asserts that a response has the members and values of an example, and no others except [`BEYOND`].
fn assert_shows(answer: &Value, example: &Value) {
    let mut differences = Vec::new();
    differ("", answer, example, &mut differences);
    assert_eq!(differences, [""; 0]);
}

fn differ(at: &str, answer: &Value, example: &Value, found: &mut Vec<String>) {
    match (answer, example) {
        (Value::Object(answer), Value::Object(example)) => {
            for (name, value) in example {
                match answer.get(name) {
                    Some(given) => differ(&format!("{at}/{name}"), given, value, found),
                    None => found.push(format!("{at}/{name} is missing")),
                }
            }
            let more = answer.keys().filter(|name| !example.contains_key(*name));
            let more = more.filter(|name| !BEYOND.contains(&name.as_str()));
            found.extend(more.map(|name| format!("{at}/{name} is in no example")));
        }
        (Value::Array(answer), Value::Array(example)) if answer.len() == example.len() => {
            for (index, (answer, example)) in answer.iter().zip(example).enumerate() {
                differ(&format!("{at}/{index}"), answer, example, found);
            }
        }
        _ if answer == example => {}
        _ => found.push(format!("{at} is {answer}, in the example {example}")),
    }
}

/// Asserts that a refusal is an example's, with its status; our message may add a reason.
fn assert_refuses(answer: &Answer, status: u16, example: &Value) {
    let body = answer.json();
    assert_eq!(
        (answer.status, &body["code"], &body["details"]),
        (status, &example["code"], &example["details"])
    );
    let (ours, reply) = (body["message"].as_str().unwrap(), example["message"].as_str().unwrap());
    assert!(ours == reply || ours.starts_with(&format!("{reply}: ")), "{ours}");
}

#[tokio::test]
async fn chains() {
    // These contain the addresses of nodes, which are not queried.
    let client = Client::over(crate::client::mainnet());
    let answer = client.get("/v2/info/chains?chain_ids=interwoven-1,yominet-1&chain_ids=1").await;
    assert_shows(&answer.ok(), &example("chains"));
}

#[tokio::test]
async fn assets() {
    let (client, example) = (Client::mainnet(), example("assets"));
    let mut answer = client.get("/v2/fungible/assets").await.ok();
    let shown = example["chain_to_assets_map"].as_object().unwrap();
    let chains = answer["chain_to_assets_map"].as_object_mut().unwrap();
    chains.retain(|id, _| shown.contains_key(id));
    // The registry has more assets than the example; the remaining ones keep their order.
    for (id, assets) in chains {
        let listed = shown[id]["assets"].as_array().unwrap();
        let is_listed = |asset: &Value| listed.iter().any(|other| other["denom"] == asset["denom"]);
        assets["assets"].as_array_mut().unwrap().retain(is_listed);
    }
    assert_shows(&answer, &example);
}

#[tokio::test]
async fn vouchers_that_no_list_has_are_listed_on_request_and_routed() {
    let client = Client::mainnet();
    let list = |answer: Value| answer["chain_to_assets_map"]["noble-1"]["assets"].as_array().unwrap().clone();
    let path = "/v2/fungible/assets?chain_ids=noble-1";
    let shown = list(client.get(path).await.ok());
    let all = list(client.get(&format!("{path}&include_no_metadata_assets=true")).await.ok());
    let derived: Vec<_> = all.iter().filter(|asset| !shown.contains(asset)).collect();
    assert!(!derived.is_empty() && derived.iter().all(|asset| asset["hidden"] == true));
    let init = derived.iter().find(|asset| asset["origin_denom"] == "uinit").unwrap();
    assert_eq!((&init["symbol"], &init["trace"]), (&json!("INIT"), &json!("transfer/channel-129")));
    let ask = json!({
        "amount_in": "7", "source_asset_chain_id": "interwoven-1", "source_asset_denom": "uinit",
        "dest_asset_chain_id": "noble-1", "dest_asset_denom": init["denom"],
    });
    assert_eq!(client.post("/v2/fungible/route", &ask).await.ok()["amount_out"], "7");
    let named = json!({ "assets": [{ "chain_id": "noble-1", "denom": init["denom"] }] });
    let origin = client.post("/v2/fungible/ibc_origin_assets", &named).await.ok();
    assert_eq!(origin["origin_assets"][0]["asset"]["denom"], "uinit");
}

#[tokio::test]
async fn balances() {
    let node = Fixture::start(
        |target| {
            let path = format!("/cosmos/bank/v1beta1/balances/{USER}?pagination.limit=1000");
            assert_eq!(target, path);
            let dollars = "ibc/6490A7EAB61059BFC1CDDEB05917DD70BDF3A611654162A1A47DB930D40D8AF4";
            Ok(json!({ "balances": [
                { "denom": dollars, "amount": "4000000" }, { "denom": "uinit", "amount": "25000000" },
                { "denom": "dust", "amount": "0" },
            ] }))
        },
        |method| {
            assert_eq!(method, "eth_getBalance");
            json!("0xde0b6b3a7640000")
        },
    )
    .await;
    let at = || vec![node.url.clone()];
    let endpoints = || Endpoints { rest: at(), json_rpc: at(), ..Endpoints::default() };
    let client = Client::over(crate::client::mainnet().with_endpoints(|_| Some(endpoints())));
    let answer = client.post("/v2/info/balances", &example("balances-request")).await;
    assert_shows(&answer.ok(), &example("balances"));
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_route() {
    let client = Client::mainnet();
    let answer = client.post("/v2/fungible/route", &example("route-request")).await;
    assert_shows(&answer.ok(), &example("route"));
    for _ in 0..3 {
        let again = client.post("/v2/fungible/route", &example("route-request")).await;
        assert_eq!(again.body, answer.body);
    }
}

#[tokio::test]
async fn no_routes() {
    let mut request = example("route-request");
    request["dest_asset_denom"] = json!("evm/E1Ff7038eAAAF027031688E1535a055B2Bac2546");
    let answer = Client::mainnet().post("/v2/fungible/route", &request).await;
    assert_refuses(&answer, 400, &example("no-routes"));
}

/// The signed hook of the examples' user.
async fn signed(client: &Client) -> String {
    sign(&client.post("/op-hook", &example("op-hook-request")).await.ok()["hook"])
}

fn with_hook(name: &str, hook: &str) -> Value {
    serde_json::from_str(&example(name).to_string().replace(PLACEHOLDER, hook)).unwrap()
}

#[tokio::test]
async fn messages_of_a_deposit() {
    let client = Client::mainnet();
    let hook = signed(&client).await;
    let answer = client.post("/v2/fungible/msgs", &with_hook("msgs-request", &hook)).await;
    assert_shows(&answer.ok(), &with_hook("msgs", &hook));

    let mut unsigned = example("msgs-request");
    unsigned["signed_op_hook"] = Value::Null;
    let answer = client.post("/v2/fungible/msgs", &unsigned).await;
    assert_refuses(&answer, 400, &example("signed-op-hook-missing"));
    let placeholder = client.post("/v2/fungible/msgs", &example("msgs-request")).await;
    assert!(placeholder.refusal().2.starts_with("signed_op_hook: "), "{:?}", placeholder.refusal());
}

/// The example has neither the request nor the receiver; both are taken from its operation.
fn over_layer_zero() -> Value {
    let operation = example("operation-layer-zero");
    let sent = &operation["layer_zero_transfer"];
    json!({
        "amount_in": operation["amount_in"],
        "source_asset_chain_id": sent["from_chain_id"], "source_asset_denom": sent["denom_in"],
        "dest_asset_chain_id": sent["to_chain_id"], "dest_asset_denom": sent["denom_out"],
    })
}

#[tokio::test]
async fn a_route_over_layer_zero_and_its_messages() {
    let (client, mut request) = (Client::mainnet(), over_layer_zero());
    let route = client.post("/v2/fungible/route", &request).await.ok();
    assert_shows(&route["operations"], &json!([example("operation-layer-zero")]));

    request["amount_out"] = route["amount_out"].clone();
    request["operations"] = route["operations"].clone();
    request["address_list"] = json!([USER_HEX, USER]);
    request["slippage_tolerance_percent"] = json!("0");
    let mut answer = client.post("/v2/fungible/msgs", &request).await.ok();
    let mut example = example("msgs-layer-zero");
    // The example truncates the data after the selector, and refers to a second operation that it does not show.
    example["txs"][0]["operations_indices"] = json!([0]);
    for pointer in ["/txs/0/evm_tx/data", "/msgs/0/evm_tx/data"] {
        let data = example.pointer_mut(pointer).unwrap().take();
        let ours = answer.pointer_mut(pointer).unwrap().take();
        let (data, ours) = (data.as_str().unwrap(), ours.as_str().unwrap());
        assert_eq!(ours[..8], data[..8]);
        assert!(ours.len() > data.len() && ours.contains(&USER_HEX[2..]), "{ours}");
    }
    // The response states the fee of LayerZero; the example has no fees.
    let fees = answer["estimated_fees"].take();
    example["estimated_fees"].take();
    assert_eq!(fees, route["estimated_fees"]);
    assert_eq!((&fees[0]["amount"], fees.as_array().unwrap().len()), (&json!("41000000000000"), 1));
    assert_shows(&answer, &example);
}

#[tokio::test]
async fn bridges_and_venues() {
    let client = Client::mainnet();
    assert_shows(&client.get("/v2/info/bridges").await.ok(), &example("bridges"));
    assert_shows(&client.get("/v2/fungible/venues").await.ok(), &example("venues"));
}

#[tokio::test]
async fn assets_that_can_be_reached() {
    let (client, mut example) = (Client::mainnet(), example("assets-from-source"));
    let request = crate::client::example("assets-from-source-request");
    let mut answer = client.post("/v2/fungible/assets_from_source", &request).await.ok();
    let chains = answer["dest_assets"].as_object_mut().unwrap();
    let reached: Vec<_> = chains.keys().cloned().collect();
    // No list has its vouchers on the other two.
    assert_eq!(reached, ["cabal-1", "echelon-1", "noble-1", "yominet-1"]);
    // The example omits other reachable assets, and the image, which it shows elsewhere.
    chains.retain(|id, _| id == "yominet-1");
    chains["yominet-1"]["assets"].as_array_mut().unwrap().truncate(1);
    let picture = "/dest_assets/yominet-1/assets/0/logo_uri";
    let ours = answer.pointer_mut(picture).unwrap();
    *example.pointer_mut(picture).unwrap() = ours.clone();
    assert_shows(&answer, &example);

    // LayerZero converts a token into other tokens.
    let ether = json!({ "source_asset_denom": "ethereum-native", "source_asset_chain_id": "1" });
    let reached = client.post("/v2/fungible/assets_from_source", &ether).await.ok();
    let reached = reached["dest_assets"]["interwoven-1"]["assets"].as_array().unwrap().clone();
    assert_eq!(reached.len(), 1);
    assert_eq!(reached[0]["denom"], over_layer_zero()["dest_asset_denom"]);

    let mut unknown = request;
    unknown["source_asset_denom"] = json!("uinot");
    let answer = client.post("/v2/fungible/assets_from_source", &unknown).await;
    assert_refuses(&answer, 400, &crate::client::example("unknown-source"));
}

#[tokio::test]
async fn direct_messages_with_their_route() {
    let (client, request) = (Client::mainnet(), example("msgs-direct-request"));
    let answer = client.post("/v2/fungible/msgs_direct", &request).await.ok();
    let mut route = request.clone();
    for name in ["chain_ids_to_addresses", "slippage_tolerance_percent"] {
        route.as_object_mut().unwrap().remove(name);
    }
    let route = client.post("/v2/fungible/route", &route).await.ok();
    assert_eq!(answer["route"], route);
    let members: Vec<_> = answer.as_object().unwrap().keys().collect();
    assert_eq!(members, ["estimated_fees", "min_amount_out", "msgs", "route", "txs"]);
    let tx = &answer["txs"][0]["cosmos_tx"];
    assert_eq!(tx["msgs"][0]["msg_type_url"], "/opinit.ophost.v1.MsgInitiateTokenDeposit");
    assert_eq!((&tx["signer_address"], &answer["min_amount_out"]), (&json!(USER), &json!("1000000")));
}

#[tokio::test]
async fn pairs_of_assets_between_two_chains() {
    let client = Client::mainnet();
    let ask = json!({ "source_chain_id": "interwoven-1", "dest_chain_id": "echelon-1" });
    let answer = client.post("/v2/fungible/assets_between_chains", &ask).await.ok();
    let pairs = answer["assets_between_chains"].as_array().unwrap();
    let reply: Vec<_> = pairs
        .iter()
        .map(|pair| {
            let symbol = |side: &str| pair[side]["symbol"].as_str().unwrap();
            (symbol("asset_on_source"), symbol("asset_on_dest"), pair["bridges"].to_string())
        })
        .collect();
    let one = |bridge: &str| format!("[\"{bridge}\"]");
    assert_eq!(
        reply,
        [("INIT", "INIT.ibc", one("IBC")), ("INIT", "INIT", one("OPINIT")), ("USDC", "USDC", one("IBC")),]
    );
    assert!(pairs.iter().all(|pair| pair["txs_required"] == 1));
    let ask = json!({ "source_chain_id": "interwoven-1", "dest_chain_id": "nowhere-1" });
    let answer = client.post("/v2/fungible/assets_between_chains", &ask).await;
    assert_eq!(answer.refusal(), (404, 5, "dest chain not found".to_owned()));
}

#[tokio::test]
async fn origins_of_assets() {
    let client = Client::mainnet();
    let wrapped = example("route-request")["dest_asset_denom"].clone();
    let ask = json!({ "assets": [
        { "denom": wrapped, "chain_id": "yominet-1" }, { "denom": "uinit", "chain_id": "nowhere-1" },
    ] });
    let answer = client.post("/v2/fungible/ibc_origin_assets", &ask).await.ok();
    let [known, unknown] = answer["origin_assets"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_shows(&known["asset"], &example("assets")["chain_to_assets_map"]["interwoven-1"]["assets"][0]);
    assert_eq!(known["asset_found"], true);
    assert_eq!(*unknown, json!({ "asset": null, "asset_found": false }));
    let answer =
        client.post("/v2/fungible/ibc_origin_assets", &json!({ "assets": [{ "denom": "uinit" }] })).await;
    assert_eq!(answer.refusal(), (400, 3, "Must supply denom and chain_id".to_owned()));
}

#[tokio::test]
async fn recommendations() {
    let client = Client::mainnet();
    let wish = |dest: &str| json!({ "source_asset_denom": "uinit", "source_asset_chain_id": "interwoven-1", "dest_chain_id": dest });
    let ask = json!({ "requests": [wish("yominet-1"), wish("1")] });
    let answer = client.post("/v2/fungible/recommend_assets", &ask).await.ok();
    let [found, none] = answer["recommendation_entries"].as_array().unwrap().as_slice() else {
        panic!("{answer}")
    };
    let best = &found["recommendations"][0];
    assert_eq!(
        (&best["asset"]["denom"], &best["reason"]),
        (&example("route")["dest_asset_denom"], &json!("DIRECT"))
    );
    assert_eq!(*none, json!({ "recommendations": [], "error": { "message": "no recommendation found" } }));
    let answer = client.post("/v2/fungible/recommend_assets", &json!({ "requests": [wish("1")] })).await;
    assert_eq!(answer.refusal(), (404, 5, "no recommendation found".to_owned()));
}

#[test]
fn operations_come_back_as_they_were() {
    let one = json!([example("operation-layer-zero")]);
    for operations in [example("operations-swap-transfer"), one, example("route")["operations"].clone()] {
        let read: Vec<Operation> = serde_json::from_value(operations.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), operations);
    }
}

#[tokio::test]
async fn an_op_hook() {
    let (client, mut request) = (Client::mainnet(), example("op-hook-request"));
    assert_shows(&client.post("/op-hook", &request).await.ok(), &example("op-hook"));
    request["dest_asset_denom"] =
        json!("l2/8f73cfaf153520f511b4fc0bd71d60d64b4e19eff04a350e642718a3c1ab3b06");
    assert_refuses(&client.post("/op-hook", &request).await, 400, &example("op-hook-not-required"));
}

#[tokio::test]
async fn a_registered_transaction() {
    let (client, mut request) = (Client::mainnet(), example("track-request"));
    let status =
        format!("/v2/tx/status?chain_id=interwoven-1&tx_hash={}", request["tx_hash"].as_str().unwrap());
    assert_eq!(client.get(&status).await.refusal(), (404, 5, "tx not found".to_owned()));
    for _ in 0..2 {
        assert_shows(&client.post("/v2/tx/track", &request).await.ok(), &example("track"));
        assert_shows(&client.get(&status).await.ok(), &example("status-submitted"));
    }
    request["chain_id"] = json!("nowhere-1");
    assert_refuses(&client.post("/v2/tx/track", &request).await, 404, &example("unknown-chain"));
}
