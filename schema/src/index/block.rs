//! A block with its records, as the function of an index sees it: from the database, or before it is committed.

use std::cell::OnceCell;

use chain::evm::header::Header;
use store::{Bounds, Snapshot, for_each_row};

use crate::Error;
use crate::block::{Block, BlockEvents};
use crate::evm_tx::EvmTxs;
use crate::payload::{Chunk, Codec, Packed};
use crate::records::{Records, damaged};
use crate::tx::Txs;

/// A block that is about to be committed.
#[derive(Clone, Copy, Debug)]
pub struct PackedBlock<'a> {
    /// Its height.
    pub height: u64,
    /// Its header time, nanoseconds since 1970 UTC.
    pub time: i64,
    /// Sequence of its first Cosmos transaction.
    pub first_tx: u64,
    /// The records of its Cosmos transactions.
    pub txs: &'a [Packed],
    /// Sequence of its first EVM transaction.
    pub first_evm_tx: u64,
    /// The records of its EVM transactions.
    pub evm_txs: &'a [Packed],
    /// Its row of [`BlockEvents`]; empty if it has none.
    pub events: &'a [u8],
}

/// A block with its records, which are decompressed when they are read; those of a block that is about to be committed once, for
/// all indexes.
pub struct StoredBlock<'a> {
    /// Its height.
    pub height: u64,
    /// Its header time, nanoseconds since 1970 UTC.
    pub(crate) time: i64,
    codec: &'a Codec,
    source: Source<'a>,
    txs: Chunks,
    evm_txs: Chunks,
    header: Option<&'a Header>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Packed(PackedBlock<'a>),
    Stored(&'a dyn Snapshot, &'a Block),
}

/// Decompressed chunks, one after the other.
type Chunks = OnceCell<Vec<Vec<u8>>>;

/// The records of one kind: the sequence of the first one, and where they are.
enum Part<'a> {
    Packed(u64, &'a [Packed], &'a Chunks),
    Stored(&'a dyn Snapshot, u64, u64),
}

impl<'a> StoredBlock<'a> {
    pub(crate) fn packed(block: PackedBlock<'a>, codec: &'a Codec) -> Self {
        let (height, time) = (block.height, block.time);
        let (txs, evm_txs) = (Chunks::new(), Chunks::new());
        Self { height, time, codec, source: Source::Packed(block), txs, evm_txs, header: None }
    }

    pub(crate) fn stored(
        height: u64,
        block: &'a Block,
        snapshot: &'a dyn Snapshot,
        codec: &'a Codec,
        header: Option<&'a Header>,
    ) -> Self {
        let (txs, evm_txs) = (Chunks::new(), Chunks::new());
        let source = Source::Stored(snapshot, block);
        Self { height, time: block.time, codec, source, txs, evm_txs, header }
    }

    /// Its header time, nanoseconds since 1970 UTC.
    pub fn time(&self) -> i64 {
        match self.source {
            Source::Packed(block) => block.time,
            Source::Stored(_, block) => block.time,
        }
    }

    /// The header of its EVM block: for an index of [`super::Input::Headers`], there is one.
    pub fn header(&self) -> Option<&Header> {
        self.header
    }

    /// Its row of [`BlockEvents`]; empty if it has none.
    pub fn events(&self) -> Result<Vec<u8>, Error> {
        match self.source {
            Source::Packed(block) => Ok(block.events.to_vec()),
            Source::Stored(snapshot, _) => {
                Ok(store::table::read::<BlockEvents>(snapshot, &self.height)?.unwrap_or_default())
            }
        }
    }

    /// Calls `see` with the sequence and the record of each Cosmos transaction, in order.
    pub fn txs(&self, see: impl FnMut(u64, &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let part = match self.source {
            Source::Packed(block) => Part::Packed(block.first_tx, block.txs, &self.txs),
            Source::Stored(snapshot, block) => Part::Stored(snapshot, block.first_tx, block.txs),
        };
        self.each::<Txs>(&part, see)
    }

    /// Calls `see` with the sequence and the record of each EVM transaction, in order.
    pub fn evm_txs(&self, see: impl FnMut(u64, &[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let part = match self.source {
            Source::Packed(block) => Part::Packed(block.first_evm_tx, block.evm_txs, &self.evm_txs),
            Source::Stored(snapshot, block) => Part::Stored(snapshot, block.first_evm_tx, block.evm_txs),
        };
        self.each::<EvmTxs>(&part, see)
    }

    /// The chunks, of which the first begins with the record `seq`.
    fn decompress<T: Records>(&self, mut seq: u64, chunks: &[Packed]) -> Result<Vec<Vec<u8>>, Error> {
        let mut all = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let mut bytes = Vec::new();
            self.codec.decode_into(T::SPEC, seq, &chunk.payload.0, &mut bytes)?;
            seq += chunk.records;
            all.push(bytes);
        }
        Ok(all)
    }

    fn each<T: Records>(
        &self,
        part: &Part<'_>,
        mut see: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        match *part {
            Part::Packed(mut seq, chunks, decompressed) => {
                if decompressed.get().is_none() {
                    let all = self.decompress::<T>(seq, chunks)?;
                    decompressed.get_or_init(|| all);
                }
                for chunk in decompressed.get().into_iter().flatten() {
                    seq = each_of::<T>(seq, chunk, &mut see)?;
                }
                Ok(())
            }
            Part::Stored(_, _, 0) => Ok(()),
            Part::Stored(snapshot, first, count) => {
                let (mut seq, end) = (first, first.saturating_add(count));
                let (start, stop) = (first.to_be_bytes(), end.to_be_bytes());
                let bounds = Bounds { start: &start, end: Some(&stop) };
                for_each_row(snapshot, T::SPEC, bounds, |key, payload| {
                    if key != seq.to_be_bytes() {
                        return Err(damaged::<T>(seq, "the record is missing"));
                    }
                    bytes.clear();
                    self.codec.decode_row_into(snapshot, T::SPEC, seq, payload, &mut bytes)?;
                    seq = each_of::<T>(seq, &bytes, &mut see)?;
                    Ok(())
                })?;
                if seq == end { Ok(()) } else { Err(damaged::<T>(seq, "the record is missing")) }
            }
        }
    }
}

/// Calls `see` with the records of a chunk, the first of which has the sequence `seq`; returns the sequence after the last.
fn each_of<T: Records>(
    seq: u64,
    chunk: &[u8],
    see: &mut impl FnMut(u64, &[u8]) -> Result<(), Error>,
) -> Result<u64, Error> {
    let records = Chunk::ranges(chunk).ok_or_else(|| damaged::<T>(seq, "not a chunk of records"))?;
    let mut next = seq;
    for record in records {
        see(next, &chunk[record])?;
        next += 1;
    }
    Ok(next)
}
