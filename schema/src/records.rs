//! Records by their sequences.
//!
//! A row has up to [`Records::MAX_RECORDS`] consecutive records of one block and is keyed by the first one, so the row of a
//! record is the last one that begins at its sequence or before.

use std::ops::{ControlFlow, Range};

use store::{Bounds, Order, Snapshot, Table, Txn};

use crate::Error;
use crate::payload::{self, Chunk, Codec, Packed, Payload};

/// A table of records, in chunks.
pub trait Records: Table<Key = u64, Value = Payload> {
    /// Maximum number of records in a row, which bounds the decompression work for a page with one of them.
    const MAX_RECORDS: usize;
}

/// Writes the records from sequence `first` on, which `txn` neither reads nor changes again.
pub fn put_unread<T: Records>(txn: &mut Txn<'_>, first: u64, records: &[Packed]) {
    let mut seq = first;
    for chunk in records {
        txn.put_unread::<T>(&seq, &chunk.payload);
        seq += chunk.records;
    }
}

/// The place of each of `records` in its row: the number of records before it.
pub fn places(records: &[Packed]) -> impl Iterator<Item = u64> {
    records.iter().flat_map(|chunk| 0..chunk.records)
}

/// Appends the record `seq`, whose place in its row is `place`, to `out`, unless `admit` refuses the bytes of its row
/// before it is decompressed. False if it did.
///
/// # Errors
/// [`Error::Record`] if it is not there, or damaged.
pub fn append_at<T: Records>(
    out: &mut Vec<u8>,
    snapshot: &dyn Snapshot,
    codec: &Codec,
    (seq, place): (u64, u64),
    admit: impl FnOnce(u64) -> bool,
) -> Result<bool, Error> {
    let first = seq.checked_sub(place).ok_or_else(|| missing::<T>(seq))?;
    let mut payload = None;
    snapshot.get_with(T::SPEC, &first.to_be_bytes(), &mut |row| payload = Some(row.to_vec()))?;
    let payload = payload.ok_or_else(|| missing::<T>(seq))?;
    if !admit(unpacked_len(&payload)) {
        return Ok(false);
    }
    let mut open = OpenChunk::default();
    open.open::<T>(snapshot, codec, first, &payload)?;
    out.extend_from_slice(open.record(seq).ok_or_else(|| missing::<T>(seq))?);
    Ok(true)
}

/// What a reader of records comes to next.
pub enum Step<'a> {
    /// A row, before it is decompressed: the bytes of its records, several small ones or a single one of any size.
    Row(u64),
    /// The next record.
    Record(&'a [u8]),
}

/// Records of the first batch of rows that [`walk`] reads at once. Further batches have as many as [`BATCH_BYTES`] hold.
const FIRST_BATCH: usize = 16;

/// Compressed bytes that [`walk`] reads at once, by the average of those before.
const BATCH_BYTES: usize = 1 << 20;

/// Calls `see` with each of the records `seqs`, in their order.
///
/// # Errors
/// [`Error::Record`] if one of them is missing or damaged.
pub fn each<T: Records>(
    snapshot: &dyn Snapshot,
    codec: &Codec,
    seqs: &[u64],
    mut see: impl FnMut(&[u8]),
) -> Result<(), Error> {
    walk::<T>(snapshot, codec, seqs, &mut |step| {
        if let Step::Record(record) = step {
            see(record);
        }
        ControlFlow::Continue(())
    })
}

