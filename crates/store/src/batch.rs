//! Write batch: puts, appends and deletes of many tables for one atomic commit.
//!
//! The keys and values of a table share one buffer, so a row costs no allocation. A commit sorts each table's writes by
//! key, because engines apply sorted writes several times faster, and combines the writes of each key into one.

use crate::spec::TableSpec;

/// Puts, appends and deletes that a store applies atomically.
#[derive(Debug, Default)]
pub struct Batch {
    tables: Vec<TableWrites>,
    bytes: usize,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, table: &'static TableSpec, key: Vec<u8>, value: Vec<u8>) {
        self.write(table, Kind::Put, |out| out.extend(key), |out| out.extend(value));
    }

    /// Adds `bytes` to the end of the value of `key`; an absent row becomes one with the value `bytes`.
    ///
    /// The writer reads nothing. A reader combines the parts of the row until the engine has done so, so a row should have
    /// few.
    pub fn append(&mut self, table: &'static TableSpec, key: Vec<u8>, bytes: Vec<u8>) {
        self.write(table, Kind::Append, |out| out.extend(key), |out| out.extend(bytes));
    }

    /// Deletes `key`. An absent key is not an error.
    pub fn delete(&mut self, table: &'static TableSpec, key: Vec<u8>) {
        self.write(table, Kind::Delete, |out| out.extend(key), |_| {});
    }

    /// Deletes all keys of `start..end`, except those that this batch sets.
    ///
    /// A range costs as little to write as one key, and later scans across it are not slower. The engine keeps a range
    /// tombstone until compaction, so use it for whole tables or their tails, not for a few rows each.
    pub fn delete_range(&mut self, table: &'static TableSpec, start: Vec<u8>, end: Vec<u8>) {
        if start < end {
            self.bytes += start.len() + end.len();
            self.writes_of(table).ranges.push((start, end));
        }
    }

    /// Adds the writes of `other` after its own.
    pub fn extend(&mut self, other: Self) {
        for table in other.tables {
            for (start, end) in &table.ranges {
                self.delete_range(table.spec, start.clone(), end.clone());
            }
            for write in &table.writes {
                let (key, value) = (table.key(write), table.value(write));
                self.write(table.spec, write.kind, |out| out.extend(key), |out| out.extend(value));
            }
        }
    }

    /// Writes to a row; `key` and `value` append their bytes to the batch's buffer, without an allocation.
    pub(crate) fn write(
        &mut self,
        table: &'static TableSpec,
        kind: Kind,
        key: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        self.bytes += self.writes_of(table).write(kind, key, value);
    }

    /// The value of the last write of `key`; `None` if it was deleted or never written. Linear in the writes to the
    /// table, which has no appends.
    pub(crate) fn find(&self, table: &TableSpec, key: &[u8]) -> Option<&[u8]> {
        let writes = self.tables.iter().find(|writes| writes.spec.tag == table.tag)?;
        let prefix = key_prefix_u64(key);
        let last =
            writes.writes.iter().rev().find(|write| write.prefix == prefix && writes.key(write) == key)?;
        (last.kind != Kind::Delete).then(|| writes.value(last))
    }

    /// The writes by table, each table's in insertion order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static TableSpec, &[u8], Change<'_>)> {
        self.tables.iter().flat_map(|table| {
            table.writes.iter().map(|write| (table.spec, table.key(write), table.change(write)))
        })
    }

    /// The tables with range deletions. For engines.
    pub(crate) fn ranged(&self) -> impl Iterator<Item = &'static TableSpec> {
        self.tables.iter().filter(|table| !table.ranges.is_empty()).map(|table| table.spec)
    }

    /// Bytes of all keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of writes; two writes of one key count twice, a range counts once.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.writes.len() + table.ranges.len()).sum()
    }

    /// True if the batch has no writes.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The writes by table, in the order of the tags; each table's writes sorted by key, one write per key. For
    /// engines.
    pub fn into_sorted(mut self) -> impl Iterator<Item = SortedWrites> {
        self.tables.sort_unstable_by_key(|table| table.spec.tag);
        self.tables.into_iter().map(TableWrites::into_sorted)
    }

    // A batch touches a few dozen tables: a linear search is faster than hashing.
    fn writes_of(&mut self, spec: &'static TableSpec) -> &mut TableWrites {
        let at = self.tables.iter().position(|table| table.spec.tag == spec.tag).unwrap_or_else(|| {
            let (buffer, writes, ranges) = (Vec::new(), Vec::new(), Vec::new());
            self.tables.push(TableWrites { spec, buffer, writes, ranges });
            self.tables.len() - 1
        });
        &mut self.tables[at]
    }
}

