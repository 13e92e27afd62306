//! A full disk, an unreadable row, databases of other formats.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use replay::Call;
use store::key::{Key as _, Text};
use store::{Access, Batch, Bounds, Durability, MemStore, Order, Snapshot, Store, TableSpec};
use tracker::{Error, Options, Refused, Tracker};

use crate::life::after;
use crate::silent::{now, until};
use crate::whole::afterwards;
use crate::world::{L1, RECORDED_L1, RECORDED_L2, Services, World};

const FIRST: &str = "7C27A135DF17CB9A54ED67E84174690BEBFD034E579D20F1960C9FC430791DF9";
const SECOND: &str = "FA6141DF0F9C991E2F388FA267B6ACB5D6DBC28040BE8C2B9694A40ABCFCA435";

static RECORDS: TableSpec = TableSpec { name: "track_record", tag: 0x10, access: Access::Point };
static FORMAT: TableSpec = TableSpec { name: "track_format", tag: 0x15, access: Access::Point };

/// A store whose disk can be full.
struct Disk {
    store: MemStore,
    is_full: AtomicBool,
    /// Duration of a sync to the device.
    sync_takes: Duration,
    refused: AtomicUsize,
}

impl Disk {
    fn new() -> Arc<Self> {
        Self::with(Duration::ZERO)
    }

    fn with(sync_takes: Duration) -> Arc<Self> {
        Arc::new(Self {
            store: MemStore::new(),
            is_full: AtomicBool::new(false),
            sync_takes,
            refused: AtomicUsize::new(0),
        })
    }

    fn rows(&self, table: &'static TableSpec) -> Vec<store::Row> {
        self.store.snapshot().unwrap().scan(table, Bounds::all(), Order::Asc, usize::MAX).unwrap()
    }

    fn write(&self, batch: Batch) {
        self.store.commit(batch, Durability::Buffered).unwrap();
    }
}

impl Store for Disk {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        self.store.snapshot()
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        self.room().inspect_err(|_| {
            self.refused.fetch_add(1, Ordering::SeqCst);
        })?;
        self.store.commit(batch, durability)
    }

    fn room(&self) -> Result<(), store::Error> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(store::Error::NoSpace { path: "the disk".into(), free: 0, reserve: 1 });
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), store::Error> {
        std::thread::sleep(self.sync_takes);
        self.store.sync()
    }

    fn disk_bytes(&self) -> Result<u64, store::Error> {
        self.store.disk_bytes()
    }
}

fn over(disk: &Arc<Disk>, world: &World) -> Tracker {
    with(disk, world, Options::default())
}

fn with(disk: &Arc<Disk>, world: &World, options: Options) -> Tracker {
    Tracker::over(Arc::clone(disk) as _, world.registry.clone(), options).unwrap()
}

fn state(tracker: &Tracker, hash: &str) -> String {
    let answer = tracker.status(L1, hash).unwrap().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    answer["state"].as_str().unwrap().to_owned()
}

fn key_of(hash: &str) -> Vec<u8> {
    let hash: [u8; 32] = hex::decode(hash).unwrap().try_into().unwrap();
    (Text::from(L1), hash).to_bytes()
}

#[tokio::test]
async fn a_full_disk_pauses_polling_and_status_requests_continue() {
    let (world, disk) = (World::whole(Services::All).await, Disk::new());
    let tracker = over(&disk, &world);
    tracker.track(L1, FIRST, afterwards()).unwrap();
    disk.is_full.store(true, Ordering::SeqCst);
    let wait = async |what: &str, is_so: &dyn Fn() -> bool| {
        let wait = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait).await.expect(what);
    };
    let check = async {
        wait("a refused commit", &|| disk.refused.load(Ordering::SeqCst) > 0).await;
        let refused = tracker.track(L1, SECOND, afterwards());
        assert!(matches!(&refused, Err(Refused::Failed(error)) if error.is_full()), "{refused:?}");
        assert_eq!(state(&tracker, FIRST), "STATE_SUBMITTED");
        disk.is_full.store(false, Ordering::SeqCst);
        wait("the transfer", &|| state(&tracker, FIRST) == "STATE_COMPLETED_SUCCESS").await;
    };
    tokio::select! {
        ended = tracker.run(std::future::pending()) => panic!("{ended:?}"),
        () = check => {}
    }
}

#[tokio::test]
async fn an_unreadable_row_is_postponed_by_a_day_and_the_others_are_followed() {
    let (world, disk) = (World::whole(Services::All).await, Disk::new());
    let tracker = over(&disk, &world);
    let start = afterwards();
    for hash in [FIRST, SECOND] {
        tracker.track(L1, hash, start).unwrap();
    }
    let good = disk.rows(&RECORDS).into_iter().find(|(key, _)| *key == key_of(SECOND)).unwrap().1;
    let mut batch = Batch::new();
    batch.put(&RECORDS, key_of(SECOND), b"{\"chain\":".to_vec());
    disk.write(batch);
    let polled = tracker.poll_due(start).await.unwrap();
    assert_eq!(state(&tracker, FIRST), "STATE_COMPLETED_SUCCESS");
    assert_eq!(state(&tracker, SECOND), "STATE_SUBMITTED");
    assert_eq!((polled.polled, polled.next_due), (2, Some(after(start, 24 * 3_600))));
    let mut batch = Batch::new();
    batch.put(&RECORDS, key_of(SECOND), good);
    disk.write(batch);
    assert_eq!(tracker.poll_due(after(start, 24 * 3_600)).await.unwrap().polled, 1);
    assert_eq!(state(&tracker, SECOND), "STATE_COMPLETED_SUCCESS");
}