/// Calls `see` with each of the records `seqs`, in their order, and before each row that has some of them, until it
/// breaks. What is in memory at once does not grow with the number of records.
///
/// # Errors
/// As [`each`].
pub fn walk<T: Records>(
    snapshot: &dyn Snapshot,
    codec: &Codec,
    seqs: &[u64],
    see: &mut dyn FnMut(Step<'_>) -> ControlFlow<()>,
) -> Result<(), Error> {
    let (mut open, mut rest, mut batch) = (OpenChunk::default(), seqs, FIRST_BATCH);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(batch.min(rest.len()));
        rest = later;
        let rows = rows::<T>(snapshot, now)?;
        let mut read = 0;
        for seq in now {
            if !open.holds(*seq) {
                let found;
                let (first, payload) = if let Some(rows) = &rows {
                    last_until(rows, *seq)
                } else {
                    found = row_of::<T>(snapshot, *seq)?;
                    found.as_ref()
                }
                .ok_or_else(|| missing::<T>(*seq))?;
                read += payload.len();
                if see(Step::Row(unpacked_len(payload))).is_break() {
                    return Ok(());
                }
                open.open::<T>(snapshot, codec, *first, payload)?;
            }
            let record = open.record(*seq).ok_or_else(|| missing::<T>(*seq))?;
            if see(Step::Record(record)).is_break() {
                return Ok(());
            }
        }
        batch = (BATCH_BYTES / (read / now.len()).max(1)).clamp(1, MAX_AT_ONCE);
    }
    Ok(())
}

/// Maximum number of records whose rows [`walk`] reads at once.
const MAX_AT_ONCE: usize = 1024;

/// Bytes of a row when it is decompressed; of a damaged one, as stored.
fn unpacked_len(payload: &[u8]) -> u64 {
    payload::unpacked_len(payload).unwrap_or(payload.len() as u64)
}

/// The record `seq`, which `txn` has written by [`Txn::put_unread`] or found: for rare use.
pub fn find<T: Records>(txn: &Txn<'_>, codec: &Codec, seq: u64) -> Result<Vec<u8>, Error> {
    for first in candidates::<T>(seq).rev() {
        if let Some(Payload(payload)) = txn.find::<T>(&first)? {
            let mut open = OpenChunk::default();
            open.open::<T>(txn, codec, first, &payload)?;
            return open.record(seq).map(<[u8]>::to_vec).ok_or_else(|| missing::<T>(seq));
        }
    }
    Err(missing::<T>(seq))
}

/// The sequences with which the row of the record `seq` may begin.
fn candidates<T: Records>(seq: u64) -> Range<u64> {
    seq.saturating_sub(T::MAX_RECORDS as u64 - 1)..seq.saturating_add(1)
}

/// Sequences that a scan may pass for one that is wanted. If each is a row of its own, the scan takes about the time of
/// lookups, and reads about the same blocks; most rows have several, and then it takes less.
const DENSE: u64 = 32;

/// Maximum number of candidates of a record that are looked up, rather than found by a scan.
const MAX_LOOKUPS: usize = 8;

/// Rows with their sequences, in order.
type Rows = Vec<(u64, Vec<u8>)>;

/// All rows that several records may be in: by one scan if they are close together, by lookups at once if a record has few
/// candidates, else `None`.
fn rows<T: Records>(snapshot: &dyn Snapshot, seqs: &[u64]) -> Result<Option<Rows>, Error> {
    if seqs.len() == 1 {
        return Ok(None);
    }
    let mut ascending = seqs.to_vec();
    ascending.sort_unstable();
    let (Some(low), Some(high)) = (ascending.first(), ascending.last()) else {
        return Ok(Some(Rows::new()));
    };
    if (high - low) / DENSE < seqs.len() as u64 {
        let within = candidates::<T>(*low).start..candidates::<T>(*high).end;
        let (start, end) = (within.start.to_be_bytes(), within.end.to_be_bytes());
        let limit = usize::try_from(within.end - within.start).unwrap_or(usize::MAX);
        let (mut rows, mut wanted) = (Rows::new(), ascending.iter().copied().peekable());
        let bounds = Bounds { start: &start, end: Some(&end) };
        // Ascending even if the other order is wanted: RocksDB steps backward at twice the cost.
        snapshot.visit(T::SPEC, bounds, Order::Asc, limit, &mut |key, payload| {
            // A key of another length is reported by the audit.
            let Ok(first) = key.try_into().map(u64::from_be_bytes) else { return };
            while wanted.next_if(|seq| *seq < first).is_some() {}
            if wanted.peek().is_some_and(|seq| seq - first < T::MAX_RECORDS as u64) {
                rows.push((first, payload.to_vec()));
            }
        })?;
        return Ok(Some(rows));
    }
    if T::MAX_RECORDS > MAX_LOOKUPS {
        return Ok(None);
    }
    let mut firsts: Vec<u64> = ascending.iter().flat_map(|seq| candidates::<T>(*seq)).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let keys: Vec<Vec<u8>> = firsts.iter().map(|seq| seq.to_be_bytes().to_vec()).collect();
    let payloads = snapshot.multi_get(T::SPEC, &keys)?;
    Ok(Some(firsts.into_iter().zip(payloads).filter_map(|(seq, payload)| Some((seq, payload?))).collect()))
}

