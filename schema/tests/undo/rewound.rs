//! Result and cost of a rewind, also if it is interrupted, and of the removal of all heights.

use std::sync::atomic::Ordering;

use schema::meta::{self, BlockLane, CallLane, PendingReindex, Rewinds, RichLane};
use schema::nft::NameChanges;
use schema::rewind::{Rewound, clear, rewind};
use schema::undo::Lane;
use store::key::All;
use store::{Order, Store as _};

use crate::sample_chain::{chain_of, copy, digests};
use crate::watched::Watched;
use crate::{End, commit, database};

#[test]
fn a_rewound_database_equals_an_undisturbed_one() {
    let whole = chain_of(300, 150, 1);
    for to in [1, 63, 64, 100, 149, 150, 151, 230, 299, 300] {
        let store = copy(&whole);
        assert_eq!(rewind(&store, to).unwrap(), Rewound { from: 300, to });
        assert_eq!(digests(&store), digests(&chain_of(to, 150.min(to), 7)), "back to {to}");
    }
}

#[test]
fn a_rewind_into_a_commit_of_several_heights_ends_before_it() {
    let whole = chain_of(300, 150, 7);
    for (to, end) in [(7, 7), (8, 7), (150, 147), (299, 294), (300, 300)] {
        let store = copy(&whole);
        assert_eq!(rewind(&store, to).unwrap(), Rewound { from: 300, to: end });
        assert_eq!(digests(&store), digests(&chain_of(end, 150.min(end), 1)), "back to {to}");
    }
}

#[test]
fn the_rows_read_do_not_grow_with_the_remaining_ones() {
    let read = |end: u64| {
        let store = Watched::new(chain_of(end, end, 1), u64::MAX);
        rewind(&store, end - 20).unwrap();
        store.take_read()
    };
    let (small, large) = (read(160), read(640));
    for (table, rows) in &large {
        let bound = 2 * small.get(table).copied().unwrap_or_default() + 20;
        assert!(*rows <= bound, "{table:?}: {rows} rows, and {bound} in a small database");
    }
}

#[test]
fn an_interrupted_rewind_leaves_a_consistent_database_and_continues() {
    let (to, whole) = (20, chain_of(50, 30, 1));
    let wanted = digests(&chain_of(to, to, 1));
    for commits in 0.. {
        let store = Watched::new(copy(&whole), commits);
        let begun = rewind(&store, to);
        let heights = Lane::ALL.map(|lane| lane.height(&*store.store.snapshot().unwrap()).unwrap());
        assert!(heights[0] <= heights[1] && heights[0] >= to, "{heights:?} after {commits} commits");
        store.commits_left.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(rewind(&store, to).unwrap().to, to);
        assert_eq!(digests(&store.store), wanted, "after {commits} commits");
        if begun.is_ok() {
            assert_eq!(commits, 2 * (50 - to), "a commit for each height of each lane");
            break;
        }
    }
}

#[test]
fn a_rewind_takes_the_rich_list_back_and_invalidates_all_names() {
    let (store, to) = (chain_of(40, 30, 1), 20);
    commit(&store, End::Plain, |txn| {
        meta::put(txn, &RichLane { height: 40, baseline: 1, ..RichLane::default() });
    });
    rewind(&store, to).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(meta::read::<RichLane>(&*snapshot).unwrap().unwrap().height, to);
    let changes = store::table::rows::<NameChanges>(&*snapshot, &All, Order::Desc, 1).unwrap();
    assert_eq!(changes[0].1, b"", "the row that stands for all names");
    let rewinds = meta::read::<Rewinds>(&*snapshot).unwrap().unwrap();
    assert_eq!(rewinds, Rewinds { count: 2 * 20, last_to: to });
}

#[test]
fn all_heights_are_removed_in_one_commit() {
    let whole = chain_of(60, 30, 1);
    let interrupted = Watched::new(copy(&whole), 0);
    clear(&interrupted, None).unwrap_err();
    assert_eq!(digests(&interrupted.store), digests(&whole));
    let reindex = PendingReindex { from: 1, to: 60, removed: true, ..PendingReindex::default() };
    for reindex in [None, Some(reindex)] {
        let store = Watched::new(copy(&whole), 1);
        clear(&store, reindex.as_ref()).unwrap();
        assert_eq!(digests(&store.store), digests(&database()));
        let snapshot = store.store.snapshot().unwrap();
        assert_eq!(meta::read::<PendingReindex>(&*snapshot).unwrap(), reindex);
        assert_eq!(meta::read::<BlockLane>(&*snapshot).unwrap(), None);
        assert_eq!(meta::read::<CallLane>(&*snapshot).unwrap(), None);
        assert!(meta::read::<Rewinds>(&*snapshot).unwrap().unwrap().count > 0);
    }
}
