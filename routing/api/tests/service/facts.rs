//! Current chain facts determine the routes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use registry::facts::BridgeFacts;
use registry::{Endpoints, Facts};
use routing_api::Service;
use serde_json::json;

use crate::client::Client;
use crate::client::recorded::{BRIDGED, Chains, L1, L2, USER, VOUCHER, WRAPPED, between, example};

#[tokio::test]
async fn chain_facts_close_routes_and_are_reported() {
    let chains = Chains::start().await;
    let client = chains.client();
    let service = client.service();
    let reason = "channel-0 of e2e-l2-1 is not open: STATE_CLOSED";
    let mut facts = Facts::default();
    let end = (L2.to_owned(), "transfer".to_owned(), "channel-0".to_owned());
    facts.closed.insert(end, reason.to_owned());
    let disabled = BridgeFacts { disabled: true, ..BridgeFacts::default() };
    facts.bridges.insert((L1.to_owned(), 1), disabled);
    service.learn(facts);

    let refused = async |dest: &str| {
        let ask = between((L1, "uinit"), (L2, dest), "1000000");
        client.post("/v2/fungible/route", &ask).await
    };
    for (dest, why) in [(VOUCHER, reason), (BRIDGED, "the bridge is disabled on the L1")] {
        let answer = refused(dest).await;
        let (status, code, message) = answer.refusal();
        assert_eq!((status, code), (400, 5));
        assert!(message.starts_with("no routes found: ") && message.ends_with(why), "{message}");
        assert_eq!(answer.json()["info"], "Try again later.");
    }
    let reply = client.get("/v2/info/registry").await.ok();
    let paused = reply["paused"].as_array().unwrap();
    assert_eq!(paused.len(), 2, "{paused:?}");
    assert!(paused[0].as_str().unwrap().ends_with(reason));

    service.learn(Facts::default());
    assert_eq!(refused(VOUCHER).await.ok()["amount_out"], "1000000");
    assert_eq!(client.get("/v2/info/registry").await.ok()["paused"], json!([]));
}

#[tokio::test]
async fn a_migrated_coin_goes_over_its_channel() {
    let chains = Chains::start().await;
    let client = chains.client();
    let mut bridge = BridgeFacts::default();
    let end = ("transfer".to_owned(), "channel-0".to_owned());
    bridge.migrated.insert("uinit".to_owned(), Some(end));
    let mut facts = Facts::default();
    facts.bridges.insert((L1.to_owned(), 1), bridge);
    client.service().learn(facts);
    let ask = between((L1, "uinit"), (L2, BRIDGED), "1000000");
    let route = client.post("/v2/fungible/route", &ask).await.ok();
    assert_eq!(route["operations"][0]["transfer"]["channel"], "channel-0", "{}", route["operations"]);
}

/// Refreshes the facts of a service until they satisfy `known`.
pub(crate) async fn refreshed(
    service: &Service,
    known: impl Fn(&Facts) -> bool,
    meanwhile: impl FnOnce(),
) -> Arc<Facts> {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let learnt = async {
        let deadline = Instant::now() + Duration::from_mins(1);
        meanwhile();
        while !known(&service.world().facts) {
            assert!(Instant::now() < deadline, "nothing was learnt");
            tokio::task::yield_now().await;
        }
        stop.send(()).unwrap();
    };
    tokio::join!(service.refresh(async { drop(stopped.await) }), learnt);
    service.world().facts
}

/// The ERC-20 that the wrapper of the example wraps, from its file.
const CONTRACT: &str = "0x1D14AE89516E15E050bf6C4A1f549b9deB5f6EFb";

#[tokio::test]
async fn a_refresh_reads_the_facts_of_the_recorded_chains() {
    let chains = Chains::start().await;
    // A contract that the file does not name is queried from the chain.
    let client = Client::over(chains.altered(&[(&format!("contract = \"{CONTRACT}\"\n"), "")]));
    let facts = refreshed(client.service(), |facts| !facts.bridges.is_empty(), || {}).await;
    let bridge = &facts.bridges[&(L1.to_owned(), 1)];
    assert_eq!((bridge.finalization_seconds, bridge.submission_seconds), (Some(20), Some(15)));
    assert_eq!((bridge.disabled, &bridge.migrated["uinit"]), (false, &None));
    assert!(facts.closed.is_empty(), "{:?}", facts.closed);
    assert!(facts.hooks[L2]);
    let contracts: Vec<_> = facts.contracts.iter().collect();
    assert_eq!(contracts, [(&(L2.to_owned(), BRIDGED.to_owned()), &CONTRACT.to_owned())]);
}

#[tokio::test]
async fn the_chains_of_a_new_registry_are_queried_at_once() {
    let chains = Chains::start().await;
    let client = Client::over(example().with_endpoints(|_| Some(Endpoints::default())));
    let service = client.service();
    // The old registry has no addresses, and its next refresh is in ten minutes.
    let facts =
        refreshed(service, |facts| !facts.hooks.is_empty(), || service.replace(chains.registry())).await;
    assert!(facts.hooks[L2]);
}

#[tokio::test]
async fn an_op_hook_queries_an_unknown_contract() {
    let chains = Chains::start().await;
    let client = Client::over(chains.altered(&[(&format!("contract = \"{CONTRACT}\"\n"), "")]));
    let ask = json!({
        "source_address": USER, "source_asset_chain_id": L1, "source_asset_denom": "uinit",
        "dest_address": USER, "dest_asset_chain_id": L2, "dest_asset_denom": WRAPPED,
    });
    let hook = client.post("/op-hook", &ask).await.ok();
    assert!(hook["hook"][0]["msg"].as_str().unwrap().contains(CONTRACT), "{hook}");
    chains.l2.down();
    let (status, code, message) = client.post("/op-hook", &ask).await.refusal();
    assert_eq!((status, code), (400, 3));
    assert!(message.contains("is not known: try again when the chain's node answers"), "{message}");
}
