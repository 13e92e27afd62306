//! Read-your-writes transaction of a single writer, with appends to lists.
//!
//! Usage: [`Txn::new`], reads and writes, [`Txn::finish`], [`Store::commit`] of the batch,
//! [`Counts::absorb`]. [`Txn::finish_with_undo`] also returns an [`UndoRecord`] that reverts the commit.
//!
//! # Invariants
//!
//! * The batch is a function of the snapshot and the calls: the same blocks on the same state give the same bytes.
//! * A transaction that is dropped, or whose commit fails, leaves nothing that a later one could read.

mod counts;
mod overlay;
mod undo;

use std::collections::HashMap;

use rustc_hash::FxSeededState;

pub use self::counts::{Counts, Pending};
pub use self::undo::UndoRecord;
use self::{counts::random_hasher, overlay::Overlay, undo::UndoBuilder};
use crate::{
    batch::{Batch, Change, Kind, key_prefix_u64},
    engine::{Bounds, Durability, Order, Row, Snapshot, Store},
    error::Error,
    key::Key,
    list::{self, COUNT, List, ROW, first_of_row, stored_len},
    ranked::{cache::OpenSets, levels::Levels, skip_list::RANK},
    spec::TableSpec,
    table::{Table, corrupt, decode_value, read_raw},
    value::{Value, put_varint},
};

/// Reads and writes on top of a snapshot, until [`Txn::finish`] turns the writes into a batch.
///
/// Implements [`Snapshot`]: the store as after the commit, except for the rows of [`Txn::put_unread`] and
/// [`Txn::append_unread`], the entries of [`Txn::push`], and the counts and nodes of changed sets ([`Txn::set_len`]).
pub struct Txn<'a> {
    snapshot: &'a dyn Snapshot,
    counts: &'a mut Counts,
    /// Rows that may be read again.
    written: Overlay,
    /// Pushed values, by the key of the list's length.
    pushed: FxMap<Box<[u8]>, Pushed>,
    sets: OpenSets,
    batch: Batch,
    /// Bytes of `written` and `pushed`.
    bytes: usize,
    /// Reused buffer for the key of a list's length.
    count_key: Vec<u8>,
}

type FxMap<K, V> = HashMap<K, V, FxSeededState>;

/// Values pushed to one list.
struct Pushed {
    spec: &'static TableSpec,
    /// Length before this transaction.
    base: u64,
    /// The first value pushed, next to the others because most lists get only one.
    first: u64,
    others: Vec<u64>,
}

impl<'a> Txn<'a> {
    /// A transaction on top of `snapshot`, which must not be older than the last commit that `counts`
    /// absorbed.
    pub fn new(snapshot: &'a dyn Snapshot, counts: &'a mut Counts) -> Self {
        Self {
            snapshot,
            counts,
            written: Overlay::default(),
            pushed: HashMap::with_hasher(random_hasher()),
            sets: OpenSets::new(random_hasher()),
            batch: Batch::new(),
            bytes: 0,
            count_key: Vec::new(),
        }
    }

    /// The value of `key` as this transaction has left it.
    pub fn get<T: Table>(&self, key: &T::Key) -> Result<Option<T::Value>, Error> {
        let key = key.to_bytes();
        match self.written.get(T::SPEC, &key) {
            Some(own) => own.as_ref().map(|value| decode_value::<T>(&key, value)).transpose(),
            None => read_raw::<T>(self.snapshot, &key),
        }
    }

    /// Sets the value of `key`.
    pub fn put<T: Table>(&mut self, key: &T::Key, value: &T::Value) {
        self.write::<T>(key, Some(value.encoded()));
    }

    /// Removes the row of `key`, if there is one.
    pub fn delete<T: Table>(&mut self, key: &T::Key) {
        self.write::<T>(key, None);
    }

