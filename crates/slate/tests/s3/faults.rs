//! Replies that fail, are lost, truncated or late: repeated, or an error; never a wrong row.

use std::time::Duration;

use slate::{SlateReader, SlateStore};
use store::{Durability, Error, Store};

use crate::gateway::{Gateway, bucket_at};
use crate::heights::{block, head, is_mixed, request};
use crate::proxy::{Fault, Proxy};
use crate::{CHAIN, ENGINE};

const FAULTS: &[Fault] = &[
    Fault::Status(500),
    Fault::Status(503),
    Fault::LostAnswer,
    Fault::HalfAnswer,
    Fault::Late(Duration::from_millis(200)),
];

#[test]
fn single_faults_of_the_store_are_repeated() {
    const BLOCKS: u64 = 120;
    let gateway = Gateway::start();
    let proxy = Proxy::start(gateway.port, FAULTS);
    let bucket = bucket_at(proxy.port);
    let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    store.commit(block(1), Durability::Synced).unwrap();
    let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap();
    proxy.break_each(7);
    let mut seen = 1;
    for height in 2..=BLOCKS {
        store.commit(block(height), Durability::Synced).unwrap();
        if height % 40 == 0 {
            store.flush().unwrap();
        }
        // A poll that fails is an error, and the view stays.
        drop(reader.catch_up());
        let heights = request(&*reader.snapshot().unwrap());
        assert!(!is_mixed(&heights), "{heights:?}");
        assert!(heights[0] >= seen && heights[0] <= height, "{heights:?}");
        seen = heights[0];
    }
    assert!(proxy.hits() > 30, "{}", proxy.hits());
    proxy.break_each(0);
    reader.catch_up().unwrap();
    assert!(request(&*reader.snapshot().unwrap()).iter().all(|height| *height == BLOCKS));
    // Not even the log has a gap.
    drop(store);
    let store = SlateStore::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    assert!(request(&*store.snapshot().unwrap()).iter().all(|height| *height == BLOCKS));
}

#[test]
fn an_outage_is_an_error_in_time_and_its_end_is_noticed() {
    for fault in [Fault::Status(503), Fault::Late(Duration::from_mins(1))] {
        let gateway = Gateway::start();
        let proxy = Proxy::start(gateway.port, &[fault]);
        let bucket = bucket_at(proxy.port);
        let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
        store.commit(block(1), Durability::Synced).unwrap();
        store.flush().unwrap();
        let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap();
        reader.catch_up().unwrap();
        proxy.break_each(1);
        let failed = reader.catch_up().unwrap_err();
        assert!(matches!(failed, Error::Remote { .. }), "{failed}");
        // The bound of repetitions ends the poll, and not the time limit, which names no cause.
        if let Fault::Status(status) = fault {
            assert!(failed.to_string().contains(&status.to_string()), "{failed}");
        }
        let failed = store.commit(block(2), Durability::Synced).unwrap_err();
        assert!(matches!(failed, Error::Remote { .. }), "{failed}");
        proxy.break_each(0);
        // The process that writes stops after an error; the next one continues.
        drop(store);
        let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
        let height = head(&*store.snapshot().unwrap());
        assert!(height >= 1);
        store.commit(block(height + 1), Durability::Synced).unwrap();
        assert!(reader.catch_up().unwrap(), "{fault:?}");
        assert!(request(&*reader.snapshot().unwrap()).iter().all(|seen| *seen == height + 1));
    }
}
