//! The undo records that a lane keeps, and their effects.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod killed;
mod optional;
mod rewound;
mod sample_chain;
mod watched;

use std::sync::Arc;

use schema::audit::{AuditContext, Report, audit};
use schema::block::{Block, Blocks};
use schema::digest;
use schema::meta::{self, BlockLane, Identity, Rewinds};
use schema::nft::NonCollections;
use schema::rewind::{RewindError, Rewound, rewind};
use schema::undo::{self, Extent, Horizon, Lane, Record, RecordKey, UndoLog, UndoRecords};
use store::key::All;
use store::{
    Batch, Bounds, CopyOnWrite, Counts, Durability, Key as _, MemStore, Message, Order, Snapshot, Store,
    Table as _, TableSpec, Txn,
};

/// How a commit ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Sealed,
    Plain,
}

fn database() -> MemStore {
    let store = MemStore::new();
    let identity = Identity {
        format: schema::FORMAT,
        chain_id: "test-1".to_owned(),
        vm: "evm".to_owned(),
        prefix: "init".to_owned(),
        start_height: 1,
    };
    schema::open::or_create(&store, &identity).unwrap();
    store
}

fn hash(height: u64) -> [u8; 32] {
    let mut hash = [0xaa; 32];
    hash[..8].copy_from_slice(&height.to_be_bytes());
    hash
}

/// A block a minute.
fn time(height: u64) -> i64 {
    i64::try_from(height).unwrap() * 60_000_000_000
}

