//! Pages of a set that changes, against a sorted model.

use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::Index;
use query::array::Array;
use query::array::set::{InMemory, Set};
use query::cursor::{Cursor, Row, Space, Start, decode, encode};
use query::page::{Direction, Page, PageRequest, page};
use serde_json::{Map, Value};
use store::key::Text;
use store::{Access, Counts, Durability, Key, MemStore, Ranked, Store, Table, TableSpec, Txn};

/// A row with a number that many rows share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item(u8, Text);

impl Key for Item {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn put_json(&self, out: &mut Vec<Value>) {
        self.0.put_json(out);
        self.1.put_json(out);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        Some(Self(u8::take(input)?, Text::take(input)?))
    }
}

impl Row for Item {
    fn deployed(_: Space, _: &Map<String, Value>) -> Option<Start<Self>> {
        None
    }
}

struct Items;

impl Table for Items {
    const SPEC: &'static TableSpec = &TableSpec { name: "items", tag: 0xf0, access: Access::Ranked };
    type Key = (u8, Item);
    type Value = ();
}

impl Ranked for Items {
    type Owner = u8;
    type Item = Item;
    // Several levels even in small sets.
    const PROMOTION_BITS: u32 = 1;
}

const OWNER: u8 = 7;

fn item() -> impl Strategy<Value = Item> {
    (0_u8..4, "[a-c\0]{0,2}").prop_map(|(number, text)| Item(number, Text(text)))
}

fn items() -> impl Strategy<Value = BTreeSet<Item>> {
    prop::collection::btree_set(item(), 0..40)
}

/// Makes the set equal to `model`, with rows of other owners next to it.
fn filled(model: &BTreeSet<Item>) -> MemStore {
    let store = MemStore::new();
    let stranger = Item(1, Text::from("b"));
    change(&store, |txn| {
        for owner in [OWNER - 1, OWNER + 1] {
            txn.insert::<Items>(&owner, &stranger, &()).unwrap();
        }
        for item in model {
            txn.insert::<Items>(&OWNER, item, &()).unwrap();
        }
    });
    store
}

fn change(store: &MemStore, write: impl FnOnce(&mut Txn<'_>)) {
    let snapshot = store.snapshot().unwrap();
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    write(&mut txn);
    let (batch, _) = txn.finish();
    drop(snapshot);
    store.commit(batch, Durability::Buffered).unwrap();
}

fn ask(store: &MemStore, at: Start<Item>, limit: u64, direction: Direction) -> Page<Item> {
    let snapshot = store.snapshot().unwrap();
    let set = Set::<Items>::all(&*snapshot, OWNER).unwrap();
    page(&set, &PageRequest { at: on_the_wire(at), limit, direction }).unwrap()
}

/// A cursor after a round trip through a client.
fn on_the_wire(start: Start<Item>) -> Start<Item> {
    match start {
        Start::Row(cursor) => decode(Space::Holders, &encode(Space::Holders, cursor)).unwrap().unwrap(),
        other => other,
    }
}

fn ordered(model: &BTreeSet<Item>, direction: Direction) -> Vec<Item> {
    match direction {
        Direction::Ascending => model.iter().cloned().collect(),
        Direction::Descending => model.iter().rev().cloned().collect(),
    }
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)]
}

