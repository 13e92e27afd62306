//! Lists against plain vectors: pushes of transactions, reads, and truncation.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};
use store::{
    Access, Batch, Bounds, COUNT, Counts, Durability, Error, Key, List, MemStore, Order, Snapshot, Store,
    TableSpec, Txn, key::Text, list,
};

/// All values, in one list.
struct Global;

impl List for Global {
    const SPEC: &'static TableSpec = &TableSpec { name: "global", tag: 0x20, access: Access::Scan };
    type Owner = ();
}

struct ByName;

impl List for ByName {
    const SPEC: &'static TableSpec = &TableSpec { name: "by_name", tag: 0x21, access: Access::Scan };
    type Owner = Text;
}

const NAMES: [&str; 4] = ["", "\0", "a", "aa"];

fn name(index: usize) -> Text {
    NAMES[index].into()
}

/// A list per name; `Global` has the index `NAMES.len()`.
type Model = BTreeMap<usize, Vec<u64>>;

/// Pushes onto lists and how the transaction ends.
#[derive(Debug, Clone)]
struct Round {
    pushes: Vec<(usize, u64)>,
    end: End,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Committed,
    /// Committed, but the lengths were not absorbed.
    Unabsorbed,
    /// Finished, but the commit failed.
    Failed,
    Dropped,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let end = prop_oneof![
        4 => Just(End::Committed), 1 => Just(End::Unabsorbed), 1 => Just(End::Failed), 1 => Just(End::Dropped),
    ];
    let pushes = vec((0..=NAMES.len(), 1_u64..100), 0..150);
    vec((pushes, end).prop_map(|(pushes, end)| Round { pushes, end }), 0..8)
}

fn push(txn: &mut Txn<'_>, list: usize, value: u64) -> Result<u64, Error> {
    if list == NAMES.len() { txn.push::<Global>(&(), value) } else { txn.push::<ByName>(&name(list), value) }
}

fn txn_len(txn: &mut Txn<'_>, list: usize) -> u64 {
    if list == NAMES.len() { txn.len::<Global>(&()) } else { txn.len::<ByName>(&name(list)) }.unwrap()
}

/// Plays `rounds` and returns the expected lists.
fn play(store: &dyn Store, rounds: &[Round]) -> Model {
    let mut counts = Counts::new(2); // Fewer than lists, so that some lengths are always read.
    let mut model = Model::new();
    let mut value = 0;
    for round in rounds {
        let before = model.clone();
        let snapshot = store.snapshot().unwrap();
        let mut txn = Txn::new(&*snapshot, &mut counts);
        for &(list, step) in &round.pushes {
            value += step;
            let entries = model.entry(list).or_default();
            assert_eq!(push(&mut txn, list, value).unwrap(), entries.len() as u64);
            entries.push(value);
            assert_eq!(txn_len(&mut txn, list), entries.len() as u64);
        }
        if matches!(round.end, End::Dropped) {
            model = before;
            continue;
        }
        let at_least = txn.bytes();
        let (batch, pending) = txn.finish();
        assert!(batch.bytes() <= at_least);
        match round.end {
            End::Committed => {
                store.commit(batch, Durability::Buffered).unwrap();
                counts.absorb(pending);
            }
            End::Unabsorbed => store.commit(batch, Durability::Buffered).unwrap(),
            End::Failed | End::Dropped => model = before,
        }
    }
    model
}

fn check<L: List>(snapshot: &dyn Snapshot, owner: &L::Owner, entries: &[u64]) {
    let len = list::len::<L>(snapshot, owner).unwrap();
    assert_eq!(len, entries.len() as u64);
    assert_eq!(list::slice::<L>(snapshot, owner, 0..len).unwrap(), entries);
    assert_eq!(list::get::<L>(snapshot, owner, len).unwrap(), None);
    for (ordinal, &value) in (0..).zip(entries) {
        assert_eq!(list::get::<L>(snapshot, owner, ordinal).unwrap(), Some(value));
        assert_eq!(list::position::<L>(snapshot, owner, len, value).unwrap(), ordinal);
        assert_eq!(list::position::<L>(snapshot, owner, len, value + 1).unwrap(), ordinal + 1);
        let page = ordinal..len.min(ordinal + 3);
        let expected = &entries[usize::try_from(page.start).unwrap()..usize::try_from(page.end).unwrap()];
        assert_eq!(list::slice::<L>(snapshot, owner, page).unwrap(), expected);
    }
}

