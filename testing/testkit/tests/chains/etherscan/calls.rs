//! What lists have while calls are late or not indexed.

use std::sync::{Arc, OnceLock};

use etherscan::Etherscan;
use evm_rpc::{Dialect, EvmRpc};
use replay::Recording;
use schema::internal_tx::CallsByHeight;
use schema::meta::{self, CallLane};
use store::{Durability, Store};
use testkit::{indexed, recording};
use web::app::App;

use super::naive::{chain, text};
use super::{reply, rows};

fn served(store: &Arc<dyn Store>) -> App<Etherscan> {
    let app = App::new(indexed::indexer(Arc::clone(store)).unwrap(), query::ENDPOINTS).unwrap();
    let index = Arc::new(OnceLock::from(Arc::new(app)));
    Etherscan::new(EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "0")).app().unwrap()
}

async fn indexed(calls: bool) -> Arc<dyn Store> {
    let played = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    indexed::index_for_json_rpc(played, calls).await.unwrap()
}

/// The calls of the blocks up to `height` only, as while they are fetched.
fn keep_calls(store: &dyn Store, height: u64) {
    let snapshot = store.snapshot().unwrap();
    let lane: CallLane = meta::read(&*snapshot).unwrap().unwrap();
    let head = lane.height;
    drop(snapshot);
    store::commit_rows(store, Durability::Buffered, |txn| {
        meta::put(txn, &CallLane { height, ..lane });
        (height + 1..=head).for_each(|gone| txn.delete::<CallsByHeight>(&gone));
        Ok::<(), store::Error>(())
    })
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn fees_are_no_transfers_of_an_account_however_late_the_calls_are() {
    let (store, txs) = (indexed(true).await, chain("evm-fees"));
    let first = u64::from_str_radix(&text(&txs[0].receipt["blockNumber"])[2..], 16).unwrap();
    let account = text(&txs[5].receipt["from"]).to_owned();
    let query = |standard: &str| format!("module=account&action={standard}&address={account}");
    let whole = rows(&served(&store), &query("tokentx")).await;
    // Those of the last 16 blocks and more are missing, then all but those of the first block with a transaction.
    for height in [584 - 20, 300, first] {
        keep_calls(&*store, height);
        assert_eq!(rows(&served(&store), &query("tokentx")).await, whole, "calls up to {height}");
    }
    // No transaction has calls yet.
    keep_calls(&*store, first - 1);
    let app = served(&store);
    let refused = reply(&app, &query("tokentx")).await;
    let reason = format!("the calls of block {first} are not indexed yet; try again later");
    assert_eq!((&refused["message"], &refused["result"]), (&"NOTOK".into(), &reason.into()));
    // NFTs are no fees, and a contract that is named is listed.
    rows(&app, &query("tokennfttx")).await;
    let named = rows(
        &app,
        "module=account&action=tokentx&contractaddress=0x042add9e80f7a23ab71d5e1d392af1d3928b7d05",
    );
    assert!(!named.await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_calls_transfers_of_an_account_are_refused_and_those_of_a_contract_are_not() {
    let app = served(&indexed(false).await);
    let account = text(&chain("evm-fees")[5].receipt["from"]).to_owned();
    let refused = reply(&app, &format!("module=account&action=tokentx&address={account}")).await;
    let reason = "it needs `internal_txs`, which is off: set `internal_txs`";
    assert_eq!((&refused["message"], &refused["result"]), (&"NOTOK".into(), &reason.into()));
    for listed in [
        format!("module=account&action=tokennfttx&address={account}"),
        "module=account&action=tokentx&contractaddress=0xd9c7d23bf7c6c2708418bda767090562716c1eaa".to_owned(),
    ] {
        rows(&app, &listed).await;
    }
}
