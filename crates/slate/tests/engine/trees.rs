//! The files that a lookup asks.

use slate::{Engine, Options, SlateReader, SlateStore};
use slatedb::Db;
use store::{Access, Durability, Error, Store, TableSpec};

use crate::heights::block;
use crate::{CHAIN, ENGINE, bucket};

const RECORDS: &TableSpec = &TableSpec { name: "records", tag: 0x12, access: Access::Append };

#[test]
fn a_lookup_in_a_table_that_is_written_in_key_order_asks_one_file() {
    const FILES: u64 = 3;
    let bucket = bucket();
    let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    for height in 1..=FILES {
        let mut batch = block(height);
        batch.put(RECORDS, height.to_be_bytes().to_vec(), height.to_be_bytes().to_vec());
        store.commit(batch, Durability::Synced).unwrap();
        store.flush().unwrap();
    }
    for height in 1..=FILES {
        // With an empty cache.
        let engine = Engine::start(Options::default()).unwrap();
        let reader = SlateReader::open(&engine, &bucket, CHAIN).unwrap();
        let (opened, _) = reader.requests().gets();
        let found = reader.snapshot().unwrap().get(RECORDS, &height.to_be_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&height.to_be_bytes()[..]));
        // Its index and the block: files of few rows have no filter.
        assert_eq!(reader.requests().gets().0 - opened, 2);
    }
}

#[test]
fn a_database_of_another_layout_is_refused_with_the_remedy() {
    let bucket = bucket();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let other = runtime.block_on(Db::open(CHAIN, bucket.object_store())).unwrap();
    runtime.block_on(other.close()).unwrap();
    let writer = SlateStore::open(&ENGINE, &bucket, CHAIN).err().unwrap();
    let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).err().unwrap();
    for refused in [writer, reader] {
        assert!(matches!(refused, Error::NotADatabase { .. }), "{refused}");
        assert!(refused.to_string().contains("index it again or copy it"), "{refused}");
    }
}
