//! Routes and messages over the recorded chains, and refused messages.

use http::StatusCode;
use serde_json::{Value, json};

use crate::client::Client;
use crate::client::fixture::Fixture;
use crate::client::recorded::{
    BRIDGED, Chains, HOLDER, L1, L2, OTHER, TOKEN_A, TOKEN_B, USER, VOUCHER, WRAPPED, between, example,
};
use crate::client::signing::sign;

/// A messages request for the service's route for `request`.
async fn of_route(client: &Client, request: &Value, addresses: &[&str]) -> Value {
    let route = client.post("/v2/fungible/route", request).await.ok();
    let mut msgs = request.clone();
    for name in ["amount_out", "operations"] {
        msgs[name] = route[name].clone();
    }
    msgs["address_list"] = json!(addresses);
    msgs
}

/// The texts of the only transaction's messages, by type.
async fn made(client: &Client, request: &Value) -> Vec<(String, Value)> {
    let answer = client.post("/v2/fungible/msgs", request).await.ok();
    let [tx] = answer["txs"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    let msgs = tx["cosmos_tx"]["msgs"].as_array().unwrap();
    let read = |msg: &Value| {
        let kind = msg["msg_type_url"].as_str().unwrap().to_owned();
        (kind, serde_json::from_str(msg["msg"].as_str().unwrap()).unwrap())
    };
    msgs.iter().map(read).collect()
}

#[tokio::test]
async fn transfers_over_the_channel_and_the_bridge() {
    let chains = Chains::start().await;
    let client = chains.client();
    let cases = [
        ((L1, "uinit"), (L2, VOUCHER), "1000000", "/ibc.applications.transfer.v1.MsgTransfer"),
        ((L2, VOUCHER), (L1, "uinit"), "400000", "/ibc.applications.transfer.v1.MsgTransfer"),
        ((L1, "uinit"), (L2, BRIDGED), "5000000", "/opinit.ophost.v1.MsgInitiateTokenDeposit"),
        ((L2, BRIDGED), (L1, "uinit"), "1000000", "/opinit.opchild.v1.MsgInitiateTokenWithdrawal"),
        ((L2, "GAS"), (L2, "GAS"), "7", "/cosmos.bank.v1beta1.MsgSend"),
    ];
    for (source, dest, amount, kind) in cases {
        let request = of_route(&client, &between(source, dest, amount), &[USER, OTHER]).await;
        assert_eq!(request["amount_out"], amount);
        let msgs = made(&client, &request).await;
        let kinds: Vec<_> = msgs.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, [kind]);
        let text = msgs[0].1.to_string();
        assert!(text.contains(USER) && text.contains(OTHER) && text.contains(amount), "{text}");
    }
}

#[tokio::test]
async fn a_withdrawal_states_that_and_when_it_must_be_claimed() {
    let chains = Chains::start().await;
    let ask = between((L2, BRIDGED), (L1, "uinit"), "1000000");
    let route = chains.client().post("/v2/fungible/route", &ask).await.ok();
    let warnings = route["extra_warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].as_str().unwrap().contains("claimed on Recorded L1"), "{warnings:?}");
    assert!(route["estimated_route_duration_seconds"].as_u64().unwrap() >= 20);
}

#[tokio::test]
async fn a_wrapped_token_arrives_by_a_hook_and_leaves_by_calls() {
    let chains = Chains::start().await;
    let client = chains.client();
    let ask = between((L1, "uinit"), (L2, WRAPPED), "1500000");
    let mut request = of_route(&client, &ask, &[USER, USER]).await;
    assert_eq!(request["amount_out"], "1500000000000000000");
    let refusal = client.post("/v2/fungible/msgs", &request).await.refusal();
    assert_eq!(refusal, (400, 3, "signed_op_hook is required for this route".to_owned()));

    let hook = client.post("/op-hook", &op_hook(USER)).await.ok();
    assert_eq!(hook["chain_id"], L2);
    let signed = sign(&hook["hook"]);
    request["signed_op_hook"] = json!({ "signer": USER, "hook": signed });
    let msgs = made(&client, &request).await;
    assert_eq!((&msgs[0].1["data"], &msgs[0].1["to"]), (&json!(signed), &json!(USER)));

    for (signer, hook, why) in [
        (OTHER, signed.as_str(), "signed_op_hook: signer"),
        (USER, "?", "signed_op_hook: hook is no base64"),
        (USER, "", "signed_op_hook: it has 0 messages"),
        ("init1", signed.as_str(), "signed_op_hook.signer `init1` is no address"),
    ] {
        request["signed_op_hook"] = json!({ "signer": signer, "hook": hook });
        let (status, code, message) = client.post("/v2/fungible/msgs", &request).await.refusal();
        assert_eq!((status, code), (400, 3));
        assert!(message.starts_with(why), "{message}");
    }
    for hook in [json!("x"), json!({ "signer": USER }), json!({ "signer": 1, "hook": signed })] {
        request["signed_op_hook"] = hook;
        let (status, _, message) = client.post("/v2/fungible/msgs", &request).await.refusal();
        assert!(status == 400 && message.starts_with("invalid signed_op_hook"), "{message}");
    }

    let back = between((L2, WRAPPED), (L1, "uinit"), "1000000000000000000");
    let request = of_route(&client, &back, &[USER, USER]).await;
    assert_eq!(request["amount_out"], "1000000");
    let kinds: Vec<_> = made(&client, &request).await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds.first().unwrap(), "/minievm.evm.v1.MsgCall");
}

