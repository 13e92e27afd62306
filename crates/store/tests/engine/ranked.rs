//! Ranked sets against sorted maps: every rank, every slice, and equal rows whatever the history of the set.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};
use store::{
    Access, Bounds, Counts, Durability, MemStore, Order, RANK, Ranked, Row, Store, Table, TableSpec, Txn,
    key::Text, ranked,
};

/// A small skip list tests few levels: here every second item is promoted.
struct Names;

impl Table for Names {
    const SPEC: &'static TableSpec = &TableSpec { name: "names", tag: 0x10, access: Access::Ranked };
    type Key = (u8, Text);
    type Value = u64;
}

impl Ranked for Names {
    type Owner = u8;
    type Item = Text;
    const PROMOTION_BITS: u32 = 1;
}

/// With the promotion bits of production.
struct Numbers;

impl Table for Numbers {
    const SPEC: &'static TableSpec = &TableSpec { name: "numbers", tag: 0x11, access: Access::Ranked };
    type Key = ((), u32);
    type Value = ();
}

impl Ranked for Numbers {
    type Owner = ();
    type Item = u32;
}

type Model = BTreeMap<(u8, String), u64>;

#[derive(Debug, Clone)]
enum Step {
    Insert(u8, String, u64),
    Remove(u8, String),
    Commit,
}

fn step() -> impl Strategy<Value = Step> {
    let name = || prop_oneof!["[a-c]{0,3}", "[a-z]{1,2}"];
    prop_oneof![
        5 => (0_u8..3, name(), any::<u64>()).prop_map(|(owner, name, value)| Step::Insert(owner, name, value)),
        3 => (0_u8..3, name()).prop_map(|(owner, name)| Step::Remove(owner, name)),
        1 => Just(Step::Commit),
    ]
}

/// Runs steps, with a commit at each `Step::Commit` and at the end; checks the result of each step.
fn run(store: &dyn Store, steps: &[Step]) -> Model {
    let mut model = Model::new();
    let mut counts = Counts::new(1);
    for (number, group) in steps.split(|step| matches!(step, Step::Commit)).enumerate() {
        let snapshot = store.snapshot().unwrap();
        let mut txn = Txn::new(&*snapshot, &mut counts);
        for step in group {
            match step {
                Step::Insert(owner, name, value) => {
                    let new = txn.insert::<Names>(owner, &Text(name.clone()), value).unwrap();
                    assert_eq!(new, model.insert((*owner, name.clone()), *value).is_none());
                }
                Step::Remove(owner, name) => {
                    let was = txn.remove::<Names>(owner, &Text(name.clone())).unwrap();
                    assert_eq!(was, model.remove(&(*owner, name.clone())).is_some());
                }
                Step::Commit => unreachable!("the groups are between commits"),
            }
        }
        // The transaction reads its own writes.
        for owner in 0..3 {
            let expected = model.keys().filter(|(o, _)| *o == owner).count() as u64;
            assert_eq!(txn.set_len::<Names>(&owner).unwrap(), expected);
        }
        let (batch, pending) = txn.finish();
        store.commit(batch, Durability::Buffered).unwrap();
        // Some sets are read from the store again.
        if number % 3 < 2 {
            counts.absorb(pending);
        }
    }
    model
}

fn rank_rows(store: &dyn Store) -> Vec<Row> {
    store.snapshot().unwrap().scan(RANK, Bounds::all(), Order::Asc, usize::MAX).unwrap()
}

proptest! {
    #[test]
    fn every_rank_and_slice_is_that_of_a_sorted_map(steps in vec(step(), 0..300), probe in "[a-d]{0,3}") {
        let store = MemStore::new();
        let model = run(&store, &steps);
        let snapshot = store.snapshot().unwrap();
        for owner in 0..3_u8 {
            let mine: Vec<(Text, u64)> =
                model.iter().filter(|((o, _), _)| *o == owner).map(|((_, n), v)| (Text(n.clone()), *v)).collect();
            let len = mine.len() as u64;
            prop_assert_eq!(ranked::len::<Names>(&*snapshot, &owner).unwrap(), len);
            for start in 0..=len {
                let end = (start + 3).min(len);
                let want = &mine[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()];
                prop_assert_eq!(&ranked::slice::<Names>(&*snapshot, &owner, start..end).unwrap(), want);
            }
            let before = mine.iter().filter(|(name, _)| name.0 < probe).count() as u64;
            prop_assert_eq!(ranked::position::<Names>(&*snapshot, &owner, &Text(probe.clone())).unwrap(), before);
        }
    }

    #[test]
    fn the_rows_do_not_depend_on_earlier_insertions_and_removals(steps in vec(step(), 0..200)) {
        let (store, fresh) = (MemStore::new(), MemStore::new());
        let model = run(&store, &steps);
        let inserts: Vec<Step> = model.iter().rev().map(|((o, n), v)| Step::Insert(*o, n.clone(), *v)).collect();
        run(&fresh, &inserts);
        prop_assert_eq!(rank_rows(&store), rank_rows(&fresh));
    }
}

#[test]
fn a_set_of_many_items_is_searched_on_all_levels() {
    let store = MemStore::new();
    let snapshot = store.snapshot().unwrap();
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    // In neither ascending nor descending order.
    for i in 0..20_000_u32 {
        txn.insert::<Numbers>(&(), &(i.wrapping_mul(7_919) % 20_000), &()).unwrap();
    }
    let (batch, _pending) = txn.finish();
    drop(snapshot);
    store.commit(batch, Durability::Buffered).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(ranked::len::<Numbers>(&*snapshot, &()).unwrap(), 20_000);
    for rank in [0, 1, 63, 64, 4_095, 9_999, 19_900] {
        let page = ranked::slice::<Numbers>(&*snapshot, &(), u64::from(rank)..u64::from(rank) + 100).unwrap();
        assert_eq!(page, (rank..rank + 100).map(|n| (n, ())).collect::<Vec<_>>());
        assert_eq!(ranked::position::<Numbers>(&*snapshot, &(), &rank).unwrap(), u64::from(rank));
    }
    let nodes = rank_rows(&store).len();
    assert!((250..=400).contains(&nodes), "{nodes} nodes for 20,000 items");
}
