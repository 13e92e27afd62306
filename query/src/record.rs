//! Splices stored JSON records into a response without parsing them.

use schema::internal_tx::{CHUNK_FRAMES, Calls};
use schema::payload::{Codec, Frames};
use store::{Bounds, Order, Snapshot, Table, TableSpec};
use web::http_error::HttpError;

/// Appends the records `seqs` of a table of payloads, with commas between them.
pub(crate) fn payloads<T: Table<Key = u64>>(
    out: &mut Vec<u8>,
    snapshot: &dyn Snapshot,
    codec: &Codec,
    seqs: &[u64],
) -> Result<(), HttpError> {
    let rows = rows(snapshot, T::SPEC, seqs)?;
    let len: usize = rows.iter().flatten().map(|payload| Codec::decoded_len(payload) + 1).sum();
    out.reserve(len.min(MAX_RESERVED) + AFTER_RECORDS);
    for (i, (seq, payload)) in seqs.iter().zip(rows).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let payload = payload.ok_or_else(|| missing(T::SPEC, *seq))?;
        codec.decode_row_into(snapshot, T::SPEC, *seq, &payload, out).map_err(HttpError::internal)?;
    }
    Ok(())
}

/// Maximum number of bytes that are reserved for records by what the rows say of their lengths.
const MAX_RESERVED: usize = 16 << 20;

/// Bytes of a response after its records: the pagination object.
const AFTER_RECORDS: usize = 256;

/// Rows that a scan may read for a row that is wanted: a step of a scan costs a fraction of a lookup.
const DENSE: u64 = 3;

/// True if a scan from `low` to `high` is cheaper than `n` lookups.
fn is_dense(low: u64, high: u64, n: usize) -> bool {
    (high - low) / DENSE < n as u64
}

/// The rows of `seqs`, in their order: by one scan if the sequences are ascending or descending and close together, else
/// by lookups.
pub(crate) fn rows(
    snapshot: &dyn Snapshot,
    table: &'static TableSpec,
    seqs: &[u64],
) -> Result<Vec<Option<Vec<u8>>>, HttpError> {
    if let [seq] = seqs {
        return Ok(vec![snapshot.get(table, &seq.to_be_bytes()).map_err(HttpError::internal)?]);
    }
    let mut ascending = seqs.to_vec();
    let is_descending = seqs.is_sorted_by(|one, next| one > next);
    if is_descending {
        ascending.reverse();
    }
    let (Some(low), Some(high)) = (ascending.first(), ascending.last()) else { return Ok(Vec::new()) };
    let is_ascending = ascending.is_sorted_by(|one, next| one < next);
    if !is_ascending || !is_dense(*low, *high, seqs.len()) {
        let keys: Vec<Vec<u8>> = seqs.iter().map(|seq| seq.to_be_bytes().to_vec()).collect();
        return snapshot.multi_get(table, &keys).map_err(HttpError::internal);
    }
    let (start, end) = (low.to_be_bytes(), high.saturating_add(1).to_be_bytes());
    let bounds = Bounds { start: &start, end: Some(&end) };
    let limit = usize::try_from(high - low + 1).unwrap_or(usize::MAX);
    let (mut rows, mut next) = (vec![None; ascending.len()], 0);
    // In this order even if the other is wanted: RocksDB steps backward at twice the cost.
    let visited = snapshot.visit(table, bounds, Order::Asc, limit, &mut |key, row| {
        let Ok(seq) = key.try_into().map(u64::from_be_bytes) else { return };
        while ascending.get(next).is_some_and(|wanted| *wanted < seq) {
            next += 1;
        }
        if ascending.get(next) == Some(&seq) {
            rows[next] = Some(row.to_vec());
        }
    });
    visited.map_err(HttpError::internal)?;
    if is_descending {
        rows.reverse();
    }
    Ok(rows)
}

/// Appends the call frames `seqs`, with commas between them.
pub(crate) fn calls(
    out: &mut Vec<u8>,
    snapshot: &dyn Snapshot,
    codec: &Codec,
    seqs: &[u64],
) -> Result<(), HttpError> {
    let (low, high) = (seqs.iter().min().copied().unwrap_or(0), seqs.iter().max().copied().unwrap_or(0));
    let mut chunk = OpenChunk::default();
    let chunks = if is_dense(low, high, seqs.len()) { chunks(snapshot, low, high)? } else { Vec::new() };
    for (i, seq) in seqs.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if !chunk.holds(*seq) {
            if let Some([.., (first, payload)]) =
                chunks.get(..chunks.partition_point(|(first, _)| first <= seq))
            {
                chunk.open(snapshot, codec, *first, payload)?;
            } else {
                let chunks = self::chunks(snapshot, *seq, *seq)?;
                let (first, payload) = chunks.last().ok_or_else(|| missing(Calls::SPEC, *seq))?;
                chunk.open(snapshot, codec, *first, payload)?;
            }
        }
        out.extend_from_slice(chunk.frame(*seq).ok_or_else(|| missing(Calls::SPEC, *seq))?);
    }
    Ok(())
}

