//! Rewinds by the undo records of the lanes: the history of a database above a height leaves no trace below it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ingest::Ingest;
use ingest::verify::{Scope, verify};
use replay::answers::HttpReply;
use replay::{Options, Recording};
use schema::block::{Blocks, hash_at};
use schema::descriptors::Descriptors;
use schema::meta::{self, BlockLane, CallLane, Rewinds, RichLane};
use schema::nft::{Collections, NameChanges, Questions};
use schema::rewind::{RewindError, Rewound, rewind};
use schema::tx::Txs;
use schema::undo::{RecordKey, UndoRecords};
use store::key::All;
use store::{
    Batch, Bounds, Durability, Key as _, MemStore, Message, Order, RocksOptions, RocksStore, Row, Store,
    Table as _, TableSpec,
};
use testkit::crashing_store::CrashingStore;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, recording};
use tokio::sync::watch;

fn open(name: &str) -> Arc<Recording> {
    Arc::new(Recording::open(&recording(name)).unwrap())
}

fn on_disk(dir: &Path) -> Arc<dyn Store> {
    Arc::new(RocksStore::open(dir, schema::TABLES, RocksOptions::default()).unwrap())
}

/// Indexes `recording` up to `height`, continuing `store`.
async fn index(recording: &Arc<Recording>, height: u64, store: &Arc<dyn Store>) {
    let options = Options { up_to: Some(height), ..Options::default() };
    indexed::index(Arc::clone(recording), options, Arc::clone(store)).await.unwrap();
}

/// A database that was never indexed beyond `height`.
async fn undisturbed(recording: &Arc<Recording>, height: u64) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    index(recording, height, &store).await;
    store
}

/// Every row of every table, except the rows that depend on the history of a database.
fn rows(store: &dyn Store) -> Vec<(&'static str, Vec<Row>)> {
    let left_out = [UndoRecords::SPEC, NameChanges::SPEC, Descriptors::SPEC];
    let snapshot = store.snapshot().unwrap();
    let passing = meta::excluded_rows();
    let specs = schema::TABLES.iter().filter(|spec| !left_out.contains(spec));
    let rows = specs.map(|spec| {
        let mut rows = snapshot.scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap();
        rows.retain(|(key, _)| !passing.contains(&(*spec, key.clone())));
        (spec.name, rows)
    });
    rows.collect()
}

fn assert_same(store: &dyn Store, wanted: &dyn Store, what: &str) {
    for (ours, wanted) in rows(store).into_iter().zip(rows(wanted)) {
        assert!(ours == wanted, "table `{}`, {what}", ours.0);
    }
    assert_eq!(indexed::digest(store).unwrap(), indexed::digest(wanted).unwrap(), "{what}");
}

fn records(store: &dyn Store) -> Vec<RecordKey> {
    let snapshot = store.snapshot().unwrap();
    let rows = store::table::rows::<UndoRecords>(&*snapshot, &All, Order::Asc, usize::MAX).unwrap();
    rows.into_iter().map(|(key, _)| key).collect()
}

fn rewinds(store: &dyn Store) -> Rewinds {
    meta::read(&*store.snapshot().unwrap()).unwrap().unwrap_or_default()
}

