//! Names and URIs of NFTs that follow the chain: metadata updates, refusals, texts that are too long, and contracts that
//! become collections. The recordings are chains with such events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chain::Account;
use ingest::{Config, Ingest, Verify};
use replay::answers::{HttpReply, Service};
use replay::{Options, Recording};
use schema::keys::AccountKey;
use schema::nft::{Collections, NonCollections, Outcome, Token, Tokens};
use store::key::{All, Text};
use store::{MemStore, Message, Order, Store};
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, recording};
use tokio::sync::watch;

/// Its hidden URIs are revealed at height 202.
const REVEALED: &str = "0x00c0ffee00000000000000000000000000000002";
/// It refuses the URI of token 1 from the mint at 210 to a metadata update at 214.
const LATE: &str = "0x00c0ffee00000000000000000000000000000006";
const LARGE: &str = "0x00c0ffee00000000000000000000000000000005";
const BATCH: &str = "init1crqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcrqvpsxqcqqst3zj2l";

const OWNER_OF: &str = "0x6352211e";
const ERC_165: &str = "0x01ffc9a7";

fn open(name: &str) -> (Arc<Recording>, Config) {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    // Receipts and logs were edited, so nothing proves them.
    let config = indexed::config(&recording).unwrap();
    (recording, Config { rich_list: false, verify: Verify::Off, ..config })
}

/// Id, outcome and URI of the tokens of a collection.
fn uris(store: &dyn Store, collection: Account) -> Vec<(String, Outcome, String)> {
    let snapshot = store.snapshot().unwrap();
    let rows = store::table::rows::<Tokens>(&*snapshot, &AccountKey(collection), Order::Asc, 100).unwrap();
    let uri = |row: &Token| schema::nft::uris(&*snapshot, &[row]).unwrap().remove(0);
    rows.into_iter().map(|((_, Text(id)), Message(row))| (id, row.outcome(), uri(&row))).collect()
}

fn evm(address: &str) -> Account {
    Account::from_hex_literal(address).unwrap()
}

fn known(id: &str, uri: &str) -> (String, Outcome, String) {
    (id.to_owned(), Outcome::Known, uri.to_owned())
}

async fn index(name: &str) -> Arc<MemStore> {
    let ((recording, config), store) = (open(name), Arc::new(MemStore::new()));
    let shared = Arc::<MemStore>::clone(&store);
    indexed::index_as(config, recording, Options::default(), shared).await.unwrap();
    store
}

async fn index_with(
    name: &str,
    override_answer: impl Fn(RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static,
) -> Arc<MemStore> {
    let ((recording, config), store) = (open(name), Arc::new(MemStore::new()));
    let last = recording.last();
    let node = OverriddenNode::start(recording, override_answer).await.unwrap();
    let shared = Arc::<MemStore>::clone(&store);
    indexed::index_from(node.clients().unwrap(), config, shared, last).await.unwrap();
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn uris_follow_metadata_updates_of_a_token_and_of_a_range() {
    let store = index("evm-metadata").await;
    let expected = vec![known("1", "ipfs://real/1"), known("2", "ipfs://real/2")];
    assert_eq!(uris(&*store, evm(REVEALED)), expected);
    assert_eq!(uris(&*store, evm(LATE)), [known("1", "ipfs://late/1")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_answers_about_metadata_lead_to_the_same_rows() {
    let at_once = indexed::digest(&*index("evm-metadata").await).unwrap();
    let (recording, config) = open("evm-metadata");
    let repaired = Arc::new(AtomicBool::new(false));
    let override_answer = {
        let repaired = Arc::clone(&repaired);
        move |exchange: RecordedExchange<'_>| {
            if exchange.is_rpc("eth_call", "0x00c0ffee") && !repaired.load(Ordering::Relaxed) {
                return exchange.with_error(-32603, "the machine is on fire");
            }
            exchange.answer
        }
    };
    let node = OverriddenNode::start(Arc::clone(&recording), override_answer).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let clients = Arc::new(node.clients().unwrap());
    let ingest = Ingest::prepare(config, clients, Arc::clone(&store)).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let mut progress = ingest.progress();
    let watching = async {
        while progress.done() < recording.last() {
            progress.moved().await;
        }
        assert!(uris(&*store, evm(REVEALED)).is_empty(), "no answer yet");
        repaired.store(true, Ordering::Relaxed);
        while indexed::has_questions(&*store).unwrap() {
            progress.moved().await;
        }
        stop.send_replace(true);
    };
    tokio::join!(async { ingest.run(stopped).await.unwrap() }, watching);
    for (late, at_once) in indexed::digest(&*store).unwrap().iter().zip(&at_once) {
        assert_eq!(late, at_once);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_that_becomes_a_collection_has_the_tokens_that_it_minted_before() {
    let store = index_with("evm-metadata", |exchange| {
        let asked = [ERC_165, OWNER_OF].iter().any(|selector| exchange.is_rpc("eth_call", selector));
        // The heights before the metadata update at 214.
        let is_early = (210..214).any(|height| exchange.is_rpc("eth_call", &format!("\"{height:#x}\"")));
        if asked && is_early && exchange.is_rpc("eth_call", LATE) {
            return exchange.with_error(3, "execution reverted");
        }
        exchange.answer
    })
    .await;
    let snapshot = store.snapshot().unwrap();
    let refused = store::table::rows::<NonCollections>(&*snapshot, &All, Order::Asc, 10).unwrap();
    assert_eq!(refused, [((AccountKey(evm(LATE)), 210), ())]);
    assert_eq!(uris(&*store, evm(LATE)), [known("1", "ipfs://late/1")]);
    let (_, Message(token)) =
        store::table::rows::<Tokens>(&*snapshot, &AccountKey(evm(LATE)), Order::Asc, 1).unwrap().remove(0);
    assert_eq!(hex::encode(token.owner), "87f2855a98a55245c3b98c9b62ec735788ea8315");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uri_over_the_bound_is_marked_and_one_below_it_is_stored() {
    let store = index("evm-large-uri").await;
    let [long, short] = <[_; 2]>::try_from(uris(&*store, evm(LARGE))).unwrap();
    assert_eq!(long, ("1".to_owned(), Outcome::TooLong, String::new()));
    assert_eq!((short.0.as_str(), short.1), ("2", Outcome::Known));
    assert!(short.2.len() > 200_000 && short.2.starts_with("data:"), "{} bytes", short.2.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_token_of_a_wasm_event_with_several_is_minted() {
    // The recorded node was not asked for the URI of every token.
    let store = index_with("wasm-batch", |exchange| {
        let path = exchange.request.uri().path().to_owned();
        if exchange.service == Service::Rest && path.contains("/smart/") && exchange.answer.status != 200 {
            let body = r#"{"data":{"token_uri":"","extension":null}}"#;
            return HttpReply { status: http::StatusCode::OK, body: body.into() };
        }
        exchange.answer
    })
    .await;
    let collection = Account::from_bech32(BATCH, "init").unwrap();
    let ids = uris(&*store, collection).into_iter().map(|(id, ..)| id);
    assert_eq!(ids.collect::<Vec<_>>(), ["10", "11", "12"]);
    let row = store::table::read::<Collections>(&*store.snapshot().unwrap(), &AccountKey(collection));
    assert_eq!(row.unwrap().unwrap().0.name, "Batch");
}