/// The chunks that hold the frames from `low` to `high`, with the sequences of their first frames; the first ones may end
/// before `low`.
fn chunks(snapshot: &dyn Snapshot, low: u64, high: u64) -> Result<Vec<(u64, Vec<u8>)>, HttpError> {
    // A chunk that begins earlier ends before `low`.
    let start = low.saturating_sub(CHUNK_FRAMES as u64 - 1).to_be_bytes();
    let end = high.saturating_add(1).to_be_bytes();
    let bounds = Bounds { start: &start, end: Some(&end) };
    // For one frame the last chunk is enough.
    let (order, limit) = if low == high { (Order::Desc, 1) } else { (Order::Asc, usize::MAX) };
    let rows = snapshot.scan(Calls::SPEC, bounds, order, limit).map_err(HttpError::internal)?;
    let first = |(key, payload): (Vec<u8>, Vec<u8>)| {
        let first =
            key.as_slice().try_into().map(u64::from_be_bytes).map_err(|_| missing(Calls::SPEC, low))?;
        Ok((first, payload))
    };
    rows.into_iter().map(first).collect()
}

/// The chunk of frames that was read last, decompressed, because neighbouring frames are usually in the same chunk.
#[derive(Default)]
struct OpenChunk {
    first: u64,
    bytes: Vec<u8>,
    /// The range of each frame in `bytes`.
    frames: Vec<std::ops::Range<usize>>,
}

impl OpenChunk {
    fn holds(&self, seq: u64) -> bool {
        self.index(seq).is_some()
    }

    fn index(&self, seq: u64) -> Option<usize> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        (index < self.frames.len()).then_some(index)
    }

    fn frame(&self, seq: u64) -> Option<&[u8]> {
        self.bytes.get(self.frames.get(self.index(seq)?)?.clone())
    }

    /// Decompresses the chunk `payload`, whose first frame is `first`.
    fn open(
        &mut self,
        snapshot: &dyn Snapshot,
        codec: &Codec,
        first: u64,
        payload: &[u8],
    ) -> Result<(), HttpError> {
        let table = Calls::SPEC;
        self.first = first;
        self.bytes.clear();
        codec
            .decode_row_into(snapshot, table, first, payload, &mut self.bytes)
            .map_err(HttpError::internal)?;
        self.frames = Frames::ranges(&self.bytes).ok_or_else(|| {
            HttpError::internal(format!("table `{}`, key {first}: not a chunk of frames", table.name))
        })?;
        Ok(())
    }
}

pub(crate) fn missing(table: &TableSpec, seq: u64) -> HttpError {
    HttpError::internal(format!("table `{}`: the row {seq} that a list names is missing", table.name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schema::tx::Txs;
    use store::{Batch, Durability, MemStore, Store};

    use super::*;

    proptest! {
        #[test]
        fn rows_are_in_the_order_of_their_sequences_however_they_are_read(
            stored in prop::collection::btree_set(1_u64..200, 1..150),
            seqs in prop::collection::btree_set(1_u64..200, 0..100),
            order in 0..3,
        ) {
            let store = MemStore::new();
            let mut batch = Batch::new();
            for seq in &stored {
                batch.put(Txs::SPEC, seq.to_be_bytes().to_vec(), seq.to_string().into_bytes());
            }
            store.commit(batch, Durability::Buffered).unwrap();
            let mut seqs: Vec<u64> = seqs.into_iter().collect();
            match order {
                0 => {}
                1 => seqs.reverse(),
                _ => seqs.sort_unstable_by_key(|seq| seq.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            }
            let expected: Vec<_> =
                seqs.iter().map(|seq| stored.contains(seq).then(|| seq.to_string().into_bytes())).collect();
            prop_assert_eq!(rows(&*store.snapshot().unwrap(), Txs::SPEC, &seqs).unwrap(), expected);
        }
    }
}
