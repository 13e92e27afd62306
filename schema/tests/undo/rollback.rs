//! Result and cost of a rollback beyond the undo records, also if it is interrupted.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use schema::evm_tx::{AccountEvmTxs, EvmTxs};
use schema::internal_tx::{AccountCalls, Calls};
use schema::meta::{self, PendingNftRebuild, PendingRollback, Rewinds, RichLane};
use schema::msg_set::MsgSets;
use schema::nft::rebuild::FOLDED;
use schema::nft::{NameChanges, NonCollections, PendingEvents, Questions, Renewals, Tokens};
use schema::rich::{Holders, set_balance};
use schema::rollback::{finish_pending, is_pending, rollback};
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, Txs};
use schema::undo::{Lane, Record, UndoRecords};
use store::key::All;
use store::{Batch, COUNT, Durability, List as _, Message, Order, RANK, Store as _, Table as _};

use crate::sample_chain::{chain_of, copy, digests};
use crate::watched::Watched;
use crate::{End, commit, records_by_key};

#[test]
fn a_rolled_back_database_equals_an_undisturbed_one() {
    let (end, mints) = (400, 200);
    let whole = chain_of(end, mints);
    for to in [1, 63, 64, 150, 200, 201, 330, 399, 400] {
        let store = copy(&whole);
        rollback(&store, to).unwrap();
        assert!(!is_pending(&store).unwrap());
        assert_eq!(digests(&store), digests(&chain_of(to, mints.min(to))), "back to {to}");
    }
}

#[test]
fn the_rows_read_grow_with_the_removed_rows_and_not_with_the_remaining_ones() {
    let read = |end: u64| {
        let store = Watched::new(chain_of(end, 10), u64::MAX);
        rollback(&store, end - 20).unwrap();
        assert_eq!(digests(&store.store), digests(&chain_of(end - 20, 10)));
        let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(4) as u64;
        let held = store.most_held.load(Ordering::Relaxed);
        assert!(
            (1..=jobs).contains(&held),
            "each job holds one snapshot, and none is held from stage to stage"
        );
        store.take_read()
    };
    // The same position between two sets, so that the same rows are removed.
    let (small, large) = (read(640), read(2560));
    // Reads the end of each list of Cosmos accounts, all sets, and the tables of queries about NFTs.
    let grows = [
        (COUNT.name, AccountTxs::SPEC.tag),
        (COUNT.name, AccountSetTxs::SPEC.tag),
        (COUNT.name, SetTxs::SPEC.tag),
        (AccountTxs::SPEC.name, 0),
        (AccountSetTxs::SPEC.name, 0),
        (SetTxs::SPEC.name, 0),
        (MsgSets::SPEC.name, 0),
        (NonCollections::SPEC.name, 0),
        (PendingEvents::SPEC.name, 0),
        (Questions::SPEC.name, 0),
        (Renewals::SPEC.name, 0),
    ];
    for (table, rows) in &large {
        // A search in a list four times as long takes two more steps.
        let bound = small.get(table).copied().unwrap_or_default() + 2 * 3;
        assert!(
            grows.contains(table) || *rows <= bound,
            "{table:?}: {rows} rows, {bound} in a small database"
        );
        assert!(FOLDED.iter().all(|spec| spec.name != table.0), "{table:?} was read though no NFT goes");
    }
    assert_eq!(large[&(Txs::SPEC.name, 0)], 20 + 1, "each record that goes, and whether there is one");
    // Lengths are read for the accounts of removed records only.
    assert!(
        large[&(COUNT.name, AccountEvmTxs::SPEC.tag)] < 3 * 20
            && large[&(COUNT.name, AccountCalls::SPEC.tag)] < 3 * 20
    );
}

#[test]
fn a_rollback_rewinds_the_rich_list_and_invalidates_all_names() {
    let (store, to) = (chain_of(40, 30), 20);
    commit(&store, End::Plain, |txn| {
        meta::put(txn, &RichLane { height: 40, baseline: 1, ..RichLane::default() });
    });
    rollback(&store, to).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(meta::read::<RichLane>(&*snapshot).unwrap().unwrap().height, to);
    let changes = store::table::rows::<NameChanges>(&*snapshot, &All, Order::Desc, 1).unwrap();
    assert_eq!(changes[0].1, b"", "the row that stands for all names");
    assert_eq!(meta::read::<Rewinds>(&*snapshot).unwrap(), Some(Rewinds { count: 1, last_to: to }));
}

#[test]
fn rows_beside_a_removed_range_remain() {
    let (store, to, contract) = (chain_of(40, 30), 20, [0xcc; 20]);
    commit(&store, End::Plain, |txn| {
        meta::put(txn, &RichLane { height: to, baseline: 1, ..RichLane::default() });
        set_balance(txn, &contract, &[1; 20], Some([7; 32])).unwrap();
        for lane in [1_u8, 2] {
            for height in [to, to + 1] {
                txn.put::<UndoRecords>(&(lane, height, 0), &Message(Record::default()));
            }
        }
    });
    rollback(&store, to).unwrap();
    assert_eq!(records_by_key(&store), [(to, 0), (to, 0)]);
    let snapshot = store.snapshot().unwrap();
    // Its counts share a table with those of the NFTs.
    assert_eq!(store::ranked::len::<Holders>(&*snapshot, &contract).unwrap(), 1);
}

