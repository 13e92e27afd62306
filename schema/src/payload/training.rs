//! Training of a dictionary on the records of a database, for the records that follow. A sample is a chunk of records.

use store::{Bounds, Message, Order, Snapshot, Table as _, TableSpec, Txn};

use super::{Codec, Dictionary, DictionaryRow, Encoder, Kind};
use crate::Error;
use crate::evm_tx::EvmTxs;
use crate::internal_tx::Calls;
use crate::meta::{self, BlockLane, CallLane};
use crate::tx::Txs;

/// One in so many chunks measures the dictionary and does not train it.
const HELD_OUT: usize = 8;

/// Chunks that are read at most: some 50 MB.
const MAX_CHUNKS: usize = 1 << 12;

/// A dictionary trained on a database, and its effect on records that it was not trained on.
#[derive(Debug)]
pub struct Trained {
    /// The kind of record.
    pub kind: Kind,
    /// The dictionary.
    pub dictionary: Vec<u8>,
    /// Number of chunks that it was trained on.
    pub chunks: usize,
    /// Number of the chunks below.
    pub measured: usize,
    /// Bytes of some chunks as JSON.
    pub json: usize,
    /// Their stored bytes with the database's newest dictionary.
    pub before: usize,
    /// Their stored bytes with this one.
    pub after: usize,
}

impl Kind {
    /// The table of such records.
    pub fn table(self) -> &'static TableSpec {
        match self {
            Self::Tx => Txs::SPEC,
            Self::EvmTx => EvmTxs::SPEC,
            Self::Calls => Calls::SPEC,
        }
    }

    /// Chunks below which no dictionary is trained: zstd's trainer needs some dozen times the bytes of a dictionary to
    /// choose from, and a chunk of transactions may have a single one.
    pub fn fewest(self) -> usize {
        match self {
            Self::Tx => 1_000,
            Self::EvmTx | Self::Calls => 250,
        }
    }

    /// Bytes of a dictionary, by measurement: a transaction has 427 bytes with 112 KiB and 465 with 32; records of few kinds
    /// gain less than 2 % by more.
    pub fn dictionary_bytes(self) -> usize {
        match self {
            Self::Tx => 112 << 10,
            Self::EvmTx | Self::Calls => 32 << 10,
        }
    }
}

/// A dictionary of `kind` for such records.
pub fn train(kind: Kind, records: &[Vec<u8>]) -> std::io::Result<Vec<u8>> {
    zstd::dict::from_samples(records, kind.dictionary_bytes())
}

/// Trains a dictionary on chunks of a database, evenly chosen; `None` if it has fewer than [`Kind::fewest`].
pub fn train_on(snapshot: &dyn Snapshot, kind: Kind) -> Result<Option<Trained>, Error> {
    let codec = Codec::load(snapshot)?;
    let records = sample(snapshot, &codec, kind)?;
    if records.len() < kind.fewest() {
        return Ok(None);
    }
    let (mut training, mut measured) = (Vec::new(), Vec::new());
    for (index, record) in records.into_iter().enumerate() {
        if index % HELD_OUT == 0 { measured.push(record) } else { training.push(record) }
    }
    let dictionary = train(kind, &training).map_err(|error| Error::Record {
        table: Dictionary::SPEC.name,
        key: format!("{kind:?}"),
        reason: format!("training failed: {error}"),
    })?;
    let bytes = |encoder: &mut Encoder| measured.iter().map(|record| encoder.encode(record).0.len()).sum();
    Ok(Some(Trained {
        kind,
        chunks: training.len(),
        measured: measured.len(),
        json: measured.iter().map(Vec::len).sum(),
        before: bytes(&mut codec.encoder(kind)?),
        after: bytes(&mut Encoder::with_dictionary(codec.last_number().max(1), &dictionary)?),
        dictionary,
    }))
}

/// Adds dictionaries to the database of `snapshot`; the records that are written later are compressed with them.
pub fn add(txn: &mut Txn<'_>, snapshot: &dyn Snapshot, trained: &[Trained]) -> Result<(), Error> {
    let first = Codec::load(snapshot)?.last_number();
    for (index, trained) in (1..).zip(trained) {
        let number = first.checked_add(index).ok_or_else(|| Error::Record {
            table: Dictionary::SPEC.name,
            key: first.to_string(),
            reason: "no number is left for another dictionary".to_owned(),
        })?;
        let row = DictionaryRow { kind: trained.kind.number(), bytes: trained.dictionary.clone() };
        txn.put::<Dictionary>(&number, &Message(row));
    }
    Ok(())
}

