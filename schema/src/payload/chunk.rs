//! Chunks: several records in one payload, because the records of a block are similar and compress better together.

use std::ops::Range;

use super::{Encoder, Payload, put_varint, take_varint};

/// Bytes of records in a chunk, at most, unless a single record has more: to read one record, its whole chunk is
/// decompressed.
const CHUNK_BYTES: usize = 64 << 10;

/// The records of a chunk: | n (varint) | n lengths (varint each) | the records' JSON, one after the other |
#[derive(Debug, Default)]
pub struct Chunk {
    lengths: Vec<u64>,
    json: Vec<u8>,
}

impl Chunk {
    /// A chunk of one record.
    pub fn single(record: &[u8]) -> Self {
        let mut chunk = Self::default();
        chunk.push(record);
        chunk
    }

    /// Adds a record.
    pub fn push(&mut self, record: &[u8]) {
        self.json.extend_from_slice(record);
        self.lengths.push(record.len() as u64);
    }

    /// Returns the chunk's bytes and empties it.
    pub fn take(&mut self) -> Vec<u8> {
        let is_large = self.json.len() > CHUNK_BYTES;
        let json = if is_large { 0 } else { self.json.len() };
        let mut out = Vec::with_capacity(json + 2 * self.lengths.len() + 2);
        put_varint(self.lengths.len() as u64, &mut out);
        for length in self.lengths.drain(..) {
            put_varint(length, &mut out);
        }
        if is_large {
            // In place: a large record is not held twice.
            let mut json = std::mem::take(&mut self.json);
            json.splice(0..0, out);
            return json;
        }
        out.append(&mut self.json);
        out
    }

    /// The byte ranges of the records in a chunk; `None` if the bytes are not a chunk.
    pub fn ranges(chunk: &[u8]) -> Option<Vec<Range<usize>>> {
        let mut rest = chunk;
        let n = usize::try_from(take_varint(&mut rest)?).ok()?;
        if n > rest.len() {
            return None;
        }
        let mut lengths = rest;
        for _ in 0..n {
            take_varint(&mut rest)?;
        }
        let mut at = chunk.len() - rest.len();
        let mut ranges = Vec::with_capacity(n);
        for _ in 0..n {
            let length = usize::try_from(take_varint(&mut lengths)?).ok()?;
            let end = at.checked_add(length).filter(|end| *end <= chunk.len())?;
            ranges.push(at..end);
            at = end;
        }
        (at == chunk.len()).then_some(ranges)
    }
}

/// A compressed chunk.
#[derive(Debug)]
pub struct Packed {
    /// Number of its records.
    pub records: u64,
    /// The records.
    pub payload: Payload,
}

/// Packs the records of a block into chunks, in their order.
#[derive(Debug)]
pub struct Packer {
    most: usize,
    open: Chunk,
    packed: Vec<Packed>,
}

impl Packer {
    /// Makes chunks of at most `most` records.
    pub fn new(most: usize) -> Self {
        Self { most, open: Chunk::default(), packed: Vec::new() }
    }

    /// Adds a record.
    pub fn push(&mut self, record: &[u8], encoder: &mut Encoder) {
        if self.open.json.len() + record.len() > CHUNK_BYTES {
            self.close(encoder);
        }
        self.open.push(record);
        if self.open.lengths.len() == self.most {
            self.close(encoder);
        }
    }

    /// Adds a record of unusual size as a chunk of its own, without a copy.
    pub fn push_large(&mut self, record: Vec<u8>, encoder: &mut Encoder) {
        self.close(encoder);
        self.open = Chunk { lengths: vec![record.len() as u64], json: record };
        self.close(encoder);
    }

    fn close(&mut self, encoder: &mut Encoder) {
        let records = self.open.lengths.len() as u64;
        if records > 0 {
            let payload = encoder.encode(&self.open.take());
            self.packed.push(Packed { records, payload });
        }
    }

    /// The chunks of all records.
    pub fn finish(mut self, encoder: &mut Encoder) -> Vec<Packed> {
        self.close(encoder);
        self.packed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::RwLock;

    use proptest::prelude::*;

    use super::super::{Codec, Dictionary, DictionaryRow, Kind, Loaded};
    use super::*;
    use store::Table as _;

    fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let len = prop_oneof![9 => 0_usize..300, 1 => 20_000_usize..100_000];
        prop::collection::vec((any::<u8>(), len).prop_map(|(byte, len)| vec![byte; len]), 0..40)
    }

    proptest! {
        #[test]
        fn records_are_packed_in_their_order_within_the_limits(records in records(), most in 1_usize..9) {
            let row = DictionaryRow { kind: 1, bytes: Kind::Tx.shipped().to_vec() };
            let codec = Codec { dictionaries: vec![Loaded::new(1, row)], later: RwLock::default() };
            let mut encoder = codec.encoder(Kind::Tx).unwrap();
            let mut packer = Packer::new(most);
            for record in &records {
                if record.len() > CHUNK_BYTES {
                    packer.push_large(record.clone(), &mut encoder);
                } else {
                    packer.push(record, &mut encoder);
                }
            }
            let mut read = Vec::new();
            for chunk in packer.finish(&mut encoder) {
                let mut bytes = Vec::new();
                codec.decode_into(Dictionary::SPEC, 0, &chunk.payload.0, &mut bytes).unwrap();
                let ranges = Chunk::ranges(&bytes).unwrap();
                prop_assert_eq!(ranges.len() as u64, chunk.records);
                prop_assert!((1..=most).contains(&ranges.len()));
                let len: usize = ranges.iter().map(ExactSizeIterator::len).sum();
                prop_assert!(ranges.len() == 1 || len <= CHUNK_BYTES);
                prop_assert!(Chunk::ranges(&[bytes.as_slice(), b"x"].concat()).is_none());
                read.extend(ranges.into_iter().map(|range| bytes[range].to_vec()));
            }
            prop_assert_eq!(read, records);
        }
    }
}