fn op_hook(user: &str) -> Value {
    json!({
        "source_address": user, "source_asset_chain_id": L1, "source_asset_denom": "uinit",
        "dest_address": user, "dest_asset_chain_id": L2, "dest_asset_denom": WRAPPED,
    })
}

#[tokio::test]
async fn an_op_hook_is_for_existing_accounts_and_pairs_that_need_one() {
    // The rollup's node decides on existing accounts; this one answers for two users.
    let rollup = Fixture::start(
        |path| {
            let here = path.ends_with(&format!("/accounts/{USER}"));
            if here { Ok(json!({ "account": {} })) } else { Err(StatusCode::NOT_FOUND) }
        },
        |_| Value::Null,
    )
    .await;
    let registry = example().with_endpoints(|id| {
        let endpoints =
            registry::Endpoints { rest: vec![rollup.url.clone()], ..registry::Endpoints::default() };
        Some(if id == L2 { endpoints } else { registry::Endpoints::default() })
    });
    let client = Client::over(registry);
    client.post("/op-hook", &op_hook(USER)).await.ok();
    let (status, code, message) = client.post("/op-hook", &op_hook(OTHER)).await.refusal();
    assert_eq!((status, code), (400, 3));
    assert!(message.starts_with(&format!("account {OTHER} does not exist on {L2}")), "{message}");
    drop(rollup);
    client.post("/op-hook", &op_hook(OTHER)).await.ok();

    let mut plain = op_hook(USER);
    plain["dest_asset_denom"] = json!(BRIDGED);
    let refusal = client.post("/op-hook", &plain).await.refusal();
    assert_eq!(refusal, (400, 3, "op hook is not required for this route".to_owned()));
    plain["dest_asset_denom"] = json!("uinot");
    assert_eq!(client.post("/op-hook", &plain).await.refusal().1, 5);
    for name in ["source_address", "dest_address", "dest_asset_chain_id"] {
        let mut ask = op_hook(USER);
        ask[name] = Value::Null;
        let (_, code, message) = client.post("/op-hook", &ask).await.refusal();
        assert!(code == 3 && message.starts_with(&format!("invalid {name}: ")), "{message}");
    }
    let mut ask = op_hook(USER);
    ask["source_address"] = json!("init1nobody");
    let (_, code, message) = client.post("/op-hook", &ask).await.refusal();
    assert!(code == 3 && message.starts_with("source_address `init1nobody` is no address"), "{message}");
}

#[tokio::test]
async fn layer_zero_has_the_price_of_its_contract() {
    let chains = Chains::start().await;
    let client = chains.client();
    let ask = between(("31337", TOKEN_A), ("31338", TOKEN_B), "1000000000000000000");
    let route = client.post("/v2/fungible/route", &ask).await.ok();
    let fee = &route["estimated_fees"][0];
    assert_eq!(
        (&fee["denom"], &fee["fee_behavior"]),
        (&json!("test-evm-a-native"), &json!("FEE_BEHAVIOR_ADDITIONAL"))
    );
    let sent = &route["operations"][0]["layer_zero_transfer"];
    assert_eq!(
        (&sent["messaging_fee_amount"], &sent["destination_endpoint_id"]),
        (&fee["amount"], &json!(40102))
    );
    let request = of_route(&client, &ask, &[HOLDER, HOLDER]).await;
    let answer = client.post("/v2/fungible/msgs", &request).await.ok();
    let tx = &answer["txs"][0]["evm_tx"];
    assert_eq!((&tx["to"], &tx["value"]), (&json!(TOKEN_A), &fee["amount"]));
    assert!(tx["data"].as_str().unwrap().starts_with("c7c7f5b3"));
    assert_eq!(answer["msgs"][0]["evm_tx"], *tx);

    // There is no quote for this amount, and the registry has no price of its own.
    chains.a.down();
    let other = between(("31337", TOKEN_A), ("31338", TOKEN_B), "2000000000000000000");
    let (status, code, message) = client.post("/v2/fungible/route", &other).await.refusal();
    assert_eq!((status, code), (400, 5));
    assert!(message.ends_with("does not answer what it costs"), "{message}");
    // The earlier quote is still cached.
    assert_eq!(client.post("/v2/fungible/route", &ask).await.ok(), route);
}