/// At most [`MAX_CHUNKS`] chunks, evenly chosen.
fn sample(snapshot: &dyn Snapshot, codec: &Codec, kind: Kind) -> Result<Vec<Vec<u8>>, Error> {
    let last = match kind {
        Kind::Tx => meta::read::<BlockLane>(snapshot)?.unwrap_or_default().txs,
        Kind::EvmTx => meta::read::<BlockLane>(snapshot)?.unwrap_or_default().evm_txs,
        Kind::Calls => meta::read::<CallLane>(snapshot)?.unwrap_or_default().calls,
    };
    let table = kind.table();
    let step = last.div_ceil(MAX_CHUNKS as u64).max(1);
    let (mut chunks, mut next) = (Vec::new(), 1_u64);
    loop {
        let start = next.to_be_bytes();
        let rows = snapshot.scan(table, Bounds { start: &start, end: None }, Order::Asc, 1)?;
        let Some((key, payload)) = rows.into_iter().next() else { return Ok(chunks) };
        let seq = <[u8; 8]>::try_from(&key[..]).map_or(u64::MAX, u64::from_be_bytes);
        let mut chunk = Vec::new();
        codec.decode_into(table, seq, &payload, &mut chunk)?;
        chunks.push(chunk);
        next = seq.saturating_add(1).max(next + step);
    }
}

#[cfg(test)]
mod tests {
    use store::{Counts, Durability, MemStore, Store as _};

    use super::*;
    use crate::payload::Payload;

    /// Records that share what no shipped dictionary has.
    fn record(seq: u64) -> Vec<u8> {
        let words = ["heliotrope", "quincunx", "zeugma", "ytterbium", "palimpsest", "syzygy"];
        let word = |at: u64| words[usize::try_from((seq / (at + 1) + at) % 6).unwrap()];
        (0..20).map(|at| format!("{}-{at}:{};", word(at), seq * at)).collect::<Vec<_>>().concat().into_bytes()
    }

    /// Writes records with the newest dictionary.
    fn write(store: &MemStore, seqs: std::ops::RangeInclusive<u64>) {
        let snapshot = store.snapshot().unwrap();
        let mut encoder = Codec::load(&*snapshot).unwrap().encoder(Kind::Tx).unwrap();
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        for seq in seqs.clone() {
            txn.put::<Txs>(&seq, &encoder.encode(&record(seq)));
        }
        meta::put(&mut txn, &BlockLane { txs: *seqs.end(), ..BlockLane::default() });
        store.commit(txn.finish().0, Durability::Buffered).unwrap();
    }

    #[test]
    fn a_trained_dictionary_compresses_later_records_and_earlier_ones_stay_readable() {
        let store = MemStore::new();
        let snapshot = store.snapshot().unwrap();
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        super::super::put_shipped(&mut txn);
        store.commit(txn.finish().0, Durability::Buffered).unwrap();
        write(&store, 1..=500);
        assert!(train_on(&*store.snapshot().unwrap(), Kind::Tx).unwrap().is_none(), "too few");
        write(&store, 501..=20_000);

        let snapshot = store.snapshot().unwrap();
        // As in a process that reads while another one adds a dictionary.
        let reader = Codec::load(&*snapshot).unwrap();
        let trained = train_on(&*snapshot, Kind::Tx).unwrap().unwrap();
        assert!(trained.after * 10 < trained.before * 9, "{} {}", trained.before, trained.after);
        assert!(trained.chunks + trained.measured <= MAX_CHUNKS, "{trained:?}");
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        add(&mut txn, &*snapshot, &[trained]).unwrap();
        store.commit(txn.finish().0, Durability::Buffered).unwrap();
        write(&store, 20_001..=20_100);

        let snapshot = store.snapshot().unwrap();
        for seq in [1, 20_000, 20_001, 20_100] {
            let Payload(payload) = store::table::read::<Txs>(&*snapshot, &seq).unwrap().unwrap();
            assert_eq!(super::super::dictionary_number(&payload), Some(if seq > 20_000 { 4 } else { 1 }));
            let mut read = Vec::new();
            reader.decode_row_into(&*snapshot, Txs::SPEC, seq, &payload, &mut read).unwrap();
            assert_eq!(read, record(seq));
        }
    }
}
