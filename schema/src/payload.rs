//! Compression of stored JSON records: one zstd frame per record, with a shared dictionary.
//!
//! A single record is too small for zstd to find repetitions; a dictionary of typical records supplies them (a
//! transaction of 3,354 bytes becomes 289 instead of 1,219). The application compresses, not the engine, so the bytes
//! are the same on every engine and in the write-ahead log.
//!
//! # Invariants
//!
//! A dictionary is never changed or deleted while a record refers to it. Each database holds copies of its
//! dictionaries, so that a later program with better ones can still read it.

use std::io::Cursor;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use store::{Access, Message, Order, Snapshot, Table, TableSpec, Txn, Value};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe;

use crate::Error;

/// The zstd level. Level 9 saves another 10 % of the bytes at four times the time.
const LEVEL: i32 = 3;

/// Upper bound of a decompressed record in bytes; a larger size is treated as corruption. The largest known record, a
/// contract creation, has 250 kB.
const MAX_RECORD: u64 = 256 << 20;

/// Codec byte: the record follows uncompressed.
const RAW: u8 = 0;
/// Codec byte: a dictionary's number (varint) and a zstd frame follow.
const ZSTD: u8 = 1;

/// zstd dictionaries.
///
/// | number (2, BE) | → [`DictionaryRow`] (protobuf)
#[derive(Debug)]
pub struct Dictionary;

impl Table for Dictionary {
    const SPEC: &'static TableSpec = &TableSpec { name: "dictionary", tag: 0x03, access: Access::Point };
    type Key = u16;
    type Value = Message<DictionaryRow>;
}

/// A dictionary and the kind of record it is for.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DictionaryRow {
    /// The kind of record, [`Kind`] as a number.
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    /// The dictionary in zstd's form; empty means none.
    #[prost(bytes = "vec", tag = "2")]
    pub bytes: Vec<u8>,
}

/// The kinds of record; each has its own dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Cosmos transaction.
    Tx,
    /// An EVM transaction.
    EvmTx,
    /// A chunk of call frames.
    Calls,
}

impl Kind {
    /// Every kind, in the order of the numbers of their shipped dictionaries (1, 2, 3).
    pub const ALL: [Self; 3] = [Self::Tx, Self::EvmTx, Self::Calls];

    fn number(self) -> u32 {
        match self {
            Self::Tx => 1,
            Self::EvmTx => 2,
            Self::Calls => 3,
        }
    }

    /// The dictionary that new databases begin with (`make dictionaries` trains them on the shipped recordings).
    pub fn shipped(self) -> &'static [u8] {
        match self {
            Self::Tx => include_bytes!("../dict/tx.zdict"),
            Self::EvmTx => include_bytes!("../dict/evm_tx.zdict"),
            Self::Calls => include_bytes!("../dict/internal_tx.zdict"),
        }
    }
}

/// A stored, compressed record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(pub Vec<u8>);

impl Value for Payload {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        matches!(bytes.first(), Some(&(RAW | ZSTD))).then(|| Self(bytes.to_vec()))
    }
}

/// Writes the shipped dictionaries into a new database.
pub fn put_shipped(txn: &mut Txn<'_>) {
    for (number, kind) in (1..).zip(Kind::ALL) {
        let row = DictionaryRow { kind: kind.number(), bytes: kind.shipped().to_vec() };
        txn.put::<Dictionary>(&number, &Message(row));
    }
}

/// All dictionaries of a database, loaded for decompression from several threads.
#[derive(Debug)]
pub struct Codec {
    dictionaries: Vec<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    number: u16,
    row: DictionaryRow,
    idle: Pool,
}

/// A pool of idle decompressors, at most one per thread that decompressed concurrently.
#[derive(Default)]
struct Pool(Mutex<Vec<Decompressor<'static>>>);

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}

impl Codec {
    /// The dictionaries of the database behind `snapshot`.
    pub fn load(snapshot: &dyn Snapshot) -> Result<Self, Error> {
        let rows =
            store::table::rows::<Dictionary>(snapshot, &store::key::All, Order::Asc, usize::from(u16::MAX))?;
        let dictionaries = rows
            .into_iter()
            .map(|(number, Message(row))| Loaded { number, row, idle: Pool::default() })
            .collect();
        Ok(Self { dictionaries })
    }