/// Commits the blocks of `heights` together.
fn blocks(store: &dyn Store, heights: std::ops::RangeInclusive<u64>, end: End) {
    commit(store, end, |txn| {
        for height in heights {
            let json = format!(r#"{{"height":"{height}","hash":"{}"}}"#, hex::encode_upper(hash(height)));
            let block = Block { first_tx: 1, first_evm_tx: 1, json: json.into_bytes(), ..Block::default() };
            txn.put_unread::<Blocks>(&height, &Message(block));
            let time = time(height);
            meta::put(txn, &BlockLane { height, hash: hash(height).to_vec(), time, ..BlockLane::default() });
        }
    });
}

fn commit(store: &dyn Store, end: End, write: impl FnOnce(&mut Txn<'_>)) {
    let snapshot = store.snapshot().unwrap();
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    write(&mut txn);
    let mut log = UndoLog::new(Lane::Blocks, Horizon::DEFAULT);
    let (batch, _) = if end == End::Sealed { log.finish(txn).unwrap() } else { txn.finish() };
    store.commit(batch, Durability::Buffered).unwrap();
}

/// A commit that belongs to no height.
fn late(store: &MemStore, account: u8, found_at: u64, end: End) {
    commit(store, end, |txn| txn.put::<NonCollections>(&refusal(account, found_at), &()));
}

fn refusal(account: u8, found_at: u64) -> (schema::keys::AccountKey, u64) {
    (schema::keys::AccountKey(chain::Account::from_bytes(&[account; 20]).unwrap()), found_at)
}

fn refused(store: &MemStore) -> usize {
    store::table::rows::<NonCollections>(&*store.snapshot().unwrap(), &All, Order::Asc, 100).unwrap().len()
}

/// Heights and parts of the records.
fn records(store: &MemStore) -> Vec<(u64, u32)> {
    let snapshot = store.snapshot().unwrap();
    let rows = store::table::rows::<UndoRecords>(&*snapshot, &All, Order::Asc, usize::MAX).unwrap();
    rows.into_iter().map(|((_, height, part), _)| (height, part)).collect()
}

fn height(store: &MemStore) -> u64 {
    Lane::Blocks.height(&*store.snapshot().unwrap()).unwrap()
}

/// Commits blocks up to `last` one by one with a log of this horizon, and a late change after each.
fn with_horizon(last: u64, horizon: Horizon) -> MemStore {
    let store = database();
    let (mut log, mut counts) = (UndoLog::new(Lane::Blocks, horizon), Counts::new(1));
    for height in 1..=last {
        for part in 0..2 {
            let snapshot = store.snapshot().unwrap();
            let mut txn = Txn::new(&*snapshot, &mut counts);
            if part == 0 {
                let (hash, time) = (hash(height).to_vec(), time(height));
                meta::put(&mut txn, &BlockLane { height, hash, time, ..BlockLane::default() });
            } else {
                txn.put::<NonCollections>(&refusal(u8::try_from(height % 256).unwrap(), height), &());
            }
            let (batch, _) = log.finish(txn).unwrap();
            store.commit(batch, Durability::Buffered).unwrap();
        }
    }
    store
}

fn extent(store: &MemStore) -> Extent {
    undo::extent(&*store.snapshot().unwrap(), Lane::Blocks).unwrap()
}

#[test]
fn a_lane_keeps_the_records_of_the_blocks_inside_the_horizon() {
    let (last, hour) = (300, std::time::Duration::from_hours(1));
    let store = with_horizon(last, Horizon { time: hour, ..Horizon::DEFAULT });
    let kept: Vec<_> = (last - 60..=last).flat_map(|height| [(height, 0), (height, 1)]).collect();
    assert_eq!(records(&store), kept);
    let Extent { lowest, bytes } = extent(&store);
    assert_eq!(lowest, last - 61);
    assert!((40 * 120..200 * 120).contains(&bytes), "{bytes} bytes");
    let error = rewind(&store, lowest - 1).unwrap_err();
    assert!(matches!(error, RewindError::BeyondUndoLog { lowest: 239, last: 300, to: 238 }), "{error}");
    for remedy in ["cairn db restore", "cairn db reindex", "undo_horizon"] {
        assert!(error.to_string().contains(remedy), "{error}");
    }
    assert_eq!(height(&store), last, "nothing is removed");
    assert_eq!(rewind(&store, lowest).unwrap(), Rewound { from: last, to: lowest });
    assert_eq!((records(&store), extent(&store)), (vec![], Extent { lowest, bytes: 0 }));
}

#[test]
fn a_lane_keeps_no_more_bytes_of_records_than_the_horizon_has() {
    let all = extent(&with_horizon(300, Horizon::DEFAULT)).bytes;
    for part in [2, 10] {
        let bytes = all / part;
        let kept = extent(&with_horizon(300, Horizon { bytes, ..Horizon::DEFAULT }));
        // The record that is being written comes on top.
        assert!((bytes * 8 / 10..bytes + 200).contains(&kept.bytes), "{kept:?} of {bytes}");
    }
    // The last commit can always be reverted.
    let store = with_horizon(300, Horizon { bytes: 0, ..Horizon::DEFAULT });
    assert_eq!(extent(&store).lowest, 299);
}

#[test]
fn a_shorter_horizon_takes_effect_over_some_commits() {
    let store = with_horizon(300, Horizon::DEFAULT);
    let horizon = Horizon { time: std::time::Duration::from_mins(10), ..Horizon::DEFAULT };
    let mut log = UndoLog::new(Lane::Blocks, horizon);
    let mut kept = Vec::new();
    for found_at in 0..12 {
        let (snapshot, mut counts) = (store.snapshot().unwrap(), Counts::new(1));
        let mut txn = Txn::new(&*snapshot, &mut counts);
        txn.put::<NonCollections>(&refusal(1, 1_000 + found_at), &());
        let (batch, _) = log.finish(txn).unwrap();
        store.commit(batch, Durability::Buffered).unwrap();
        kept.push(records(&store).len());
    }
    // Each adds a record and deletes 64 or, with the search for the first one, 63.
    assert_eq!(kept[..2], [600 + 1 - 63, 600 + 2 - 63 - 64]);
    assert_eq!((kept[11], extent(&store).lowest), (2 * 11 + 12, 289));
}

#[test]
fn records_older_than_a_commit_without_a_record_are_deleted() {
    let store = database();
    for height in 1..=10 {
        blocks(&store, height..=height, End::Sealed);
    }
    blocks(&store, 11..=20, End::Plain);
    blocks(&store, 21..=21, End::Sealed);
    blocks(&store, 22..=22, End::Sealed);
    assert_eq!(records(&store), [(21, 0), (22, 0)]);
    assert_eq!(rewind(&store, 20).unwrap().to, 20);
    // A record of a height without earlier records is useless, but hides no other record.
    late(&store, 1, 20, End::Sealed);
    assert_eq!(records(&store), [(20, 0)]);
    let error = rewind(&store, 19).unwrap_err();
    assert!(matches!(error, RewindError::BeyondUndoLog { lowest: 20, .. }), "{error}");
    assert_eq!((height(&store), refused(&store)), (20, 1));
}

#[test]
fn commits_without_a_height_are_parts_of_the_last_one_and_are_reverted_with_it() {
    let store = database();
    blocks(&store, 1..=1, End::Sealed);
    late(&store, 1, 1, End::Sealed);
    blocks(&store, 2..=2, End::Sealed);
    for account in 2..5 {
        late(&store, account, 2, End::Sealed);
    }
    // The commit changes no row, so it needs no record.
    late(&store, 4, 2, End::Sealed);
    assert_eq!(records(&store), [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (2, 3)]);
    assert_eq!(rewind(&store, 1).unwrap(), Rewound { from: 2, to: 1 });
    assert_eq!((records(&store), refused(&store)), (vec![(1, 0), (1, 1)], 1));
    late(&store, 9, 1, End::Sealed);
    assert_eq!(records(&store), [(1, 0), (1, 1), (1, 2)]);
}

#[test]
fn a_late_commit_without_a_record_is_detected_if_it_changed_the_rows_of_a_record() {
    let store = database();
    blocks(&store, 1..=1, End::Sealed);
    blocks(&store, 2..=2, End::Sealed);
    late(&store, 1, 1, End::Sealed);
    late(&store, 1, 2, End::Sealed);
    commit(&store, End::Plain, |txn| txn.delete::<NonCollections>(&refusal(1, 2)));
    let error = rewind(&store, 1).unwrap_err();
    assert!(matches!(error, RewindError::Mismatch { height: 2 }), "{error}");
    assert!(error.to_string().contains("cairn db restore"), "{error}");
    assert_eq!((height(&store), refused(&store)), (2, 1));
}

/// A database with unreadable undo records only.
struct Unreadable(MemStore);

struct UnreadableSnapshot<'a>(Box<dyn Snapshot + 'a>);

impl Store for Unreadable {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        Ok(Box::new(UnreadableSnapshot(self.0.snapshot()?)))
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        self.0.commit(batch, durability)
    }

    fn sync(&self) -> Result<(), store::Error> {
        self.0.sync()
    }

    fn disk_bytes(&self) -> Result<u64, store::Error> {
        self.0.disk_bytes()
    }
}

