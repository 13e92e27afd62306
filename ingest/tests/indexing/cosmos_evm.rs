//! What a chain with cosmos/evm may show and its recording does not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chain::evm::coin::NATIVE;
use chain::evm::dialect::Dialect;
use chain::movement::Token;
use chain::{Account, U256};
use ingest::{Config, Ingest, Verify};
use replay::answers::{HttpReply, Service};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::block::Blocks;
use schema::evm_tx::EvmTxs;
use schema::ledger::{History, Holder, LEDGER};
use schema::meta::{self, CallLane, EvmChain};
use schema::payload::Codec;
use schema::records;
use schema::rich::{self, Address, Erc20, Erc20s, Holders};
use serde_json::{Value, json};
use store::{MemStore, Message, Store};
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, recording};

/// A height with one transaction, the first of the chain.
const HEIGHT: u64 = 59;

/// Time in which these tests end, unless a lane stands still.
const SOON: Duration = Duration::from_mins(4);

fn played() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("cosmos-evm")).unwrap())
}

/// The hash checks would reject the overridden replies.
fn config() -> Config {
    Config { verify: Verify::Off, rich_list: false, ..indexed::config(&played()).unwrap() }
}

/// The recording cut off at `last`.
fn ending(exchange: RecordedExchange<'_>, last: u64) -> HttpReply {
    if exchange.service == Service::Comet && exchange.request.uri().path() == "/status" {
        return exchange
            .with_change(|status| status["sync_info"]["latest_block_height"] = last.to_string().into());
    }
    exchange.answer
}

async fn prepared(node: &OverriddenNode) -> (Ingest, Arc<MemStore>) {
    let store = Arc::new(MemStore::new());
    let clients = Arc::new(node.clients().unwrap());
    (Ingest::prepare(config(), clients, Arc::<MemStore>::clone(&store)).await.unwrap(), store)
}