    fn write<T: Table>(&mut self, key: &T::Key, value: Option<Vec<u8>>) {
        self.write_raw(T::SPEC, key.to_bytes(), value);
    }

    /// Sets a row in its stored form, or deletes it: for structures that consist of rows.
    pub(crate) fn write_raw(&mut self, table: &'static TableSpec, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        self.written.write(table, key, value);
    }

    /// Takes out a set that this transaction has opened, or that the last one left in the cache.
    pub(crate) fn take_set(&mut self, set_key: &[u8]) -> Option<Box<Levels>> {
        self.sets.take(set_key, &mut self.counts.sets)
    }

    /// Counts bytes of rows that are written at the end.
    pub(crate) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// The sets that this transaction has opened.
    pub(crate) fn sets(&mut self) -> &mut OpenSets {
        &mut self.sets
    }

    /// Writes a row that this transaction neither reads nor changes again: [`Txn::get`] does not see it, and a
    /// [`Txn::put`] or [`Txn::delete`] of the same key wins in either order.
    pub fn put_unread<T: Table>(&mut self, key: &T::Key, value: &T::Value) {
        self.batch.write(T::SPEC, Kind::Put, |out| key.put(out), |out| value.encode(out));
    }

    /// Adds the encoding of `value` to the end of the row of `key`, which this transaction neither reads nor sets:
    /// [`Txn::get`] does not see it. Without a read of the row; see [`Batch::append`].
    pub fn append_unread<T: Table>(&mut self, key: &T::Key, value: &T::Value) {
        self.batch.write(T::SPEC, Kind::Append, |out| key.put(out), |out| value.encode(out));
    }

    /// Adds `value` to the end of `owner`'s list and returns its ordinal.
    ///
    /// Values of a list strictly increase. Within a transaction this is checked; between transactions it follows from
    /// sequences that only grow.
    pub fn push<L: List>(&mut self, owner: &L::Owner, value: u64) -> Result<u64, Error> {
        self.set_count_key::<L>(owner);
        self.bytes += self.count_key.len() + ENTRY_BYTES;
        if let Some(list) = self.pushed.get_mut(self.count_key.as_slice()) {
            return list.push(&self.count_key, value);
        }
        let base = self.committed_len()?;
        let list = Pushed { spec: L::SPEC, base, first: value, others: Vec::new() };
        list.len(&self.count_key)?;
        self.pushed.insert(self.count_key.as_slice().into(), list);
        Ok(base)
    }

    /// The length of `owner`'s list, entries pushed here included.
    pub fn len<L: List>(&mut self, owner: &L::Owner) -> Result<u64, Error> {
        self.set_count_key::<L>(owner);
        match self.pushed.get(self.count_key.as_slice()) {
            Some(list) => list.len(&self.count_key),
            None => self.committed_len(),
        }
    }

    /// The first entry of `owner`'s list, pushed here or before; `None` if it has none.
    pub fn first<L: List>(&mut self, owner: &L::Owner) -> Result<Option<u64>, Error> {
        self.set_count_key::<L>(owner);
        match self.pushed.get(self.count_key.as_slice()) {
            Some(list) if list.base == 0 => Ok(Some(list.first)),
            Some(_) | None => list::get::<L>(self.snapshot, owner, 0),
        }
    }

    /// The entry of `owner`'s list at `ordinal`, pushed here or before; `None` beyond its end.
    pub fn nth<L: List>(&mut self, owner: &L::Owner, ordinal: u64) -> Result<Option<u64>, Error> {
        self.set_count_key::<L>(owner);
        match self.pushed.get(self.count_key.as_slice()) {
            Some(list) if ordinal >= list.base => {
                let nth = usize::try_from(ordinal - list.base).unwrap_or(usize::MAX);
                Ok(if nth == 0 { Some(list.first) } else { list.others.get(nth - 1).copied() })
            }
            Some(_) | None => list::get::<L>(self.snapshot, owner, ordinal),
        }
    }