fn readable(table: &'static TableSpec) -> Result<(), store::Error> {
    if table != UndoRecords::SPEC {
        return Ok(());
    }
    let (path, message) = ("here".into(), "a bad block".to_owned());
    Err(store::Error::Damaged { path, table: Some(table.name), file: None, message })
}

impl Snapshot for UnreadableSnapshot<'_> {
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, store::Error> {
        readable(table).and_then(|()| self.0.get(table, key))
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<store::Row>, store::Error> {
        readable(table).and_then(|()| self.0.scan(table, bounds, order, limit))
    }
}

#[test]
fn unreadable_records_stop_no_blocks_and_are_replaced() {
    let last = 20;
    for unreadable in [false, true] {
        let store = database();
        (1..=last).for_each(|height| blocks(&store, height..=height, End::Sealed));
        let store = if unreadable {
            let store = Unreadable(store);
            let error = rewind(&store, last - 1).unwrap_err();
            assert!(matches!(error, RewindError::BeyondUndoLog { lowest: 20, .. }), "{error}");
            blocks(&store, last + 1..=last + 1, End::Sealed);
            store.0
        } else {
            let mut batch = Batch::new();
            batch.put(UndoRecords::SPEC, (1_u8, last, 0_u32).to_bytes(), vec![0xff]);
            store.commit(batch, Durability::Buffered).unwrap();
            let error = rewind(&store, last - 1).unwrap_err();
            assert!(matches!(error, RewindError::BeyondUndoLog { lowest: 20, .. }), "{error}");
            blocks(&store, last + 1..=last + 1, End::Sealed);
            store
        };
        assert_eq!(records(&store), [(last + 1, 0)]);
        assert_eq!(rewind(&store, last).unwrap(), Rewound { from: last + 1, to: last });
    }
}

#[test]
fn a_rewind_is_counted_in_each_commit_and_changes_no_digest() {
    let (store, other) = (database(), database());
    for height in 1..=9 {
        blocks(&store, height..=height, End::Sealed);
    }
    blocks(&other, 1..=4, End::Plain);
    rewind(&store, 6).unwrap();
    rewind(&store, 4).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(meta::read::<Rewinds>(&*snapshot).unwrap(), Some(Rewinds { count: 5, last_to: 4 }));
    assert_eq!(digest::tables(&*snapshot).unwrap(), digest::tables(&*other.snapshot().unwrap()).unwrap());
}

#[test]
fn an_audit_finds_records_that_are_damaged_or_beyond_their_lane() {
    let store = Arc::new(database());
    for height in 1..=3 {
        blocks(&*store, height..=height, End::Sealed);
    }
    let checked = |store: &Arc<MemStore>| {
        let (snapshot, mut report) = (store.snapshot().unwrap(), Report::default());
        let copy = CopyOnWrite::new(Arc::clone(store) as Arc<dyn Store>, Arc::new(MemStore::new()));
        audit(&AuditContext::new(&*snapshot).unwrap(), &copy, &mut report).unwrap();
        let found = report.findings.into_iter().filter(|found| found.table == UndoRecords::SPEC);
        (report.checked["undo records"], found.map(|found| found.key).collect::<Vec<_>>())
    };
    assert_eq!(checked(&store), (3, vec![]));
    let snapshot = store.snapshot().unwrap();
    let stored = store::table::read::<UndoRecords>(&*snapshot, &(1, 2, 0)).unwrap();
    let Message(whole) = stored.unwrap();
    let bad: [(RecordKey, Record); 4] = [
        ((1, 2, 0), Record { before: whole.before[..9].to_vec(), ..whole.clone() }),
        ((1, 4, 0), whole.clone()),
        ((2, 1, 0), whole.clone()),
        ((7, 1, 0), whole),
    ];
    let mut batch = Batch::new();
    for (key, record) in &bad {
        batch.put(UndoRecords::SPEC, key.to_bytes(), prost::Message::encode_to_vec(record));
    }
    store.commit(batch, Durability::Buffered).unwrap();
    let found: Vec<_> = bad.iter().map(|(key, _)| key.to_bytes()).collect();
    assert_eq!(checked(&store), (6, found));
}

#[test]
fn lanes_are_identified_by_their_tags() {
    assert_eq!([0, 1, 2, 3].map(Lane::of_tag), [None, Some(Lane::Blocks), Some(Lane::InternalTxs), None]);
}
