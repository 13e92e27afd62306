//! Postings: the records that have the same hash prefix, in one row, so that a reader finds them by one lookup.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use store::value::{put_varint, take_varint};
use store::{Batch, Bounds, BulkWriter, Durability, Snapshot, Store, Table, Txn, Value, commit_rows};

use crate::Error;
use crate::keys::HashPrefix;

/// Maximum number of records in a row; later ones cannot be found by hash. Random collisions of two hashes do not occur,
/// and the same bytes are rarely in several blocks. The first are kept, so a row depends on no record that was removed.
pub const MAX: usize = 64;

/// A table of postings.
pub trait ByHash: Table<Key = HashPrefix, Value = Postings> {}

impl<T: Table<Key = HashPrefix, Value = Postings>> ByHash for T {}

/// Records with a number each, ascending.
///
/// | sequence less the one before (varint) | number (varint) | … |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Postings(Vec<(u64, u64)>);

impl Postings {
    /// Adds a record, unless the row is full. Returns false if its sequence is not above all others.
    #[must_use]
    pub fn push(&mut self, seq: u64, number: u64) -> bool {
        let is_last = self.0.last().map_or(0, |(last, _)| *last) < seq;
        if is_last && self.0.len() < MAX {
            self.0.push((seq, number));
        }
        is_last
    }

    /// Sequences and numbers, the lowest sequence first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + ExactSizeIterator {
        self.0.iter().copied()
    }

    /// Sequences and numbers, the highest sequence first.
    pub fn into_newest_first(self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.0.into_iter().rev()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// The records up to the sequence `last`; `None` if there are none.
    pub(crate) fn until(mut self, last: u64) -> Option<Self> {
        self.0.truncate(self.0.partition_point(|(seq, _)| *seq <= last));
        Some(self).filter(|left| !left.0.is_empty())
    }
}

impl Value for Postings {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut before = 0;
        for (seq, number) in &self.0 {
            put_varint(seq - before, out);
            put_varint(*number, out);
            before = *seq;
        }
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let (mut all, mut before) = (Self::default(), 0_u64);
        while !bytes.is_empty() {
            let seq = before.checked_add(take_varint(&mut bytes)?)?;
            let added = all.0.len() < MAX && all.push(seq, take_varint(&mut bytes)?);
            if !added {
                return None;
            }
            before = seq;
        }
        Some(all).filter(|all| !all.0.is_empty())
    }
}

/// Prefix, sequence and number of a record.
pub type Posting = (HashPrefix, u64, u64);

/// Adds records to the rows of their hash prefixes.
///
/// # Errors
/// [`Error::Record`] if a row has a record of the same or a higher sequence.
pub fn add<T: ByHash>(txn: &mut Txn<'_>, records: Vec<Posting>) -> Result<(), Error> {
    merge::<T>(txn, records, |(prefix, seq, _)| {
        let reason = format!("it has record {seq} or a later one, which is not indexed yet");
        Err(Error::Record { table: T::SPEC.name, key: hex::encode(prefix), reason })
    })
}

/// Adds records, and calls `repeated` with each that is not above those in its row.
fn merge<T: ByHash>(
    txn: &mut Txn<'_>,
    mut records: Vec<Posting>,
    repeated: impl Fn(&Posting) -> Result<(), Error>,
) -> Result<(), Error> {
    records.sort_unstable();
    let groups = || records.chunk_by(|(a, ..), (b, ..)| a == b);
    let prefixes: Vec<HashPrefix> = groups().map(|group| group[0].0).collect();
    let stored = txn.get_many::<T>(&prefixes)?;
    for ((prefix, group), stored) in prefixes.iter().zip(groups()).zip(stored) {
        let mut postings = stored.unwrap_or_default();
        for posting @ (_, seq, number) in group {
            if !postings.push(*seq, *number) {
                repeated(posting)?;
            }
        }
        txn.put::<T>(prefix, &postings);
    }
    Ok(())
}

/// Writes a whole table of postings, in commits of bounded size.
pub(crate) struct Rebuild<'a, T> {
    store: &'a dyn Store,
    records: Vec<Posting>,
    table: PhantomData<T>,
}

impl<'a, T: ByHash> Rebuild<'a, T> {
    /// Records in a commit.
    const RECORDS: usize = 4_096;

    /// Writes to `store`, whose table is empty.
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        Self { store, records: Vec::new(), table: PhantomData }
    }

    /// Adds a record. One that is not above those of its prefix is skipped: the caller reports damaged sequences.
    pub(crate) fn add(&mut self, posting: Posting) -> Result<(), Error> {
        self.records.push(posting);
        if self.records.len() >= Self::RECORDS { self.commit() } else { Ok(()) }
    }

    /// Commits the rest.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.commit()
    }

    fn commit(&mut self) -> Result<(), Error> {
        let records = std::mem::take(&mut self.records);
        commit_rows(self.store, Durability::Buffered, |txn| merge::<T>(txn, records, |_| Ok(())))
    }
}