proptest! {
    #[test]
    fn pages_of_every_length_cover_the_set_in_both_directions(
        model in items(), limit in 1_u64..45, direction in direction()
    ) {
        let store = filled(&model);
        let wanted = ordered(&model, direction);
        let mut pages = vec![ask(&store, Start::Offset(0), limit, direction)];
        while let Some(next) = pages[pages.len() - 1].next.clone() {
            pages.push(ask(&store, Start::Row(next), limit, direction));
        }
        for (chunk, (i, one)) in wanted.chunks(usize::try_from(limit).unwrap()).zip(pages.iter().enumerate()) {
            prop_assert_eq!(&one.rows, chunk);
            prop_assert_eq!(one.total, model.len() as u64);
            prop_assert_eq!(one.previous.is_some(), i > 0);
            if let Some(previous) = one.previous.clone() {
                prop_assert_eq!(&ask(&store, Start::Row(previous), limit, direction), &pages[i - 1]);
            }
        }
        prop_assert_eq!(pages.len(), wanted.chunks(usize::try_from(limit).unwrap()).len().max(1));
    }

    #[test]
    fn an_offset_is_a_position_at_any_depth_and_past_the_end(
        model in items(), offset in 0_u64..50, limit in 1_u64..10, direction in direction()
    ) {
        let store = filled(&model);
        let wanted = ordered(&model, direction);
        let one = ask(&store, Start::Offset(offset), limit, direction);
        let place = |at: u64| usize::try_from(at).unwrap().min(wanted.len());
        prop_assert_eq!(&one.rows, &wanted[place(offset)..place(offset + limit)]);
        if let Some(previous) = one.previous {
            let before = ask(&store, Start::Row(previous), limit, direction).rows;
            prop_assert_eq!(&before, &wanted[place(offset).saturating_sub(place(limit))..place(offset)]);
        } else {
            prop_assert!(place(offset) == 0);
        }
    }

    #[test]
    fn changes_between_pages_lose_and_repeat_no_remaining_row(
        model in items(), limit in 1_u64..6, direction in direction(),
        changes in prop::collection::vec((any::<Index>(), any::<bool>(), item()), 60),
        turn in 1_usize..12,
    ) {
        let store = filled(&model);
        let (mut now, mut staying) = (model.clone(), model.clone());
        let mut one = ask(&store, Start::Offset(0), limit, direction);
        let mut seen = one.rows.clone();
        let mut pages = 1;
        for changes in changes.chunks(3) {
            let Some(next) = one.next.clone() else { break };
            change(&store, |txn| {
                for (which, remove, item) in changes {
                    // Mostly existing rows, including those at the edges of pages.
                    let item = if *remove && !now.is_empty() {
                        now.iter().nth(which.index(now.len())).unwrap().clone()
                    } else {
                        item.clone()
                    };
                    if *remove {
                        txn.remove::<Items>(&OWNER, &item).unwrap();
                        now.remove(&item);
                        staying.remove(&item);
                    } else {
                        txn.insert::<Items>(&OWNER, &item, &()).unwrap();
                        now.insert(item);
                    }
                }
            });
            one = ask(&store, Start::Row(next), limit, direction);
            prop_assert_eq!(one.total, now.len() as u64);
            seen.extend(one.rows.clone());
            pages += 1;
            if pages == turn { break; }
        }
        let mut strictly = seen.clone();
        strictly.sort();
        if direction == Direction::Descending { strictly.reverse(); }
        strictly.dedup();
        prop_assert_eq!(&seen, &strictly, "in order, none twice");
        let wanted = ordered(&staying, direction);
        let kept: Vec<Item> = seen.iter().filter(|item| staying.contains(item)).cloned().collect();
        if one.next.is_none() {
            prop_assert_eq!(&kept, &wanted);
        } else {
            prop_assert_eq!(&kept[..], &wanted[..kept.len()]);
        }
        // And back: all remaining rows, from the current page to the first.
        let mut back = one.rows.clone();
        while let Some(previous) = one.previous {
            one = ask(&store, Start::Row(previous), limit, direction);
            back.splice(0..0, one.rows.clone());
        }
        let last = seen.last().cloned();
        let upto: Vec<Item> = ordered(&now, direction)
            .into_iter()
            .take_while(|item| last.as_ref().is_some_and(|last| match direction {
                Direction::Ascending => item <= last,
                Direction::Descending => item >= last,
            }))
            .collect();
        // A page past the end of the remaining rows has no row as its position.
        if !back.is_empty() { prop_assert_eq!(back, upto); }
    }

    #[test]
    fn a_part_of_a_set_and_rows_in_memory_are_arrays_too(
        model in items(), (from, to) in (item(), item()), probe in item(), (a, b) in (any::<Index>(), any::<Index>())
    ) {
        let (from, to) = if from <= to { (from, to) } else { (to, from) };
        let store = filled(&model);
        let snapshot = store.snapshot().unwrap();
        let part = Set::<Items>::all(&*snapshot, OWNER).unwrap().within(&from, &to).unwrap();
        let wanted: Vec<Item> = model.range(from..to).cloned().collect();
        let found = InMemory(wanted.iter().collect());
        let (a, b) = (a.index(wanted.len() + 1), b.index(wanted.len() + 1));
        for array in [&part as &dyn Array<Row = Item>, &found] {
            prop_assert_eq!(array.len(), wanted.len() as u64);
            let (before, upto) = (wanted.partition_point(|x| *x < probe), wanted.partition_point(|x| *x <= probe));
            prop_assert_eq!(array.position(&probe).unwrap(), before as u64);
            prop_assert_eq!(array.upper_bound(&probe).unwrap(), upto as u64);
            let range: Range<u64> = a.min(b) as u64..a.max(b) as u64;
            prop_assert_eq!(array.slice(range).unwrap(), &wanted[a.min(b)..a.max(b)]);
        }
    }
}

#[test]
fn a_cursor_of_the_end_is_the_last_page_in_either_direction() {
    let model: BTreeSet<Item> = (0..4).map(|n| Item(n, Text::from("x"))).collect();
    let store = filled(&model);
    let end = |direction| ask(&store, Start::Row(Cursor::End), 3, direction).rows;
    assert_eq!(end(Direction::Ascending), ordered(&model, Direction::Ascending)[1..]);
    assert_eq!(end(Direction::Descending), ordered(&model, Direction::Descending)[1..]);
}