    /// A compressor of `kind`, with the newest dictionary for it. One for each thread.
    pub fn encoder(&self, kind: Kind) -> Result<Encoder, Error> {
        let newest =
            self.dictionaries.iter().filter(|d| d.row.kind == kind.number()).max_by_key(|d| d.number);
        let (number, bytes) = newest.map_or((0, &[][..]), |d| (d.number, d.row.bytes.as_slice()));
        Encoder::new(number, bytes).map_err(|error| Error::Record {
            table: Dictionary::SPEC.name,
            key: number.to_string(),
            reason: format!("not a usable dictionary: {error}"),
        })
    }

    /// Length of the record that `payload` holds, or a guess if the row is malformed; for the capacity of a buffer.
    pub fn decoded_len(payload: &[u8]) -> usize {
        let zstd_len = |rest: &[u8]| {
            let mut frame = rest;
            take_varint(&mut frame)?;
            let len = zstd_safe::get_frame_content_size(frame).ok()??;
            usize::try_from(len).ok().filter(|_| len <= MAX_RECORD)
        };
        match payload.split_first() {
            Some((&ZSTD, rest)) => zstd_len(rest).unwrap_or(0),
            _ => payload.len(),
        }
    }

    /// Appends the record that `payload` holds to `out`. `table` and `key` are for the error only.
    pub fn decode_into(
        &self,
        table: &'static TableSpec,
        key: u64,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.try_decode(payload, out).map_err(|reason| Error::Record {
            table: table.name,
            key: key.to_string(),
            reason,
        })
    }

    fn try_decode(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let (codec, rest) = payload.split_first().ok_or("the row is empty")?;
        match *codec {
            RAW => out.extend_from_slice(rest),
            ZSTD => {
                let mut frame = rest;
                let number = take_varint(&mut frame).ok_or("the dictionary's number is cut off")?;
                let dictionary = self
                    .dictionaries
                    .iter()
                    .find(|d| u64::from(d.number) == number)
                    .ok_or_else(|| format!("dictionary {number} is missing"))?;
                dictionary.decompress(frame, out)?;
            }
            other => return Err(format!("unknown codec {other}")),
        }
        Ok(())
    }
}

impl Loaded {
    fn decompress(&self, frame: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let size = zstd_safe::get_frame_content_size(frame)
            .map_err(|_| "not a zstd frame".to_owned())?
            .ok_or("the frame does not say its size")?;
        if size > MAX_RECORD {
            return Err(format!("a record of {size} bytes, at most {MAX_RECORD} are credible"));
        }
        let size = usize::try_from(size).map_err(|error| error.to_string())?;
        out.reserve(size);
        let mut decompressor = self.take()?;
        let end = u64::try_from(out.len()).map_err(|error| error.to_string())?;
        let mut tail = Cursor::new(out);
        tail.set_position(end);
        let done = decompressor.decompress_to_buffer(frame, &mut tail);
        self.idle.0.lock().unwrap_or_else(PoisonError::into_inner).push(decompressor);
        match done {
            Ok(n) if n == size => Ok(()),
            Ok(n) => Err(format!("{n} bytes where the frame promised {size}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn take(&self) -> Result<Decompressor<'static>, String> {
        if let Some(idle) = self.idle.0.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(idle);
        }
        Decompressor::with_dictionary(&self.row.bytes).map_err(|error| error.to_string())
    }
}

/// Compresses records of one kind.
pub struct Encoder {
    number: u16,
    compressor: Compressor<'static>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("dictionary", &self.number).finish_non_exhaustive()
    }
}

impl Encoder {
    fn new(number: u16, dictionary: &[u8]) -> std::io::Result<Self> {
        let mut compressor = Compressor::with_dictionary(LEVEL, dictionary)?;
        // The dictionary's number precedes the frame, and RocksDB has checksums of its own.
        compressor.include_dictid(false)?;
        compressor.include_checksum(false)?;
        compressor.include_contentsize(true)?;
        Ok(Self { number, compressor })
    }