/// A write to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// The row gets this value.
    Put(&'a [u8]),
    /// These bytes are added to the end of its value, which is empty if there is no row.
    Append(&'a [u8]),
    /// The row is removed.
    Delete,
}

impl Change<'_> {
    /// The value after the change of a row with the value `before`.
    pub fn apply(self, before: Option<Vec<u8>>) -> Option<Vec<u8>> {
        match self {
            Change::Put(value) => Some(value.to_vec()),
            Change::Append(bytes) => {
                let mut value = before.unwrap_or_default();
                value.extend_from_slice(bytes);
                Some(value)
            }
            Change::Delete => None,
        }
    }
}

/// The writes of a batch to one table, sorted.
#[derive(Debug)]
pub struct SortedWrites(TableWrites);

impl SortedWrites {
    /// The table.
    pub fn table(&self) -> &'static TableSpec {
        self.0.spec
    }

    /// Deleted key ranges (`start..end`), which apply before the other writes.
    pub fn ranges(&self) -> &[(Vec<u8>, Vec<u8>)] {
        &self.0.ranges
    }

    /// True if a range deletion covers `key`.
    pub fn deletes(&self, key: &[u8]) -> bool {
        self.0.ranges.iter().any(|(start, end)| start.as_slice() <= key && key < end.as_slice())
    }

    /// Keys in ascending order, each once, with their changes.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Change<'_>)> {
        self.0.writes.iter().map(|write| (self.0.key(write), self.0.change(write)))
    }
}

#[derive(Debug)]
struct TableWrites {
    spec: &'static TableSpec,
    buffer: Vec<u8>,
    writes: Vec<Write>,
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Position of a row in the buffer: key `start..middle`, value `middle..end`.
#[derive(Debug, Clone, Copy)]
struct Write {
    /// [`key_prefix_u64`] of the key: decides most comparisons of the sort without a read of the buffer.
    prefix: u64,
    start: usize,
    middle: usize,
    end: usize,
    kind: Kind,
}

/// The kind of a write; see [`Change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Append,
    Delete,
}

impl TableWrites {
    fn write(
        &mut self,
        kind: Kind,
        key: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        let start = self.buffer.len();
        key(&mut self.buffer);
        let middle = self.buffer.len();
        value(&mut self.buffer);
        let end = self.buffer.len();
        let prefix = key_prefix_u64(&self.buffer[start..middle]);
        self.writes.push(Write { prefix, start, middle, end, kind });
        end - start
    }

    fn into_sorted(mut self) -> SortedWrites {
        let mut writes = std::mem::take(&mut self.writes);
        // A stable sort keeps writes of one key in insertion order.
        writes.sort_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| self.key(a).cmp(self.key(b))));
        // `dedup_by` keeps the earlier of two neighbours, so both are combined there.
        writes.dedup_by(|later, earlier| {
            let same = later.prefix == earlier.prefix && self.key(later) == self.key(earlier);
            if same {
                *earlier = self.combined(*earlier, *later);
            }
            same
        });
        self.writes = writes;
        SortedWrites(self)
    }

    /// One write that does the same as two of a key, one after the other.
    fn combined(&mut self, earlier: Write, later: Write) -> Write {
        match (earlier.kind, later.kind) {
            (_, Kind::Put | Kind::Delete) => later,
            (Kind::Delete, Kind::Append) => Write { kind: Kind::Put, ..later },
            (kind @ (Kind::Put | Kind::Append), Kind::Append) => {
                let start = self.buffer.len();
                self.buffer.extend_from_within(earlier.start..earlier.end);
                self.buffer.extend_from_within(later.middle..later.end);
                let middle = start + (earlier.middle - earlier.start);
                Write { start, middle, end: self.buffer.len(), kind, ..earlier }
            }
        }
    }

    fn key(&self, write: &Write) -> &[u8] {
        &self.buffer[write.start..write.middle]
    }

    fn value(&self, write: &Write) -> &[u8] {
        &self.buffer[write.middle..write.end]
    }

    fn change(&self, write: &Write) -> Change<'_> {
        match write.kind {
            Kind::Put => Change::Put(self.value(write)),
            Kind::Append => Change::Append(self.value(write)),
            Kind::Delete => Change::Delete,
        }
    }
}

