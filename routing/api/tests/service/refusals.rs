//! Refusals: status, code and a message that names the member. And requests that must not be refused, because real
//! clients send them.

use http::Method;
use registry::Endpoints;
use serde_json::{Value, json};

use crate::client::{Client, USER, USER_HEX, example, questions};

/// A valid body for every endpoint that takes one.
async fn good(client: &Client) -> Vec<(&'static str, Value)> {
    let direct = example("msgs-direct-request");
    let mut msgs = direct.clone();
    let mut route = direct.clone();
    for body in [&mut msgs, &mut route] {
        body.as_object_mut().unwrap().remove("chain_ids_to_addresses");
    }
    route.as_object_mut().unwrap().remove("slippage_tolerance_percent");
    msgs["operations"] = client.post("/v2/fungible/route", &route).await.ok()["operations"].clone();
    msgs["address_list"] = json!([USER, USER]);
    let mut bodies = questions();
    bodies.extend([
        ("/v2/fungible/route", route),
        ("/v2/fungible/msgs", msgs),
        ("/v2/fungible/msgs_direct", direct),
    ]);
    bodies
}

async fn refused(client: &Client, path: &str, body: &Value) -> String {
    let (status, code, message) = client.post(path, body).await.refusal();
    assert_eq!((status, code), (400, 3), "{message}");
    message
}

