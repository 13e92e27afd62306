//! The rich list for tokens whose events are incomplete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chain::{Account, U256};
use ingest::{Config, Verify};
use replay::answers::{HttpReply, Service};
use replay::{Options, Recording};
use schema::digest::TableDigest;
use schema::meta::{self, ListedAccountTokens, Meta, RichLane};
use schema::rich::{AccountTokens, Address, Erc20, Erc20s, Holders, balance};
use store::key::All;
use store::{Batch, Durability, Key as _, MemStore, Message, Order, Store, Table as _};
use testkit::live::Live;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, recording};

use crate::planted;

const BALANCE_OF: &str = "0x70a08231";
/// `GAS`, which every account holds.
const GAS: &str = "0x042add9e80f7a23ab71d5e1d392af1d3928b7d05";

fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

fn address(hex: &str) -> Address {
    Address::try_from(Account::from_hex_literal(hex).unwrap().as_bytes()).unwrap()
}

fn token(store: &MemStore, contract: &str) -> Option<Erc20> {
    let row = store::table::read::<Erc20s>(&*store.snapshot().unwrap(), &address(contract)).unwrap();
    row.map(|Message(token)| token)
}

/// The amounts of the holders of `contract`, least first.
fn amounts(store: &MemStore, contract: &str) -> Vec<U256> {
    let snapshot = store.snapshot().unwrap();
    let len = store::ranked::len::<Holders>(&*snapshot, &address(contract)).unwrap();
    let holders = store::ranked::slice::<Holders>(&*snapshot, &address(contract), 0..len).unwrap();
    holders.into_iter().map(|((amount, _), ())| U256::from_be_bytes(amount)).collect()
}