#[test]
fn a_rollback_writes_only_the_nfts_of_removed_events() {
    let read = |end: u64| {
        let store = Watched::new(chain_of(end, end), u64::MAX);
        rollback(&store, end - 4).unwrap();
        assert_eq!(digests(&store.store), digests(&chain_of(end - 4, end - 4)));
        store.take_read()
    };
    let (small, large) = (read(100), read(400));
    let of_sets = |read: &BTreeMap<(&'static str, u8), u64>, name| {
        read.iter().filter(|((table, _), _)| *table == name).map(|(_, rows)| rows).sum::<u64>()
    };
    for spec in FOLDED {
        let (small, large) = (of_sets(&small, spec.name), of_sets(&large, spec.name));
        assert!(large < 2 * small + 10, "{}: {small} rows, then {large}", spec.name);
    }
}

#[test]
fn damaged_nfts_are_rebuilt_by_a_rollback() {
    let (whole, to) = (chain_of(60, 60), 40);
    let store = copy(&whole);
    let mut batch = Batch::new();
    batch.delete_range(RANK, vec![Tokens::SPEC.tag], vec![Tokens::SPEC.tag + 1]);
    store.commit(batch, Durability::Buffered).unwrap();
    rollback(&store, to).unwrap();
    assert_eq!(digests(&store), digests(&chain_of(to, to)));
}

#[test]
fn a_rebuild_that_an_earlier_version_began_is_finished() {
    let (whole, to) = (chain_of(60, 30), 20);
    // It stored no position.
    let store = copy(&whole);
    commit(&store, End::Plain, |txn| meta::put(txn, &PendingRollback { to, ..PendingRollback::default() }));
    finish_pending(&store).unwrap();
    assert_eq!(digests(&store), digests(&chain_of(to, to)));
    // It emptied the tables of NFTs row by row.
    let store = copy(&whole);
    commit(&store, End::Plain, |txn| {
        meta::put(txn, &PendingNftRebuild::default());
        let (token, _) = store::table::rows::<Tokens>(txn, &All, Order::Asc, 1).unwrap().remove(0);
        txn.delete::<Tokens>(&token);
    });
    finish_pending(&store).unwrap();
    assert_eq!(digests(&store), digests(&whole));
    // It wrote the sets together with the tokens.
    let store = copy(&whole);
    commit(&store, End::Plain, |txn| {
        meta::put(txn, &PendingNftRebuild { emptied: true, height: 25, indexes_last: false });
    });
    finish_pending(&store).unwrap();
    assert_eq!(digests(&store), digests(&whole));
}

#[test]
fn missing_or_damaged_records_leave_no_dependent_rows() {
    let (whole, to) = (chain_of(200, 0), 150);
    let wanted = digests(&chain_of(to, 0));
    for (spec, seq) in
        [(Txs::SPEC, 200), (Txs::SPEC, 151), (EvmTxs::SPEC, 170), (Calls::SPEC, 399), (Calls::SPEC, 351)]
    {
        for damaged in [None, Some(vec![0xff, 1, 2])] {
            let store = copy(&whole);
            let mut batch = Batch::new();
            let key = u64::to_be_bytes(seq).to_vec();
            match damaged {
                None => batch.delete(spec, key),
                Some(value) => batch.put(spec, key, value),
            }
            store.commit(batch, Durability::Buffered).unwrap();
            rollback(&store, to).unwrap();
            assert_eq!(digests(&store), wanted, "{} {seq}", spec.name);
        }
    }
}

#[test]
fn a_rollback_stopped_between_two_parts_of_a_table_continues_there() {
    let (end, to) = (2_200, 100);
    let (whole, wanted) = (chain_of(end, 0), digests(&chain_of(to, 0)));
    let mut between = 0;
    for commits in 1.. {
        let store = Watched::new(copy(&whole), commits);
        if rollback(&store, to).is_ok() {
            break;
        }
        let pending = meta::read::<PendingRollback>(&*store.store.snapshot().unwrap()).unwrap().unwrap();
        // The tables are truncated concurrently, so not each of them is seen between its parts.
        let lasts = [pending.txs, pending.evm_txs, pending.calls.map(|last| last.div_ceil(2))];
        if lasts.into_iter().flatten().any(|last| last > to && last < end) {
            between += 1;
            finish_pending(&store.store).unwrap();
            assert_eq!(digests(&store.store), wanted, "after {commits} commits");
        }
    }
    assert!(between > 0, "the records were removed in one commit");
}

#[test]
fn an_interrupted_rollback_continues_at_its_position() {
    let (end, to, mints) = (2_200, 120, 130);
    let whole = chain_of(end, mints);
    let wanted = digests(&chain_of(to, to));
    for commits in 0.. {
        let store = Watched::new(copy(&whole), commits);
        let begun = rollback(&store, to);
        assert_eq!(
            is_pending(&store.store).unwrap(),
            commits > 0 && begun.is_err(),
            "after {commits} commits"
        );
        if begun.is_ok() {
            assert!(commits > 20, "only {commits} commits");
            break;
        }
        if commits == 0 {
            continue;
        }
        // Readers access no row that is being removed.
        let snapshot = store.store.snapshot().unwrap();
        assert_eq!(Lane::ALL.map(|lane| lane.height(&*snapshot).unwrap()), [to, to]);
        drop(snapshot);
        // It is interrupted repeatedly, after fewer commits than the fold takes: if it restarted each time, it would
        // never end.
        let mut rounds = 0;
        loop {
            store.commits_left.store(1 + rounds % 3, Ordering::Relaxed);
            rounds += 1;
            if finish_pending(&store).is_ok() {
                break;
            }
            assert!(rounds < 60, "it does not get to its end");
        }
        assert_eq!(digests(&store.store), wanted, "after {commits} commits");
    }
}
