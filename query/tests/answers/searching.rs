//! Searches by name from many threads while collections are being created.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::hand_made::HandMade;
use crate::hand_made::nfts::escaped;
use schema::nft::fold::record;
use schema::nft::{Change, Collection, Entry, NewCollection, Place};

const COLLECTIONS: u64 = 300;

fn add(made: &HandMade, n: u64, name: String) {
    let collection = Collection { name, height: n, ..Collection::default() };
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
            add(&made, n, format!("Cats {n}"));
            done.store(n, Ordering::SeqCst);
        }
    });
}

#[test]
fn a_search_looks_at_the_beginning_of_a_name_whatever_its_length() {
    let made = HandMade::new("evm", 1);
    add(&made, 1, format!("Größe {} end", "x".repeat(246)));
    add(&made, 2, format!("Größe {} end", "x".repeat(250_000)));
    for (part, found) in [("größe", "2"), ("xxend", "1"), ("e", "2"), ("en", "1"), (&"x".repeat(247), "1")]
    {
        let (_, body) = made.get(&format!("/indexer/nft/v1/collections/by_name/{}", escaped(part)));
        assert_eq!(body["pagination"]["total"], found, "{part}");
    }
}
