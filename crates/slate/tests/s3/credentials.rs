//! Credentials that may only read, and credentials that end.

use slate::{SlateReader, SlateStore};
use store::{Durability, Error, Store};

use crate::gateway::{Gateway, SECRET};
use crate::heights::{block, head, request};
use crate::{CHAIN, ENGINE};

#[test]
fn a_reader_needs_no_right_to_write() {
    let gateway = Gateway::start();
    let store = SlateStore::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    store.commit(block(1), Durability::Synced).unwrap();
    let read_only = gateway.beside(&["--readonly"]);
    let refused = SlateStore::open(&ENGINE, &read_only.bucket(), CHAIN).err().unwrap();
    assert!(matches!(refused, Error::Remote { .. }), "{refused}");
    let reader = SlateReader::open(&ENGINE, &read_only.bucket(), CHAIN).unwrap();
    for height in 2..300 {
        store.commit(block(height), Durability::Synced).unwrap();
        // Through table files too.
        if height % 100 == 0 {
            store.flush().unwrap();
        }
        if height % 10 == 0 {
            assert!(reader.catch_up().unwrap());
            assert!(request(&*reader.snapshot().unwrap()).iter().all(|seen| *seen == height));
        }
    }
}

#[test]
fn credentials_that_end_are_an_error_that_names_them() {
    let gateway = Gateway::start();
    let store = SlateStore::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    store.commit(block(1), Durability::Synced).unwrap();
    let reader = SlateReader::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    // Two views, as in a running server.
    reader.catch_up().unwrap();
    let gateway = gateway.with_secret("another-secret");
    let failed = reader.catch_up().unwrap_err();
    assert!(failed.to_string().contains("credentials"), "{failed}");
    let failed = store.commit(block(2), Durability::Synced).unwrap_err();
    assert!(matches!(failed, Error::Remote { .. }), "{failed}");
    // What was read before is still served.
    assert_eq!(head(&*reader.snapshot().unwrap()), 1);
    let gateway = gateway.with_secret(SECRET);
    reader.catch_up().unwrap();
    drop(store);
    let store = SlateStore::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    let height = head(&*store.snapshot().unwrap());
    store.commit(block(height + 1), Durability::Synced).unwrap();
    assert!(reader.catch_up().unwrap());
    assert!(request(&*reader.snapshot().unwrap()).iter().all(|seen| *seen == height + 1));
}
