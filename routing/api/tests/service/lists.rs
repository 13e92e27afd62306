//! Long lists are made once, and have the bytes of those that are made for each request.

use std::fmt::Write as _;
use std::io::Read as _;

use http::Method;
use registry::Registry;
use serde_json::json;

use crate::client::{Answer, Client};

/// Two chains with a channel, tokens on the first, and a CW20 token.
fn registry(tokens: usize) -> Registry {
    let mut text = String::new();
    for id in ["a-1", "b-1"] {
        writeln!(text, "[[chain]]\nid = '{id}'\nbech32_prefix = '{}'", &id[..1]).unwrap();
    }
    text.push_str("[[channel]]\na = 'a-1/transfer/channel-1'\nb = 'b-1/transfer/channel-2'\n");
    for number in 0..tokens {
        writeln!(text, "[[asset]]\nchain = 'a-1'\ndenom = 'utoken{number}'\nsymbol = 'T'\ndecimals = 6")
            .unwrap();
    }
    text.push_str("[[asset]]\nchain = 'b-1'\ndenom = 'cw20:b1contract'\nsymbol = 'C'\ndecimals = 6\n");
    registry::load_text(&text).unwrap()
}

async fn packed(client: &Client, target: &str, coding: &str) -> Answer {
    client.send(Method::GET, target, &[("accept-encoding", coding)], b"").await
}

#[tokio::test]
async fn a_long_list_has_the_same_bytes_in_each_coding_and_a_new_one_after_a_reload() {
    let client = Client::over(registry(1_500));
    let target = "/v2/fungible/assets?include_no_metadata_assets=true";
    let plain = client.get(target).await;
    let map = plain.ok()["chain_to_assets_map"].clone();
    let count = |chain: &str| map[chain]["assets"].as_array().unwrap().len();
    assert_eq!((count("a-1"), count("b-1")), (1_500, 1_501));
    for _ in 0..2 {
        let gzip = packed(&client, target, "gzip").await;
        assert_eq!(gzip.headers["content-encoding"], "gzip");
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut body).unwrap();
        assert_eq!(body, plain.body);
        let zstd = packed(&client, target, "zstd").await;
        assert_eq!(zstd::decode_all(&zstd.body[..]).unwrap(), plain.body);
        assert_eq!(
            (&gzip.headers["etag"], &zstd.headers["etag"]),
            (&plain.headers["etag"], &plain.headers["etag"])
        );
    }
    let known = plain.headers["etag"].to_str().unwrap();
    assert_eq!(client.send(Method::GET, target, &[("if-none-match", known)], b"").await.status, 304);

    client.service().replace(registry(1_501));
    let after = client.get(target).await;
    assert_eq!(after.ok()["chain_to_assets_map"]["a-1"]["assets"].as_array().unwrap().len(), 1_501);
    assert_ne!(after.headers["etag"], plain.headers["etag"]);
}

#[tokio::test]
async fn filters_select_what_they_name() {
    for tokens in [3, 1_500] {
        let client = Client::over(registry(tokens));
        let count = async |filter: &str| {
            let list = client.get(&format!("/v2/fungible/assets?{filter}")).await.ok();
            let chains = list["chain_to_assets_map"].as_object().unwrap().clone();
            chains.values().map(|chain| chain["assets"].as_array().unwrap().len()).sum::<usize>()
        };
        assert_eq!(count("").await, tokens + 1);
        assert_eq!(count("include_cw20_assets=true").await, tokens + 1);
        assert_eq!(count("include_cw20_assets=false").await, tokens);
        assert_eq!(count("chain_ids=b-1").await, 1);
        assert_eq!(count("chain_ids=b-1&include_cw20_assets=false").await, 0);
        assert_eq!(count("chain_ids=b-1&include_no_metadata_assets=true").await, tokens + 1);
        assert_eq!(count("native_only=true&include_no_metadata_assets=true").await, tokens + 1);
    }
}

#[tokio::test]
async fn a_client_that_wants_no_cw20_tokens_gets_none_that_a_transfer_can_end_with() {
    let registry = registry::load(&crate::client::here("../registry/tests/shapes")).unwrap().registry;
    let cw20 = registry.assets().find(|(_, asset)| asset.denom.starts_with("cw20:")).unwrap().1.clone();
    let voucher = registry
        .assets()
        .find(|(_, asset)| asset.origin.parent().is_some_and(|parent| registry[parent].denom == cw20.denom))
        .unwrap()
        .1
        .clone();
    let (chain, home) = (registry[voucher.chain].id.clone(), registry[cw20.chain].id.clone());
    let client = Client::over(registry);
    let mut ask = json!({ "source_asset_denom": voucher.denom, "source_asset_chain_id": chain });
    let reached = async |ask: &serde_json::Value| {
        let reached = client.post("/v2/fungible/assets_from_source", ask).await.ok()["dest_assets"].clone();
        reached[&home]["assets"]
            .as_array()
            .is_some_and(|assets| assets.iter().any(|a| a["denom"] == cw20.denom))
    };
    assert!(reached(&ask).await);
    ask["include_cw20_assets"] = json!(false);
    assert!(!reached(&ask).await);
}

#[tokio::test]
async fn a_kind_of_bridge_without_an_image_has_an_empty_text() {
    let client = Client::over(registry(1));
    let bridges = client.get("/v2/info/bridges").await.ok()["bridges"].clone();
    assert_eq!(bridges, json!([{ "id": "IBC", "name": "IBC", "logo_uri": "" }]));
}