/// Rewinds a chain to each of `heights`, the highest first, and from some of them indexes forward again.
async fn there_and_back(name: &str, store: Arc<dyn Store>, heights: &[u64]) {
    let recording = open(name);
    let last = recording.last();
    index(&recording, last, &store).await;
    let end = indexed::digest(&*store).unwrap();
    for (n, &to) in heights.iter().enumerate() {
        let from = meta::read::<BlockLane>(&*store.snapshot().unwrap()).unwrap().unwrap().height;
        let counted = rewinds(&*store).count;
        assert_eq!(rewind(&*store, to).unwrap(), Rewound { from, to }, "{name}");
        assert!(rewinds(&*store).count > counted && rewinds(&*store).last_to == to);
        assert_same(&*store, &*undisturbed(&recording, to).await, &format!("{name} back to {to}"));
        assert!(records(&*store).iter().all(|(_, height, _)| *height <= to), "records that apply no more");
        if n % 3 == 2 {
            index(&recording, last, &store).await;
            assert_eq!(indexed::digest(&*store).unwrap(), end, "{name} from {to} forward again");
            rewind(&*store, to).unwrap();
        }
    }
    index(&recording, last, &store).await;
    assert_eq!(indexed::digest(&*store).unwrap(), end, "{name}");
    let scratch = || Ok(Arc::new(MemStore::new()) as Arc<dyn Store>);
    let report = verify(&store, None, Scope::Last(1), &scratch).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evm_chain_rewound_to_any_height_equals_an_undisturbed_one() {
    let heights = [225, 213, 199, 198, 121, 101, 60, 6, 1];
    there_and_back("evm-scenario", Arc::new(MemStore::new()), &heights).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_disk_it_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    there_and_back("evm-scenario", on_disk(dir.path()), &[190, 110, 30]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn move_and_wasm_chains_rewound_to_any_height_equal_undisturbed_ones() {
    let dir = tempfile::tempdir().unwrap();
    there_and_back("move-scenario", on_disk(dir.path()), &[49, 44, 40, 38, 36, 35, 34, 20, 1]).await;
    let heights = [66, 65, 60, 57, 56, 50, 45, 40, 31, 5, 4];
    there_and_back("wasm-scenario", Arc::new(MemStore::new()), &heights).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_common_ancestor_is_found_by_the_stored_hashes() {
    let recording = open("move-scenario");
    let store = undisturbed(&recording, 30).await;
    for height in 1..=30 {
        let snapshot = store.snapshot().unwrap();
        let Message(block) = store::table::read::<Blocks>(&*snapshot, &height).unwrap().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&block.json).unwrap();
        let hash = hash_at(&*snapshot, height).unwrap().unwrap();
        assert_eq!(chain::hash::to_hex(&hash), json["hash"].as_str().unwrap().to_lowercase());
    }
    let snapshot = store.snapshot().unwrap();
    let lane: BlockLane = meta::read(&*snapshot).unwrap().unwrap();
    assert_eq!(hash_at(&*snapshot, 30).unwrap().unwrap().to_vec(), lane.hash);
    assert_eq!(hash_at(&*snapshot, 31).unwrap(), None);
}

/// The sequence of the last transaction of the damaged chain.
const LAST_TX: u64 = 46;

/// A change of a database and its records.
type Damage = fn(&mut Batch, &[(RecordKey, Vec<u8>)]);

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_ends_before_a_height_without_a_matching_undo_record() {
    let (recording, to) = (open("wasm-scenario"), 40);
    let end = undisturbed(&recording, recording.last()).await;
    let damages: [(&str, Damage); 6] = [
        ("the last is missing", |batch, all| {
            batch.delete(UndoRecords::SPEC, all[all.len() - 1].0.to_bytes());
        }),
        ("one is missing", |batch, all| batch.delete(UndoRecords::SPEC, all[all.len() - 9].0.to_bytes())),
        ("the first is missing", |batch, _| {
            batch.delete(UndoRecords::SPEC, (1_u8, 41_u64, 0_u32).to_bytes());
        }),
        ("one is another's", |batch, all| {
            batch.put(UndoRecords::SPEC, all[all.len() - 5].0.to_bytes(), all[all.len() - 6].1.clone());
        }),
        ("one is cut off", |batch, all| {
            let (key, value) = &all[all.len() - 5];
            let mut record: schema::undo::Record = prost::Message::decode(value.as_slice()).unwrap();
            record.before.truncate(20);
            batch.put(UndoRecords::SPEC, key.to_bytes(), prost::Message::encode_to_vec(&record));
        }),
        ("a row was changed without a record", |batch, _| batch.delete(Txs::SPEC, LAST_TX.to_bytes())),
    ];
    for (what, damage) in damages {
        let store = undisturbed(&recording, recording.last()).await;
        let snapshot = store.snapshot().unwrap();
        let all = snapshot.scan(UndoRecords::SPEC, Bounds::all(), Order::Asc, usize::MAX).unwrap();
        let all: Vec<_> =
            all.into_iter().map(|(key, value)| (RecordKey::from_bytes(&key).unwrap(), value)).collect();
        let mut batch = Batch::new();
        damage(&mut batch, &all);
        drop(snapshot);
        store.commit(batch, Durability::Buffered).unwrap();
        let error = rewind(&*store, to).unwrap_err();
        assert!(
            matches!(error, RewindError::BeyondUndoLog { .. } | RewindError::Mismatch { .. }),
            "{what}: {error}"
        );
        let height = schema::undo::Lane::Blocks.height(&*store.snapshot().unwrap()).unwrap();
        if !what.contains("row was changed") {
            assert_same(&*store, &*undisturbed(&recording, height).await, what);
            index(&recording, recording.last(), &store).await;
            assert_same(&*store, &*end, what);
        }
        // Whatever has happened to it, it can be indexed again.
        schema::rewind::clear(&*store, None).unwrap();
        index(&recording, recording.last(), &store).await;
        assert_same(&*store, &*end, what);
        assert_eq!(rewind(&*store, to).unwrap().to, to, "new records are kept: {what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_interrupted_between_any_two_commits_can_be_continued_or_indexed_from() {
    let (recording, to) = (open("wasm-scenario"), 55);
    let (back, end) = (undisturbed(&recording, to).await, undisturbed(&recording, recording.last()).await);
    for commits in 0.. {
        let store = undisturbed(&recording, recording.last()).await;
        let outcome = rewind(&CrashingStore::after(commits, Arc::clone(&store)), to);
        if commits % 2 == 1 {
            assert_eq!(rewind(&*store, to).unwrap().to, to);
            assert_same(&*store, &*back, &format!("after {commits} commits"));
        }
        index(&recording, recording.last(), &store).await;
        assert_same(&*store, &*end, &format!("after {commits} commits"));
        if outcome.is_ok() {
            assert_eq!(commits, recording.last() - to);
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_lane_is_ahead_of_the_blocks_wherever_a_rewind_of_three_lanes_ends() {
    let (recording, to) = (open("evm-scenario"), 219);
    let (back, whole) = (undisturbed(&recording, to).await, undisturbed(&recording, recording.last()).await);
    for commits in 0.. {
        let store: Arc<dyn Store> = Arc::new(MemStore::new());
        copy(&*whole, &*store, schema::TABLES);
        let outcome = rewind(&CrashingStore::after(commits, Arc::clone(&store)), to);
        let snapshot = store.snapshot().unwrap();
        let blocks: BlockLane = meta::read(&*snapshot).unwrap().unwrap();
        let calls: CallLane = meta::read(&*snapshot).unwrap().unwrap();
        let rich: RichLane = meta::read(&*snapshot).unwrap().unwrap();
        assert!(calls.height <= blocks.height && rich.height <= blocks.height, "after {commits} commits");
        drop(snapshot);
        assert_eq!(rewind(&*store, to).unwrap().to, to, "after {commits} commits");
        assert_same(&*store, &*back, &format!("after {commits} commits"));
        if outcome.is_ok() {
            assert_eq!(commits, 3 * (recording.last() - to));
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_height_that_is_not_indexed_is_refused_and_the_last_height_changes_nothing() {
    let recording = open("wasm-scenario");
    let store = undisturbed(&recording, 50).await;
    let before = rows(&*store);
    for to in [0, 3, 51] {
        let error = rewind(&*store, to).unwrap_err();
        assert!(matches!(error, RewindError::OutOfRange { first: 4, last: 50, .. }), "{error:?}");
    }
    assert_eq!(rewind(&*store, 50).unwrap(), Rewound { from: 50, to: 50 });
    assert!(rows(&*store) == before);
    assert_eq!(rewinds(&*store), Rewinds::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_undo_records_is_continued() {
    let (recording, dir) = (open("wasm-scenario"), tempfile::tempdir().unwrap());
    let earlier = undisturbed(&recording, 40).await;
    let tables: Vec<_> = schema::TABLES.iter().copied().filter(|spec| *spec != UndoRecords::SPEC).collect();
    let tables = tables.leak();
    let store = RocksStore::open(dir.path(), tables, RocksOptions::default()).unwrap();
    copy(&*earlier, &store, tables);
    drop(store);
    let store = on_disk(dir.path());
    index(&recording, recording.last(), &store).await;
    assert_eq!(rewind(&*store, 41).unwrap().to, 41);
    assert_same(&*store, &*undisturbed(&recording, 41).await, "as far as there are records");
    let error = rewind(&*store, 39).unwrap_err();
    assert!(matches!(error, RewindError::BeyondUndoLog { lowest: 40, .. }), "{error}");
}

fn copy(from: &dyn Store, to: &dyn Store, tables: &[&'static TableSpec]) {
    let (snapshot, mut batch) = (from.snapshot().unwrap(), Batch::new());
    for spec in tables {
        for (key, value) in snapshot.scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap() {
            batch.put(spec, key, value);
        }
    }
    to.commit(batch, Durability::Buffered).unwrap();
}

fn is_about_nfts(exchange: &RecordedExchange<'_>) -> bool {
    // name, tokenURI, ownerOf, supportsInterface.
    ["0x06fdde03", "0xc87b56dd", "0x6352211e", "0x01ffc9a7"]
        .iter()
        .any(|selector| exchange.is_rpc("eth_call", selector))
}

fn open_questions(store: &dyn Store) -> usize {
    store::table::rows::<Questions>(&*store.snapshot().unwrap(), &All, Order::Asc, 10_000).unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_reverts_a_late_answer_and_its_question_is_open_again() {
    let recording = open("evm-scenario");
    let healthy = Arc::new(AtomicBool::new(false));
    let override_answer = {
        let healthy = Arc::clone(&healthy);
        move |exchange: RecordedExchange<'_>| -> HttpReply {
            if is_about_nfts(&exchange) && !healthy.load(Ordering::Relaxed) {
                return exchange.with_error(-32603, "the machine is on fire");
            }
            exchange.answer
        }
    };
    let node = OverriddenNode::start(Arc::clone(&recording), override_answer).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = indexed::config(&recording).unwrap();
    let node = Arc::new(node.clients().unwrap());
    let ingest = Ingest::prepare(config.clone(), Arc::clone(&node), Arc::clone(&store)).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let mut progress = ingest.progress();
    let watching = async {
        while progress.done() < recording.last() {
            progress.moved().await;
        }
        let before = (rows(&*store), open_questions(&*store));
        healthy.store(true, Ordering::Relaxed);
        while open_questions(&*store) > 0 {
            progress.moved().await;
        }
        stop.send_replace(true);
        before
    };
    let ((), (unanswered, questions)) = tokio::join!(async { ingest.run(stopped).await.unwrap() }, watching);
    assert!(questions > 0);
    let last = recording.last();
    let late = records(&*store).into_iter().filter(|(_, height, part)| (*height, *part > 0) == (last, true));
    assert!(late.count() > 0, "answers are commits of their own");

    // Back and forth over the last height alone: the earlier question is open again.
    assert_eq!(rewind(&*store, last - 1).unwrap().to, last - 1);
    let open_again: Vec<_> =
        rows(&*store).into_iter().filter(|(table, _)| *table == Questions::SPEC.name).collect();
    let was_open: Vec<_> =
        unanswered.into_iter().filter(|(table, _)| *table == Questions::SPEC.name).collect();
    assert_eq!(open_again, was_open);
    let collections =
        store::table::rows::<Collections>(&*store.snapshot().unwrap(), &All, Order::Asc, 9).unwrap();
    assert!(collections.is_empty(), "no answer yet that these are collections");

    let ingest = Ingest::prepare(config, node, Arc::clone(&store)).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let mut progress = ingest.progress();
    let watching = async {
        while progress.done() < last || open_questions(&*store) > 0 {
            progress.moved().await;
        }
        stop.send_replace(true);
    };
    tokio::join!(async { ingest.run(stopped).await.unwrap() }, watching);
    assert_same(&*store, &*undisturbed(&recording, last).await, "answered in the end");
}