    /// The last entry of `owner`'s list, pushed here or before; `None` if it has none.
    pub fn last<L: List>(&mut self, owner: &L::Owner) -> Result<Option<u64>, Error> {
        self.set_count_key::<L>(owner);
        if let Some(list) = self.pushed.get(self.count_key.as_slice()) {
            return Ok(Some(*list.others.last().unwrap_or(&list.first)));
        }
        match self.committed_len()?.checked_sub(1) {
            Some(ordinal) => list::get::<L>(self.snapshot, owner, ordinal),
            None => Ok(None),
        }
    }

    /// The value of a row, written by [`Txn::put_unread`] or stored before. Reads all such writes to the table: for rare
    /// use.
    pub fn find<T: Table>(&self, key: &T::Key) -> Result<Option<T::Value>, Error> {
        let key = key.to_bytes();
        match self.batch.find(T::SPEC, &key) {
            Some(value) => decode_value::<T>(&key, value).map(Some),
            None => crate::table::read_raw::<T>(self.snapshot, &key),
        }
    }

    fn set_count_key<L: List>(&mut self, owner: &L::Owner) {
        self.count_key.clear();
        self.count_key.push(L::SPEC.tag);
        owner.put(&mut self.count_key);
    }

    fn committed_len(&self) -> Result<u64, Error> {
        match self.counts.lengths.peek(self.count_key.as_slice()) {
            Some(&Some(len)) => Ok(len),
            Some(None) | None => stored_len(self.snapshot, &self.count_key),
        }
    }

    /// Approximate bytes of the batch at this point: never less than its keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes + self.batch.bytes()
    }

    /// The store without the writes made here.
    pub fn base(&self) -> &'a dyn Snapshot {
        self.snapshot
    }

    /// The writes, and the list lengths that are valid once the writes are committed.
    pub fn finish(mut self) -> (Batch, Pending) {
        self.write_sets();
        let pushed = self.sorted_pushes();
        self.close(pushed)
    }

    /// Like [`Txn::finish`], with an undo record, for which the rows of [`Txn::append_unread`] are read. Rows of
    /// [`Txn::put_unread`] must have been absent. The record leaves out `excluded_rows` (table and key), so reverting
    /// keeps them.
    pub fn finish_with_undo(
        mut self,
        excluded_rows: &[(&'static TableSpec, Vec<u8>)],
    ) -> Result<(Batch, Pending, UndoRecord), Error> {
        self.write_sets();
        let mut undo = UndoBuilder::without(excluded_rows);
        for (spec, key, change) in self.batch.iter() {
            if let Change::Put(value) = change
                && self.written.get(spec, key).is_none()
            {
                undo.row(spec, key, None, Some(value));
            }
        }
        undo.appends(&self.batch, self.snapshot)?;
        self.written.add_to_undo(self.snapshot, &mut undo)?;
        let pushed = self.sorted_pushes();
        for (count_key, list) in &pushed {
            undo.list(list.spec, count_key, (list.base, list.added()));
        }
        let (batch, pending) = self.close(pushed);
        Ok((batch, pending, undo.done()))
    }

    /// Writes the changed counts and nodes of sets.
    fn write_sets(&mut self) {
        for (key, value) in self.sets.take_changes() {
            self.written.write(RANK, key, value);
        }
    }

    /// Sorted by list and owner: their rows are then in key order, which makes the batch's own sort fast.
    fn sorted_pushes(&mut self) -> Vec<(Box<[u8]>, Pushed)> {
        let pushed = std::mem::replace(&mut self.pushed, HashMap::with_hasher(FxSeededState::with_seed(0)));
        let mut pushed: Vec<_> =
            pushed.into_iter().map(|(key, list)| (key_prefix_u64(&key), key, list)).collect();
        pushed.sort_unstable_by(|(a, a_key, _), (b, b_key, _)| a.cmp(b).then_with(|| a_key.cmp(b_key)));
        pushed.into_iter().map(|(_, key, list)| (key, list)).collect()
    }

    fn close(mut self, pushed: Vec<(Box<[u8]>, Pushed)>) -> (Batch, Pending) {
        self.written.drain_into(&mut self.batch);
        let mut lengths = Vec::with_capacity(pushed.len());
        for (count_key, list) in pushed {
            let len = list.write(&count_key, &mut self.batch);
            // Neither the old nor the new length is reliable until the commit has succeeded.
            if let Some(cached) = self.counts.lengths.peek_mut(&count_key) {
                *cached = None;
            }
            lengths.push((count_key, len));
        }
        (self.batch, Pending { lengths, sets: self.sets })
    }
}

impl Snapshot for Txn<'_> {
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        match self.written.get(table, key) {
            Some(own) => Ok(own.clone()),
            None => self.snapshot.get(table, key),
        }
    }

    fn multi_get(&self, table: &'static TableSpec, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let unwritten: Vec<_> =
            keys.iter().filter(|key| self.written.get(table, key).is_none()).cloned().collect();
        let mut stored = self.snapshot.multi_get(table, &unwritten)?.into_iter();
        let value = |key: &Vec<u8>| match self.written.get(table, key) {
            Some(own) => own.clone(),
            None => stored.next().flatten(),
        };
        Ok(keys.iter().map(value).collect())
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        self.written.scan(self.snapshot, table, bounds, order, limit)
    }
}

