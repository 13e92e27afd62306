//! Optional indexes: written with the block, built from stored blocks, rewound, checked, removed.

use std::sync::Arc;
use std::time::Duration;

use ingest::verify::{Scope, repair, verify};
use ingest::{Config, Ingest};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::digest::TableDigest;
use schema::index::Index;
use schema::index_writer::{Rest, Writer};
use schema::meta::{self, BlockLane, Meta};
use schema::parties::{PARTIES, RecipientEvmTxs};
use schema::rewind::{clear, rewind};
use schema::undo::Horizon;
use store::{Batch, Bounds, COUNT, Durability, Key as _, List as _, MemStore, Order, Store, Table as _};
use testkit::{indexed, recording};
use tokio::sync::watch;

static PARTIES_NOW: Index = PARTIES;

/// The same index in an earlier version, whose rows were others: the sequences of all transactions of one account.
static EARLIER: Index = Index {
    version: 0,
    rows: |block, rows| {
        let nobody = schema::keys::AccountKey(chain::Account::from([7; 20]));
        block.evm_txs(|seq, _| rows.push::<RecipientEvmTxs>(&nobody, seq))
    },
    ..PARTIES
};

fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

fn empty() -> Arc<dyn Store> {
    Arc::new(MemStore::new())
}

/// Indexes `recording` up to `height`, with `indexes`.
async fn index(recording: &Arc<Recording>, height: u64, indexes: &[&'static Index], store: &Arc<dyn Store>) {
    let options = Options { up_to: Some(height), ..Options::default() };
    let played = ReplayNode::start(Arc::clone(recording), Addresses::default(), options).await.unwrap();
    let config = Config { indexes: indexes.to_vec(), ..indexed::config(recording).unwrap() };
    let node = Arc::new(indexed::clients(&played).unwrap());
    let ingest = Ingest::prepare(config, node, Arc::clone(store)).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let all_done = async {
        let mut progress = ingest.progress();
        let is_done = || {
            indexes.iter().all(|index| {
                let state = index.state(&*store.snapshot().unwrap()).unwrap();
                state.is_some_and(|state| state.height == height && state.version == index.version)
            })
        };
        while progress.done() < height {
            progress.moved().await;
        }
        // Built by the lane while it is idle: there is no channel to wait on.
        while !is_done() {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    };
    let (outcome, ()) = tokio::join!(ingest.run(stopped), all_done);
    outcome.unwrap();
}

/// Builds `index` from the stored blocks, in commits of bounded size.
fn build(store: &dyn Store, index: &'static Index) -> Result<u64, schema::Error> {
    let height = meta::read::<BlockLane>(&*store.snapshot().unwrap()).unwrap().unwrap().height;
    let mut writer = Writer::new(store, index, Horizon::DEFAULT)?;
    let mut commits = 0;
    while writer.advance(store, height)? != Rest::None {
        commits += 1;
    }
    Ok(commits)
}

fn digest(store: &dyn Store) -> Vec<TableDigest> {
    indexed::digest(store).unwrap()
}

fn height_of(store: &dyn Store) -> Option<u64> {
    PARTIES.state(&*store.snapshot().unwrap()).unwrap().map(|state| state.height)
}

fn entries(store: &dyn Store) -> usize {
    let snapshot = store.snapshot().unwrap();
    snapshot.scan(RecipientEvmTxs::SPEC, Bounds::all(), Order::Asc, usize::MAX).unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_built_while_no_node_is_there() {
    let (recording, [store, expected]) = (evm(), [(); 2].map(|()| empty()));
    let last = recording.last();
    index(&recording, last, &[&PARTIES_NOW], &expected).await;
    index(&recording, last, &[], &store).await;
    let played =
        ReplayNode::start(Arc::clone(&recording), Addresses::default(), Options::default()).await.unwrap();
    let node = Arc::new(indexed::clients(&played).unwrap());
    drop(played);
    let config = Config { indexes: vec![&PARTIES_NOW], ..indexed::config(&recording).unwrap() };
    let built = async {
        // There is no channel to wait on before the lanes run.
        while height_of(&*store) != Some(last) {
            tokio::task::yield_now().await;
        }
    };
    let built = tokio::time::timeout(Duration::from_mins(1), built);
    tokio::select! {
        prepared = Ingest::prepare(config, node, Arc::clone(&store)) => drop(prepared.map(|_| panic!("no node"))),
        built = built => built.unwrap(),
    }
    assert_eq!(digest(&*store), digest(&*expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_the_same_however_it_is_written() {
    let recording = evm();
    let (last, [with_blocks, later, other, off_and_on]) = (recording.last(), [(); 4].map(|()| empty()));
    index(&recording, last, &[&PARTIES_NOW], &with_blocks).await;
    assert!(entries(&*with_blocks) > 10, "{}", entries(&*with_blocks));
    let expected = digest(&*with_blocks);

    index(&recording, last, &[], &later).await;
    let without = digest(&*later);
    assert_ne!(expected, without);
    assert!(build(&*later, &PARTIES_NOW).unwrap() >= 1);
    assert_eq!(digest(&*later), expected, "built without a node");
    assert_eq!(build(&*later, &PARTIES_NOW).unwrap(), 0, "nothing is left");
    PARTIES.remove(&*later).unwrap();
    assert_eq!(digest(&*later), without, "removed without a trace");
    index(&recording, last, &[&PARTIES_NOW], &later).await;
    assert_eq!(digest(&*later), expected, "built by the process that indexes");

    index(&recording, last, &[&EARLIER], &other).await;
    assert_ne!(digest(&*other), expected);
    index(&recording, last, &[&PARTIES_NOW], &other).await;
    assert_eq!(digest(&*other), expected, "another version is built again");

    index(&recording, last / 3, &[&PARTIES_NOW], &off_and_on).await;
    index(&recording, last / 2, &[], &off_and_on).await;
    assert_eq!(height_of(&*off_and_on), Some(last / 3), "it stays while it is off");
    index(&recording, last, &[&PARTIES_NOW, &PARTIES_NOW], &off_and_on).await;
    assert_eq!(digest(&*off_and_on), expected, "it continues, and named twice is once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_goes_back_with_the_blocks() {
    let (recording, expected) = (evm(), empty());
    let last = recording.last();
    index(&recording, last, &[&PARTIES_NOW], &expected).await;
    for (name, began_at) in [("with each block", last), ("late", last / 2), ("after the last block", 0)] {
        let store = empty();
        let on = |is_on: bool| if is_on { vec![&PARTIES_NOW] } else { Vec::new() };
        let (early, late) = (on(began_at == last), on(began_at > 0));
        index(&recording, last / 2, &early, &store).await;
        index(&recording, last, &late, &store).await;
        if began_at == 0 {
            build(&*store, &PARTIES_NOW).unwrap();
        }
        assert_eq!(digest(&*store), digest(&*expected), "{name}");
        for to in [last - 1, last - 20, last / 2 + 3, last / 4] {
            rewind(&*store, to).unwrap();
            assert!(height_of(&*store).unwrap_or(0) <= to, "{name}, back to {to}");
            let fresh = empty();
            index(&recording, to, &[&PARTIES_NOW], &fresh).await;
            build(&*store, &PARTIES_NOW).unwrap();
            assert_eq!(digest(&*store), digest(&*fresh), "{name}, back to {to}");
            assert!(offline(&store).await.is_sound(), "{name}, back to {to}");
        }
        index(&recording, last, &[&PARTIES_NOW], &store).await;
        assert_eq!(digest(&*store), digest(&*expected), "{name}, forward again");
        clear(&*store, None).unwrap();
        assert_eq!((height_of(&*store), entries(&*store)), (None, 0), "{name}");
    }
}

/// An index may be removed and built again without the undo log of the blocks.
#[tokio::test(flavor = "multi_thread")]
async fn removing_an_index_keeps_the_way_back_of_the_blocks() {
    let (recording, store, fresh) = (evm(), empty(), empty());
    let last = recording.last();
    index(&recording, last, &[&PARTIES_NOW], &store).await;
    PARTIES.remove(&*store).unwrap();
    rewind(&*store, last - 30).unwrap();
    assert_eq!(height_of(&*store), None);
    index(&recording, last - 30, &[], &fresh).await;
    assert_eq!(digest(&*store), digest(&*fresh));
}

/// Damages the row with this key and value.
type Damage = fn(&mut Batch, Vec<u8>, Vec<u8>);

async fn offline(store: &Arc<dyn Store>) -> schema::audit::Report {
    verify(store, None, Scope::All, &|| Ok(empty())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_and_an_extra_row_are_found_and_repaired_without_a_node() {
    let (recording, store) = (evm(), empty());
    index(&recording, recording.last(), &[&PARTIES_NOW], &store).await;
    let sound = digest(&*store);
    assert!(offline(&store).await.is_sound());
    let first = store.snapshot().unwrap().scan(RecipientEvmTxs::SPEC, Bounds::all(), Order::Asc, 1).unwrap();
    let (key, value) = first.into_iter().next().unwrap();
    let damages: [Damage; 4] = [
        |batch, key, _| batch.delete(RecipientEvmTxs::SPEC, key),
        |batch, key, value| batch.put(RecipientEvmTxs::SPEC, key, [value, vec![0x7f]].concat()),
        |batch, mut key, value| {
            key[1] ^= 1;
            batch.put(RecipientEvmTxs::SPEC, key, value);
        },
        |batch, key, _| {
            batch.delete(COUNT, [&[RecipientEvmTxs::SPEC.tag], &key[..key.len() - 8]].concat());
        },
    ];
    for (at, damage) in damages.into_iter().enumerate() {
        let mut batch = Batch::new();
        damage(&mut batch, key.clone(), value.clone());
        store.commit(batch, Durability::Buffered).unwrap();
        let report = offline(&store).await;
        assert_eq!(report.total(), 1, "damage {at}: {:?}", report.findings);
        let (_, stop) = watch::channel(false);
        repair(&store, None, &|| Ok(empty()), stop).await.unwrap();
        assert_eq!(digest(&*store), sound, "damage {at}");
        assert!(offline(&store).await.is_sound());
    }
    // A height that the blocks do not have.
    let mut state = PARTIES.state(&*store.snapshot().unwrap()).unwrap().unwrap();
    state.height += 5;
    let mut batch = Batch::new();
    let row = prost::Message::encode_to_vec(&state);
    batch.put(Meta::SPEC, store::key::Text("index/parties".to_owned()).to_bytes(), row);
    store.commit(batch, Durability::Buffered).unwrap();
    assert!(!offline(&store).await.is_sound());
}

/// Damaged records stop the index that follows from them, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_whose_records_are_damaged_does_not_stop_the_blocks() {
    let (recording, store) = (evm(), empty());
    let (half, last) = (recording.last() / 2, recording.last());
    index(&recording, half, &[], &store).await;
    let spec = schema::evm_tx::EvmTxs::SPEC;
    let rows = store.snapshot().unwrap().scan(spec, Bounds::all(), Order::Asc, 3).unwrap();
    let mut batch = Batch::new();
    batch.delete(spec, rows[2].0.clone());
    store.commit(batch, Durability::Buffered).unwrap();
    let config = Config {
        indexes: vec![&PARTIES_NOW],
        internal_txs: false,
        rich_list: false,
        ..indexed::config(&recording).unwrap()
    };
    indexed::index_as(config, recording, Options::default(), Arc::clone(&store)).await.unwrap();
    assert_eq!(meta::read::<BlockLane>(&*store.snapshot().unwrap()).unwrap().unwrap().height, last);
    assert!(height_of(&*store).unwrap() < half);
}

static BRIDGE_NOW: Index = schema::bridge::BRIDGE;

static SEARCH_NOW: Index = schema::search::SEARCH;

static ACTIVITY_NOW: Index = schema::activity::ACTIVITY;

/// Both ends of a bridge: withdrawals and deposits, and outputs that are deleted and proposed again; and the attributes of events.
#[tokio::test(flavor = "multi_thread")]
async fn the_indexes_of_bridges_and_of_attributes_are_the_same_however_they_are_written_and_go_back() {
    let of_index: [(&str, &'static Index); 4] = [
        ("bridge-cases/l1", &BRIDGE_NOW),
        ("bridge-cases/l2", &BRIDGE_NOW),
        ("bridge-cases/l2", &SEARCH_NOW),
        ("evm-load", &ACTIVITY_NOW),
    ];
    for (chain, written) in of_index {
        let recording = Arc::new(Recording::open(&recording(chain)).unwrap());
        let (last, [with_blocks, later]) = (recording.last(), [(); 2].map(|()| empty()));
        index(&recording, last, &[written], &with_blocks).await;
        let expected = digest(&*with_blocks);
        let rows = expected.iter().filter(|table| {
            ["bridge_withdrawal", "ophost_output", "attribute_tx", "account_hour"]
                .iter()
                .any(|name| table.table.contains(name))
        });
        assert!(rows.map(|table| table.rows).sum::<u64>() > 30, "{chain} {}", written.name);

        index(&recording, last, &[], &later).await;
        let without = digest(&*later);
        build(&*later, written).unwrap();
        assert_eq!(digest(&*later), expected, "{chain}: built from blocks");
        written.remove(&*later).unwrap();
        assert_eq!(digest(&*later), without, "{chain}: removed without a trace");

        rewind(&*with_blocks, last - 20).unwrap();
        let height = meta::read::<BlockLane>(&*with_blocks.snapshot().unwrap()).unwrap().unwrap().height;
        let fresh = empty();
        index(&recording, height, &[written], &fresh).await;
        build(&*with_blocks, written).unwrap();
        assert_eq!(digest(&*with_blocks), digest(&*fresh), "{chain}: back to {height}");
    }
}