fn check_all(store: &dyn Store, model: &Model) {
    let snapshot = store.snapshot().unwrap();
    let entries = |list| model.get(&list).map_or(&[][..], Vec::as_slice);
    for list in 0..NAMES.len() {
        check::<ByName>(&*snapshot, &name(list), entries(list));
    }
    check::<Global>(&*snapshot, &(), entries(NAMES.len()));
    // There are no further rows.
    let rows = |table| snapshot.scan(table, Bounds::all(), Order::Asc, usize::MAX).unwrap().len();
    let lists = model.values().filter(|entries| !entries.is_empty()).count();
    assert_eq!(rows(COUNT), lists);
    let of_entries = |entries: &Vec<u64>| (entries.len() as u64).div_ceil(list::ROW);
    assert_eq!((rows(Global::SPEC) + rows(ByName::SPEC)) as u64, model.values().map(of_entries).sum::<u64>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn lists_contain_the_committed_values(rounds in rounds()) {
        let store = MemStore::new();
        let model = play(&store, &rounds);
        check_all(&store, &model);
    }
}

/// Lists of `len` entries 0, 10, 20 …, one per owner.
fn store_lists(store: &dyn Store, owners: u64, len: u64) {
    let mut counts = Counts::new(1);
    let snapshot = store.snapshot().unwrap();
    let mut txn = Txn::new(&*snapshot, &mut counts);
    for owner in 0..owners {
        for ordinal in 0..len {
            txn.push::<ByName>(&owner.to_string().into(), ordinal * 10).unwrap();
        }
    }
    let (batch, pending) = txn.finish();
    store.commit(batch, Durability::Buffered).unwrap();
    counts.absorb(pending);
}

#[test]
fn rows_have_the_bytes_that_the_documentation_shows() {
    let store = MemStore::new();
    let (snapshot, mut counts) = (store.snapshot().unwrap(), Counts::new(1));
    for values in [300..301, 301..332, 332..335] {
        let mut txn = Txn::new(&*snapshot, &mut counts);
        for value in values {
            txn.push::<ByName>(&"ab".into(), value).unwrap();
        }
        let (batch, pending) = txn.finish();
        store.commit(batch, Durability::Buffered).unwrap();
        counts.absorb(pending);
    }
    let snapshot = store.snapshot().unwrap();
    let rows = |table| snapshot.scan(table, Bounds::all(), Order::Asc, 9).unwrap();
    let first: Vec<u8> = (0x2c..0x4c).flat_map(|low| [0x80 | low, 2]).collect();
    let second = vec![0xcc, 2, 0xcd, 2, 0xce, 2];
    assert_eq!(
        rows(ByName::SPEC),
        [(b"ab\x00\x01\0\0\0\0\0\0\0\0".to_vec(), first), (b"ab\x00\x01\0\0\0\0\0\0\0\x20".to_vec(), second)]
    );
    assert_eq!(rows(COUNT), [(b"\x21ab\x00\x01".to_vec(), vec![35])]);
}

#[test]
fn a_value_that_does_not_increase_is_refused() {
    let store = MemStore::new();
    let (snapshot, mut counts) = (store.snapshot().unwrap(), Counts::new(1));
    let mut txn = Txn::new(&*snapshot, &mut counts);
    txn.push::<Global>(&(), 5).unwrap();
    for value in [5, 4] {
        let error = txn.push::<Global>(&(), value).unwrap_err();
        assert!(matches!(error, Error::NotIncreasing { table: "global", last: 5, .. }), "{error}");
    }
    assert_eq!(txn.push::<Global>(&(), 6).unwrap(), 1);
}

fn encoded(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    store::Value::encode(&value, &mut out);
    out
}

#[test]
fn a_gap_in_a_list_is_an_error_with_the_row() {
    let store = MemStore::new();
    store_lists(&store, 1, 100);
    let owner = Text::from("0");
    let missing = (owner.clone(), list::ROW).to_bytes();
    // Lost, shorter by an entry, and bytes that are not entries.
    let short: Vec<u8> = (32..62_u64).flat_map(|ordinal| encoded(ordinal * 10)).collect();
    for row in [None, Some(short), Some(vec![0x80])] {
        let mut batch = Batch::new();
        match row {
            Some(row) => batch.put(ByName::SPEC, missing.clone(), row),
            None => batch.delete(ByName::SPEC, missing.clone()),
        }
        store.commit(batch, Durability::Buffered).unwrap();
        let snapshot = store.snapshot().unwrap();
        for error in [
            list::slice::<ByName>(&*snapshot, &owner, 30..70).unwrap_err(),
            list::slice::<ByName>(&*snapshot, &owner, 62..63).unwrap_err(),
            list::position::<ByName>(&*snapshot, &owner, 100, 625).unwrap_err(),
            list::entries::<ByName>(&*snapshot, [(&owner, 62)].into_iter()).unwrap_err(),
        ] {
            assert!(
                matches!(&error, Error::Corrupt { table: "by_name", key, .. } if *key == missing),
                "{error}"
            );
        }
        assert_eq!(list::slice::<ByName>(&*snapshot, &owner, 64..66).unwrap(), [640, 650]);
        assert!(list::slice::<ByName>(&*snapshot, &owner, 98..101).is_err(), "beyond the end");
    }
}

#[test]
fn a_length_that_is_damaged_is_an_error_and_not_an_empty_list() {
    let store = MemStore::new();
    let mut batch = Batch::new();
    batch.put(COUNT, vec![Global::SPEC.tag], vec![0x80]);
    store.commit(batch, Durability::Buffered).unwrap();
    let (snapshot, mut counts) = (store.snapshot().unwrap(), Counts::new(1));
    assert!(matches!(list::len::<Global>(&*snapshot, &()), Err(Error::Corrupt { table: "count", .. })));
    let mut txn = Txn::new(&*snapshot, &mut counts);
    assert!(matches!(txn.push::<Global>(&(), 1), Err(Error::Corrupt { table: "count", .. })));
}