/// The last row that begins at `seq` or before.
fn last_until(rows: &Rows, seq: u64) -> Option<&(u64, Vec<u8>)> {
    rows[..rows.partition_point(|(first, _)| *first <= seq)].last()
}

/// Like [`last_until`], by a scan.
fn row_of<T: Records>(snapshot: &dyn Snapshot, seq: u64) -> Result<Option<(u64, Vec<u8>)>, Error> {
    let candidates = candidates::<T>(seq);
    let (start, end) = (candidates.start.to_be_bytes(), candidates.end.to_be_bytes());
    let bounds = Bounds { start: &start, end: Some(&end) };
    let row = snapshot.scan(T::SPEC, bounds, Order::Desc, 1)?.pop();
    Ok(row.and_then(|(key, payload)| Some((u64::from_be_bytes(key.try_into().ok()?), payload))))
}

/// The chunk that was read last, decompressed, because neighbouring records are usually in the same one.
#[derive(Default)]
struct OpenChunk {
    first: u64,
    bytes: Vec<u8>,
    /// The range of each record in `bytes`.
    records: Vec<Range<usize>>,
}

impl OpenChunk {
    fn holds(&self, seq: u64) -> bool {
        self.record(seq).is_some()
    }

    fn record(&self, seq: u64) -> Option<&[u8]> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.bytes.get(self.records.get(index)?.clone())
    }

    /// Decompresses the chunk `payload`, whose first record is `first`.
    fn open<T: Records>(
        &mut self,
        snapshot: &dyn Snapshot,
        codec: &Codec,
        first: u64,
        payload: &[u8],
    ) -> Result<(), Error> {
        self.first = first;
        self.bytes.clear();
        self.records.clear();
        codec.decode_row_into(snapshot, T::SPEC, first, payload, &mut self.bytes)?;
        self.records =
            Chunk::ranges(&self.bytes).ok_or_else(|| damaged::<T>(first, "not a chunk of records"))?;
        Ok(())
    }
}

fn missing<T: Records>(seq: u64) -> Error {
    damaged::<T>(seq, "the record is missing")
}

