//! The index compared with the recorded chains' own replies: owners, URIs and names of NFTs, and balances of ERC-20s,
//! at every recorded height.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use chain::nft::move_vm;
use chain::{Account, U256, evm::abi};
use replay::{Options, Recording};
use schema::keys::AccountKey;
use schema::meta::{self, RichLane};
use schema::nft::fold;
use schema::nft::{Collections, NftLog, ObjectTokens, Token, Tokens};
use schema::rich;
use serde_json::Value;
use store::key::{All, Text};
use store::{Counts, Durability, MemStore, Message, Order, Store, Txn};
use testkit::{indexed, oracle, recording};

async fn index(name: &str) -> Arc<MemStore> {
    let store = Arc::new(MemStore::new());
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    indexed::index(recording, Options::default(), Arc::<MemStore>::clone(&store)).await.unwrap();
    store
}

fn token(store: &MemStore, collection: Account, token_id: &str) -> Option<Token> {
    let key = (AccountKey(collection), Text(token_id.to_owned()));
    store::table::read::<Tokens>(&*store.snapshot().unwrap(), &key).unwrap().map(|Message(token)| token)
}

fn uri_of(store: &MemStore, row: &Token) -> String {
    schema::nft::uris(&*store.snapshot().unwrap(), &[row]).unwrap().remove(0)
}

fn account(bytes: &[u8]) -> Account {
    Account::from_bytes(bytes).unwrap()
}

/// Folds the log of `indexed` height by height, and passes on the database after each height of `heights`.
fn at_each(indexed: &MemStore, heights: impl IntoIterator<Item = u64>, mut show: impl FnMut(u64, &MemStore)) {
    let log = indexed.snapshot().unwrap();
    let rows = store::table::rows::<NftLog>(&*log, &All, Order::Asc, usize::MAX).unwrap();
    let mut rows = rows.into_iter().peekable();
    let store = MemStore::new();
    for height in heights {
        while let Some((place, Message(entry))) = rows.next_if(|(of, _)| of.height <= height) {
            let snapshot = store.snapshot().unwrap();
            let mut counts = Counts::new(1);
            let mut txn = Txn::new(&*snapshot, &mut counts);
            fold::record(&mut txn, &place, entry).unwrap();
            let (batch, _pending) = txn.finish();
            drop(snapshot);
            store.commit(batch, Durability::Buffered).unwrap();
        }
        show(height, &store);
    }
}

/// Compares every `ownerOf` and `tokenURI` at its height.
async fn erc721s_are_as_the_contracts_say(recording: &str, at_least: usize) {
    let indexed = index(recording).await;
    let mut questions: BTreeMap<u64, Vec<(bool, oracle::EthCall)>> = BTreeMap::new();
    for (is_owner, selector) in [(true, "0x6352211e"), (false, "0xc87b56dd")] {
        for call in oracle::eth_calls(recording, selector).unwrap() {
            questions.entry(call.height).or_default().push((is_owner, call));
        }
    }
    let mut compared = 0;
    at_each(&indexed, questions.keys().copied(), |height, store| {
        for (is_owner, call) in &questions[&height] {
            let id = U256::from_be_slice(&call.argument).to_string();
            let row = token(store, account(&call.to), &id);
            let what = format!("{} {id} at {height}", account(&call.to).to_hex());
            match (row, is_owner) {
                (Some(row), true) => {
                    let owner = call.result.as_deref().and_then(abi::read_address);
                    assert_eq!(
                        Some(row.owner.as_slice()),
                        owner.as_ref().map(<[u8; 20]>::as_slice),
                        "owner of {what}"
                    );
                }
                (Some(row), false) => {
                    let uri = call.result.as_deref().and_then(abi::read_string);
                    let uri = uri.and_then(chain::Text::plain).unwrap_or_default();
                    assert_eq!(uri_of(store, &row), uri, "URI of {what}");
                }
                (None, true) => assert_eq!(call.result, None, "{what} is missing"),
                // A contract may keep the URI of a burnt token.
                (None, false) => {}
            }
            compared += 1;
        }
    });
    assert!(compared >= at_least, "only {compared} answers were compared");
    names_are_as_the_contracts_say(recording, &indexed);
}

