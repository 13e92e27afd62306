//! Balances at heights by the API, against what recorded chains said of every account at every recorded height.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chain::{Account, U256};
use ingest::{Config, Ingest};
use query::Indexer;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::balances::BALANCES;
use schema::index::Index;
use schema::ledger::LEDGER;
use serde_json::Value;
use store::{MemStore, Store};
use testkit::{indexed, recording};
use web::app::App;

use crate::ledger::Chain;

static OF_LEDGER: Index = LEDGER;
static OF_BALANCES: Index = BALANCES;

async fn app(name: &str) -> App<Indexer> {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let indexes = if recording.is_evm() { vec![&OF_LEDGER] } else { vec![&OF_LEDGER, &OF_BALANCES] };
    let config = Config { indexes, internal_txs: false, ..indexed::config(&recording).unwrap() };
    let last = recording.last();
    let played = ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap();
    // Not until no query about NFTs is open: contracts that refused one are asked again at heights that are not recorded.
    let node = Arc::new(indexed::clients(&played).unwrap());
    let ingest = Ingest::prepare(config, node, Arc::clone(&store)).await.unwrap();
    indexed::run_to(&ingest, last).await.unwrap();
    App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap()
}

fn get(app: &App<Indexer>, target: &str) -> Value {
    let reply = app.read(target).map_err(|error| format!("{target}: {}", error.message())).unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

fn text<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap()
}

fn number(record: &Value, name: &str) -> U256 {
    U256::from_str_radix(text(record, name), 10).unwrap()
}

/// The balances of an account by denom, without those of 0; all of them must be known and exact.
fn held(
    app: &App<Indexer>,
    denoms: &BTreeSet<String>,
    account: &Account,
    height: u64,
) -> BTreeMap<String, U256> {
    let root = "/indexer/ledger/v1/balances/by_account";
    let page = get(app, &format!("{root}/{}?height={height}&pagination.limit=1000", account.to_hex()));
    assert_eq!(text(&page, "height"), height.to_string());
    let balances = page["balances"].as_array().unwrap().iter();
    // The bank lists no CW20, and of other ERC-20s only those that it knows.
    let of_bank = balances.filter(|it| denoms.contains(text(it, "denom")));
    of_bank
        .map(|it| {
            // On Move it may be a store of an object, unless the balances add up to the supply.
            let is_certain = it["type"] != "fa" || account.as_bytes().len() == 20;
            assert!(it["known"] == true, "{account:?} {height}: {it}");
            assert!(it["exact"] == true || !is_certain, "{account:?} {height}: {it}");
            (text(it, "denom").to_owned(), number(it, "amount"))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_balance_at_every_height_is_what_the_bank_said() {
    for name in [
        "evm-scenario",
        "move-scenario",
        "wasm-scenario",
        "l1-l2/l1",
        "l1-l2/l2",
        "l1-l2-swaps/l1",
        "l1-l2-swaps/l2",
        "bridge-cases/l1",
        "bridge-cases/l2",
        "wasm-ledger",
    ] {
        let (app, chain) = (app(name).await, Chain::open(name));
        let bank = chain.bank();
        let last = *bank.last_key_value().unwrap().0;
        let denoms =
            bank.values().flat_map(BTreeMap::values).flat_map(|coins| coins.keys().cloned()).collect();
        let mut compared = 0;
        for (height, accounts) in &bank {
            for (account, coins) in accounts {
                let said: BTreeMap<String, U256> = coins
                    .iter()
                    .filter(|(_, amount)| !amount.is_zero())
                    .map(|(denom, amount)| (denom.clone(), *amount))
                    .collect();
                assert_eq!(
                    held(&app, &denoms, account, *height),
                    said,
                    "{name} {height} {}",
                    account.to_hex()
                );
                compared += 1;
            }
        }
        eprintln!("{name}: {compared}");
        assert!(compared > 50, "{name}: {compared}");
        histories_lead_to_the_balances(&app, &bank[&last], last);
    }
}

/// Each history ends with the balance after `last`, and its changes add up.
fn histories_lead_to_the_balances(
    app: &App<Indexer>,
    bank: &BTreeMap<Account, std::collections::HashMap<String, U256>>,
    last: u64,
) {
    for (account, coins) in bank.iter().filter(|(_, coins)| !coins.is_empty()).take(20) {
        for (denom, amount) in coins {
            let (account, denom) = (account.to_hex(), denom.replace('/', "%2F"));
            let target = format!("/indexer/ledger/v1/balances/history/{account}/{denom}?to_height={last}");
            let page = get(app, &format!("{target}&pagination.limit=1000&pagination.reverse=false"));
            let rows = page["balances"].as_array().unwrap();
            assert_eq!(page["pagination"]["total"], rows.len().to_string());
            let Some(newest) = rows.last() else { continue };
            assert_eq!(number(newest, "amount"), *amount, "{target}");
            let heights: BTreeSet<u64> =
                rows.iter().map(|row| text(row, "height").parse().unwrap()).collect();
            assert_eq!(heights.len(), rows.len());
            for pair in rows.windows(2) {
                let change = text(&pair[1], "change");
                let [before, after] = [&pair[0], &pair[1]].map(|row| number(row, "amount"));
                let moved = U256::from_str_radix(change.trim_start_matches('-'), 10).unwrap();
                let expected = if change.starts_with('-') { before - moved } else { before + moved };
                assert_eq!(after, expected, "{target}");
            }
            let middle = heights.iter().nth(heights.len() / 2).unwrap();
            let later = get(app, &format!("{target}&from_height={middle}&pagination.limit=1000"));
            assert_eq!(later["balances"].as_array().unwrap().len(), heights.len() - heights.len() / 2);
        }
    }
}
