//! Compression of stored JSON records: one zstd frame for a chunk of some records, with a shared dictionary.
//!
//! A few records are too small for zstd to find repetitions; a dictionary of typical records supplies them. The
//! application compresses, not the engine, so the bytes are the same on every engine and in the write-ahead log.
//!
//! # Invariants
//!
//! A dictionary is never changed or deleted while a record refers to it. Each database holds copies of its
//! dictionaries, so that a later program with better ones can still read it. Records are compressed with the newest
//! dictionary of their kind, and name the one that they need.

mod chunk;
pub mod training;

use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use store::{Message, Order, Snapshot, Table as _, TableSpec, Txn, Value};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe;

pub use self::chunk::{Chunk, Packed, Packer};
use crate::Error;

/// The zstd level. Level 9 saves another 2 % of the bytes at six times the time; level 1 costs 6 % and saves a fifth of it.
const LEVEL: i32 = 3;

/// Upper bound of a decompressed record in bytes; a larger size is treated as corruption. The largest known record, a
/// contract creation, has 250 kB.
const MAX_RECORD: u64 = 256 << 20;

/// Codec byte: the record follows uncompressed.
const RAW: u8 = 0;
/// Codec byte: a dictionary's number (varint) and a zstd frame follow.
const ZSTD: u8 = 1;

store::tables! {
    /// zstd dictionaries.
    ///
    /// | number (2, BE) | → [`DictionaryRow`] (protobuf)
    pub table Dictionary("dictionary", 0x03, Point): u16 => Message<DictionaryRow>;
}

/// A dictionary and the kind of record it is for.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct DictionaryRow {
    /// The kind of record, [`Kind`] as a number.
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    /// The dictionary in zstd's form; empty means none.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "2")]
    pub bytes: Vec<u8>,
}

/// The kinds of record; each has its own dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cosmos transactions.
    Tx,
    /// EVM transactions.
    EvmTx,
    /// Call frames.
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

/// A stored, compressed chunk of records ([`Chunk`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(pub Vec<u8>);

impl Value for Payload {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        matches!(bytes.first(), Some(&(RAW | ZSTD))).then(|| Self(bytes.to_vec()))
    }

    /// Compressed, because the dictionaries are not here.
    fn json(&self) -> serde_json::Value {
        hex::encode(&self.0).into()
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
    /// Those that another process has added since.
    later: RwLock<Vec<Arc<Loaded>>>,
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
        let dictionaries = rows.into_iter().map(|(number, Message(row))| Loaded::new(number, row)).collect();
        Ok(Self { dictionaries, later: RwLock::default() })
    }

    /// A compressor of `kind`, with the newest dictionary for it. One for each thread.
    pub fn encoder(&self, kind: Kind) -> Result<Encoder, Error> {
        let newest =
            self.dictionaries.iter().filter(|d| d.row.kind == kind.number()).max_by_key(|d| d.number);
        let (number, bytes) = newest.map_or((0, &[][..]), |d| (d.number, d.row.bytes.as_slice()));
        Encoder::with_dictionary(number, bytes)
    }

    /// The highest number of a dictionary; 0 if there are none.
    fn last_number(&self) -> u16 {
        self.dictionaries.iter().map(|dictionary| dictionary.number).max().unwrap_or(0)
    }

    /// Like [`Codec::decode_into`], for a row of `snapshot`, which may have a dictionary that was added since the
    /// dictionaries were loaded.
    pub fn decode_row_into(
        &self,
        snapshot: &dyn Snapshot,
        table: &'static TableSpec,
        key: u64,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if let Some(number) = dictionary_number(payload).and_then(|number| u16::try_from(number).ok())
            && number > self.last_number()
            && self.later(number).is_none()
            && let Some(Message(row)) = store::table::read::<Dictionary>(snapshot, &number)?
        {
            let mut later = self.later.write().unwrap_or_else(PoisonError::into_inner);
            later.push(Arc::new(Loaded::new(number, row)));
        }
        self.decode_into(table, key, payload, out)
    }

    fn later(&self, number: u16) -> Option<Arc<Loaded>> {
        let later = self.later.read().unwrap_or_else(PoisonError::into_inner);
        later.iter().find(|dictionary| dictionary.number == number).cloned()
    }

    /// Appends the chunk that `payload` holds to `out`. `table` and `key` are for the error only.
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
                if let Some(dictionary) = self.dictionaries.iter().find(|d| u64::from(d.number) == number) {
                    dictionary.decompress(frame, out)?;
                } else {
                    let later = u16::try_from(number).ok().and_then(|number| self.later(number));
                    let missing = || format!("dictionary {number} is missing");
                    later.ok_or_else(missing)?.decompress(frame, out)?;
                }
            }
            other => return Err(format!("unknown codec {other}")),
        }
        Ok(())
    }
}

/// The number of a payload's dictionary; none if it is stored uncompressed or malformed.
fn dictionary_number(payload: &[u8]) -> Option<u64> {
    take_varint(&mut payload.strip_prefix(&[ZSTD])?)
}

/// Bytes that a payload has when it is decompressed, as its frame says; `None` if it is malformed.
pub(crate) fn unpacked_len(payload: &[u8]) -> Option<u64> {
    let (codec, mut rest) = payload.split_first()?;
    match *codec {
        RAW => Some(rest.len() as u64),
        ZSTD => {
            take_varint(&mut rest)?;
            zstd_safe::get_frame_content_size(rest).ok()?
        }
        _ => None,
    }
}

impl Loaded {
    fn new(number: u16, row: DictionaryRow) -> Self {
        Self { number, row, idle: Pool::default() }
    }

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
    fn with_dictionary(number: u16, dictionary: &[u8]) -> Result<Self, Error> {
        Self::new(number, dictionary).map_err(|error| Error::Record {
            table: Dictionary::SPEC.name,
            key: number.to_string(),
            reason: format!("not a usable dictionary: {error}"),
        })
    }

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
        Codec { dictionaries: vec![Loaded::new(1, row)], later: RwLock::default() }
    }

    proptest! {
        #[test]
        fn a_record_is_decompressed_unchanged(records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..8)) {
            let codec = codec();
            let mut encoder = codec.encoder(Kind::Tx).unwrap();
            let mut all = b"before".to_vec();
            for record in &records {
                let payload = encoder.encode(record).0;
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
    }
}
