//! Write batch: puts and deletes of many tables for one atomic commit.
//!
//! The keys and values of a table share one buffer, so a row costs no allocation. A commit sorts each table's writes by
//! key, because engines apply sorted writes several times faster, and keeps only the last write of each key.

use crate::spec::TableSpec;

/// Puts and deletes that a store applies atomically.
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
        self.put_with(table, |out| out.extend_from_slice(&key), |out| out.extend_from_slice(&value));
    }

    /// Deletes `key`. An absent key is not an error.
    pub fn delete(&mut self, table: &'static TableSpec, key: Vec<u8>) {
        self.bytes += self.writes_of(table).delete(&key);
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

    /// Appends the writes of `other`.
    pub fn append(&mut self, other: Self) {
        for table in other.tables {
            for (start, end) in &table.ranges {
                self.delete_range(table.spec, start.clone(), end.clone());
            }
            for write in &table.writes {
                match table.value(write) {
                    Some(value) => self.put(table.spec, table.key(write).to_vec(), value.to_vec()),
                    None => self.delete(table.spec, table.key(write).to_vec()),
                }
            }
        }
    }

    /// Sets a row; `key` and `value` append their bytes to the batch's buffer, without an allocation.
    pub(crate) fn put_with(
        &mut self,
        table: &'static TableSpec,
        key: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        self.bytes += self.writes_of(table).put(key, value);
    }

    /// The value of the last put of `key`; `None` if it was deleted or never written. Linear in the writes to the
    /// table.
    pub(crate) fn find(&self, table: &TableSpec, key: &[u8]) -> Option<&[u8]> {
        let writes = self.tables.iter().find(|writes| writes.spec.tag == table.tag)?;
        let prefix = key_prefix_u64(key);
        let last =
            writes.writes.iter().rev().find(|write| write.prefix == prefix && writes.key(write) == key)?;
        writes.value(last)
    }

    /// The writes by table, each table's in insertion order: key and new value (`None` deletes).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static TableSpec, &[u8], Option<&[u8]>)> {
        self.tables.iter().flat_map(|table| {
            table.writes.iter().map(|write| (table.spec, table.key(write), table.value(write)))
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

/// The writes of a batch to one table, sorted.
#[derive(Debug)]
pub struct SortedWrites(TableWrites);

impl SortedWrites {
    /// The table.
    pub fn table(&self) -> &'static TableSpec {
        self.0.spec
    }

    /// Deleted key ranges (`start..end`), which apply before the puts and deletes.
    pub fn ranges(&self) -> &[(Vec<u8>, Vec<u8>)] {
        &self.0.ranges
    }

    /// Keys in ascending order, each once, with the new value; `None` deletes.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.0.writes.iter().map(|write| (self.0.key(write), self.0.value(write)))
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
    deletes: bool,
}

impl TableWrites {
    fn put(&mut self, key: impl FnOnce(&mut Vec<u8>), value: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.buffer.len();
        key(&mut self.buffer);
        let middle = self.buffer.len();
        value(&mut self.buffer);
        self.push(start, middle, false)
    }

    fn delete(&mut self, key: &[u8]) -> usize {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(key);
        self.push(start, self.buffer.len(), true)
    }

    fn push(&mut self, start: usize, middle: usize, deletes: bool) -> usize {
        let end = self.buffer.len();
        let prefix = key_prefix_u64(&self.buffer[start..middle]);
        self.writes.push(Write { prefix, start, middle, end, deletes });
        end - start
    }

    fn into_sorted(mut self) -> SortedWrites {
        let mut writes = std::mem::take(&mut self.writes);
        // A stable sort keeps writes of one key in insertion order.
        writes.sort_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| self.key(a).cmp(self.key(b))));
        // `dedup_by` keeps the earlier of two neighbours, so the later write is copied over it.
        writes.dedup_by(|later, earlier| {
            let same = later.prefix == earlier.prefix && self.key(later) == self.key(earlier);
            if same {
                *earlier = *later;
            }
            same
        });
        self.writes = writes;
        SortedWrites(self)
    }

    fn key(&self, write: &Write) -> &[u8] {
        &self.buffer[write.start..write.middle]
    }

    fn value(&self, write: &Write) -> Option<&[u8]> {
        (!write.deletes).then(|| &self.buffer[write.middle..write.end])
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
        let owned = |(key, value): (&[u8], Option<&[u8]>)| (key.to_vec(), value.map(<[u8]>::to_vec));
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
