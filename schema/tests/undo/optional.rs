//! The writer of an optional index: killed while it builds, and next to blocks that are not the next ones.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use schema::index::{Index, PackedBlock};
use schema::index_writer::{Rest, Writer};
use schema::parties::{PARTIES, RecipientEvmTxs};
use schema::undo::Horizon;
use store::{Batch, Bounds, Durability, List as _, MemStore, Order, Snapshot, Store};

use crate::sample_chain::{chain_of, copy, digests};

static INDEX: Index = PARTIES;

/// Enough for several commits.
const LAST: u64 = 6_000;

/// A store that fails after some commits, as if its process had ended.
struct Killed {
    store: Arc<MemStore>,
    commits: AtomicU64,
}

impl Store for Killed {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        self.store.snapshot()
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        let left = self.commits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map_err(|_| store::Error::NoSpace { path: PathBuf::new(), free: 0, reserve: 0 })?;
        self.store.commit(batch, durability)
    }

    fn sync(&self) -> Result<(), store::Error> {
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64, store::Error> {
        Ok(0)
    }
}

fn build(store: &dyn Store) -> Result<u64, schema::Error> {
    let (mut writer, mut commits) = (Writer::new(store, &INDEX, Horizon::DEFAULT)?, 0);
    while writer.advance(store, LAST)? != Rest::None {
        commits += 1;
    }
    Ok(commits)
}

fn height(store: &dyn Store) -> u64 {
    PARTIES.state(&*store.snapshot().unwrap()).unwrap().map_or(0, |state| state.height)
}

#[test]
fn a_build_that_is_killed_after_any_commit_continues_where_it_was() {
    let whole = chain_of(LAST, 0, 500);
    let undisturbed = copy(&whole);
    assert!(build(&undisturbed).unwrap() > 1);
    let entries =
        undisturbed.snapshot().unwrap().scan(RecipientEvmTxs::SPEC, Bounds::all(), Order::Asc, usize::MAX);
    assert_eq!(entries.unwrap().len() as u64, LAST, "each transaction has another recipient");
    let killed = Arc::new(copy(&whole));
    let (mut kills, mut last) = (0, 0);
    loop {
        // The first commit begins the index, or is a part of it.
        let store = Killed { store: Arc::clone(&killed), commits: AtomicU64::new(1) };
        if build(&store).is_ok() {
            break;
        }
        kills += 1;
        assert!(height(&*killed) > last || kills == 1, "{} after {last}", height(&*killed));
        last = height(&*killed);
    }
    assert!(kills > 1, "{kills}");
    assert_eq!(digests(&*killed), digests(&undisturbed));
}

#[test]
fn a_block_is_written_only_if_the_index_has_all_blocks_before_it() {
    let store = chain_of(3, 0, 1);
    let mut writer = Writer::new(&store, &INDEX, Horizon::DEFAULT).unwrap();
    let write = |writer: &mut Writer, height| {
        let (snapshot, mut batch) = (store.snapshot().unwrap(), Batch::new());
        let mut open = writer.open(&*snapshot).unwrap();
        let (txs, evm_txs, events) = (&[], &[], &[]);
        let block =
            PackedBlock { height, time: 0, first_tx: height, txs, first_evm_tx: height, evm_txs, events };
        let block = open.read(block);
        open.write(&block);
        let pending = open.finish(&mut batch, true).unwrap();
        assert_eq!(pending.is_some(), !batch.is_empty());
        !batch.is_empty()
    };
    assert!(!write(&mut writer, 4), "the index has no block yet");
    assert_eq!(writer.advance(&store, 2).unwrap(), Rest::Completed);
    assert!(!write(&mut writer, 4), "block 3 is missing");
    assert_eq!(writer.advance(&store, 3).unwrap(), Rest::Completed);
    assert!(!write(&mut writer, 3), "block 3 is there");
    assert!(write(&mut writer, 4));
}