/// Indexes all of `recording` from a node with overridden answers, and continues until `done`.
async fn index(
    config: Config,
    override_answer: impl Fn(RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static,
    done: impl Fn(&MemStore) -> bool,
) -> Arc<MemStore> {
    let recording = evm();
    let node = OverriddenNode::start(Arc::clone(&recording), override_answer).await.unwrap();
    planted::index_as(config, &recording, &node, done).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_balances_change_without_events_is_detected_and_repaired() {
    let recording = evm();
    let seven = format!("0x{:064x}", 7);
    let at_the_end = format!("{:#x}", recording.last());
    // Since the last block every account holds 7 GAS.
    let override_answer = move |exchange: RecordedExchange<'_>| {
        if exchange.is_rpc("eth_call", BALANCE_OF) && exchange.is_rpc("eth_call", &at_the_end) {
            if exchange.is_rpc("eth_call", GAS) {
                return exchange.with_result(&seven.clone().into());
            }
            return exchange.with_error(3, "execution reverted");
        }
        exchange.answer
    };
    let config = Config {
        reconcile_every: Some(Duration::from_millis(20)),
        // The hash checks would reject the overridden answer.
        verify: Verify::Off,
        ..indexed::config(&recording).unwrap()
    };
    let repaired = |store: &MemStore| amounts(store, GAS).iter().all(|amount| *amount == U256::from(7));
    let store = index(config, override_answer, repaired).await;
    assert!(token(&store, GAS).unwrap().drifting);
    // The known holders, and accounts that the last blocks touched and that held nothing before.
    assert!(amounts(&store, GAS).len() >= 45);
    // A contract without a reply cannot be compared.
    let other = "0x4605ac7f98658de8dda464aa92f4e75023b1ab9e";
    assert!(!token(&store, other).unwrap().drifting);
    assert!(amounts(&store, other).iter().any(|amount| *amount > U256::from(7)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balance_older_than_the_list_is_queried_when_it_is_touched() {
    // The baseline is empty, so balances of GAS, which existed before, are unknown.
    index_without_balances_of_gas(|target| target.starts_with("/cosmos/auth/v1beta1/accounts")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_of_accounts_does_not_count_as_complete() {
    index_without_balances_of_gas(|target| target.starts_with("/cosmos/auth/v1beta1/accounts?page=2")).await;
}

/// Indexes from a node that refuses the requests for which `refused` is true. It lists accounts on two pages, of which
/// the second is at `?page=2`.
async fn index_without_balances_of_gas(refused: impl Fn(&str) -> bool + Send + Sync + 'static) {
    let override_answer = move |exchange: RecordedExchange<'_>| {
        let target = exchange.request.uri().to_string();
        let is_second = target.contains("pagination.key=");
        let target = if is_second { target.replace("accounts?", "accounts?page=2&") } else { target };
        if target.starts_with("/cosmos/auth/v1beta1/accounts") && !is_second && !refused(&target) {
            let mut page: serde_json::Value = serde_json::from_slice(&exchange.answer.body).unwrap();
            page["pagination"]["next_key"] = "AQ==".into();
            return HttpReply { status: exchange.answer.status, body: page.to_string().into() };
        }
        if refused(&target) {
            return HttpReply {
                status: http::StatusCode::NOT_IMPLEMENTED,
                body: r#"{"code":12,"message":"Not Implemented","details":[]}"#.into(),
            };
        }
        exchange.answer
    };
    let recording = evm();
    let store = index(
        Config { verify: Verify::Off, ..indexed::config(&recording).unwrap() },
        override_answer,
        |_| true,
    )
    .await;
    let gas = token(&store, GAS).unwrap();
    assert!(!gas.complete && !gas.drifting && !gas.silent, "{gas:?}");
    // The expected value: an account has the balance that the contract returned at the last height that touched it.
    let snapshot = store.snapshot().unwrap();
    let calls = testkit::oracle::eth_calls("evm-scenario", BALANCE_OF).unwrap();
    let mut last = std::collections::BTreeMap::new();
    for call in calls {
        last.insert((call.to, call.argument.clone()), call);
    }
    assert!(last.len() > 30);
    for call in last.values() {
        let held = balance(&*snapshot, &call.to, &Address::try_from(&call.argument[12..]).unwrap()).unwrap();
        let expected = U256::from_be_slice(call.result.as_deref().unwrap());
        assert_eq!(held.map(U256::from_be_bytes).unwrap_or_default(), expected, "{call:?}");
    }
    let lane: RichLane = meta::read(&*snapshot).unwrap().unwrap();
    assert_eq!((lane.baseline, lane.height), (1, recording.last()));
}

/// Indexes all with a pause in which the list falls behind, after which the first `false_answers` results are those of
/// another history.
async fn fetched_again(false_answers: u64) -> Vec<TableDigest> {
    // The chain's height, whether contracts answer, and the remaining number of results from another history.
    let (tip, unresponsive, false_results) =
        (Arc::new(AtomicU64::new(2)), Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let node = OverriddenNode::start(evm(), {
        let (tip, unresponsive, false_results) =
            (Arc::clone(&tip), Arc::clone(&unresponsive), Arc::clone(&false_results));
        move |exchange| {
            let path = exchange.request.uri().path();
            if exchange.service == Service::Comet && path == "/status" {
                let tip = tip.load(Ordering::Relaxed).to_string();
                return exchange.with_change(|status| {
                    status["sync_info"]["latest_block_height"] = tip.into();
                    status["sync_info"]["latest_block_hash"] = "".into();
                });
            }
            if exchange.is_rpc("eth_call", "") && unresponsive.load(Ordering::Relaxed) {
                return HttpReply { status: http::StatusCode::BAD_GATEWAY, body: "<html>".into() };
            }
            // No balance is stored, so that contracts have to be queried.
            if path.starts_with("/cosmos/auth/v1beta1/accounts") {
                let body = r#"{"code":12,"message":"Not Implemented","details":[]}"#.into();
                return HttpReply { status: http::StatusCode::NOT_IMPLEMENTED, body };
            }
            let one_less = |left: u64| left.checked_sub(1);
            if path == "/block_results"
                && false_results.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
            {
                return exchange.with_change(|results| {
                    for result in results["txs_results"].as_array_mut().into_iter().flatten() {
                        result["gas_used"] = "1".into();
                        result["events"] = serde_json::json!([]);
                    }
                });
            }
            exchange.answer
        }
    })
    .await
    .unwrap();
    let (recording, store) = (evm(), Arc::new(MemStore::new()));
    let last = recording.last();
    let start = async || {
        let clients = Arc::new(node.clients().unwrap());
        Live::start(clients, indexed::config(&recording).unwrap(), Arc::clone(&store) as _).await.unwrap()
    };
    let mut live = start().await;
    live.reach(&recording, 2).await.unwrap();
    unresponsive.store(true, Ordering::Relaxed);
    tip.store(last, Ordering::Relaxed);
    live.progress.calls.wait_for(|progress| progress.height == last).await.unwrap();
    let behind = live.progress.rich.borrow().height;
    assert!(behind < last - 8, "the list is to wait for contracts, and is at {behind}");
    live.stop().await.unwrap();

    unresponsive.store(false, Ordering::Relaxed);
    false_results.store(false_answers, Ordering::Relaxed);
    let mut live = start().await;
    live.reach(&recording, last).await.unwrap();
    live.stop().await.unwrap();
    assert_eq!(false_results.load(Ordering::Relaxed), 0, "the false results were not requested");
    indexed::digest(&*store).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn refetched_results_are_checked_against_the_next_header() {
    assert_eq!(fetched_again(12).await, fetched_again(0).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_an_earlier_version_gets_the_tokens_of_accounts_from_its_balances() {
    let (recording, store) = (evm(), Arc::new(MemStore::new()));
    let shared = || Arc::clone(&store) as Arc<dyn Store>;
    indexed::index(Arc::clone(&recording), Options::default(), shared()).await.unwrap();
    let listed = || {
        let rows = store::table::rows::<AccountTokens>(&*store.snapshot().unwrap(), &All, Order::Asc, 10_000);
        rows.unwrap().into_iter().map(|(key, ())| key).collect::<Vec<_>>()
    };
    let (whole, digest) = (listed(), indexed::digest(&*store).unwrap());
    assert!(whole.len() > 50, "{}", whole.len());
    // An earlier version knows neither; a stopped attempt has left a row that no balance has.
    let mut batch = Batch::new();
    batch.delete_range(AccountTokens::SPEC, Vec::new(), vec![u8::MAX; 41]);
    batch.delete(Meta::SPEC, meta::key::<ListedAccountTokens>().to_bytes());
    batch.put(AccountTokens::SPEC, vec![0x5a; 40], Vec::new());
    store.commit(batch, Durability::Buffered).unwrap();
    assert_eq!(indexed::digest(&*store).unwrap(), digest, "the tokens of accounts are in no digest");
    let config = indexed::config(&recording).unwrap();
    indexed::index_as(config, recording, Options::default(), shared()).await.unwrap();
    assert_eq!(listed(), whole);
    assert_eq!(indexed::digest(&*store).unwrap(), digest);
}
