//! Owners, names and URIs of tokens, compared with the replies of contracts, and tokens that are stored as silent.

use std::collections::BTreeMap;
use std::sync::Arc;

use replay::Recording;
use replay::answers::HttpReply;
use schema::nft::{Change, Entry, NftLog, NonCollections};
use schema::rich::{Erc20, Erc20s};
use serde_json::Value;
use store::{MemStore, Message, Store, Table as _, Value as _};
use testkit::oracle;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};

use super::EVERY_HEIGHT;
use super::database::{Indexed, encoded, put, rows, scratch};

/// `ownerOf`.
const OWNER_OF: &str = "0x6352211e";

/// Replays the scenario. At the last height owners are those of the last transfers, except for one token with another
/// owner.
async fn node_that_tells_owners(wrong: &'static str) -> OverriddenNode {
    let recording = Arc::new(Recording::open(&testkit::recording("evm-scenario")).unwrap());
    let lines = oracle::lines("evm-scenario", &format!("\"data\":\"{OWNER_OF}")).unwrap();
    let mut reply: BTreeMap<(String, String), (u64, Value)> = BTreeMap::new();
    for line in lines {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let (key, height) = ((text("to"), text("data")), line["height"].as_u64().unwrap());
        if reply.get(&key).is_none_or(|(of, _)| *of <= height) {
            reply.insert(key, (height, line["result"].clone()));
        }
    }
    let alter = move |exchange: RecordedExchange<'_>| -> HttpReply {
        let call: Value = serde_json::from_slice(exchange.request.body()).unwrap_or_default();
        let text = |name: &str| call["params"][0][name].as_str().unwrap_or_default().to_owned();
        match reply.get(&(text("to"), text("data"))) {
            Some(_) if text("data").ends_with(wrong) => {
                exchange.with_result(&format!("0x{:0>64}", "dead".repeat(10)).into())
            }
            Some((_, owner)) if owner.is_string() => exchange.with_result(owner),
            _ => exchange.answer,
        }
    };
    OverriddenNode::start(recording, alter).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_differs_from_the_contracts_is_found() {
    let indexed = Indexed::new("evm-scenario").await.unwrap();
    let store = indexed.copy().unwrap();
    let node = node_that_tells_owners("0000000000000000000000000000000b").await;
    let clients = Arc::new(node.clients().unwrap());
    let report = ingest::verify::verify(&store, Some(&clients), EVERY_HEIGHT, &*scratch()).await.unwrap();
    assert!(report.checked["owners of tokens"] >= 65, "{:?}", report.checked);
    let [finding] = report.findings.as_slice() else { panic!("{:#?}", report.findings) };
    assert_eq!(finding.kind, "owner of a token");
    assert!(finding.expected.ends_with(&"dead".repeat(10)), "{finding}");
}

/// The index that results if the node answers about tokens from a state before they were minted.
fn without_what_contracts_say(indexed: &Indexed) -> Arc<dyn Store> {
    let store = indexed.copy().unwrap();
    let mut left = 7;
    for (key, value) in rows(&*store, NftLog::SPEC).unwrap() {
        let Message(mut entry) = Message::<Entry>::decode(&value).unwrap();
        match &mut entry.change {
            Some(Change::Mint(mint)) if left > 0 => {
                left -= 1;
                mint.uri.clear();
            }
            Some(Change::Collection(new)) => new.collection.name.clear(),
            _ => {}
        }
        put(&*store, NftLog::SPEC, key, encoded(&Message(entry))).unwrap();
    }
    schema::nft::rebuild::rebuild(&*store).unwrap();
    assert_ne!(testkit::indexed::digest(&*store).unwrap(), indexed.digest);
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_uris_that_a_node_answered_too_late_are_found_and_repaired() {
    let indexed = Indexed::new("evm-scenario").await.unwrap();
    let store = without_what_contracts_say(&indexed);
    let done = indexed.heal(&store).await.unwrap();
    let log = done.found.findings.iter().filter(|finding| finding.table == NftLog::SPEC);
    assert!(log.count() > 1, "{:?}", done.found.counts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_misclassified_because_of_a_wrong_answer_is_found_and_repaired() {
    const APES: &str = "a3c1690099b8db2b564fdcc3b79ffe9c4252d6bb";
    let indexed = Indexed::new("evm-scenario").await.unwrap();
    let recording = Arc::new(Recording::open(&testkit::recording("evm-scenario")).unwrap());
    let refusing = |exchange: RecordedExchange<'_>| {
        let asked = ["0x01ffc9a7", OWNER_OF].iter().any(|selector| exchange.is_rpc("eth_call", selector));
        if asked && exchange.is_rpc("eth_call", APES) {
            exchange.with_error(3, "execution reverted")
        } else {
            exchange.answer
        }
    };
    let node = OverriddenNode::start(Arc::clone(&recording), refusing).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = testkit::indexed::config(&recording).unwrap();
    let clients = node.clients().unwrap();
    testkit::indexed::index_from(clients, config, Arc::clone(&store), recording.last()).await.unwrap();
    // Asked again now and then.
    let refused = rows(&*store, NonCollections::SPEC).unwrap().len();
    assert!((1..8).contains(&refused), "{refused}");
    let done = indexed.heal(&store).await.unwrap();
    assert!(!done.found.is_sound());
    assert_eq!(rows(&*store, NonCollections::SPEC).unwrap().len(), 0, "{:?}", done.found.counts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_wrongly_marked_as_silent_is_found_and_queried_for_balances_again() {
    let indexed = Indexed::new("evm-scenario").await.unwrap();
    let store = indexed.copy().unwrap();
    let mut silenced = 0;
    for (key, value) in rows(&*store, Erc20s::SPEC).unwrap() {
        let Message(token) = Message::<Erc20>::decode(&value).unwrap();
        silenced += usize::from(!token.silent);
        put(&*store, Erc20s::SPEC, key, encoded(&Message(Erc20 { silent: true, ..token }))).unwrap();
    }
    assert!(silenced > 2, "{silenced}");
    let done = indexed.heal(&store).await.unwrap();
    let found = done.found.findings.iter().filter(|finding| finding.table == Erc20s::SPEC);
    assert_eq!(found.count(), silenced, "{:?}", done.found.counts);
}
