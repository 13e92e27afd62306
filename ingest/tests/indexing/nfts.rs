//! NFTs with failing nodes, non-conforming contracts, and indexes that begin mid-chain.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chain::{Account, U256, evm::abi};
use ingest::{Config, Ingest};
use node::{Limits, Node};
use replay::answers::{HttpReply, Service};
use replay::{Options, Recording};
use schema::keys::AccountKey;
use schema::nft::{Collection, Collections, NonCollections, Outcome, Questions, Token, Tokens};
use serde_json::Value;
use store::key::{All, Text};
use store::{MemStore, Message, Order as Direction, Store};
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, oracle, recording};
use tokio::sync::watch;

const NAME: &str = "0x06fdde03";
const TOKEN_URI: &str = "0xc87b56dd";
const TOKEN_URI_OF_7: &str = "0xc87b56dd0000000000000000000000000000000000000000000000000000000000000007";
const OWNER_OF: &str = "0x6352211e";
const ERC_165: &str = "0x01ffc9a7";

/// The two collections of the scenario, `Verify Apes` and `Zebra Set`.
const APES: &str = "0xa3c1690099b8db2b564fdcc3b79ffe9c4252d6bb";
const ZEBRAS: &str = "0xf17b946aa67aad4c9b7c69031f03e54a01d01724";

fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

fn address(hex: &str) -> AccountKey {
    AccountKey(Account::from_hex_literal(hex).unwrap())
}

fn collections(store: &MemStore) -> BTreeMap<String, Collection> {
    let rows =
        store::table::rows::<Collections>(&*store.snapshot().unwrap(), &All, Direction::Asc, 100).unwrap();
    rows.into_iter().map(|(AccountKey(address), Message(row))| (address.to_hex(), row)).collect()
}

fn token(store: &MemStore, collection: &str, id: &str) -> Option<Token> {
    let key = (address(collection), Text(id.to_owned()));
    store::table::read::<Tokens>(&*store.snapshot().unwrap(), &key).unwrap().map(|Message(row)| row)
}

fn uri(store: &MemStore, token: &Token) -> String {
    schema::nft::uris(&*store.snapshot().unwrap(), &[token]).unwrap().remove(0)
}

fn tokens(store: &MemStore, collection: &str) -> u64 {
    store::ranked::len::<Tokens>(&*store.snapshot().unwrap(), &address(collection)).unwrap()
}

fn open_questions(store: &MemStore) -> usize {
    store::table::rows::<Questions>(&*store.snapshot().unwrap(), &All, Direction::Asc, 10_000).unwrap().len()
}

/// True if a request is about the tokens of a contract.
fn is_about_nfts(exchange: &RecordedExchange<'_>) -> bool {
    [NAME, TOKEN_URI, OWNER_OF, ERC_165].iter().any(|selector| exchange.is_rpc("eth_call", selector))
}