async fn run_to(ingest: &Ingest, last: u64) {
    tokio::time::timeout(SOON, indexed::run_to(ingest, last)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_the_evm_is_stored_when_the_node_tells_it_and_never_guessed() {
    const LAST: u64 = 3;
    let tells = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&tells);
    let node = OverriddenNode::start(played(), move |exchange| match exchange.is_rpc("eth_chainId", "") {
        true if told.load(Ordering::Relaxed) => exchange.with_result(&json!("0x1234")),
        true => exchange.with_error(-32603, "internal error"),
        false => ending(exchange, LAST),
    });
    let node = node.await.unwrap();
    let (ingest, store) = prepared(&node).await;
    let stored = || meta::read::<EvmChain>(&*store.snapshot().unwrap()).unwrap().unwrap();
    let before = EvmChain { flavour: "cosmos-evm".to_owned(), chain_id: 0 };
    assert_eq!(stored(), before, "the name of the chain ends with _9005-1");
    let unknown = indexed::indexer(Arc::<MemStore>::clone(&store)).unwrap();
    assert!(unknown.evm_chain_id().unwrap_err().message().contains("is not known yet"));
    tells.store(true, Ordering::Relaxed);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let learned = async {
        while stored().chain_id == 0 {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    };
    let both = async { tokio::join!(async { ingest.run(stopped).await.unwrap() }, learned) };
    tokio::time::timeout(SOON, both).await.unwrap();
    assert_eq!(stored(), EvmChain { chain_id: 0x1234, ..before });
    assert_eq!(unknown.evm_chain_id().unwrap(), 0x1234, "the same process learns it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_the_first_block_that_no_node_can_trace_does_not_hold_the_lane() {
    const LAST: u64 = 10;
    let height = played().height(HEIGHT).unwrap();
    let [block, results] =
        [&height.block, &height.block_results].map(|json| -> Value { serde_json::from_slice(json).unwrap() });
    let node = OverriddenNode::start(played(), move |exchange| {
        if exchange.is_comet("block", 1) {
            return exchange.with_change(|first| first["block"]["data"] = block["block"]["data"].clone());
        }
        if exchange.is_comet("block_results", 1) {
            return exchange.with_change(|first| first["txs_results"] = results["txs_results"].clone());
        }
        let reason = "rpc error: code = Internal desc = nonce too low";
        if exchange.is_rpc("debug_traceBlockByNumber", "\"0x1\"") {
            return exchange.with_result(&json!([{ "error": reason }]));
        }
        if exchange.is_rpc("debug_traceTransaction", "") {
            return exchange.with_error(-32000, reason);
        }
        ending(exchange, LAST)
    });
    let node = node.await.unwrap();
    let (ingest, store) = prepared(&node).await;
    run_to(&ingest, LAST).await;
    let lane: CallLane = meta::read(&*store.snapshot().unwrap()).unwrap().unwrap();
    assert_eq!((lane.height, lane.calls, &lane.untraced[..]), (LAST, 0, &[1][..]));
}

/// The Cosmos transaction in base64 with another type of the Ethereum transaction in it.
fn with_type(tx: &str, kind: u8) -> String {
    let mut bytes = BASE64.decode(tx).unwrap();
    // The sender is field 5, of 20 bytes, and the transaction field 6.
    let at = bytes.windows(23).position(|field| field[..2] == [0x2a, 20] && field[22] == 0x32).unwrap() + 23;
    let length = bytes[at..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    bytes[at + length] = kind;
    BASE64.encode(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_an_unknown_type_does_not_stop_the_index_and_is_shown_without_what_is_unknown() {
    const LAST: u64 = HEIGHT + 3;
    let node = OverriddenNode::start(played(), |exchange| {
        if exchange.is_comet("block", HEIGHT) {
            return exchange.with_change(|block| {
                let tx = &mut block["block"]["data"]["txs"][0];
                *tx = with_type(tx.as_str().unwrap(), 0x7f).into();
            });
        }
        ending(exchange, LAST)
    });
    let node = node.await.unwrap();
    let (ingest, store) = prepared(&node).await;
    run_to(&ingest, LAST).await;
    let snapshot = store.snapshot().unwrap();
    let codec = Codec::load(&*snapshot).unwrap();
    let Message(block) = store::table::read::<Blocks>(&*snapshot, &HEIGHT).unwrap().unwrap();
    assert_eq!(block.evm_txs, 1);
    let mut receipt = Value::Null;
    let read = |record: &[u8]| receipt = serde_json::from_slice(record).unwrap();
    records::each::<EvmTxs>(&*snapshot, &codec, &[block.first_evm_tx], read).unwrap();
    assert_eq!((&receipt["type"], &receipt["status"]), (&json!("0x7f"), &json!("0x1")));
    let hash = receipt["transactionHash"].as_str().unwrap();
    let bytes: [u8; 32] = hex::decode(&hash[2..]).unwrap().try_into().unwrap();
    let indexer = indexed::indexer(Arc::<MemStore>::clone(&store)).unwrap();
    let view = indexer.evm(Dialect::Node).unwrap();
    let tx: Value = serde_json::from_slice(&view.tx(&bytes).unwrap().unwrap()).unwrap();
    assert_eq!((&tx["hash"], &tx["from"], &tx["type"]), (&json!(hash), &receipt["from"], &json!("0x7f")));
    assert!(tx.get("value").is_none() && tx.get("to").is_none(), "{tx}");
    assert_eq!(view.raw_tx(&bytes).unwrap().unwrap()[0], 0x7f);
}

/// What each account had of the native coin at `height` by the recorded bank.
fn recorded_balances(height: u64) -> BTreeMap<Address, U256> {
    let recording = played();
    let state = std::fs::read(testkit::recording("cosmos-evm").join("state.ndjson.zst")).unwrap();
    let state = String::from_utf8(zstd::decode_all(&state[..]).unwrap()).unwrap();
    let mut found = BTreeMap::new();
    let at = |height: &Value| height.as_str().map_or(height.as_u64(), |text| text.parse().ok());
    for line in state.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let path = line["path"].as_str().unwrap_or_default();
        let account =
            path.strip_prefix("/cosmos/bank/v1beta1/balances/").and_then(|rest| rest.split('?').next());
        let Some(account) = account.filter(|_| at(&line["height"]) == Some(height)) else {
            continue;
        };
        let account = Account::from_bech32(account, "cosmos").unwrap();
        let coins = line["answer"]["balances"].as_array().unwrap();
        let amount = coins.iter().find(|coin| coin["denom"] == recording.summary().fee_denom.as_str());
        let amount = amount.map_or(U256::ZERO, |coin| coin["amount"].as_str().unwrap().parse().unwrap());
        found.insert(Address::try_from(account.as_bytes()).unwrap(), amount);
    }
    found
}

/// The balances of ERC-20s that the recorded logs add up to: transfers, and what was deposited for wrapped ether.
fn logged_balances(recording: &Recording, last: u64) -> BTreeMap<(String, String), U256> {
    let transfer = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
    let deposit = "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c";
    let mut held: BTreeMap<(String, String), U256> = BTreeMap::new();
    for height in recording.heights().iter().filter(|height| height.height <= last) {
        let receipts: Option<Vec<Value>> =
            serde_json::from_slice(height.eth_receipts.as_ref().unwrap()).unwrap();
        for log in receipts.iter().flatten().flat_map(|receipt| receipt["logs"].as_array().unwrap()) {
            let topics: Vec<&str> =
                log["topics"].as_array().unwrap().iter().map(|topic| topic.as_str().unwrap()).collect();
            let contract = log["address"].as_str().unwrap().to_lowercase();
            let account = |at: usize| (contract.clone(), format!("0x{}", &topics[at][26..]));
            let amount = || log["data"].as_str().unwrap().parse::<U256>().unwrap();
            match topics[..] {
                [kind, _] if kind == deposit => *held.entry(account(1)).or_default() += amount(),
                [kind, from, to] if kind == transfer => {
                    if from.trim_start_matches("0x").bytes().any(|digit| digit != b'0') {
                        *held.get_mut(&account(1)).unwrap() -= amount();
                    }
                    if to.trim_start_matches("0x").bytes().any(|digit| digit != b'0') {
                        *held.entry(account(2)).or_default() += amount();
                    }
                }
                _ => {}
            }
        }
    }
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_of_the_native_coin_are_the_banks_and_those_of_erc20s_what_logs_add_up_to() {
    for last in [325, 330] {
        let recording = played();
        let store = Arc::new(MemStore::new());
        let options = Options { up_to: Some(last), ..Options::default() };
        let config = indexed::config(&recording).unwrap();
        let written: Arc<dyn Store> = Arc::<MemStore>::clone(&store);
        indexed::index_as(config, Arc::clone(&recording), options, written).await.unwrap();
        let snapshot = store.snapshot().unwrap();
        let expected = recorded_balances(last);
        assert!(expected.len() > 80);
        let held = |contract: &Address, account: &Address| {
            rich::balance(&*snapshot, contract, account).unwrap().map(U256::from_be_bytes).unwrap_or_default()
        };
        for (account, amount) in &expected {
            assert_eq!(held(&NATIVE, account), *amount, "{} at {last}", hex::encode(account));
        }
        // Nobody else holds any.
        let holders = store::ranked::len::<Holders>(&*snapshot, &NATIVE).unwrap();
        assert_eq!(holders, expected.values().filter(|amount| !amount.is_zero()).count() as u64);
        let Message(token) = store::table::read::<Erc20s>(&*snapshot, &NATIVE).unwrap().unwrap();
        assert_eq!(token, Erc20 { complete: true, coin: true, ..Erc20::default() });
        let logged = logged_balances(&recording, last);
        assert!(logged.len() > 30, "{}", logged.len());
        for ((contract, account), amount) in logged {
            let [of, account] = [&contract, &account]
                .map(|text| Address::try_from(Account::from_hex_literal(text).unwrap().as_bytes()).unwrap());
            assert_eq!(held(&of, &account), amount, "{} of {contract}", hex::encode(account));
        }
    }
}

/// Wrapped ether.
const WETH: &str = "5da435b5083344636a030f609edf4e03d134ddf8";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_node_cannot_call_does_not_stop_the_list_and_is_marked() {
    let recording = played();
    let node = OverriddenNode::start(Arc::clone(&recording), |exchange| {
        if exchange.is_rpc("eth_call", "0x70a08231") && exchange.is_rpc("eth_call", WETH) {
            return exchange.with_error(-32000, "execution aborted (timeout = 5s)");
        }
        exchange.answer
    });
    let node = node.await.unwrap();
    let store = Arc::new(MemStore::new());
    let clients = Arc::new(node.clients().unwrap());
    let config = indexed::config(&recording).unwrap();
    let ingest = Ingest::prepare(config, clients, Arc::<MemStore>::clone(&store)).await.unwrap();
    run_to(&ingest, recording.last()).await;
    let snapshot = store.snapshot().unwrap();
    let token = |contract: &Address| {
        store::table::read::<Erc20s>(&*snapshot, contract).unwrap().map(|Message(token)| token)
    };
    let weth = Address::try_from(hex::decode(WETH).unwrap()).unwrap();
    assert!(token(&weth).is_some_and(|token| token.silent));
    assert!(token(&NATIVE).is_some_and(|token| token.complete && !token.silent));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_stopped_and_started_over_a_faulty_node_is_the_same() {
    const LAST: u64 = 330;
    let faults = [
        "delay=10ms@0.2",
        "429@0.05",
        "500@0.1",
        "cut@0.05",
        "hang-up@0.05",
        "stale=3@0.1",
        "comet:no-results@0.1",
    ];
    let mut digests = Vec::new();
    for (faults, stops) in [(&[][..], &[LAST][..]), (&faults[..], &[75, 160, 250, LAST])] {
        let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let options = Options { up_to: Some(LAST), faults, seed: 7, ..Options::default() };
        let node = ReplayNode::start(played(), Addresses::default(), options).await.unwrap();
        let store = Arc::new(MemStore::new());
        for stop in stops {
            let (clients, config) = (indexed::clients(&node).unwrap(), indexed::config(&played()).unwrap());
            let written: Arc<dyn Store> = Arc::<MemStore>::clone(&store);
            indexed::index_from(clients, config, written, *stop).await.unwrap();
        }
        digests.push(indexed::digest(&*store).unwrap());
        node.stop().await;
    }
    assert_eq!(digests[0], digests[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_those_of_the_node_and_contracts_are_found_by_what_created_them() {
    let recording = played();
    let store = indexed::index_for_json_rpc(Arc::clone(&recording), true).await.unwrap();
    let indexer = indexed::indexer(Arc::clone(&store)).unwrap();
    let view = indexer.evm(Dialect::Node).unwrap();
    let mut created = 0;
    for height in recording.heights() {
        let number = height.height;
        let block = String::from_utf8(view.block(number, false).unwrap().unwrap()).unwrap();
        let recorded = height.eth_block.as_ref().unwrap();
        assert_eq!(block.as_bytes(), &recorded[..], "{number}");
        let block: Value = serde_json::from_str(&block).unwrap();
        let hash: [u8; 32] = hex::decode(&block["hash"].as_str().unwrap()[2..]).unwrap().try_into().unwrap();
        assert_eq!(view.height_of(&hash).unwrap(), Some(number));
        let whole: Value = serde_json::from_slice(&view.block(number, true).unwrap().unwrap()).unwrap();
        let txs = whole["transactions"].as_array().unwrap();
        assert!(txs.iter().map(|tx| &tx["hash"]).eq(block["transactions"].as_array().unwrap()), "{number}");
        let receipts: Vec<Value> = serde_json::from_slice(height.eth_receipts.as_ref().unwrap()).unwrap();
        for receipt in receipts.iter().filter(|receipt| !receipt["contractAddress"].is_null()) {
            let contract = receipt["contractAddress"].as_str().unwrap();
            let contract: [u8; 20] = hex::decode(&contract[2..]).unwrap().try_into().unwrap();
            let heights: Vec<u64> =
                view.creations(contract).unwrap().iter().map(|creation| creation.height).collect();
            let expected = if receipt["status"] == "0x1" { vec![number] } else { Vec::new() };
            assert_eq!(heights, expected, "{receipt}");
            created += heights.len();
        }
    }
    assert_eq!(created, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn movements_of_the_ledger_are_those_of_the_recorded_logs() {
    // Behind it, ether is wrapped, of which no movement tells.
    const LAST: u64 = 285;
    let recording = played();
    let store = Arc::new(MemStore::new());
    let options = Options { up_to: Some(LAST), ..Options::default() };
    let node = ReplayNode::start(Arc::clone(&recording), Addresses::default(), options).await.unwrap();
    let clients = Arc::new(indexed::clients(&node).unwrap());
    let config = Config { indexes: vec![&LEDGER], ..indexed::config(&recording).unwrap() };
    let ingest = Ingest::prepare(config, clients, Arc::<MemStore>::clone(&store)).await.unwrap();
    run_to(&ingest, LAST).await;
    let snapshot = store.snapshot().unwrap();
    assert_eq!(LEDGER.state(&*snapshot).unwrap().map(|state| state.height), Some(LAST));
    let logged = logged_balances(&recording, LAST);
    for ((contract, account), amount) in &logged {
        let [contract, account] =
            [contract, account].map(|text| <[u8; 20]>::try_from(hex::decode(&text[2..]).unwrap()).unwrap());
        let token = Token::Erc20(contract);
        let history = History::of(&*snapshot, &token, Holder(Some(account.into()))).unwrap();
        let (_, change) = history.until(LAST).unwrap().unwrap_or_default();
        assert_eq!(change.amount_after(U256::ZERO), Some(*amount), "{}", hex::encode(account));
    }
    assert!(logged.len() > 30, "{}", logged.len());
    node.stop().await;
}
