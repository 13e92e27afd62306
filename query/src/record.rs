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
    for (i, (seq, payload)) in seqs.iter().zip(rows(snapshot, T::SPEC, seqs)?).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let payload = payload.ok_or_else(|| missing(T::SPEC, *seq))?;
        codec.decode_row_into(snapshot, T::SPEC, *seq, &payload, out).map_err(HttpError::internal)?;
    }
    Ok(())
}

/// The rows of `seqs`, in their order: by one scan if the sequences are consecutive, else by point lookups.
pub(crate) fn rows(
    snapshot: &dyn Snapshot,
    table: &'static TableSpec,
    seqs: &[u64],
) -> Result<Vec<Option<Vec<u8>>>, HttpError> {
    let (Some(first), Some(last)) = (seqs.first(), seqs.last()) else { return Ok(Vec::new()) };
    let (low, high) = (*first.min(last), *first.max(last));
    if seqs.len() < 2 || high - low + 1 != seqs.len() as u64 {
        let keys: Vec<Vec<u8>> = seqs.iter().map(|seq| seq.to_be_bytes().to_vec()).collect();
        return snapshot.multi_get(table, &keys).map_err(HttpError::internal);
    }
    let order = if first < last { Order::Asc } else { Order::Desc };
    let (start, end) = (low.to_be_bytes(), (high + 1).to_be_bytes());
    let bounds = Bounds { start: &start, end: Some(&end) };
    let rows = snapshot.scan(table, bounds, order, seqs.len()).map_err(HttpError::internal)?;
    let mut rows = rows.into_iter().peekable();
    Ok(seqs
        .iter()
        .map(|seq| rows.next_if(|(key, _)| *key == seq.to_be_bytes()).map(|(_, payload)| payload))
        .collect())
}

/// Appends the call frames `seqs`, with commas between them.
pub(crate) fn calls(
    out: &mut Vec<u8>,
    snapshot: &dyn Snapshot,
    codec: &Codec,
    seqs: &[u64],
) -> Result<(), HttpError> {
    let mut chunk = OpenChunk::default();
    for (i, seq) in seqs.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if !chunk.holds(*seq) {
            chunk.load(snapshot, codec, *seq)?;
        }
        out.extend_from_slice(chunk.frame(*seq).ok_or_else(|| missing(Calls::SPEC, *seq))?);
    }
    Ok(())
}

/// A cache of the last chunk of frames, because neighbouring frames are usually in the same chunk.
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

    /// Reads the chunk that contains `seq`: the last one that begins at or before it, at most a chunk's length away.
    fn load(&mut self, snapshot: &dyn Snapshot, codec: &Codec, seq: u64) -> Result<(), HttpError> {
        let table = Calls::SPEC;
        let start = seq.saturating_sub(CHUNK_FRAMES as u64 - 1).to_be_bytes();
        let end = seq.saturating_add(1).to_be_bytes();
        let bounds = Bounds { start: &start, end: Some(&end) };
        let rows = snapshot.scan(table, bounds, Order::Desc, 1).map_err(HttpError::internal)?;
        let (key, payload) = rows.into_iter().next().ok_or_else(|| missing(table, seq))?;
        self.first = key.as_slice().try_into().map(u64::from_be_bytes).map_err(|_| missing(table, seq))?;
        self.bytes.clear();
        let decoded = codec.decode_row_into(snapshot, table, self.first, &payload, &mut self.bytes);
        decoded.map_err(HttpError::internal)?;
        self.frames = Frames::ranges(&self.bytes).ok_or_else(|| {
            HttpError::internal(format!("table `{}`, key {}: not a chunk of frames", table.name, self.first))
        })?;
        Ok(())
    }
}

pub(crate) fn missing(table: &TableSpec, seq: u64) -> HttpError {
    HttpError::internal(format!("table `{}`: the row {seq} that a list names is missing", table.name))
}