#[tokio::test]
async fn a_poll_that_becomes_due_while_the_disk_is_slow_runs_right_afterwards() {
    let (world, disk) = (World::whole(Services::All).await, Disk::with(Duration::from_millis(1_200)));
    let tracker = over(&disk, &world);
    tracker.track(L1, &"0".repeat(64), now()).unwrap();
    // The second poll follows a second after the first.
    let check = until("a third look", || world.l1.call_count(Call::CometTx) >= 3);
    tokio::select! {
        ended = tracker.run(std::future::pending()) => panic!("{ended:?}"),
        _ = check => {}
    }
}

#[tokio::test]
async fn an_outdated_queue_row_does_not_delete_a_seen_transaction() {
    let (world, disk) = (World::showing(Some((1_000, 400)), Services::All).await, Disk::new());
    let tracker = with(&disk, &world, Options { unseen_per_chain: 1, ..Options::default() });
    let start = afterwards();
    tracker.track(L1, SECOND, start).unwrap();
    tracker.poll_due(after(start, 301)).await.unwrap();
    assert_eq!(state(&tracker, SECOND), "STATE_ABANDONED");
    let row = disk.rows(&RECORDS).remove(0);
    let write = |value: &[u8]| {
        let mut batch = Batch::new();
        batch.put(&RECORDS, row.0.clone(), value.to_vec());
        disk.write(batch);
    };
    write(b"{");
    // Postponed by a day, and then revived.
    tracker.poll_due(after(start, 1_000)).await.unwrap();
    write(&row.1);
    tracker.track(L1, SECOND, after(start, 1_001)).unwrap();
    world.l1.show(RECORDED_L1.last()).unwrap();
    world.l2.show(RECORDED_L2.last()).unwrap();
    tracker.poll_due(after(start, 1_001)).await.unwrap();
    assert_eq!(state(&tracker, SECOND), "STATE_COMPLETED_SUCCESS");
    for number in 0..3 {
        drop(tracker.track_for(None, L1, &format!("{number:064x}"), after(start, 1_002)));
    }
    assert_eq!(state(&tracker, SECOND), "STATE_COMPLETED_SUCCESS");
}

#[tokio::test]
async fn a_database_of_another_format_is_refused() {
    let (world, disk) = (World::whole(Services::All).await, Disk::new());
    drop(over(&disk, &world));
    let reopen = || Tracker::over(Arc::clone(&disk) as _, world.registry.clone(), Options::default());
    // A new database has the current format, with or without transactions.
    let tracker = reopen().unwrap();
    tracker.track(L1, FIRST, afterwards()).unwrap();
    drop((tracker, reopen().unwrap()));
    let key = disk.rows(&FORMAT).remove(0).0;
    let mut batch = Batch::new();
    batch.put(&FORMAT, key.clone(), vec![3]);
    disk.write(batch);
    assert!(matches!(reopen(), Err(Error::Format { found: 3, known: 2 })));
    // The first format had no such row.
    let mut batch = Batch::new();
    batch.delete(&FORMAT, key);
    disk.write(batch);
    assert!(matches!(reopen(), Err(Error::Format { found: 1, known: 2 })));
}

#[tokio::test]
async fn a_record_of_an_earlier_version_is_read_and_its_empty_search_is_no_evidence() {
    let (world, disk) = (World::showing(Some((1_040, 447)), Services::All).await, Disk::new());
    let tracker = over(&disk, &world);
    let start = afterwards();
    tracker.track(L1, SECOND, start).unwrap();
    tracker.poll_due(start).await.unwrap();
    let (key, row) = disk.rows(&RECORDS).remove(0);
    let mut record: serde_json::Value = serde_json::from_slice(&row).unwrap();
    record.as_object_mut().unwrap().remove("chains").unwrap();
    let hop = record["transfers"][0]["hops"][0]["Ibc"].as_object_mut().unwrap();
    hop.remove("expired_in_state").unwrap();
    // Set by a search of an index that lacked the packet.
    hop.insert("expired".to_owned(), true.into());
    assert!(hop["sent"]["hash"].is_string());
    let mut batch = Batch::new();
    batch.put(&RECORDS, key, record.to_string().into_bytes());
    disk.write(batch);
    tracker.poll_due(after(start, 10)).await.unwrap();
    assert_eq!(state(&tracker, SECOND), "STATE_PENDING");
    world.l2.show(448).unwrap();
    tracker.poll_due(after(start, 20)).await.unwrap();
    assert_eq!(state(&tracker, SECOND), "STATE_COMPLETED_SUCCESS");
}