/// A change of a request, and the beginning of its refusal.
type Tampering = (&'static str, Value, &'static str);

#[tokio::test]
async fn a_changed_member_of_a_route_is_refused_by_name() {
    let chains = Chains::start().await;
    let client = chains.client();
    let transfer = of_route(&client, &between((L1, "uinit"), (L2, VOUCHER), "1000000"), &[USER, OTHER]).await;
    let deposit = of_route(&client, &between((L1, "uinit"), (L2, BRIDGED), "1000000"), &[USER, OTHER]).await;
    let sum = "init1sleg2k5c54fytsae3jdk9mrn27yw4qc4mgxkfq";
    let cases: Vec<(&Value, Tampering)> = vec![
        (
            &transfer,
            (
                "/operations/0/transfer/channel",
                json!("channel-1"),
                "invalid operations: operations[0].transfer.channel is `channel-1`",
            ),
        ),
        (
            &transfer,
            (
                "/operations/0/transfer/denom_out",
                json!("GAS"),
                "invalid operations: operations[0].transfer.denom_out",
            ),
        ),
        (
            &transfer,
            (
                "/operations/0/transfer/port",
                json!("icahost"),
                "invalid operations: operations[0].transfer.port",
            ),
        ),
        (&transfer, ("/operations", deposit["operations"].clone(), "invalid operations: operations[0].kind")),
        (
            &deposit,
            (
                "/operations/0/op_init_transfer/op_init_bridge_id",
                json!("2"),
                "invalid operations: operations[0].op_init_transfer.op_init_bridge_id",
            ),
        ),
        (
            &transfer,
            ("/operations", Value::Null, "invalid operations: invalid type: null, expected a sequence"),
        ),
        (&transfer, ("/operations", json!([]), "invalid operations: 0 entries")),
        (&transfer, ("/operations", json!({}), "invalid operations: invalid type: map, expected a sequence")),
        (
            &transfer,
            (
                "/operations",
                json!([transfer["operations"][0], transfer["operations"][0]]),
                "invalid operations: operations[1].kind",
            ),
        ),
        (
            &transfer,
            (
                "/operations/0",
                json!({ "cctp_transfer": {} }),
                "invalid operations[0]: operation `cctp_transfer` is none",
            ),
        ),
        (
            &transfer,
            (
                "/operations/0",
                json!({ "cctp_transfer_v2": { "destination_domain": 6, "finality_threshold": 1000 } }),
                "invalid operations[0]: operation `cctp_transfer_v2` is none",
            ),
        ),
        (&transfer, ("/operations/0", json!("transfer"), "invalid operations[0]: ")),
        (
            &transfer,
            ("/address_list", json!([USER, OTHER, USER]), "address_list has 3 entries; this route takes 2"),
        ),
        (&transfer, ("/address_list", json!([]), "address_list has 0 entries")),
        (&transfer, ("/address_list", Value::Null, "address_list has 0 entries")),
        (
            &transfer,
            (
                "/address_list/1",
                json!("noble1pyq6amga29zfsldw8k26kgvl7a0fhf3k07uyg0"),
                "address_list[1] `noble1",
            ),
        ),
        (&transfer, ("/address_list/1", json!(sum), "address_list[1] `init1sleg")),
        (
            &transfer,
            (
                "/address_list/1",
                json!(7),
                "invalid address_list[1]: invalid type: integer `7`, expected a string",
            ),
        ),
        (&transfer, ("/address_list", json!(USER), "invalid address_list: ")),
        (
            &transfer,
            ("/slippage_tolerance_percent", json!("100.1"), "slippage_tolerance_percent `100.1` must be"),
        ),
        (&transfer, ("/slippage_tolerance_percent", json!("-1"), "slippage_tolerance_percent `-1` must be")),
        (
            &transfer,
            ("/slippage_tolerance_percent", json!("1e1"), "slippage_tolerance_percent `1e1` must be"),
        ),
        (
            &transfer,
            ("/slippage_tolerance_percent", json!(true), "invalid slippage_tolerance_percent: true must be"),
        ),
        (&transfer, ("/timeout_seconds", json!("0"), "invalid timeout_seconds: 0 must be 1 to 86400")),
        (&transfer, ("/timeout_seconds", json!(86_401), "invalid timeout_seconds: 86401 must be 1 to 86400")),
        (
            &transfer,
            ("/timeout_seconds", json!("5m"), "invalid timeout_seconds: \"5m\" must be a whole number"),
        ),
        (&transfer, ("/timeout_seconds", json!(-5), "invalid timeout_seconds: -5 must be a whole number")),
        (&transfer, ("/post_route_handler", json!({ "wasm_msg": {} }), "invalid post_route_handler: ")),
        (&transfer, ("/amount_in", json!("0"), "invalid amount_in: ")),
    ];
    for (good, (pointer, value, why)) in cases {
        let mut request = good.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match request.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
            object => object[name] = value,
        }
        let (status, code, message) = client.post("/v2/fungible/msgs", &request).await.refusal();
        assert_eq!((status, code), (400, 3), "{pointer}: {message}");
        assert!(message.starts_with(why), "{pointer}: {message}");
    }
    // Omitted or differently spelled members are accepted.
    for good in [&transfer, &deposit] {
        let mut request = good.clone();
        let operation = request["operations"][0].as_object_mut().unwrap();
        operation.retain(|name, _| !["tx_index", "amount_in", "amount_out"].contains(&name.as_str()));
        request["timeout_seconds"] = json!("60");
        request["slippage_tolerance_percent"] = json!(0.5);
        request["signed_op_hook"] = Value::Null;
        assert_eq!(made(&client, &request).await.len(), 1);
    }
}

