//! Keys: round trip, order, and concatenation of components.

use proptest::{collection::vec, prelude::*};
use store::{
    Access, Batch, Durability, Key, MemStore, Order, PrefixOf, Store, Table, TableSpec,
    key::{All, Bytes, Desc, Text},
    table,
};

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..6).prop_map(|bytes| Bytes::new(&bytes).unwrap())
}

/// Short, and rich in the bytes that are escaped.
fn text() -> impl Strategy<Value = Text> {
    vec(prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('ÿ'), any::<char>()], 0..5)
        .prop_map(|chars| Text(chars.into_iter().collect()))
}

type Everything = ((Text, Desc<Text>, Bytes), (u8, u16, u32, u64), [u8; 3], Desc<(Bytes, u64)>, ());

fn everything() -> impl Strategy<Value = Everything> {
    let texts = (text(), text().prop_map(Desc), bytes());
    let desc = (bytes(), 0_u64..3).prop_map(Desc);
    (texts, (0_u8..3, any::<u16>(), any::<u32>(), any::<u64>()), any::<[u8; 3]>(), desc, Just(()))
}

/// The contract of every key type, for any two of its values.
fn holds<K: Key + Ord + std::fmt::Debug>(a: &K, b: &K) -> Result<(), TestCaseError> {
    let (a_bytes, b_bytes) = (a.to_bytes(), b.to_bytes());
    prop_assert_eq!(a_bytes.cmp(&b_bytes), a.cmp(b));
    prop_assert!(a == b || !b_bytes.starts_with(&a_bytes), "{:?} begins {:?}", a, b);
    prop_assert_eq!(&K::from_bytes(&a_bytes), &Some(K::from_bytes(&a_bytes).unwrap()));
    prop_assert_eq!(K::from_bytes(&a_bytes).unwrap().cmp(a), std::cmp::Ordering::Equal);
    let both = [a_bytes, b_bytes.clone()].concat();
    let mut rest = both.as_slice();
    prop_assert_eq!(&K::take(&mut rest).unwrap(), a);
    prop_assert_eq!(rest, b_bytes);
    if !rest.is_empty() {
        prop_assert!(K::from_bytes(&both).is_none(), "bytes left over");
    }
    Ok(())
}

proptest! {
    #[test]
    fn numbers_sort_as_numbers(a: (u8, u16, u32, u64), b: (u8, u16, u32, u64)) {
        holds(&a.0, &b.0)?;
        holds(&a.1, &b.1)?;
        holds(&a.2, &b.2)?;
        holds(&a.3, &b.3)?;
        holds(&Desc(a.3), &Desc(b.3))?;
    }

    #[test]
    fn text_sorts_as_text(a in text(), b in text()) {
        holds(&a, &b)?;
        holds(&Desc(a), &Desc(b))?;
    }

    #[test]
    fn bytes_sort_by_length_and_then_by_content(a in bytes(), b in bytes()) {
        holds(&a, &b)?;
    }

    #[test]
    fn tuples_sort_by_their_first_difference(a in everything(), b in everything()) {
        holds(&a, &b)?;
        // Also for a late difference.
        let mut c = a.clone();
        c.3 = b.3;
        holds(&a, &c)?;
    }

    #[test]
    fn a_decoded_key_encodes_to_the_same_bytes(bytes in vec(prop_oneof![Just(0_u8), Just(1), Just(0xff), any::<u8>()], 0..24)) {
        fn same<K: Key>(bytes: &[u8]) -> Result<(), TestCaseError> {
            if let Some(key) = K::from_bytes(bytes) {
                prop_assert_eq!(key.to_bytes(), bytes);
            }
            Ok(())
        }
        same::<Everything>(&bytes)?;
        same::<Text>(&bytes)?;
        same::<(Bytes, u64)>(&bytes)?;
        same::<(u8, Desc<Text>)>(&bytes)?;
    }

    #[test]
    fn a_leading_part_of_a_key_is_its_prefix(a in text(), b: u16, c in bytes(), d: u64) {
        let key = (a.clone(), b, c.clone(), d);
        let bytes = key.to_bytes();
        prop_assert!(bytes.starts_with(&PrefixOf::<(Text, u16, Bytes, u64)>::prefix(&a)));
        prop_assert!(bytes.starts_with(&PrefixOf::<(Text, u16, Bytes, u64)>::prefix(&(a.clone(), b))));
        prop_assert!(bytes.starts_with(&PrefixOf::<(Text, u16, Bytes, u64)>::prefix(&(a, b, c))));
        prop_assert!(PrefixOf::<u64>::prefix(&All).is_empty());
    }
}

