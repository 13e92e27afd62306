//! Requests to a rewound index: no removed row is shown, and a cursor to one is not an error.

use std::collections::BTreeSet;

use crate::hand_made::{BlockPlan, EvmTxPlan, HandMade, TxPlan, account};
use schema::meta::{self, BlockLane};
use schema::nft::fold::record;
use schema::nft::{Change, Collection, Entry, NewCollection, Origin, Place};
use schema::rewind::rewind;
use schema::undo::{Horizon, Lane, UndoLog};
use store::{Counts, Durability, Store, Txn};

/// A block in which collections with these names are created, and its undo record.
fn block(made: &HandMade, height: u64, names: &[&str]) {
    let snapshot = made.store.snapshot().unwrap();
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    let of = |name: &&str| {
        // The same name has the same address on either side of a fork.
        let mut address = [0; 20];
        address[..name.len()].copy_from_slice(name.as_bytes());
        let collection = Collection { name: (*name).to_owned(), height, ..Collection::default() };
        Change::Collection(NewCollection { address: address.to_vec(), collection })
    };
    for (ordinal, name) in (0..).zip(names) {
        let entry = Entry { time: 0, tx: 0, change: Some(of(name)) };
        record(&mut txn, &Place::of_event(height, ordinal), entry).unwrap();
    }
    seal(made, txn, height);
}

fn seal(made: &HandMade, mut txn: Txn<'_>, height: u64) {
    meta::put(&mut txn, &BlockLane { height, ..BlockLane::default() });
    let (batch, _) = UndoLog::new(Lane::Blocks, Horizon::DEFAULT).finish(txn).unwrap();
    made.store.commit(batch, Durability::Buffered).unwrap();
}

