//! Balances at heights by the API, against what recorded chains said of every account at every recorded height.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chain::movement::denom_of_contract;
use chain::{Account, U256};
use ingest::{Config, Ingest};
use query::Indexer;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::balances::BALANCES;
use schema::index::Index;
use schema::ledger::LEDGER;
use schema::meta::{self, ListedAccountTokens, Meta, RichLane};
use schema::rich::{AccountTokens, Denoms};
use schema::undo::Horizon;
use serde_json::Value;
use store::key::{All, Text};
use store::{Batch, Durability, Key as _, MemStore, Order, Store, Table as _};
use testkit::{indexed, recording};
use web::app::App;

use crate::ledger::Chain;

static OF_LEDGER: Index = LEDGER;
static OF_BALANCES: Index = BALANCES;

pub(crate) async fn app(name: &str) -> App<Indexer> {
    App::new(indexed::indexer(store_of(name).await).unwrap(), query::ENDPOINTS).unwrap()
}

async fn store_of(name: &str) -> Arc<dyn Store> {
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
    store
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

/// The balance of an account in a denom of the bank, which must be known, and must be among all of the account unless it is 0.
fn held(app: &App<Indexer>, account: &Account, denom: &str, height: u64) -> U256 {
    let root = "/indexer/ledger/v1/balances/by_account";
    let target = format!("{root}/{}?height={height}&pagination.limit=1000", account.to_hex());
    let one = get(app, &format!("{target}&include_zero=true&token={}", denom.replace('/', "%2F")));
    assert_eq!(text(&one, "height"), height.to_string());
    let [record] = one["balances"].as_array().unwrap().as_slice() else { panic!("{target} {denom}: {one}") };
    // On Move it may be a store of an object, unless the balances add up to the supply.
    let is_certain = record["type"] != "fa" || account.as_bytes().len() == 20;
    assert!(record["known"] == true, "{target}: {record}");
    assert!(record["exact"] == true || !is_certain, "{target}: {record}");
    let all = get(app, &target);
    let is_listed = all["balances"].as_array().unwrap().contains(record);
    assert_eq!(is_listed, record["amount"] != "0", "{target}: {record} {all}");
    number(record, "amount")
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
        let denoms: BTreeSet<&String> =
            bank.values().flat_map(BTreeMap::values).flat_map(std::collections::HashMap::keys).collect();
        let mut compared = 0;
        for (height, accounts) in &bank {
            for (account, coins) in accounts {
                for denom in &denoms {
                    let said = coins.get(*denom).copied().unwrap_or_default();
                    let held = held(&app, account, denom, *height);
                    assert_eq!(held, said, "{name} {height} {} {denom}", account.to_hex());
                    compared += 1;
                }
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

/// The holders of a denom now and at a height, by amount.
fn holders(app: &App<Indexer>, denom: &str, more: &str) -> BTreeMap<String, U256> {
    let target =
        format!("/indexer/ledger/v1/holders/{}?pagination.limit=1000{more}", denom.replace('/', "%2F"));
    let page = get(app, &target);
    let holders = page["holders"].as_array().unwrap();
    if !more.contains("order_by=account") {
        assert!(holders.windows(2).all(|pair| number(&pair[0], "amount") >= number(&pair[1], "amount")));
    }
    holders.iter().map(|it| (text(it, "account").to_owned(), number(it, "amount"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn holders_are_the_accounts_with_a_balance_and_have_the_whole_supply() {
    for (name, denom) in [("evm-scenario", "GAS"), ("move-scenario", "umin"), ("wasm-scenario", "umin")] {
        let (app, chain) = (app(name).await, Chain::open(name));
        let bank = chain.bank();
        let name_of = |account: &Account| {
            if name == "evm-scenario" { account.to_hex() } else { account.to_bech32("init") }
        };
        for (height, accounts) in &bank {
            // Not all accounts are asked at each height.
            if accounts.len() < bank.values().map(BTreeMap::len).max().unwrap() {
                continue;
            }
            let amount = |(account, coins): (&Account, &std::collections::HashMap<String, U256>)| {
                Some((name_of(account), *coins.get(denom).filter(|amount| !amount.is_zero())?))
            };
            let said: BTreeMap<String, U256> = accounts.iter().filter_map(amount).collect();
            let at = holders(&app, denom, &format!("&height={height}"));
            assert_eq!(at, said, "{name} {height}");
            assert_eq!(
                holders(&app, denom, &format!("&height={height}&order_by=account")),
                said,
                "{name} {height}"
            );
        }
        let now = holders(&app, denom, "");
        let last = chain.last();
        assert_eq!(now, holders(&app, denom, &format!("&height={last}&order_by=account")), "{name}");
        let rich = get(&app, &format!("/indexer/richlist/v1/{denom}?pagination.limit=1000"));
        let rich = rich["holders"].as_array().unwrap().iter();
        let rich: BTreeMap<String, U256> =
            rich.map(|it| (text(it, "account").to_owned(), number(it, "amount"))).collect();
        assert_eq!(rich, now, "{name}");
        // What was minted and burned since the first block is the difference of the sums.
        let sum = |holders: &BTreeMap<String, U256>| holders.values().fold(U256::ZERO, |sum, it| sum + *it);
        let first = *bank.first_key_value().unwrap().0;
        let before = holders(&app, denom, &format!("&height={first}"));
        assert!(sum(&now) > U256::ZERO && sum(&before) > U256::ZERO, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_blocks_leave_no_trace_in_balances() {
    let recording = Arc::new(Recording::open(&recording("bridge-cases/l1")).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let indexes = vec![&OF_LEDGER, &OF_BALANCES];
    // Recorded blocks are older than a day.
    let undo = Horizon { time: Duration::MAX, bytes: u64::MAX };
    let config = Config { indexes, undo, ..indexed::config(&recording).unwrap() };
    let last = recording.last();
    let played =
        ReplayNode::start(Arc::clone(&recording), Addresses::default(), Options::default()).await.unwrap();
    let node = Arc::new(indexed::clients(&played).unwrap());
    let run = async |store: &Arc<dyn Store>, to: u64| {
        let ingest = Ingest::prepare(config.clone(), Arc::clone(&node), Arc::clone(store)).await.unwrap();
        indexed::run_to(&ingest, to).await.unwrap();
    };
    run(&store, last).await;
    let calm = indexed::digest(&*store).unwrap();
    for back in [1, 40, 200] {
        let rewound = schema::rewind::rewind(&*store, last - back).unwrap();
        let lane: RichLane = meta::read(&*store.snapshot().unwrap()).unwrap().unwrap();
        assert_eq!(lane.height, rewound.to);
        let (app, at) =
            (App::new(indexed::indexer(Arc::clone(&store)).unwrap(), query::ENDPOINTS).unwrap(), rewound.to);
        assert_eq!(
            holders(&app, "uinit", ""),
            holders(&app, "uinit", &format!("&height={at}&order_by=account"))
        );
        run(&store, last).await;
        assert_eq!(indexed::digest(&*store).unwrap(), calm, "{back}");
    }
}

/// Whatever denoms anyone makes, the tokens of an account are those that it has.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_denoms_change_no_list_of_an_account() {
    let store = store_of("evm-scenario").await;
    let app = App::new(indexed::indexer(Arc::clone(&store)).unwrap(), query::ENDPOINTS).unwrap();
    let rows = store::table::rows::<AccountTokens>(&*store.snapshot().unwrap(), &All, Order::Asc, 10_000);
    let accounts: BTreeSet<_> = rows.unwrap().into_iter().map(|((account, _), ())| account).collect();
    let target = |account: &[u8; 20]| {
        let account = format!("0x{}", hex::encode(account));
        format!("/indexer/ledger/v1/balances/by_account/{account}?include_zero=true&pagination.limit=1000")
    };
    let before: Vec<_> = accounts.iter().map(|account| get(&app, &target(account))).collect();
    assert!(before.iter().filter(|reply| reply["balances"].as_array().unwrap().len() > 1).count() > 10);
    store::commit_rows::<schema::Error>(&*store, Durability::Buffered, |txn| {
        for number in 0..5_001_u64 {
            let contract = [&[0x5a; 12][..], &number.to_be_bytes()].concat();
            txn.put::<Denoms>(&Text(format!("mint/{number}")), &contract);
        }
        Ok(())
    })
    .unwrap();
    let after: Vec<_> = accounts.iter().map(|account| get(&app, &target(account))).collect();
    assert_eq!(after, before);
    // Until the tokens are listed, there is no list that could be short.
    let mut batch = Batch::new();
    batch.delete(Meta::SPEC, meta::key::<ListedAccountTokens>().to_bytes());
    store.commit(batch, Durability::Buffered).unwrap();
    let refused = app.read(&target(accounts.first().unwrap())).err().unwrap();
    assert_eq!(refused.status().as_u16(), 503, "{}", refused.message());
    assert!(refused.message().contains("not listed yet"), "{}", refused.message());
}

/// Anyone can send an account thousands of tokens: it is still listed whole.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_more_tokens_than_a_request_looks_at_is_listed_by_pages() {
    let store = store_of("evm-scenario").await;
    let app = App::new(indexed::indexer(Arc::clone(&store)).unwrap(), query::ENDPOINTS).unwrap();
    let rows = store::table::rows::<AccountTokens>(&*store.snapshot().unwrap(), &All, Order::Asc, 10_000);
    let ((account, _), ()) = rows.unwrap().pop().unwrap();
    let target = |more: &str| {
        let account = hex::encode(account);
        format!(
            "/indexer/ledger/v1/balances/by_account/0x{account}?include_zero=true&pagination.limit=700{more}"
        )
    };
    let denoms = |reply: &Value| -> Vec<String> {
        reply["balances"].as_array().unwrap().iter().map(|record| text(record, "denom").to_owned()).collect()
    };
    let mut expected: BTreeSet<String> = denoms(&get(&app, &target(""))).into_iter().collect();
    assert!(expected.len() > 1);
    let sent = (0..12_000_u64).map(|number| -> [u8; 20] {
        let mut contract = [0x5a; 20];
        contract[12..].copy_from_slice(&number.to_be_bytes());
        contract
    });
    store::commit_rows::<schema::Error>(&*store, Durability::Buffered, |txn| {
        sent.clone().for_each(|contract| txn.put::<AccountTokens>(&(account, contract), &()));
        Ok(())
    })
    .unwrap();
    expected.extend(sent.map(|contract| denom_of_contract(&contract)));

    for order in ["", "&pagination.reverse=false"] {
        let (mut found, mut more) = (Vec::new(), order.to_owned());
        loop {
            let page = get(&app, &target(&more));
            found.extend(denoms(&page));
            assert!(found.len() <= expected.len(), "{more}");
            let Some(key) = page["pagination"]["next_key"].as_str() else { break };
            more = format!("{order}&pagination.key={key}");
        }
        assert_eq!(found.len(), expected.len(), "{order}");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{order}");
    }
    // Pages without rows lead to the end too.
    for order in ["&type=cw20", "&type=cw20&pagination.reverse=false"] {
        let (mut pages, mut next) = (0, Some(String::new()));
        while let Some(key) = next {
            let page = get(&app, &target(&format!("{order}{key}")));
            assert!(denoms(&page).is_empty(), "{page}");
            next = page["pagination"]["next_key"].as_str().map(|key| format!("&pagination.key={key}"));
            pages += 1;
        }
        assert_eq!(pages, 3, "{order}");
    }
    let refused = app.read(&target("&pagination.offset=1")).err().unwrap();
    assert_eq!(refused.status().as_u16(), 400);
    assert!(refused.message().contains("more than 5000 tokens: follow next_key"), "{}", refused.message());
}