#[tokio::test]
async fn direct_messages_need_an_address_for_each_chain() {
    let chains = Chains::start().await;
    let client = chains.client();
    let mut ask = between((L1, "uinit"), (L2, VOUCHER), "1000000");
    let refused = async |ask: &Value| client.post("/v2/fungible/msgs_direct", ask).await.refusal();
    let missing = (400, 3, "invalid chain_ids_to_addresses: it is missing".to_owned());
    assert_eq!(refused(&ask).await, missing);
    ask["chain_ids_to_addresses"] = json!({ L1: USER });
    let one = (400, 3, format!("invalid chain_ids_to_addresses: no address for chain `{L2}`"));
    assert_eq!(refused(&ask).await, one);
    ask["chain_ids_to_addresses"] = json!({ L1: USER, L2: 5 });
    let number = (400, 3, format!("invalid chain_ids_to_addresses.{L2}: it must be a string"));
    assert_eq!(refused(&ask).await, number);
    ask["chain_ids_to_addresses"] = json!({ L1: USER, L2: OTHER, "31337": HOLDER, "nowhere-1": 7 });
    let answer = client.post("/v2/fungible/msgs_direct", &ask).await.ok();
    assert_eq!(answer["route"]["amount_out"], "1000000");
    // This request has no member for a hook.
    ask["dest_asset_denom"] = json!(WRAPPED);
    assert_eq!(refused(&ask).await.1, 5);
}

#[tokio::test]
async fn several_transactions_are_planned_only_on_request() {
    let chains = Chains::start().await;
    let client = chains.client();
    let mut ask = between((L2, BRIDGED), (L2, VOUCHER), "1000000");
    let refusal = client.post("/v2/fungible/route", &ask).await.refusal();
    let why = "no routes found in one transaction: it takes 2; ask with allow_multi_tx";
    assert_eq!(refusal, (400, 5, why.to_owned()));
    ask["allow_multi_tx"] = json!(true);
    let route = client.post("/v2/fungible/route", &ask).await.ok();
    assert_eq!((&route["txs_required"], &route["amount_out"]), (&json!(2), &json!("1000000")));
    // The messages request does not repeat the flag.
    let mut request = of_route(&client, &ask, &[USER, USER, USER]).await;
    request.as_object_mut().unwrap().remove("allow_multi_tx");
    let answer = client.post("/v2/fungible/msgs", &request).await.ok();
    let indices: Vec<_> =
        answer["txs"].as_array().unwrap().iter().map(|tx| &tx["operations_indices"]).collect();
    assert_eq!(indices, [&json!([0]), &json!([1])]);
    assert_eq!(answer["txs"][1]["cosmos_tx"]["chain_id"], L1);
    assert_eq!(answer["msgs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_requested_withdrawal_uses_only_the_bridge() {
    let chains = Chains::start().await;
    let client = chains.client();
    let mut ask = between((L2, BRIDGED), (L1, "uinit"), "1000000");
    ask["is_op_withdraw"] = json!(true);
    let route = client.post("/v2/fungible/route", &ask).await.ok();
    assert!(route["operations"][0].get("op_init_transfer").is_some(), "{route}");
    ask["source_asset_denom"] = json!(VOUCHER);
    let (status, code, message) = client.post("/v2/fungible/route", &ask).await.refusal();
    assert_eq!((status, code), (400, 5));
    assert!(message.ends_with("by an optimistic bridge's withdrawal"), "{message}");
    ask["is_op_withdraw"] = json!(false);
    for (kinds, status) in [(json!(["IBC"]), 200), (json!(["OPINIT", "CCTP"]), 400), (json!([]), 200)] {
        ask["bridges"] = kinds;
        assert_eq!(client.post("/v2/fungible/route", &ask).await.status, status, "{}", ask["bridges"]);
    }
}