#[tokio::test]
async fn valid_requests_are_answered() {
    let client = Client::mainnet();
    for (path, body) in good(&client).await {
        let answer = client.post(path, &body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.json());
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_refused() {
    let client = Client::mainnet();
    let bodies = ["{", "[]", "1", "null", "\"x\"", "{} {}", "{'a':1}", "amount_in=1", "\u{feff}{}", "NaN"];
    for (path, _) in good(&client).await {
        for body in bodies {
            let (status, code, message) = client.post_text(path, body).await.refusal();
            assert_eq!((status, code), (400, 3), "{path} {body}");
            assert!(message.starts_with("invalid request body: "), "{path} {body}: {message}");
        }
        let answer = client.send(Method::POST, path, &[], b"{\"a\":\"\xff\"}").await;
        assert!(answer.refusal().2.starts_with("invalid request body: "), "{path}");
    }
    // One client sends no body for an empty object.
    for body in ["", " \n"] {
        let answer = client.post_text("/v2/fungible/route", body).await;
        assert_eq!(answer.refusal().2, "invalid source_asset_denom: it is missing");
        assert_eq!(client.post_text("/v2/info/balances", body).await.ok(), json!({ "chains": {} }));
    }
}

#[tokio::test]
async fn an_unknown_field_is_ignored_or_in_strict_mode_refused() {
    let (client, strict) = (Client::mainnet(), Client::strict());
    for (path, mut body) in good(&client).await {
        body["a_new_member"] = json!({ "of": ["a", "new", "client"] });
        assert_eq!(client.post(path, &body).await.status, 200, "{path}");
        assert_eq!(refused(&strict, path, &body).await, "unknown field `a_new_member`", "{path}");
        body.as_object_mut().unwrap().remove("a_new_member");
        assert_eq!(strict.post(path, &body).await.status, 200, "{path}");
    }
    let mut inner = json!({ "chains": { "interwoven-1": { "address": USER, "denoms": [], "height": 1 } } });
    client.post("/v2/info/balances", &inner).await.ok();
    assert_eq!(
        refused(&strict, "/v2/info/balances", &inner).await,
        "unknown field `chains.interwoven-1.height`"
    );
    inner = example("route-request");
    inner["x".repeat(5000)] = Value::Null;
    client.post("/v2/fungible/route", &inner).await.ok();
    assert!(refused(&strict, "/v2/fungible/route", &inner).await.len() < 200);
}

#[tokio::test]
async fn a_missing_field_names_the_unknown_one_that_may_be_it() {
    let (client, mut body) = (Client::mainnet(), example("route-request"));
    let denom = body.as_object_mut().unwrap().remove("source_asset_denom").unwrap();
    body["source_asset_dnom"] = denom;
    assert_eq!(
        refused(&client, "/v2/fungible/route", &body).await,
        "invalid source_asset_denom: it is missing; the unknown `source_asset_dnom` was ignored"
    );
}

/// Members that the wallet widget, Skip's library and Skip's widget send with a request.
fn sent_by_clients() -> [(&'static str, Value); 9] {
    let asset = json!({ "name": "initia-dex", "chain_id": "interwoven-1", "logo_uri": null });
    let route = json!({
        "allow_unsafe": true, "allow_multi_tx": false, "allow_swaps": true, "smart_relay": true, "go_fast": false,
        "is_op_withdraw": false, "fast_transfer": true, "bridges": ["IBC", "OPINIT", "CCTP", "CCTP_V2"], "swap_venues": [asset],
        "swap_venue": asset, "smart_swap_options": {}, "experimental_features": ["stargate", "eureka", "layer_zero"],
        "cumulative_affiliate_fee_bps": "0", "ignore_blacklist": false, "client_id": "x",
    });
    let msgs = json!({
        "estimated_amount_out": "1", "slippage_tolerance_percent": "1", "timeout_seconds": "300",
        "chain_ids_to_affiliates": {}, "enable_gas_warnings": false, "fee_payer_address": USER,
        "post_route_handler": null, "signed_op_hook": null, "amount_out": "1000000",
    });
    let mut direct = route.clone();
    for (name, value) in msgs.as_object().unwrap() {
        direct[name] = value.clone();
    }
    [
        ("/v2/fungible/route", route),
        ("/v2/fungible/msgs", msgs),
        ("/v2/fungible/msgs_direct", direct),
        ("/op-hook", json!({})),
        ("/v2/info/balances", json!({})),
        ("/v2/tx/track", json!({})),
        (
            "/v2/fungible/assets_from_source",
            json!({
                "allow_multi_tx": false, "include_cw20_assets": false, "native_only": false, "include_swaps": false,
                "swap_venues": null, "recommendation_reason": null, "group_by": null, "include_evm_assets": true,
                "include_svm_assets": true,
            }),
        ),
        (
            "/v2/fungible/assets_between_chains",
            json!({
                "include_no_metadata_assets": false, "include_cw20_assets": false, "include_evm_assets": false,
                "allow_multi_tx": false,
            }),
        ),
        ("/v2/fungible/ibc_origin_assets", json!({})),
    ]
}

#[tokio::test]
async fn fields_that_real_clients_send_are_not_refused() {
    let client = Client::mainnet();
    let good = good(&client).await;
    for (path, more) in sent_by_clients() {
        let (_, body) = good.iter().find(|(other, _)| *other == path).unwrap();
        // All members at once, and each one as null.
        let (mut whole, mut nulls) = (body.clone(), body.clone());
        for (name, value) in more.as_object().unwrap() {
            whole[name] = value.clone();
            nulls[name] = Value::Null;
        }
        for body in [&whole, &nulls] {
            let answer = client.post(path, body).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.json());
        }
    }
}

#[tokio::test]
async fn a_field_that_changes_money_and_is_not_honoured_is_refused_by_name() {
    let client = Client::mainnet();
    let good = good(&client).await;
    let fee = |points: Value| json!({ "osmosis-1": { "affiliates": [{ "address": USER, "basis_points_fee": points }] } });
    let (route, msgs, direct) = ("/v2/fungible/route", "/v2/fungible/msgs", "/v2/fungible/msgs_direct");
    let cases = [
        (route, "cumulative_affiliate_fee_bps", json!("10")),
        (route, "cumulative_affiliate_fee_bps", json!(10)),
        (route, "cumulative_affiliate_fee_bps", json!("-1")),
        (msgs, "cumulative_affiliate_fee_bps", json!("10")),
        (msgs, "chain_ids_to_affiliates", fee(json!("10"))),
        (msgs, "chain_ids_to_affiliates", fee(json!(10))),
        (msgs, "chain_ids_to_affiliates", json!([])),
        (msgs, "amount_out", json!("1100000")),
        (msgs, "amount_out", json!("much")),
        (msgs, "amount_out", json!(-1)),
        (msgs, "estimated_amount_out", json!("1100000")),
        (msgs, "amount_in", json!("999999")),
        (msgs, "post_route_handler", json!({ "wasm_msg": {} })),
        (direct, "chain_ids_to_affiliates", fee(json!("1"))),
        (direct, "amount_out", json!("1100000")),
        (direct, "estimated_amount_out", json!("1100000")),
        (direct, "operations", json!([])),
        (direct, "address_list", json!([USER])),
        (direct, "signed_op_hook", json!({ "signer": USER, "hook": "" })),
        (direct, "post_route_handler", json!({})),
    ];
    for (path, name, value) in cases {
        let mut body = good.iter().find(|(other, _)| *other == path).unwrap().1.clone();
        body[name] = value.clone();
        let message = refused(&client, path, &body).await;
        assert!(message.starts_with(&format!("invalid {name}")), "{path} {name} {value}: {message}");
    }
    let accepted = [
        (route, "cumulative_affiliate_fee_bps", json!("0")),
        (route, "cumulative_affiliate_fee_bps", json!(0)),
        (msgs, "chain_ids_to_affiliates", fee(json!("0"))),
        (msgs, "amount_out", json!("0")),
        (msgs, "amount_out", json!("")),
        // Within the slippage of 1 %, and less than the route gives.
        (msgs, "amount_out", json!("1010000")),
        (msgs, "amount_out", json!("1")),
        (route, "swap_venues", json!([])),
        (route, "allow_unsafe", json!(false)),
    ];
    for (path, name, value) in accepted {
        let mut body = good.iter().find(|(other, _)| *other == path).unwrap().1.clone();
        body[name] = value.clone();
        assert_eq!(client.post(path, &body).await.status, 200, "{path} {name} {value}");
    }
}

#[tokio::test]
async fn a_route_that_loses_much_is_refused_to_a_client_that_wants_none() {
    let text = "
        [[chain]]
        id = 'a-1'
        bech32_prefix = 'a'
        [[chain]]
        id = 'b-1'
        bech32_prefix = 'b'
        [[channel]]
        a = 'a-1/transfer/channel-1'
        b = 'b-1/transfer/channel-2'
        [[asset]]
        chain = 'a-1'
        denom = 'utoken'
        symbol = 'T'
        decimals = 6
        price_usd = '1'
        [[asset]]
        chain = 'b-1'
        ibc = { channel = 'channel-2', from = 'utoken' }
        terms = { fee_bps = 2000 }";
    let client = Client::over(registry::load_text(text).unwrap());
    let voucher = registry::denom::of_path("transfer/channel-2/utoken");
    let address = |prefix: &str| chain::Account::from([7; 20]).to_bech32(prefix);
    let mut ask = json!({
        "amount_in": "10000000", "source_asset_denom": "utoken", "source_asset_chain_id": "a-1",
        "dest_asset_denom": voucher, "dest_asset_chain_id": "b-1",
    });
    let route = client.post("/v2/fungible/route", &ask).await.ok();
    assert_eq!(route["warning"]["type"], "BAD_PRICE_WARNING");
    let mut msgs = ask.clone();
    msgs["operations"] = route["operations"].clone();
    msgs["address_list"] = json!([address("a"), address("b")]);
    let mut direct = ask.clone();
    direct["chain_ids_to_addresses"] = json!({ "a-1": address("a"), "b-1": address("b") });
    ask["client_id"] = json!("x");
    for (path, mut body) in
        [("/v2/fungible/route", ask), ("/v2/fungible/msgs", msgs), ("/v2/fungible/msgs_direct", direct)]
    {
        for accepts in [Value::Null, json!(true)] {
            body["allow_unsafe"] = accepts;
            assert_eq!(client.post(path, &body).await.status, 200, "{path}");
        }
        body["allow_unsafe"] = json!(false);
        let answer = client.post(path, &body).await;
        let (status, code, message) = answer.refusal();
        assert!((status, code) == (400, 3) && message.contains("output usd value: 8.00"), "{path} {message}");
        assert_eq!(answer.json()["details"][0]["reason"], "BAD_PRICE_ERROR");
    }
}

#[tokio::test]
async fn null_counts_as_absent() {
    let (client, mut body) = (Client::mainnet(), example("route-request"));
    let without = client.post("/v2/fungible/route", &body).await;
    for name in ["amount_out", "allow_multi_tx", "is_op_withdraw", "bridges", "allow_unsafe"] {
        body[name] = Value::Null;
    }
    assert_eq!(client.post("/v2/fungible/route", &body).await.body, without.body);
    body["amount_in"] = Value::Null;
    assert_eq!(refused(&client, "/v2/fungible/route", &body).await, "invalid amount_in: it is missing");
}

#[tokio::test]
async fn amounts_are_decimal_integers_above_zero_that_fit_256_bits() {
    let (client, mut body) = (Client::mainnet(), example("route-request"));
    let digits = "9".repeat(400);
    let texts = ["", "0", "000", "-1", "+1", "1.5", "1e6", "0x10", " 1", "1 ", "1,000", "１", "NaN", &digits];
    for text in texts {
        body["amount_in"] = json!(text);
        for (path, more) in
            [("/v2/fungible/route", None), ("/v2/fungible/msgs_direct", Some("chain_ids_to_addresses"))]
        {
            let mut body = body.clone();
            if let Some(name) = more {
                body[name] = json!({});
            }
            let message = refused(&client, path, &body).await;
            assert!(message.starts_with("invalid amount_in: "), "{text}: {message}");
            assert!(message.len() < 200, "{message}");
        }
    }
    for value in [json!(-1), json!(1.5), json!(1e30), json!(true), json!(["1"]), json!({})] {
        body["amount_in"] = value.clone();
        let message = refused(&client, "/v2/fungible/route", &body).await;
        assert!(message.starts_with(&format!("invalid amount_in: {value} must be")), "{message}");
    }
    // 256 bits represent this amount, but no transfer can carry it.
    body["amount_in"] = json!(chain::U256::MAX.to_string());
    assert_eq!(client.post("/v2/fungible/route", &body).await.refusal().1, 5);
    for fine in [json!("000001000000"), json!(1_000_000)] {
        body["amount_in"] = fine;
        assert_eq!(client.post("/v2/fungible/route", &body).await.ok()["amount_in"], "1000000");
    }
}

#[tokio::test]
async fn a_value_of_another_kind_is_refused_by_name() {
    let client = Client::mainnet();
    let good = good(&client).await;
    let cases = [
        ("/v2/fungible/route", "source_asset_denom", json!(1)),
        ("/v2/fungible/route", "dest_asset_chain_id", json!(1)),
        ("/v2/fungible/route", "dest_asset_denom", json!("")),
        ("/v2/fungible/route", "allow_multi_tx", json!("true")),
        ("/v2/fungible/route", "is_op_withdraw", json!(1)),
        ("/v2/fungible/route", "bridges", json!("IBC")),
        ("/v2/fungible/route", "bridges", json!(["WORMHOLE"])),
        ("/v2/fungible/route", "bridges", json!([1])),
        ("/v2/fungible/route", "bridges", json!(vec!["IBC"; 257])),
        ("/v2/fungible/msgs_direct", "chain_ids_to_addresses", json!([])),
        ("/op-hook", "source_address", json!({})),
        ("/op-hook", "dest_address", json!("")),
        ("/v2/info/balances", "chains", json!([])),
        ("/v2/info/balances", "chains", json!({ "interwoven-1": 1 })),
        ("/v2/info/balances", "chains", json!({ "interwoven-1": { "address": 1 } })),
        ("/v2/info/balances", "chains", json!({ "interwoven-1": { "denoms": [] } })),
        ("/v2/info/balances", "chains", json!({ "interwoven-1": { "address": USER, "denoms": "uinit" } })),
        ("/v2/info/balances", "chains", json!({ "interwoven-1": { "address": USER, "denoms": [1] } })),
        ("/v2/info/balances", "chains", json!({ "1": { "address": USER_HEX, "denoms": vec!["x"; 1025] } })),
        ("/v2/tx/track", "tx_hash", json!(1)),
        ("/v2/tx/track", "chain_id", Value::Null),
        ("/v2/tx/track", "tx_hash", json!("")),
        ("/v2/tx/track", "tx_hash", json!("xyz")),
        ("/v2/tx/track", "tx_hash", json!("AB".repeat(31))),
        ("/v2/fungible/assets_from_source", "allow_multi_tx", json!("no")),
        ("/v2/fungible/assets_between_chains", "source_chain_id", json!(1)),
        ("/v2/fungible/ibc_origin_assets", "assets", json!({})),
        ("/v2/fungible/ibc_origin_assets", "assets", Value::Null),
        ("/v2/fungible/recommend_assets", "requests", json!("x")),
    ];
    for (path, name, value) in cases {
        let mut body = good.iter().find(|(other, _)| *other == path).unwrap().1.clone();
        body[name] = value;
        let message = refused(&client, path, &body).await;
        assert!(message.starts_with(&format!("invalid {name}")), "{path} {name}: {message}");
    }
}

#[tokio::test]
async fn a_route_has_an_amount_in_or_an_amount_out() {
    let (client, mut body) = (Client::mainnet(), example("route-request"));
    body["amount_out"] = json!("1");
    let message = refused(&client, "/v2/fungible/route", &body).await;
    assert_eq!(message, "invalid amount_out: a request has it or amount_in, not both");
    body["amount_out"] = json!("0");
    body["amount_in"] = Value::Null;
    let message = refused(&client, "/v2/fungible/route", &body).await;
    assert!(message.starts_with("invalid amount_out: "), "{message}");
}

#[tokio::test]
async fn an_unknown_asset_is_no_route_and_names_itself() {
    let (client, good) = (Client::mainnet(), example("route-request"));
    for (name, value, why) in [
        (
            "source_asset_denom",
            "uinot",
            "source asset `uinot` of chain `interwoven-1` is not in the registry",
        ),
        (
            "dest_asset_chain_id",
            "nowhere-1",
            "destination asset `evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96` of chain `nowhere-1` is not in the registry",
        ),
    ] {
        let mut body = good.clone();
        body[name] = json!(value);
        let refusal = client.post("/v2/fungible/route", &body).await.refusal();
        assert_eq!(refusal, (400, 5, format!("no routes found: {why}")));
    }
    let mut bridged = good;
    bridged["bridges"] = json!(["CCTP"]);
    assert_eq!(client.post("/v2/fungible/route", &bridged).await.refusal().1, 5);
}

#[tokio::test]
async fn deep_nesting_does_not_overflow_the_stack() {
    let client = Client::mainnet();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    for (path, _) in good(&client).await {
        for inside in [&deep, &objects] {
            for body in [inside.clone(), format!("{{\"operations\":{inside}}}")] {
                let (status, _, message) = client.post_text(path, &body).await.refusal();
                assert!(status == 400 && message.starts_with("invalid request body: "), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn keys_that_a_client_has_rewritten_are_accepted() {
    let text = r#"
        chain = [
            { id = "Oraichain", bech32_prefix = "orai" }, { id = "bad_Chain-1", bech32_prefix = "orai" },
        ]
        channel = [{ a = "Oraichain/transfer/channel-0", b = "bad_Chain-1/transfer/channel-0" }]
        asset = [
            { chain = "Oraichain", denom = "orai", symbol = "ORAI", decimals = 6 },
            { chain = "bad_Chain-1", symbol = "ORAI", ibc = { channel = "channel-0", from = "orai" } },
        ]
    "#;
    let registry = registry::load_text(text).unwrap().with_endpoints(|_| Some(Endpoints::default()));
    let client = Client::over(registry);
    let user = chain::Account::from_hex_literal(USER_HEX).unwrap().to_bech32("orai");
    let ask = json!({ "chains": { "_oraichain": { "address": user }, "bad__chain-1": { "address": user } } });
    let reply = client.post("/v2/info/balances", &ask).await.ok();
    // Keys of responses are rewritten only where `_` precedes a lower-case letter.
    assert_eq!(reply["chains"].as_object().unwrap().keys().collect::<Vec<_>>(), ["Oraichain", "bad_Chain-1"]);
    let pairs = json!({ "source_chain_id": "Oraichain", "dest_chain_id": "bad_Chain-1" });
    let pairs = client.post("/v2/fungible/assets_between_chains", &pairs).await.ok();
    let ask = json!({
        "amount_in": "1", "source_asset_chain_id": "Oraichain", "source_asset_denom": "orai",
        "dest_asset_chain_id": "bad_Chain-1",
        "dest_asset_denom": pairs["assets_between_chains"][0]["asset_on_dest"]["denom"],
        "chain_ids_to_addresses": { "_oraichain": user, "bad__chain-1": user },
    });
    client.post("/v2/fungible/msgs_direct", &ask).await.ok();
}

#[tokio::test]
async fn transactions_are_registered_and_queried_by_chain_and_hash() {
    let client = Client::mainnet();
    let mut ask = example("track-request");
    ask["chain_id"] = json!("nowhere-1");
    let refusal = client.post("/v2/tx/track", &ask).await.refusal();
    assert_eq!(refusal, (404, 5, "chain ID not supported".to_owned()));
    let hash = ask["tx_hash"].as_str().unwrap().to_owned();
    for (query, expected) in [
        (format!("tx_hash={hash}&chain_id=interwoven-1"), (404, 5, "tx not found")),
        (format!("tx_hash={hash}&chain_id=nowhere-1"), (404, 5, "tx not found")),
        (format!("tx_hash={hash}"), (400, 3, "invalid chain_id: it is missing")),
        ("chain_id=interwoven-1".to_owned(), (400, 3, "invalid tx_hash: it is missing")),
        ("tx_hash=&chain_id=interwoven-1".to_owned(), (400, 3, "invalid tx_hash: it is missing")),
    ] {
        let (status, code, message) = client.get(&format!("/v2/tx/status?{query}")).await.refusal();
        assert_eq!((status, code, message.as_str()), expected, "{query}");
    }
    let malformed = client.get("/v2/tx/status?tx_hash=12&chain_id=interwoven-1").await.refusal();
    assert!(malformed.1 == 3 && malformed.2.starts_with("invalid tx_hash: "), "{malformed:?}");
    ask["chain_id"] = json!("interwoven-1");
    for spelling in [hash.to_lowercase(), format!("0x{hash}"), hash.clone()] {
        ask["tx_hash"] = json!(spelling);
        assert_eq!(client.post("/v2/tx/track", &ask).await.ok()["tx_hash"], hash);
        let status = client.get(&format!("/v2/tx/status?tx_hash={spelling}&chain_id=interwoven-1")).await;
        assert_eq!(status.ok()["state"], "STATE_SUBMITTED");
    }
}