#[test]
fn keys_have_the_bytes_that_their_documentation_shows() {
    let account = Bytes::new(&[0xaa; 20]).unwrap();
    let key = (Text::from("a\0b"), account, 7_u16, Desc(1_u32));
    let expected = [&b"a\x00\xffb\x00\x01"[..], &[20], &[0xaa; 20], &[0, 7], &[0xff, 0xff, 0xff, 0xfe]];
    assert_eq!(key.to_bytes(), expected.concat());
}

#[test]
fn bytes_are_at_most_255() {
    let longest = Bytes::new(&[1; 255]).unwrap();
    assert_eq!(Bytes::from_bytes(&longest.to_bytes()), Some(longest));
    assert_eq!(Bytes::new(&[1; 256]), None);
}

/// Tokens by collection and name, with a number.
struct Tokens;

impl Table for Tokens {
    const SPEC: &'static TableSpec = &TableSpec { name: "tokens", tag: 0x10, access: Access::Scan };
    type Key = (u8, Text);
    type Value = u64;
}

fn tokens() -> MemStore {
    let store = MemStore::new();
    let mut batch = Batch::new();
    for (collection, name, number) in [(1_u8, "a", 1), (2, "a", 2), (2, "b", 3), (2, "c", 4), (3, "a", 5)] {
        batch.put(Tokens::SPEC, (collection, Text::from(name)).to_bytes(), vec![number]);
    }
    store.commit(batch, Durability::Buffered).unwrap();
    store
}

#[test]
fn rows_under_a_prefix_are_read_in_both_orders() {
    let store = tokens();
    let snapshot = store.snapshot().unwrap();
    let numbers = |order, limit| -> Vec<u64> {
        let rows = table::rows::<Tokens>(&*snapshot, &2_u8, order, limit).unwrap();
        rows.into_iter().map(|(_, number)| number).collect()
    };
    assert_eq!(numbers(Order::Asc, 9), [2, 3, 4]);
    assert_eq!(numbers(Order::Desc, 2), [4, 3]);
    assert_eq!(table::rows::<Tokens>(&*snapshot, &All, Order::Asc, 9).unwrap().len(), 5);
}

#[test]
fn rows_after_a_key_are_under_the_prefix_and_exclude_the_key() {
    let store = tokens();
    let snapshot = store.snapshot().unwrap();
    let numbers = |collection: u8, name: &str, order| -> Vec<u64> {
        let after = (collection, Text::from(name));
        let rows = table::rows_after::<Tokens>(&*snapshot, &2_u8, &after, order, 9).unwrap();
        rows.into_iter().map(|(_, number)| number).collect()
    };
    assert_eq!(numbers(2, "a", Order::Asc), [3, 4]);
    assert_eq!(numbers(2, "b", Order::Desc), [2]);
    assert_eq!(numbers(2, "absent", Order::Asc), [3, 4]);
    assert_eq!(numbers(1, "a", Order::Asc), [2, 3, 4]);
    assert_eq!(numbers(3, "a", Order::Desc), [4, 3, 2]);
    assert_eq!(numbers(1, "a", Order::Desc), [0; 0]);
    assert_eq!(numbers(3, "a", Order::Asc), [0; 0]);
}

#[test]
fn a_row_that_does_not_decode_is_reported_with_table_and_key() {
    let store = MemStore::new();
    let mut batch = Batch::new();
    batch.put(Tokens::SPEC, (7_u8, Text::from("a")).to_bytes(), vec![0x80]); // A truncated varint.
    batch.put(Tokens::SPEC, vec![8], vec![0]);
    store.commit(batch, Durability::Buffered).unwrap();
    let snapshot = store.snapshot().unwrap();
    let key = (7, Text::from("a"));
    for error in [
        table::read::<Tokens>(&*snapshot, &key).unwrap_err(),
        table::read_many::<Tokens>(&*snapshot, &[(7, Text::from("b")), key]).unwrap_err(),
        table::rows::<Tokens>(&*snapshot, &7_u8, Order::Asc, 9).unwrap_err(),
    ] {
        assert!(error.to_string().starts_with("table `tokens`, key 07610001: the value"), "{error}");
    }
    let error = table::rows::<Tokens>(&*snapshot, &8_u8, Order::Asc, 9).unwrap_err();
    assert!(error.to_string().starts_with("table `tokens`, key 08: the key"), "{error}");
}