/// Indexes all heights from a node with overridden answers, and waits until no question is open.
async fn indexed_with(
    override_answer: impl Fn(RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static,
) -> Arc<MemStore> {
    let store = Arc::new(MemStore::new());
    index_up_to(evm().last(), &store, override_answer).await;
    store
}

/// Continues with `store` until at least `height` is indexed and no question is open.
async fn index_up_to(
    height: u64,
    store: &Arc<MemStore>,
    override_answer: impl Fn(RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static,
) {
    let recording = evm();
    let node = OverriddenNode::start(Arc::clone(&recording), override_answer).await.unwrap();
    let shared = Arc::<MemStore>::clone(store);
    let config = indexed::config(&recording).unwrap();
    let ingest = Ingest::prepare(config, Arc::new(node.clients().unwrap()), shared).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let mut progress = ingest.progress();
    let watching = async {
        while progress.done() < height || open_questions(store) > 0 {
            progress.moved().await;
        }
        stop.send_replace(true);
    };
    tokio::join!(async { ingest.run(stopped).await.unwrap() }, watching);
}

/// Replies of a node or a gateway that cannot call contracts.
const UNANSWERED: [fn(RecordedExchange<'_>) -> HttpReply; 6] = [
    |exchange| exchange.with_error(-32603, "the machine is on fire"),
    |exchange| exchange.with_error(-32601, "the method eth_call does not exist/is not available"),
    |exchange| exchange.with_error(-32602, "too many arguments"),
    |exchange| exchange.with_error(-32000, "wrong chain"),
    |exchange| exchange.with_result(&"zzz".into()),
    // Larger than the client's limit.
    |exchange| exchange.with_result(&format!("0x{}", "00".repeat(1 << 20)).into()),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_call_contracts_delays_no_block_and_late_answers_lead_to_the_same_rows() {
    let recording = evm();
    let undisturbed = Arc::new(MemStore::new());
    indexed::index(Arc::clone(&recording), Options::default(), Arc::<MemStore>::clone(&undisturbed))
        .await
        .unwrap();
    let undisturbed = indexed::digest(&*undisturbed).unwrap();

    // Concurrently, because each waits for the pauses between requests.
    let (recording, undisturbed) = (&recording, &undisturbed);
    let kinds = UNANSWERED.into_iter().enumerate().map(async |(kind, unanswered)| {
        let repaired = Arc::new(AtomicBool::new(false));
        let override_answer = {
            let repaired = Arc::clone(&repaired);
            move |exchange: RecordedExchange<'_>| {
                if is_about_nfts(&exchange) && !repaired.load(Ordering::Relaxed) {
                    return unanswered(exchange);
                }
                exchange.answer
            }
        };
        let node = OverriddenNode::start(Arc::clone(recording), override_answer).await.unwrap();
        let limits = Limits { body: 2 << 20, ..Limits::default() };
        let clients = Arc::new(Node::new(node.endpoints().unwrap(), limits).unwrap());
        let store = Arc::new(MemStore::new());
        let config = indexed::config(recording).unwrap();
        let ingest = Ingest::prepare(config, clients, Arc::<MemStore>::clone(&store)).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let mut progress = ingest.progress();
        let watching = async {
            while progress.done() < recording.last() {
                progress.moved().await;
            }
            assert!(collections(&store).is_empty(), "{kind}: no answer yet that these are collections");
            let refused =
                store::table::rows::<NonCollections>(&*store.snapshot().unwrap(), &All, Direction::Asc, 1);
            assert!(refused.unwrap().is_empty(), "{kind}: no answer yet that these are none");
            assert!(open_questions(&store) > 0);
            repaired.store(true, Ordering::Relaxed);
            while open_questions(&store) > 0 {
                progress.moved().await;
            }
            stop.send_replace(true);
        };
        tokio::join!(async { ingest.run(stopped).await.unwrap() }, watching);
        assert_eq!(collections(&store).len(), 2);
        for (late, at_once) in indexed::digest(&*store).unwrap().iter().zip(undisturbed) {
            assert_eq!(late, at_once, "{kind}");
        }
    });
    futures_util::future::join_all(kinds).await;
}

/// `NFT_RECORDING=evm-load` counts those of a long chain.
#[tokio::test(flavor = "multi_thread")]
async fn the_contract_calls_of_a_block_are_one_request() {
    let name = std::env::var("NFT_RECORDING").unwrap_or_else(|_| "evm-scenario".to_owned());
    let recording = Arc::new(Recording::open(&recording(&name)).unwrap());
    let (all, calls) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let override_answer = {
        let (all, calls) = (Arc::clone(&all), Arc::clone(&calls));
        move |exchange: RecordedExchange<'_>| {
            all.fetch_add(u64::from(exchange.service == Service::JsonRpc), Ordering::Relaxed);
            calls.fetch_add(u64::from(exchange.is_rpc("eth_call", "")), Ordering::Relaxed);
            exchange.answer
        }
    };
    let node = OverriddenNode::start(Arc::clone(&recording), override_answer).await.unwrap();
    let config = Config { rich_list: false, ..indexed::config(&recording).unwrap() };
    let store = Arc::new(MemStore::new());
    indexed::index_from(node.clients().unwrap(), config, store, recording.last()).await.unwrap();
    let (all, calls) = (all.load(Ordering::Relaxed), calls.load(Ordering::Relaxed));
    let requests = node.requests(Service::JsonRpc);
    eprintln!("{name}: {requests} JSON-RPC requests, {all} calls in them, {calls} of contracts");
    // One per block with tokens, or a few for a new collection.
    let minting = if name == "evm-scenario" { 26 } else { calls / 2 };
    assert!(requests <= all - calls + minting, "{requests} requests for {calls} calls");
}

/// A string as a contract returns it.
fn returned(text: &[u8]) -> Value {
    let mut bytes = U256::from(32).to_be_bytes::<32>().to_vec();
    bytes.extend(U256::from(text.len()).to_be_bytes::<32>());
    bytes.extend(text);
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    format!("0x{}", hex::encode(bytes)).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_names_and_uris_are_empty_long_ones_marked_and_none_delays_a_block() {
    let invalid: [(&str, Value, Outcome, &str); 5] = [
        ("nothing", "0x".into(), Outcome::Refused, ""),
        (
            "a name of 32 bytes",
            format!("0x{}{}", "41".repeat(8), "00".repeat(24)).into(),
            Outcome::Known,
            "AAAAAAAA",
        ),
        ("no UTF-8", returned(&[0xff, 0xfe]), Outcome::Refused, ""),
        ("a megabyte", returned(&vec![b'a'; 1 << 20]), Outcome::TooLong, ""),
        ("a length beyond the end", format!("0x{:064x}{:064x}", 32, u64::MAX).into(), Outcome::Refused, ""),
    ];
    for (what, result, outcome, text) in invalid {
        let override_answer = move |exchange: RecordedExchange<'_>| {
            // Large URIs are not requested for every token.
            let uris = if result.to_string().len() < 1000 { TOKEN_URI } else { TOKEN_URI_OF_7 };
            if exchange.is_rpc("eth_call", NAME) || exchange.is_rpc("eth_call", uris) {
                return exchange.with_result(&result);
            }
            exchange.answer
        };
        let store = indexed_with(override_answer).await;
        let collections = collections(&store);
        assert_eq!(collections.len(), 2, "{what}");
        let too_long = outcome == Outcome::TooLong;
        let names = collections.values().map(|row| (row.name.as_str(), row.name_too_long));
        assert!(names.into_iter().all(|name| name == (text, too_long)), "{what}");
        assert_eq!((tokens(&store, APES), tokens(&store, ZEBRAS)), (67, 3), "{what}");
        let row = token(&store, APES, "7").unwrap();
        assert_eq!((row.outcome(), uri(&store, &row).as_str()), (outcome, text), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_declares_erc721_or_has_tokens_with_owners() {
    // Does not declare ERC-721, but its tokens have owners.
    let silent = indexed_with(|exchange: RecordedExchange<'_>| {
        if exchange.is_rpc("eth_call", ERC_165) && exchange.is_rpc("eth_call", APES) {
            return exchange.with_error(-32000, "Reverted");
        }
        exchange.answer
    });
    assert_eq!(tokens(&*silent.await, APES), 67);
    // Its transfers look like those of an ERC-721, but it is an ERC-20 whose amounts are indexed.
    let none_of_them = |requests: &Arc<AtomicU64>| {
        let counter = Arc::clone(requests);
        move |exchange: RecordedExchange<'_>| {
            if is_about_nfts(&exchange) && exchange.is_rpc("eth_call", APES) {
                counter.fetch_add(u64::from(exchange.is_rpc("eth_call", ERC_165)), Ordering::Relaxed);
                return exchange.with_error(-32000, "execution reverted");
            }
            exchange.answer
        }
    };
    let (store, requests) = (Arc::new(MemStore::new()), Arc::new(AtomicU64::new(0)));
    index_up_to(150, &store, none_of_them(&requests)).await;
    assert!(requests.load(Ordering::Relaxed) > 0);
    let refused = |store: &MemStore| -> Vec<u64> {
        let snapshot = store.snapshot().unwrap();
        let rows = store::table::rows::<NonCollections>(&*snapshot, &address(APES), Direction::Asc, 100);
        rows.unwrap().into_iter().map(|((_, height), ())| height).collect()
    };
    let until = refused(&store);
    assert_eq!(until[0], 100);
    // The classification is stored: later tokens raise few questions, with growing pauses, nor more after a restart.
    let requests = Arc::new(AtomicU64::new(0));
    index_up_to(evm().last(), &store, none_of_them(&requests)).await;
    let after = refused(&store);
    let pauses: Vec<u64> = after.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(after.len() < 8, "{after:?}");
    assert!(after.windows(3).all(|of| of[2] - of[1] >= (of[1] - after[0]).max(1)), "{after:?} {pauses:?}");
    let asked = (after.len() - until.len()) as u64;
    assert!(requests.load(Ordering::Relaxed) <= asked, "{requests:?} requests for {after:?}");
    assert_eq!(collections(&store).into_keys().collect::<Vec<_>>(), [ZEBRAS]);
    assert_eq!(tokens(&store, APES), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_minted_before_the_index_began_is_completed_when_it_moves() {
    let recording = evm();
    let transfers = oracle::eth_calls("evm-scenario", OWNER_OF).unwrap();
    // Token 1 of the apes is minted at 101 and moves later.
    let id = U256::from(1).to_string();
    let of_apes = |call: &&oracle::EthCall| Account::from(call.to).to_hex() == APES;
    let moved =
        transfers.iter().filter(of_apes).filter(|call| U256::from_be_slice(&call.argument) == U256::from(1));
    let last = moved.max_by_key(|call| call.height).unwrap();
    let start = last.height - 1;
    assert!(start > 101, "the token does not move");
    let config =
        Config { start_height: Some(start), rich_list: false, ..indexed::config(&recording).unwrap() };
    let store = Arc::new(MemStore::new());
    let shared = Arc::<MemStore>::clone(&store);
    indexed::index_as(config, Arc::clone(&recording), Options::default(), shared).await.unwrap();
    let row = token(&store, APES, &id).unwrap();
    assert_eq!(
        Some(row.owner.as_slice()),
        last.result.as_deref().and_then(abi::read_address).as_ref().map(<[u8; 20]>::as_slice)
    );
    assert_eq!((uri(&store, &row).as_str(), row.height), ("https://nft.test/1", last.height));
    let collections = collections(&store);
    assert_eq!(collections[APES].name, "Verify Apes");
    assert_eq!(collections[APES].height, last.height, "the first transaction that the index has of it");
    // A token that never moves again is not indexed.
    assert!(token(&store, APES, "0").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn move_and_wasm_tokens_from_before_the_index_are_completed_too() {
    for (name, start, called) in [("move-scenario", 35, "Alpha Cats"), ("wasm-scenario", 57, "Wasm Cats")] {
        let recording = Arc::new(Recording::open(&recording(name)).unwrap());
        let config = Config { start_height: Some(start), ..indexed::config(&recording).unwrap() };
        let store = Arc::new(MemStore::new());
        // The recorded nodes were queried when tokens were minted; they give the same replies later.
        let recorded: BTreeMap<String, Value> = oracle::lines(name, "\"status\":200")
            .unwrap()
            .into_iter()
            .filter_map(|line| Some((line["path"].as_str()?.to_owned(), line["answer"].clone())))
            .collect();
        let override_answer = move |exchange: RecordedExchange<'_>| {
            let answer = recorded.get(&exchange.request.uri().to_string());
            match answer.filter(|_| exchange.answer.status == 501) {
                Some(answer) => HttpReply { status: http::StatusCode::OK, body: answer.to_string().into() },
                None => exchange.answer,
            }
        };
        let node = OverriddenNode::start(Arc::clone(&recording), override_answer).await.unwrap();
        let shared = Arc::<MemStore>::clone(&store);
        indexed::index_from(node.clients().unwrap(), config, shared, recording.last()).await.unwrap();
        let found = collections(&store);
        let (address, row) = found.iter().next().unwrap_or_else(|| panic!("{name}: no collection"));
        assert_eq!(row.name, called, "{name}");
        assert!(!row.creator.is_empty() && row.height >= start, "{name}");
        let snapshot = store.snapshot().unwrap();
        let tokens =
            store::table::rows::<Tokens>(&*snapshot, &self::address(address), Direction::Asc, 10).unwrap();
        assert!(!tokens.is_empty(), "{name}");
        assert!(
            tokens.iter().all(|(_, Message(token))| uri(&store, token).starts_with("https://nft.test/")),
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_with_a_virtual_machine_is_not_indexed_without_it() {
    for (name, vm) in [("wasm-scenario", "wasm"), ("l1-l2/l1", "move")] {
        let recording = Arc::new(Recording::open(&recording(name)).unwrap());
        let config = Config { vm: chain::Vm::None, ..indexed::config(&recording).unwrap() };
        let store = Arc::new(MemStore::new());
        let shared = Arc::<MemStore>::clone(&store);
        let error =
            indexed::index_as(config, Arc::clone(&recording), Options::default(), shared).await.unwrap_err();
        let words = format!("`vm` is `none`, and the node has `{vm}");
        assert!(format!("{error:#}").contains(&words), "{error:#}");
        assert!(schema::open::identity(&*store).unwrap().is_none(), "{name}");
    }
}