/// Compares `name()`, which the recorded contracts never change.
fn names_are_as_the_contracts_say(recording: &str, store: &MemStore) {
    let snapshot = store.snapshot().unwrap();
    let mut collections = 0;
    for call in oracle::eth_calls(recording, "0x06fdde03").unwrap() {
        let row = store::table::read::<Collections>(&*snapshot, &AccountKey(account(&call.to))).unwrap();
        if let Some(Message(row)) = row {
            let name = call.result.as_deref().and_then(abi::read_string);
            assert_eq!(Some(row.name), name.and_then(chain::Text::plain));
            collections += 1;
        }
    }
    assert!(collections > 0, "no collection was compared");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_erc721_of_the_evm_scenario_agrees_with_its_contract_at_each_height() {
    erc721s_are_as_the_contracts_say("evm-scenario", 140).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_erc721_of_the_bridged_rollup_agrees_with_its_contract_at_each_height() {
    erc721s_are_as_the_contracts_say("l1-l2/l2", 13).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_erc721_of_the_load_agrees_with_its_contract_at_each_height() {
    erc721s_are_as_the_contracts_say("evm-load", 8_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_erc721_of_cosmos_evm_agrees_with_its_contract_at_each_height() {
    erc721s_are_as_the_contracts_say("cosmos-evm", 1_400).await;
}

/// Compares every `balanceOf` at its height: the rich list is rolled back height by height.
async fn balances_are_as_the_contracts_say(recording: &str, at_least: usize) {
    let store = index(recording).await;
    let calls = oracle::eth_calls(recording, "0x70a08231").unwrap();
    for call in calls.iter().rev() {
        rich::rewind(&*store, call.height).unwrap();
        let snapshot = store.snapshot().unwrap();
        let lane: RichLane = meta::read(&*snapshot).unwrap().unwrap();
        assert_eq!(lane.height, call.height, "the rich list is not there any more");
        let holder = <[u8; 20]>::try_from(&call.argument[12..]).unwrap();
        let held = rich::balance(&*snapshot, &call.to, &holder).unwrap().map(U256::from_be_bytes);
        let response = call.result.as_deref().and_then(abi::read_uint).unwrap();
        let what = format!("{} in {} at {}", hex::encode(holder), hex::encode(call.to), call.height);
        assert_eq!(held.unwrap_or_default(), response, "{what}");
    }
    assert!(calls.len() >= at_least, "only {} balances were compared", calls.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_balance_of_the_evm_scenario_agrees_with_its_contract_at_each_height() {
    balances_are_as_the_contracts_say("evm-scenario", 262).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_balance_of_the_bridged_rollup_agrees_with_its_contract_at_each_height() {
    balances_are_as_the_contracts_say("l1-l2/l2", 170).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_balance_of_cosmos_evm_agrees_with_its_contract_at_each_height() {
    balances_are_as_the_contracts_say("cosmos-evm", 300).await;
}

/// Compares the bank's balances of every account at the last height, including accounts without events.
async fn balances_are_as_the_bank_says(recording: &str, last: u64, at_least: usize) {
    let store = index(recording).await;
    let snapshot = store.snapshot().unwrap();
    let mut compared = 0;
    for line in oracle::lines(recording, "/cosmos/bank/v1beta1/balances/").unwrap() {
        if line["height"] != last {
            continue;
        }
        let path = line["path"].as_str().unwrap();
        let address = path.rsplit('/').next().unwrap().split('?').next().unwrap();
        let (prefix, _) = address.split_once('1').unwrap();
        let Ok(holder) = <[u8; 20]>::try_from(Account::from_bech32(address, prefix).unwrap().as_bytes())
        else {
            continue;
        };
        for coin in line["answer"]["balances"].as_array().unwrap() {
            let denom = coin["denom"].as_str().unwrap();
            let contract = if let Some(digits) = denom.strip_prefix("evm/") {
                hex::decode(digits).unwrap()
            } else {
                let row = store::table::read::<rich::Denoms>(&*snapshot, &Text(denom.to_owned())).unwrap();
                row.unwrap_or_else(|| panic!("the denom {denom} is not known"))
            };
            let contract = <[u8; 20]>::try_from(contract).unwrap();
            let held = rich::balance(&*snapshot, &contract, &holder).unwrap().map(U256::from_be_bytes);
            assert_eq!(
                held.unwrap_or_default().to_string(),
                coin["amount"].as_str().unwrap(),
                "{address}, {denom}"
            );
            compared += 1;
        }
    }
    assert!(compared >= at_least, "only {compared} balances were compared");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_balance_of_the_evm_scenario_agrees_with_the_bank_at_the_end() {
    balances_are_as_the_bank_says("evm-scenario", 226, 49).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_balance_of_the_bridged_rollup_agrees_with_the_bank_at_the_end() {
    balances_are_as_the_bank_says("l1-l2/l2", 820, 30).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_balance_of_cosmos_evm_agrees_with_the_bank_at_the_end() {
    balances_are_as_the_bank_says("cosmos-evm", 330, 39).await;
}

/// The newest recorded answer to each smart query: `(contract, query)` → answer.
fn smart_queries() -> BTreeMap<(Account, String), (u64, Value)> {
    let mut newest: BTreeMap<(Account, String), (u64, Value)> = BTreeMap::new();
    for line in oracle::lines("wasm-scenario", "/smart/").unwrap() {
        let path = line["path"].as_str().unwrap().trim_start_matches("/cosmwasm/wasm/v1/contract/");
        let (contract, query) = path.split_once("/smart/").unwrap();
        let query = String::from_utf8(URL_SAFE.decode(query).unwrap()).unwrap();
        let (height, answer) = (line["height"].as_u64().unwrap(), line["answer"].clone());
        let key = (Account::from_bech32(contract, "init").unwrap(), query);
        if newest.get(&key).is_none_or(|(of, _)| *of <= height) {
            newest.insert(key, (height, answer));
        }
    }
    newest
}

#[tokio::test(flavor = "multi_thread")]
async fn every_cw721_agrees_with_its_contract_at_the_last_height() {
    let store = index("wasm-scenario").await;
    let (mut names, mut tokens) = (0, 0);
    for ((contract, query), (_, answer)) in smart_queries() {
        let query: Value = serde_json::from_str(&query).unwrap();
        let id = |name: &str| query[name]["token_id"].as_str().map(ToOwned::to_owned);
        if query.get("contract_info").is_some() {
            let row = store::table::read::<Collections>(&*store.snapshot().unwrap(), &AccountKey(contract))
                .unwrap();
            let Message(row) = row.unwrap();
            assert_eq!(answer["data"]["name"], row.name.as_str());
            names += 1;
        } else if query.get("num_tokens").is_some() {
            let len =
                store::ranked::len::<Tokens>(&*store.snapshot().unwrap(), &AccountKey(contract)).unwrap();
            // Of the second collection only the first page was recorded, which is empty.
            assert_eq!(answer["data"]["count"], len);
        } else if let Some(id) = id("owner_of") {
            let owner = token(&store, contract, &id).map(|row| account(&row.owner).to_bech32("init"));
            assert_eq!(answer["data"]["owner"].as_str(), owner.as_deref(), "owner of {id}");
            tokens += 1;
        } else if let Some(id) = id("nft_info") {
            let uri = token(&store, contract, &id).map(|row| uri_of(&store, &row));
            let response = answer.get("data").map(|data| data["token_uri"].as_str().unwrap_or_default());
            assert_eq!(response, uri.as_deref(), "URI of {id}");
            tokens += 1;
        }
    }
    assert_eq!((names, tokens), (2, 18));
}

/// Compares every `0x1::nft::Nft` and `0x1::collection::Collection` at its height.
async fn move_tokens_are_as_their_resources_say(recording: &str, at_least: usize) {
    let indexed = index(recording).await;
    let mut questions: BTreeMap<u64, Vec<(Account, bool, Value)>> = BTreeMap::new();
    for line in oracle::lines(recording, "/resources/by_struct_tag?struct_tag=0x1::").unwrap() {
        let path = line["path"].as_str().unwrap();
        let address = path.trim_start_matches("/initia/move/v1/accounts/").split('/').next().unwrap();
        let Some(height) = line["height"].as_u64() else { continue };
        let asked =
            (Account::from_hex_literal(address).unwrap(), path.ends_with("::Nft"), line["answer"].clone());
        questions.entry(height).or_default().push(asked);
    }
    let mut compared = 0;
    at_each(&indexed, questions.keys().copied(), |height, store| {
        for (address, is_token, answer) in &questions[&height] {
            let (snapshot, answer) = (store.snapshot().unwrap(), answer.to_string());
            if *is_token {
                let name = store::table::read::<ObjectTokens>(&*snapshot, &AccountKey(*address)).unwrap();
                let Message(name) = name.unwrap();
                let row = token(store, account(&name.collection), &name.token_id);
                let reply = move_vm::nft_resource(answer.as_bytes());
                let reply = reply.map(|reply| (reply.collection, reply.token_id, reply.uri));
                let row = row.map(|row| {
                    (account(&name.collection), name.token_id, chain::Text::Plain(uri_of(store, &row)))
                });
                assert_eq!(row, reply, "{} at {height}", address.to_hex());
            } else {
                let row = store::table::read::<Collections>(&*snapshot, &AccountKey(*address)).unwrap();
                let reply = move_vm::collection_resource(answer.as_bytes());
                let reply = reply.map(|reply| (reply.name, reply.creator));
                let row = row.map(|Message(row)| (chain::Text::Plain(row.name), account(&row.creator)));
                assert_eq!(row, reply, "{} at {height}", address.to_hex());
            }
            compared += 1;
        }
    });
    assert!(compared >= at_least, "only {compared} answers were compared");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_move_token_agrees_with_its_resource_at_each_height() {
    move_tokens_are_as_their_resources_say("move-scenario", 12).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_token_of_the_l1_agrees_with_its_resource_and_a_voucher_has_its_origin() {
    move_tokens_are_as_their_resources_say("l1-l2/l1", 6).await;
    let store = index("l1-l2/l1").await;
    let address =
        Account::from_hex_literal("0xb42e0ce7124f4057c58f5e362aa79c6484451b3721981a80027046dd55b47afb");
    let row = store::table::read::<Collections>(&*store.snapshot().unwrap(), &AccountKey(address.unwrap()))
        .unwrap();
    let Message(row) = row.unwrap();
    assert_eq!(row.name, "ibc/0AB7456FAC59E9A3733187696736F0B544B5BC1E6BE3EE961E15E40BF84BBCC3");
    assert_eq!(row.origin_name, "Rollup Apes");
    assert_eq!(row.creator, Account::from_hex_literal("0x1").unwrap().as_bytes());
    // `cat1` went to the rollup, returned and was transferred: a returning token is not a voucher.
    let cats =
        Account::from_hex_literal("0xa955cbcbaf04e15fcd20511785fbf5a61ebf62463494f1e08a1f97df89de3a8c")
            .unwrap();
    assert_eq!(
        account(&token(&store, cats, "cat1").unwrap().owner).to_hex(),
        "0x8a5b29decca5afd535919a863af3508e1b36589e"
    );
}
