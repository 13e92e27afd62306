//! Searches by name from many threads while collections are being created.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::hand_made::HandMade;
use schema::nft::fold::record;
use schema::nft::{Change, Collection, Entry, NewCollection, Place};

const COLLECTIONS: u64 = 300;

fn add(made: &HandMade, n: u64) {
    let collection = Collection { name: format!("Cats {n}"), height: n, ..Collection::default() };
    let mut address = vec![0; 12];
    address.extend_from_slice(&n.to_be_bytes());
    let change = Change::Collection(NewCollection { address, collection });
    let entry = Entry { time: 0, tx: 0, change: Some(change) };
    made.write(|txn| record(txn, &Place::of_event(n, 0), entry).unwrap());
}

#[test]
fn every_search_sees_all_earlier_names_and_no_later_ones() {
    let made = HandMade::new("evm", 1);
    let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                while last < COLLECTIONS {
                    let before = done.load(Ordering::SeqCst);
                    let (status, body) =
                        made.get("/indexer/nft/v1/collections/by_name/cats?pagination.limit=3");
                    let after = begun.load(Ordering::SeqCst);
                    assert_eq!(status, 200, "{body}");
                    last = body["pagination"]["total"].as_str().unwrap().parse().unwrap();
                    assert!((before..=after).contains(&last), "{before} {last} {after}");
                    let newest = body["collections"][0]["height"].as_u64().unwrap_or(0);
                    assert_eq!(newest, last, "page and total are of one moment");
                }
            });
        }
        for n in 1..=COLLECTIONS {
            begun.store(n, Ordering::SeqCst);
            add(&made, n);
            done.store(n, Ordering::SeqCst);
        }
    });
}