    /// `record`, compressed, or uncompressed if that is shorter.
    pub fn encode(&mut self, record: &[u8]) -> Payload {
        let mut out = Vec::with_capacity(4 + zstd_safe::compress_bound(record.len()));
        if self.number != 0 {
            out.push(ZSTD);
            put_varint(u64::from(self.number), &mut out);
            let start = out.len();
            let mut tail = Cursor::new(&mut out);
            tail.set_position(start as u64);
            match self.compressor.compress_to_buffer(record, &mut tail) {
                Ok(n) if n + start <= record.len() => {
                    out.shrink_to_fit();
                    return Payload(out);
                }
                // The buffer is large enough; if compression fails for another reason, the record is stored
                // uncompressed.
                Ok(_) | Err(_) => out.clear(),
            }
        }
        out.push(RAW);
        out.extend_from_slice(record);
        Payload(out)
    }
}

/// A chunk of call frames: | n (varint) | n lengths (varint each) | the frames' JSON, one after the other |
#[derive(Debug, Default)]
pub struct Frames {
    lengths: Vec<u64>,
    json: Vec<u8>,
}

impl Frames {
    /// Adds the frame that `write` appends.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.json.len();
        write(&mut self.json);
        self.lengths.push((self.json.len() - start) as u64);
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// True if there are no frames.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Bytes of the frames so far.
    pub fn json_bytes(&self) -> usize {
        self.json.len()
    }

    /// Returns the chunk's bytes and empties it.
    pub fn take(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.json.len() + 2 * self.lengths.len() + 2);
        put_varint(self.lengths.len() as u64, &mut out);
        for length in self.lengths.drain(..) {
            put_varint(length, &mut out);
        }
        out.append(&mut self.json);
        out
    }

    /// The byte ranges of the frames in a chunk; `None` if the bytes are not a chunk.
    pub fn ranges(chunk: &[u8]) -> Option<Vec<Range<usize>>> {
        let mut rest = chunk;
        let n = usize::try_from(take_varint(&mut rest)?).ok()?;
        if n > rest.len() {
            return None;
        }
        let lengths: Vec<usize> =
            (0..n).map(|_| usize::try_from(take_varint(&mut rest)?).ok()).collect::<Option<_>>()?;
        let mut at = chunk.len() - rest.len();
        let mut ranges = Vec::with_capacity(n);
        for length in lengths {
            let end = at.checked_add(length).filter(|end| *end <= chunk.len())?;
            ranges.push(at..end);
            at = end;
        }
        (at == chunk.len()).then_some(ranges)
    }
}

fn put_varint(value: u64, out: &mut Vec<u8>) {
    prost::encoding::encode_varint(value, out);
}

fn take_varint(input: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(input).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn codec() -> Codec {
        let row = DictionaryRow { kind: 1, bytes: Kind::Tx.shipped().to_vec() };
        Codec { dictionaries: vec![Loaded { number: 1, row, idle: Pool::default() }] }
    }

    proptest! {
        #[test]
        fn a_record_is_decompressed_unchanged(records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..8)) {
            let codec = codec();
            let mut encoder = codec.encoder(Kind::Tx).unwrap();
            let mut all = b"before".to_vec();
            for record in &records {
                let payload = encoder.encode(record).0;
                prop_assert!((record.len()..=record.len() + 1).contains(&Codec::decoded_len(&payload)));
                codec.decode_into(Dictionary::SPEC, 0, &payload, &mut all).unwrap();
            }
            prop_assert_eq!(all, [b"before".to_vec(), records.concat()].concat());
        }

        #[test]
        fn damaged_records_are_errors(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(codec) = bytes.first_mut() { *codec = ZSTD; }
            let mut out = Vec::new();
            if codec().decode_into(Dictionary::SPEC, 0, &bytes, &mut out).is_err() {
                prop_assert!(out.is_empty());
            }
        }

        #[test]
        fn frames_are_decompressed_unchanged(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40)) {
            let mut chunk = Frames::default();
            for frame in &frames { chunk.push(|out| out.extend_from_slice(frame)); }
            let bytes = chunk.take();
            let ranges = Frames::ranges(&bytes).unwrap();
            prop_assert_eq!(ranges.into_iter().map(|range| bytes[range].to_vec()).collect::<Vec<_>>(), frames);
            prop_assert!(Frames::ranges(&[bytes.as_slice(), b"x"].concat()).is_none());
        }
    }
}