/// The first eight bytes as a big-endian number, zero-padded: orders like the keys, but different keys may be equal.
pub(crate) fn key_prefix_u64(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let n = key.len().min(8);
    bytes[..n].copy_from_slice(&key[..n]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Access;

    const A: &TableSpec = &TableSpec { name: "a", tag: 1, access: Access::Scan };
    const B: &TableSpec = &TableSpec { name: "b", tag: 2, access: Access::Scan };

    type Writes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    fn sorted(batch: Batch) -> Vec<(u8, Writes)> {
        let owned = |(key, change): (&[u8], Change<'_>)| (key.to_vec(), change.apply(None));
        batch.into_sorted().map(|writes| (writes.table().tag, writes.iter().map(owned).collect())).collect()
    }

    #[test]
    fn writes_are_sorted_by_table_and_key() {
        let mut batch = Batch::new();
        batch.put(B, vec![9], vec![]);
        batch.put(A, vec![1, 2, 3, 4, 5, 6, 7, 8, 9], vec![1]);
        batch.put(A, vec![1, 2, 3, 4, 5, 6, 7, 8], vec![2]);
        batch.put(A, vec![1, 2], vec![3]);
        batch.delete(A, vec![1, 2, 0]);
        let a = vec![
            (vec![1, 2], Some(vec![3])),
            (vec![1, 2, 0], None),
            (vec![1, 2, 3, 4, 5, 6, 7, 8], Some(vec![2])),
            (vec![1, 2, 3, 4, 5, 6, 7, 8, 9], Some(vec![1])),
        ];
        assert_eq!((batch.len(), batch.bytes()), (5, 1 + 10 + 9 + 3 + 3));
        assert_eq!(sorted(batch), [(1, a), (2, vec![(vec![9], Some(vec![]))])]);
    }

    #[test]
    fn the_writes_of_a_key_are_combined_in_their_order() {
        use Change::{Append, Delete, Put};
        let writes = [Put(&[1]), Put(&[2, 3]), Append(&[4]), Append(&[5, 6]), Delete];
        let sequences = (0..5_usize.pow(4)).map(|n| [n % 5, n / 5 % 5, n / 25 % 5, n / 125]);
        for sequence in sequences.map(|all| all.map(|at| writes[at])) {
            let (mut batch, mut one) = (Batch::new(), Batch::new());
            for change in sequence {
                match change {
                    Put(value) => one.put(A, vec![7], value.to_vec()),
                    Append(bytes) => one.append(A, vec![7], bytes.to_vec()),
                    Delete => one.delete(A, vec![7]),
                }
                one.put(A, vec![6], vec![6]);
                batch.extend(std::mem::take(&mut one));
            }
            let writes = batch.into_sorted().next().unwrap();
            for before in [None, Some(vec![0])] {
                let expected = sequence.iter().fold(before.clone(), |value, change| change.apply(value));
                let after = |(key, change): (&[u8], Change<'_>)| {
                    (key.to_vec(), change.apply(before.clone().filter(|_| key == [7])))
                };
                let found: Vec<_> = writes.iter().map(after).collect();
                assert_eq!(found, [(vec![6], Some(vec![6])), (vec![7], expected)], "{sequence:?}");
            }
        }
    }

    #[test]
    fn the_last_write_of_a_key_wins() {
        let mut batch = Batch::new();
        batch.put(A, vec![1], vec![1]);
        batch.delete(A, vec![2]);
        batch.put(A, vec![1], vec![2]);
        batch.put(A, vec![2], vec![3]);
        batch.delete(A, vec![1]);
        assert_eq!(sorted(batch), [(1, vec![(vec![1], None), (vec![2], Some(vec![3]))])]);
    }
}
