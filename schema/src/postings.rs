//! Postings: the records that have the same hash prefix, in one row, so that a reader finds them by one lookup.
//!
//! The writer appends to a row without a read of it.

use std::marker::PhantomData;

use serde_json::Value as Json;
use store::value::{put_varint, take_varint};
use store::{BulkWriter, Durability, Key as _, Store, Table, Txn, Value};

use crate::Error;
use crate::keys::{HashPrefix, hash_prefix};
use crate::payload::Packed;
use crate::records::{self, Records};

/// A table of postings.
pub trait ByHash: Table<Key = HashPrefix, Value = Postings> {}

impl<T: Table<Key = HashPrefix, Value = Postings>> ByHash for T {}

/// Records that are found by their hash.
pub trait Hashed: Records {
    /// The table that finds them.
    type ByHash: ByHash;
}

/// Records with a number each, ascending. A row grows by some bytes for each record of its prefix, which is much larger.
///
/// | sequence (varint) | number (varint) | …
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Postings(Vec<(u64, u64)>);

impl Postings {
    /// One record: its sequence, which is not 0, and its number.
    pub fn one(seq: u64, number: u64) -> Self {
        Self(vec![(seq, number)])
    }

    /// Sequences and numbers, the lowest sequence first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + ExactSizeIterator {
        self.0.iter().copied()
    }

    /// Sequences and numbers, the highest sequence first.
    pub fn into_newest_first(self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.0.into_iter().rev()
    }
}

impl Value for Postings {
    fn encode(&self, out: &mut Vec<u8>) {
        for (seq, number) in &self.0 {
            put_varint(*seq, out);
            put_varint(*number, out);
        }
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let (mut all, mut before) = (Vec::new(), 0);
        while !bytes.is_empty() {
            let seq = take_varint(&mut bytes).filter(|seq| *seq > before)?;
            all.push((seq, take_varint(&mut bytes)?));
            before = seq;
        }
        Some(Self(all)).filter(|all| !all.0.is_empty())
    }

    fn json(&self) -> Json {
        self.iter().map(|(seq, number)| Json::from(vec![seq, number])).collect()
    }
}

/// Prefix, sequence and number of a record.
pub type Posting = (HashPrefix, u64, u64);

/// Adds records, in the order of their sequences, to the rows of their hash prefixes.
///
/// Sequences of a row strictly increase. That follows from sequences that only grow.
pub fn add<T: ByHash>(txn: &mut Txn<'_>, records: impl IntoIterator<Item = Posting>) {
    for (prefix, seq, number) in records {
        txn.append_unread::<T>(&prefix, &Postings::one(seq, number));
    }
}

/// Writes records of one block, the first of which has the sequence `first`, and what finds them by their hashes. `txn`
/// neither reads nor changes the records again.
pub fn put_hashed<'h, R: Hashed>(
    txn: &mut Txn<'_>,
    first: u64,
    packed: &[Packed],
    hashes: impl IntoIterator<Item = &'h [u8; 32]>,
) {
    records::put_unread::<R>(txn, first, packed);
    let places = (first..).zip(records::places(packed)).zip(hashes);
    add::<R::ByHash>(txn, places.map(|((seq, place), hash)| (hash_prefix(hash), seq, place)));
}

/// Writes a whole table of postings, in commits of bounded size.
pub(crate) struct Rebuild<'a, T> {
    writer: BulkWriter<'a>,
    last: u64,
    table: PhantomData<T>,
}

impl<'a, T: ByHash> Rebuild<'a, T> {
    /// Writes to `store`, whose table is empty.
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        Self { writer: BulkWriter::new(store), last: 0, table: PhantomData }
    }

    /// Adds a record. One that is not above the last one is skipped: the caller reports damaged sequences.
    pub(crate) fn add(&mut self, (prefix, seq, number): Posting) -> Result<(), Error> {
        if seq > self.last {
            self.last = seq;
            self.writer.append(T::SPEC, prefix.to_bytes(), Postings::one(seq, number).encoded())?;
        }
        Ok(())
    }

    /// Commits the rest.
    pub(crate) fn finish(self) -> Result<(), Error> {
        Ok(self.writer.finish(Durability::Buffered)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use store::{MemStore, Order};

    use super::*;
    use crate::tx::TxByHash;

    #[test]
    fn a_row_has_its_sequences_and_numbers() {
        let postings = Postings(vec![(300, 2), (301, 0), (1_000, 3)]);
        assert_eq!(postings.encoded(), [0xac, 2, 2, 0xad, 2, 0, 0xe8, 7, 3]);
        assert_eq!(postings.iter().rev().collect::<Vec<_>>(), [(1_000, 3), (301, 0), (300, 2)]);
        for malformed in [&[][..], &[1], &[0, 1], &[1, 0, 1, 0], &[2, 0, 1, 0], &[1, 0, 2], &[0x80, 0, 0]] {
            assert_eq!(Postings::decode(malformed), None, "{malformed:?}");
        }
    }

    proptest! {
        #[test]
        fn a_row_decodes_to_its_records(records in prop::collection::btree_map(1_u64.., any::<u64>(), 1..99)) {
            let postings = Postings(records.iter().map(|(seq, number)| (*seq, *number)).collect());
            prop_assert_eq!(Postings::decode(&postings.encoded()), Some(postings));
        }

        /// Also if the records of a prefix are in one block, in several blocks of a commit, or in several commits.
        #[test]
        fn rows_have_the_records_of_each_prefix_however_they_are_committed(
            prefixes in prop::collection::vec(0_u8..3, 0..400),
            commits in prop::collection::vec(prop::collection::vec(0_usize..9, 0..5), 0..40),
        ) {
            let (store, rebuilt) = (MemStore::new(), MemStore::new());
            let all: Vec<_> = (1..).zip(&prefixes).map(|(seq, prefix)| ([*prefix; 8], seq, seq % 5)).collect();
            let mut rest = &all[..];
            for blocks in commits.iter().chain([&vec![usize::MAX]]) {
                store::commit_rows::<Error>(&store, Durability::Buffered, |txn| {
                    for len in blocks {
                        let (block, after) = rest.split_at((*len).min(rest.len()));
                        add::<TxByHash>(txn, block.to_vec());
                        rest = after;
                    }
                    Ok(())
                })
                .unwrap();
            }
            let mut rebuild = Rebuild::<TxByHash>::new(&rebuilt);
            for posting @ (_, seq, _) in &all {
                rebuild.add(*posting).unwrap();
                rebuild.add(([7; 8], seq - 1, 0)).unwrap();
            }
            rebuild.finish().unwrap();
            for store in [store, rebuilt] {
                let snapshot = store.snapshot().unwrap();
                let rows = store::table::rows::<TxByHash>(&*snapshot, &store::key::All, Order::Asc, 9).unwrap();
                for prefix in [0, 1, 2, 7] {
                    let expected: Vec<_> =
                        all.iter().filter(|(of, ..)| *of == [prefix; 8]).map(|(_, seq, n)| (*seq, *n)).collect();
                    let found = rows.iter().find(|(of, _)| *of == [prefix; 8]);
                    let found: Vec<_> = found.map(|(_, postings)| postings.iter().collect()).unwrap_or_default();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
