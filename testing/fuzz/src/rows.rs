//! Keys and values of every table: encoding is the inverse of decoding, and bytes sort like values.
//!
//! [`schema::visit`] lists the tables, so a new one is fuzzed without a change here.

use std::any::TypeId;
use std::sync::LazyLock;

use schema::Visitor;
use schema::payload::{Chunk, Payload};
use store::key::{Desc, Text};
use store::{Key, List, Table, Value};

use crate::input::Input;
use crate::recorded::chains;

/// Checks the bytes of a row; returns whether they decode.
type Check = fn(key: &[u8], value: &[u8]) -> bool;

/// A table with its check.
struct Checked {
    name: &'static str,
    check: Check,
}

static TABLES: LazyLock<Vec<Checked>> = LazyLock::new(|| {
    struct Collect(Vec<Checked>);
    impl Visitor for Collect {
        fn table<T: Table>(&mut self) {
            self.0.push(Checked { name: T::SPEC.name, check: row::<T> });
        }

        fn list<L: List>(&mut self) {
            self.0.push(Checked { name: L::SPEC.name, check: entry::<L> });
        }
    }
    let mut tables = Collect(Vec::new());
    schema::visit(&mut tables);
    // Keys of the length and skip-list tables contain keys of other tables.
    let length: Check = |key, value| {
        key_of::<(u8, Text)>(key);
        exact::<u64>(value);
        <(u8, Text)>::from_bytes(key).is_some()
    };
    tables.0.push(Checked { name: store::COUNT.name, check: length });
    assert_eq!(tables.0.len() + 1, schema::TABLES.len(), "every table but that of skip lists");
    tables.0
});

/// Input: a byte for the table, the key with its length, and the value.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let which = usize::from(input.byte());
    let (key, value) = (input.piece(), input.rest());
    payload(value);
    if let Some(table) = TABLES.get(which % (TABLES.len() + 1)) {
        return (table.check)(key, value);
    }
    parts(key, value);
    true
}

fn row<T: Table>(key: &[u8], value: &[u8]) -> bool {
    key_of::<T::Key>(key);
    value_of::<T::Value>(value);
    let both = store::table::decode_row::<T>(key, value);
    assert_eq!(both.is_ok(), T::Key::from_bytes(key).is_some() && T::Value::decode(value).is_some());
    both.is_ok()
}

fn entry<L: List>(key: &[u8], value: &[u8]) -> bool {
    key_of::<(L::Owner, u64)>(key);
    exact::<u64>(value);
    <(L::Owner, u64)>::from_bytes(key).is_some() && u64::decode(value).is_some()
}

/// Checks that a key decodes from its bytes, also if other bytes follow.
fn key_of<K: Key>(bytes: &[u8]) {
    let mut rest = bytes;
    let Some(key) = K::take(&mut rest) else {
        assert!(K::from_bytes(bytes).is_none());
        return;
    };
    let taken = &bytes[..bytes.len() - rest.len()];
    assert_eq!(key.to_bytes(), taken, "a key is written as it was read");
    assert_eq!(K::from_bytes(bytes).is_some(), rest.is_empty(), "a whole key is all of its bytes");
    for end in 0..taken.len() {
        assert!(K::from_bytes(&taken[..end]).is_none(), "no key is the beginning of another one");
    }
}

/// Checks that encoding is the inverse of decoding; for messages, after we have encoded them once.
fn value_of<V: Value + 'static>(bytes: &[u8]) {
    let plain = [
        TypeId::of::<()>(),
        TypeId::of::<u64>(),
        TypeId::of::<Vec<u8>>(),
        TypeId::of::<String>(),
        TypeId::of::<Payload>(),
    ];
    if plain.contains(&TypeId::of::<V>()) {
        return exact::<V>(bytes);
    }
    if let Some(value) = V::decode(bytes) {
        let written = value.encoded();
        exact::<V>(&written);
        assert!(V::decode(&written).is_some(), "an encoded value decodes");
    }
}

fn exact<V: Value>(bytes: &[u8]) {
    if let Some(value) = V::decode(bytes) {
        assert_eq!(value.encoded(), bytes, "a value is written as it was read");
    }
}

/// Checks that encoded key parts sort like their values.
fn parts(one: &[u8], other: &[u8]) {
    let texts = [one, other].map(|bytes| Text(String::from_utf8_lossy(bytes).into_owned()));
    let numbers = [one, other].map(|bytes| Input::new(bytes).long());
    let bytes = [one, other].map(|bytes| store::key::Bytes::new(&bytes[..bytes.len().min(255)]).unwrap());
    let both = |index: usize| (texts[index].clone(), numbers[index]);
    let turned = |index: usize| (Desc(numbers[index]), texts[index].clone());
    sorted(&texts[0], &texts[1]);
    sorted(&numbers[0], &numbers[1]);
    sorted(&both(0), &both(1));
    sorted(&turned(0), &turned(1));
    sorted(&Desc(texts[0].clone()), &Desc(texts[1].clone()));
    assert_eq!(bytes[0] == bytes[1], bytes[0].to_bytes() == bytes[1].to_bytes());
    key_of::<(Desc<Text>, u64)>(one);
    key_of::<(Desc<u64>, store::key::Bytes)>(one);
}

fn sorted<K: Key + Ord>(one: &K, other: &K) {
    assert_eq!(one.cmp(other), one.to_bytes().cmp(&other.to_bytes()), "bytes sort as values do");
    assert!(K::from_bytes(&one.to_bytes()).is_some_and(|read| read == *one));
}

/// Checks a stored record: decompression respects the stated length, and a failure leaves the output unchanged.
fn payload(bytes: &[u8]) {
    let mut out = b"#".to_vec();
    let read = chains()[0].codec.decode_into(schema::tx::Txs::SPEC, 1, bytes, &mut out);
    if read.is_err() {
        assert_eq!(out, b"#", "an error leaves the output unchanged");
    }
    if let Some(ranges) = Chunk::ranges(bytes) {
        assert!(ranges.windows(2).all(|two| two[0].end == two[1].start));
        assert!(ranges.last().is_none_or(|last| last.end == bytes.len()));
    }
}

/// A few rows of each table of a small chain.
pub fn seeds() -> Vec<Vec<u8>> {
    let store = crate::request::store("wasm-scenario");
    let snapshot = store.snapshot().unwrap();
    let mut seeds = Vec::new();
    for (number, table) in (0_u8..).zip(TABLES.iter()) {
        let spec = schema::TABLES.iter().find(|spec| spec.name == table.name).unwrap();
        let rows = snapshot.scan(spec, store::Bounds::all(), store::Order::Desc, 2).unwrap();
        let seed = |(key, value): &(Vec<u8>, Vec<u8>)| {
            let length = u8::try_from(key.len()).ok()?;
            (value.len() <= 1024).then(|| [&[number, length], key.as_slice(), value.as_slice()].concat())
        };
        // Tables without rows are reached by seeds whose first byte is changed.
        seeds.extend(rows.iter().filter_map(seed));
    }
    let order = u8::try_from(TABLES.len()).unwrap();
    seeds.push([&[order, 3], b"a\0bab".as_slice()].concat());
    seeds
}
