//! scratch
use std::sync::Arc;
use std::time::Instant;
use replay::{Addresses, Options, Recording, ReplayNode};
use store::{RocksOptions, RocksStore, Store};
fn main() {
    let name = std::env::args().nth(1).unwrap_or("evm-load".into());
    let dir = std::env::args().nth(2).unwrap_or("/tmp/zzdb".into());
    let calls = std::env::args().nth(3).is_none();
    std::fs::remove_dir_all(&dir).ok();
    let rt = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    rt.block_on(async {
        let recording = Arc::new(Recording::open(&testkit::recording(&name)).unwrap());
        let rocks = Arc::new(RocksStore::open(std::path::Path::new(&dir), schema::TABLES, RocksOptions::default()).unwrap());
        let store: Arc<dyn Store> = rocks.clone();
        let mut config = testkit::indexed::config(&recording).unwrap();
        config.internal_txs = calls;
        let (last, txs) = (recording.last(), recording.summary().txs);
        let played = ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap();
        let node = Arc::new(testkit::indexed::clients(&played).unwrap());
        let t = Instant::now();
        let ingest = ingest::Ingest::prepare(config, node, store.clone()).await.unwrap();
        println!("prepared {:?}", t.elapsed());
        testkit::indexed::run_to(&ingest, last).await.unwrap();
        let s = t.elapsed().as_secs_f64();
        println!("{txs} txs in {s:.2} s = {:.0} tx/s", txs as f64 / s);
        println!("disk {} = {:.0} bytes/tx", store.disk_bytes().unwrap(), store.disk_bytes().unwrap() as f64 / txs as f64);
        rocks.flush().unwrap();
        let t = Instant::now();
        rocks.compact().unwrap();
        println!("compacted in {:?}: disk {} = {:.0} bytes/tx", t.elapsed(), store.disk_bytes().unwrap(), store.disk_bytes().unwrap() as f64 / txs as f64);
        for s in rocks.table_sizes().unwrap() { println!("{s:?}"); }
        let st = std::fs::read_to_string("/proc/self/status").unwrap();
        for l in st.lines().filter(|l| l.starts_with("VmHWM")) { println!("{l}"); }
        let t = Instant::now();
        let d = schema::digest::tables(&*store.snapshot().unwrap()).unwrap();
        println!("digest {} in {:?}", schema::digest::total(&d).iter().map(|b| format!("{b:02x}")).collect::<String>(), t.elapsed());
    });
}