/// The names that a search for `part` finds, oldest first.
fn found(made: &HandMade, part: &str) -> Vec<String> {
    let (status, body) =
        made.get(&format!("/indexer/nft/v1/collections/by_name/{part}?pagination.reverse=false"));
    assert_eq!(status, 200, "{body}");
    let names = body["collections"].as_array().unwrap().iter();
    names.map(|row| row["collection"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_search_finds_no_name_of_a_rewound_history() {
    let made = HandMade::new("evm", 1);
    block(&made, 1, &["Cats one"]);
    block(&made, 2, &["Cats two"]);
    block(&made, 3, &["Cats ghost", "Cats three"]);
    block(&made, 4, &["Cats four"]);
    assert_eq!(found(&made, "cats").len(), 5);

    assert_eq!(rewind(&*made.store, 2).unwrap().to, 2);
    assert_eq!(found(&made, "cats"), ["Cats one", "Cats two"]);
    // As many changes as before, and one of the same address at another height.
    block(&made, 3, &["Cats other", "Cats more"]);
    block(&made, 4, &["Cats three"]);
    assert_eq!(found(&made, "cats"), ["Cats one", "Cats two", "Cats more", "Cats other", "Cats three"]);
}

#[test]
fn a_first_search_after_a_rewind_finds_only_the_new_history() {
    let made = HandMade::new("evm", 1);
    block(&made, 1, &["Cats one"]);
    block(&made, 2, &["Cats ghost"]);
    assert_eq!(found(&made, "cats"), ["Cats one", "Cats ghost"]);
    // No search during the rewind, and as many changes as before at the end.
    rewind(&*made.store, 1).unwrap();
    block(&made, 2, &["Cats two"]);
    assert_eq!(found(&made, "cats"), ["Cats one", "Cats two"]);
}

#[test]
fn a_name_that_a_collection_got_in_a_rewound_block_is_not_found() {
    let made = HandMade::new("evm", 1);
    block(&made, 1, &["ibc/A1"]);
    let snapshot = made.store.snapshot().unwrap();
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    let origin = Change::Origin(Origin { local: "ibc/A1".to_owned(), origin: "Apes".to_owned() });
    let entry = Entry { time: 0, tx: 0, change: Some(origin) };
    record(&mut txn, &Place::of_event(2, 0), entry).unwrap();
    seal(&made, txn, 2);
    assert_eq!(found(&made, "apes"), ["ibc/A1"]);
    rewind(&*made.store, 1).unwrap();
    assert!(found(&made, "apes").is_empty());
    assert_eq!(found(&made, "ibca1"), ["ibc/A1"]);
}

/// A chain of so many blocks; a longer one begins like a shorter one.
fn chain_of(blocks: u8) -> HandMade {
    let mut made = HandMade::new("evm", 1);
    for n in 0..blocks {
        let tx = |n: u8| TxPlan {
            involved: BTreeSet::from([0, n % 3]),
            signers: BTreeSet::from([n % 2]),
            types: BTreeSet::from([usize::from(n % 4)]),
        };
        let evm_tx =
            |n: u8| EvmTxPlan { involved: BTreeSet::from([0, n % 3]), from: 0, frames: vec![(0, n % 3); 3] };
        made.add(&BlockPlan { txs: vec![tx(n), tx(n + 1)], evm_txs: vec![evm_tx(n), evm_tx(n + 1)] });
    }
    made
}

#[test]
fn a_cursor_from_beyond_the_end_leads_to_existing_rows_and_never_to_an_error() {
    let (long, short) = (chain_of(12), chain_of(4));
    let hex = account(0).to_hex();
    let lists = [
        ("/indexer/block/v1/blocks", "blocks"),
        ("/indexer/tx/v1/txs", "txs"),
        ("/indexer/tx/v1/txs?msgs=a.v1.MsgOne,c.v1.MsgOne", "txs"),
        (&format!("/indexer/tx/v1/txs/by_account/{hex}"), "txs"),
        (&format!("/indexer/tx/v1/txs/by_account/{hex}?msgs=a.v1.MsgOne,b.v1.MsgOne"), "txs"),
        ("/indexer/tx/v1/txs/by_height/11", "txs"),
        ("/indexer/tx/v1/evm-txs", "txs"),
        (&format!("/indexer/tx/v1/evm-txs/by_account/{hex}"), "txs"),
        ("/indexer/tx/v1/evm-txs/by_height/11", "txs"),
        ("/indexer/tx/v1/evm-internal-txs", "internal_txs"),
        (&format!("/indexer/tx/v1/evm-internal-txs/by_account/{hex}"), "internal_txs"),
        ("/indexer/tx/v1/evm-internal-txs/by_height/11", "internal_txs"),
    ];
    for (path, member) in lists {
        for reverse in [false, true] {
            let mark = if path.contains('?') { '&' } else { '?' };
            let list = format!("{path}{mark}pagination.limit=1&pagination.reverse={reverse}");
            let (mut target, mut keys) = (list.clone(), Vec::new());
            loop {
                let (status, page) = long.get(&target);
                assert_eq!(status, 200, "{target}: {page}");
                let key = |name: &str| page["pagination"][name].as_str().map(str::to_owned);
                keys.extend(key("previous_key"));
                let Some(next) = key("next_key") else { break };
                target = format!("{list}&pagination.key={next}");
                keys.push(next);
            }
            assert!(!keys.is_empty(), "{list}");
            for key in keys {
                let target = format!("{list}&pagination.key={key}");
                let (status, page) = short.get(&target);
                assert_eq!(status, 200, "{target}: {page}");
                let rows = page[member].as_array().unwrap();
                assert!(rows.len() <= 1, "{target}: {page}");
                // The reply shows the contents of the shorter chain.
                let (_, all) = short.get(&list.replace("limit=1", "limit=1000"));
                assert!(rows.iter().all(|row| all[member].as_array().unwrap().contains(row)), "{target}");
            }
        }
    }
    let hash = chain::hash::to_hex(&long.txs[long.txs.len() - 1].hash);
    for one in ["/indexer/block/v1/blocks/11".to_owned(), format!("/indexer/tx/v1/txs/{hash}")] {
        assert_eq!((long.get(&one).0, short.get(&one).0), (200, 404), "{one}");
    }
}