/// An ordinal, the largest value, and this entry's part of the length's row.
const ENTRY_BYTES: usize = 8 + 10 + 10;

impl Pushed {
    fn push(&mut self, count_key: &[u8], value: u64) -> Result<u64, Error> {
        let ordinal = self.len(count_key)?;
        let last = *self.others.last().unwrap_or(&self.first);
        if last >= value {
            let (table, owner) = (self.spec.name, count_key[1..].to_vec());
            return Err(Error::NotIncreasing { table, owner, last, value });
        }
        self.others.push(value);
        Ok(ordinal)
    }

    /// Number of entries pushed.
    fn added(&self) -> u64 {
        u64::try_from(self.others.len()).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Length of the list, pushes included; an error at the maximum length.
    fn len(&self, count_key: &[u8]) -> Result<u64, Error> {
        let len = self.base.checked_add(self.added()).filter(|&len| len < u64::MAX);
        len.ok_or_else(|| corrupt(COUNT, count_key, "the length is out of range"))
    }

    /// Writes entries and length, and returns the length.
    fn write(&self, count_key: &[u8], batch: &mut Batch) -> u64 {
        let owner = &count_key[1..];
        let (mut ordinal, len) = (self.base, self.base.saturating_add(self.added()));
        let mut values = [&self.first].into_iter().chain(&self.others);
        while ordinal < len {
            let first = first_of_row(ordinal);
            let next = len.min(first.saturating_add(ROW));
            let key = |out: &mut Vec<u8>| {
                out.extend_from_slice(owner);
                first.put(out);
            };
            let entries = |out: &mut Vec<u8>| {
                for value in (ordinal..next).zip(&mut values).map(|(_, value)| value) {
                    put_varint(*value, out);
                }
            };
            batch.write(self.spec, if ordinal == first { Kind::Put } else { Kind::Append }, key, entries);
            ordinal = next;
        }
        batch.write(COUNT, Kind::Put, |out| out.extend(count_key), |out| put_varint(ordinal, out));
        ordinal
    }
}

/// Commits the rows that `write` puts. For small writes without a cache of list lengths.
pub fn commit_rows<E: From<Error>>(
    store: &dyn Store,
    durability: Durability,
    write: impl FnOnce(&mut Txn<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    write(&mut txn)?;
    let (batch, _pending) = txn.finish();
    drop(snapshot);
    Ok(store.commit(batch, durability)?)
}
