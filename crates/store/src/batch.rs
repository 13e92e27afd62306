//! Writes on their way to a store, in the order they were made.
//!
//! Keys and values of a table lie one behind the other in one buffer, so that a row costs no allocation of
//! its own. At commit each table's writes are sorted by key, which engines take several times faster than
//! unsorted ones; of several writes to a key the last one counts.

use crate::spec::TableSpec;

/// Puts and deletes that a store applies together or not at all.
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

    /// Removes `key`, if it is there.
    pub fn delete(&mut self, table: &'static TableSpec, key: Vec<u8>) {
        self.bytes += self.writes_of(table).delete(&key);
    }

    /// Removes every key from `start` on and before `end`, however many there are, except those that this batch sets.
    ///
    /// It costs as little to write as one key, and reading past the removed rows is not slower. But an engine may have to
    /// keep a note of each range for a long time: for whole tables and their ends, not for a few rows each.
    pub fn delete_range(&mut self, table: &'static TableSpec, start: Vec<u8>, end: Vec<u8>) {
        if start < end {
            self.bytes += start.len() + end.len();
            self.writes_of(table).ranges.push((start, end));
        }
    }

    /// Adds the writes of `other`, after those that are here.
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

    /// Sets a row that `key` and `value` append to the buffer they are given, without a detour.
    pub(crate) fn put_with(
        &mut self,
        table: &'static TableSpec,
        key: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        self.bytes += self.writes_of(table).put(key, value);
    }

    /// The value that the last write of `key` sets. It looks at every write to the table.
    pub(crate) fn find(&self, table: &TableSpec, key: &[u8]) -> Option<&[u8]> {
        let writes = self.tables.iter().find(|writes| writes.spec.tag == table.tag)?;
        let head = head(key);
        let last = writes.writes.iter().rev().find(|write| write.head == head && writes.key(write) == key)?;
        writes.value(last)
    }

    /// The writes so far, table by table, in the order they were made: key, and new value; `None` deletes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static TableSpec, &[u8], Option<&[u8]>)> {
        self.tables.iter().flat_map(|table| {
            table.writes.iter().map(|write| (table.spec, table.key(write), table.value(write)))
        })
    }

    /// The tables of which ranges are removed. For engines.
    pub(crate) fn ranged(&self) -> impl Iterator<Item = &'static TableSpec> {
        self.tables.iter().filter(|table| !table.ranges.is_empty()).map(|table| table.spec)
    }

    /// Bytes of all keys and values so far: what decides when a batch is large enough.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of writes so far; two to the same key are two, and a range is one.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|table| table.writes.len() + table.ranges.len()).sum()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The tables written to, in the order of their tags, each with its writes sorted by key and one write
    /// a key. For engines.
    pub fn into_sorted(mut self) -> impl Iterator<Item = SortedWrites> {
        self.tables.sort_unstable_by_key(|table| table.spec.tag);
        self.tables.into_iter().map(TableWrites::into_sorted)
    }

    // A batch touches a few dozen tables: a walk over them is quicker than hashing.
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

    /// The ranges that are removed before anything else, first and beyond the last key.
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

/// Where a row lies in the buffer: key `start..middle`, value `middle..end`.
#[derive(Debug, Clone, Copy)]
struct Write {
    /// The key's first eight bytes: most comparisons while sorting end here, without a visit to the buffer.
    head: u64,
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
        let head = head(&self.buffer[start..middle]);
        self.writes.push(Write { head, start, middle, end, deletes });
        end - start
    }

    fn into_sorted(mut self) -> SortedWrites {
        let mut writes = std::mem::take(&mut self.writes);
        // Stable: writes to the same key stay in the order they were made.
        writes.sort_by(|a, b| a.head.cmp(&b.head).then_with(|| self.key(a).cmp(self.key(b))));
        // `dedup_by` keeps the earlier of two neighbours, so it is given the later one's content first.
        writes.dedup_by(|later, earlier| {
            let same = later.head == earlier.head && self.key(later) == self.key(earlier);
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

/// The first eight bytes as a number, with zeros where the key is shorter: sorts like the keys do, except
/// that different keys may be equal.
pub(crate) fn head(key: &[u8]) -> u64 {
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
    fn writes_come_out_by_table_and_key() {
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