/// The error of the record `seq`, or of the row that begins with it.
pub(crate) fn damaged<T: Table>(seq: u64, reason: &str) -> Error {
    Error::Record { table: T::SPEC.name, key: seq.to_string(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use store::{Batch, Durability, MemStore, Store as _};

    use super::*;
    use crate::internal_tx::Calls;
    use crate::tx::Txs;

    /// A store with the records 1 to `lens.iter().sum()`, in chunks of these lengths, and a gap in place of each
    /// chunk of `lost`.
    fn stored<T: Records>(lens: &[usize], lost: &[usize]) -> MemStore {
        let (store, mut batch, mut seq) = (MemStore::new(), Batch::new(), 1_u64);
        for (index, len) in lens.iter().enumerate() {
            let (first, mut chunk) = (seq, Chunk::default());
            for _ in 0..*len {
                chunk.push(seq.to_string().as_bytes());
                seq += 1;
            }
            if !lost.contains(&index) {
                batch.put(T::SPEC, first.to_be_bytes().to_vec(), [&[0], &chunk.take()[..]].concat());
            }
        }
        store.commit(batch, Durability::Buffered).unwrap();
        store
    }

    fn read<T: Records>(store: &MemStore, seqs: &[u64]) -> Result<Vec<String>, Error> {
        let snapshot = store.snapshot().unwrap();
        let (codec, mut read) = (Codec::load(&*snapshot).unwrap(), Vec::new());
        each::<T>(&*snapshot, &codec, seqs, |record| {
            read.push(String::from_utf8(record.to_vec()).unwrap());
        })?;
        Ok(read)
    }

    /// The record `seq`, read by its place.
    fn read_at<T: Records>(store: &MemStore, seq: u64, place: u64) -> Result<String, Error> {
        let snapshot = store.snapshot().unwrap();
        let codec = Codec::load(&*snapshot).unwrap();
        let mut out = b"before ".to_vec();
        append_at::<T>(&mut out, &*snapshot, &codec, (seq, place), |_| true)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn seqs() -> impl Strategy<Value = Vec<prop::sample::Index>> {
        prop::collection::vec(any::<prop::sample::Index>(), 0..60)
    }

    proptest! {
        #[test]
        fn records_are_read_in_the_order_of_their_sequences_however_far_apart(
            lens in prop::collection::vec(1_usize..=4, 1..200),
            of in seqs(),
            order in 0..3,
        ) {
            let last: usize = lens.iter().sum();
            let mut seqs: Vec<u64> = of.iter().map(|index| index.index(last) as u64 + 1).collect();
            match order {
                0 => seqs.sort_unstable(),
                1 => seqs.sort_unstable_by_key(|seq| std::cmp::Reverse(*seq)),
                _ => {}
            }
            let expected: Vec<String> = seqs.iter().map(u64::to_string).collect();
            prop_assert_eq!(&read::<Txs>(&stored::<Txs>(&lens, &[]), &seqs).unwrap(), &expected);
            prop_assert_eq!(&read::<Calls>(&stored::<Calls>(&lens, &[]), &seqs).unwrap(), &expected);
        }

        #[test]
        fn a_record_is_read_by_its_place_and_by_no_other(
            lens in prop::collection::vec(1_usize..=4, 1..50),
            other in 0_u64..200,
        ) {
            let packed: Vec<Packed> = lens
                .iter()
                .map(|len| Packed { records: *len as u64, payload: Payload(Vec::new()) })
                .collect();
            let store = stored::<Txs>(&lens, &[]);
            prop_assert_eq!(places(&packed).count(), lens.iter().sum::<usize>());
            for (seq, place) in (1..).zip(places(&packed)) {
                prop_assert_eq!(read_at::<Txs>(&store, seq, place).unwrap(), format!("before {seq}"));
                prop_assert!(other == place || read_at::<Txs>(&store, seq, other).is_err());
            }
        }

        #[test]
        fn a_missing_record_is_an_error_and_no_other_record(
            lens in prop::collection::vec(1_usize..=4, 2..50),
            lost in any::<prop::sample::Index>(),
            beside in 0_u64..20,
        ) {
            let lost = lost.index(lens.len());
            let first = lens[..lost].iter().sum::<usize>() as u64 + 1;
            let store = stored::<Txs>(&lens, &[lost]);
            for seq in first..first + lens[lost] as u64 {
                let near: Vec<u64> = (seq.saturating_sub(beside).max(1)..=seq).collect();
                for seqs in [&[seq][..], &near, &[1, seq], &[0], &[first + 1_000]] {
                    let is_whole = seqs.iter().all(|seq| *seq < first && *seq > 0);
                    prop_assert_eq!(read::<Txs>(&store, seqs).is_ok(), is_whole, "{:?}", seqs);
                }
            }
        }
    }
}
