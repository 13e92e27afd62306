//! Balances that do not lead to those of the node.

use std::sync::Arc;

use chain::movement::Token;
use ingest::verify::{Scope, verify};
use ingest::{Config, Ingest};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::audit::Report;
use schema::balances::{BALANCES, Bases};
use schema::index::Index;
use schema::keys::AccountKey;
use schema::ledger::{BalanceTotals, Holder, LEDGER};
use store::key::All;
use store::{Durability, MemStore, Order, Store};
use testkit::indexed;

use super::database::scratch;

static INDEXES: [Index; 2] = [LEDGER, BALANCES];

#[tokio::test(flavor = "multi_thread")]
async fn first_balances_that_were_changed_are_found_in_the_state_of_a_node() {
    let recording = Arc::new(Recording::open(&testkit::recording("wasm-ledger")).unwrap());
    let (last, indexes) = (recording.last(), INDEXES.iter().collect());
    let config = Config { indexes, ..indexed::config(&recording).unwrap() };
    let played = ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap();
    let node = Arc::new(indexed::clients(&played).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    // Not until no query about NFTs is open: contracts that refused one are asked again at heights that are not recorded.
    let ingest = Ingest::prepare(config, Arc::clone(&node), Arc::clone(&store)).await.unwrap();
    indexed::run_to(&ingest, last).await.unwrap();
    drop(ingest);

    let look = async || verify(&store, Some(&node), Scope::Last(1), &*scratch()).await.unwrap();
    let of_balances = |report: &Report| report.counts.get("balance").copied().unwrap_or_default();
    let report = look().await;
    // Balances of some accounts are recorded at each height.
    assert!(report.checked["balances of random heights"] > 3, "{:?}", report.checked);
    assert_eq!(of_balances(&report), 0, "{:#?}", report.findings);

    store::commit_rows::<schema::Error>(&*store, Durability::Buffered, |txn| {
        let moved = store::table::rows::<BalanceTotals>(txn, &All, Order::Asc, usize::MAX)?;
        for ((token, Holder(account)), _) in moved {
            let Some(account) = account.filter(|_| matches!(token.0, Token::Denom(_))) else { continue };
            let key = (AccountKey(account), token);
            let mut base = txn.get::<Bases>(&key)?.unwrap_or_default();
            base.push(1);
            txn.put::<Bases>(&key, &base);
        }
        Ok(())
    })
    .unwrap();
    let report = look().await;
    assert_eq!(of_balances(&report), report.checked["balances of random heights"], "{:#?}", report.findings);
    let finding = report.findings.iter().find(|finding| finding.kind == "balance").unwrap();
    assert!(finding.stored.contains(" after block "), "{finding}");
    assert!(
        report.notes.iter().any(|note| note.contains("cairn db drop-index balances")),
        "{:?}",
        report.notes
    );
}