/// Removes the records above `last` from the rows of `prefixes`, with `batch`.
pub(crate) fn truncate<T: ByHash>(
    snapshot: &dyn Snapshot,
    prefixes: &BTreeSet<HashPrefix>,
    last: u64,
    batch: &mut Batch,
) -> Result<(), Error> {
    let prefixes: Vec<HashPrefix> = prefixes.iter().copied().collect();
    for (prefix, stored) in prefixes.iter().zip(store::table::read_many::<T>(snapshot, &prefixes)?) {
        match stored.map(|stored| stored.until(last)) {
            Some(Some(left)) => batch.put(T::SPEC, prefix.to_vec(), left.to_bytes()),
            Some(None) => batch.delete(T::SPEC, prefix.to_vec()),
            None => {}
        }
    }
    Ok(())
}

/// Removes the records above `last` from all rows. Rows that do not decode are deleted if `delete_damaged`, else an
/// error.
pub(crate) fn truncate_all<T: ByHash>(
    store: &dyn Store,
    last: u64,
    delete_damaged: bool,
) -> Result<(), Error> {
    let (snapshot, mut writer) = (store.snapshot()?, BulkWriter::new(store));
    store::for_each_row(&*snapshot, T::SPEC, Bounds::all(), |key, value| -> Result<(), Error> {
        let left = match store::table::decode_row::<T>(key, value) {
            Ok((_, postings)) => {
                let all = postings.iter().len();
                let left = postings.until(last);
                if left.as_ref().is_some_and(|left| left.iter().len() == all) {
                    return Ok(());
                }
                left
            }
            Err(_) if delete_damaged => None,
            Err(error) => return Err(error.into()),
        };
        match left {
            Some(left) => writer.put(T::SPEC, key.to_vec(), left.to_bytes())?,
            None => writer.delete(T::SPEC, key.to_vec())?,
        }
        Ok(())
    })?;
    Ok(writer.finish(Durability::Buffered)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use store::{MemStore, Order};

    use super::*;
    use crate::tx::TxByHash;

    #[test]
    fn a_row_has_the_differences_of_the_sequences() {
        let mut postings = Postings::default();
        assert!(postings.push(300, 2) && postings.push(301, 0) && postings.push(1_000, 3));
        assert_eq!(postings.to_bytes(), [0xac, 2, 2, 1, 0, 0xbb, 5, 3]);
        assert_eq!(postings.iter().rev().collect::<Vec<_>>(), [(1_000, 3), (301, 0), (300, 2)]);
        for malformed in [&[][..], &[1], &[0, 1], &[1, 0, 0, 0], &[1, 0, 1], &[0x80, 0, 0]] {
            assert_eq!(Postings::decode(malformed), None, "{malformed:?}");
        }
        let too_many = [1, 0].repeat(MAX + 1);
        assert_eq!(Postings::decode(&too_many), None);
        assert_eq!(Postings::decode(&too_many[2..]).map(|postings| postings.iter().len()), Some(MAX));
    }

    #[test]
    fn a_record_of_a_sequence_that_is_not_new_is_refused() {
        let store = MemStore::new();
        let add = |seq| {
            commit_rows::<Error>(&store, Durability::Buffered, |txn| {
                add::<TxByHash>(txn, vec![([7; 8], seq, 0)])
            })
        };
        add(5).unwrap();
        assert!(add(6).is_ok() && add(6).is_err() && add(4).is_err());
    }

    proptest! {
        #[test]
        fn a_row_decodes_to_its_records(records in prop::collection::btree_map(1_u64.., any::<u64>(), 1..MAX)) {
            let mut postings = Postings::default();
            for (seq, number) in &records {
                prop_assert!(postings.push(*seq, *number));
            }
            prop_assert_eq!(Postings::decode(&postings.to_bytes()), Some(postings.clone()));
            for last in records.keys() {
                let expected: Vec<_> = records.range(..=last).map(|(seq, number)| (*seq, *number)).collect();
                prop_assert_eq!(postings.clone().until(*last).unwrap().iter().collect::<Vec<_>>(), expected);
            }
            prop_assert_eq!(postings.until(records.keys().next().unwrap() - 1), None);
        }

        /// Also if the records of a prefix are in one block, in several blocks of a commit, or in several commits.
        #[test]
        fn rows_have_the_first_records_of_each_prefix_however_they_are_committed(
            prefixes in prop::collection::vec(0_u8..3, 0..400),
            commits in prop::collection::vec(prop::collection::vec(0_usize..9, 0..5), 0..40),
        ) {
            let store = MemStore::new();
            let all: Vec<_> = (1..).zip(&prefixes).map(|(seq, prefix)| ([*prefix; 8], seq, seq % 5)).collect();
            let mut rest = &all[..];
            for blocks in commits.iter().chain([&vec![usize::MAX]]) {
                commit_rows::<Error>(&store, Durability::Buffered, |txn| {
                    for len in blocks {
                        let (block, after) = rest.split_at((*len).min(rest.len()));
                        add::<TxByHash>(txn, block.to_vec())?;
                        rest = after;
                    }
                    Ok(())
                })
                .unwrap();
            }
            let snapshot = store.snapshot().unwrap();
            let rows = store::table::rows::<TxByHash>(&*snapshot, &store::key::All, Order::Asc, 9).unwrap();
            for prefix in 0..3 {
                let expected: Vec<_> =
                    all.iter().filter(|(of, ..)| *of == [prefix; 8]).map(|(_, seq, n)| (*seq, *n)).take(MAX).collect();
                let found = rows.iter().find(|(of, _)| *of == [prefix; 8]);
                let found: Vec<_> = found.map(|(_, postings)| postings.iter().collect()).unwrap_or_default();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
