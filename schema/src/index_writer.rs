//! The writer of an optional index, its removal and its way back. An index is written with each block once it has all blocks
//! before it, and until then from stored blocks.
//!
//! # Invariants
//!
//! * Both ways write the same rows and belong to one thread at a time, so a block is written once.
//! * Each commit ends with the index at the height that its row in `meta` names; a kill leaves a prefix.

use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use chain::evm::header::Header;
use store::{
    Batch, Bounds, COUNT, Counts, Durability, Key as _, Message, Pending, RANK, RowCursor, Snapshot, Store,
    Table as _, Txn,
};

use crate::Error;
use crate::block::Blocks;
use crate::index::{Index, Input, PackedBlock, Rows, State, StoredBlock};
use crate::keys::KEY_END;
use crate::meta::{self, Identity, Meta, RichLane};
use crate::payload::Codec;
use crate::undo::{self, Horizon, Lane, UndoLog, UndoRecords};

/// The time for which indexes are written from stored blocks before a new block is looked for. Each index
/// commits as often as it can in it, so that none waits for a slower one.
const TURN: Duration = Duration::from_millis(20);

/// Stored blocks of one commit: an index of empty blocks takes some 10 ms for so many.
const MAX_BLOCKS: u64 = 4096;

/// Transactions of one commit from stored blocks, however few of them an index lists: some 0.1 s, for which a new block waits.
const MAX_TXS: u64 = 16_384;

/// Bytes of one commit from stored blocks: some 0.1 s. A row that several blocks change is written once a commit.
const MAX_BYTES: usize = 1 << 20;

/// List lengths in the cache: some 100 bytes each.
const REMEMBERED_LISTS: usize = 1 << 16;

/// The writer of one index.
pub struct Writer {
    index: &'static Index,
    codec: Codec,
    undo: UndoLog,
    counts: Counts,
    chain: Identity,
    /// No rewind goes below this height, so commits of stored blocks up to it need no undo record.
    lowest: u64,
}

/// Headers of the EVM blocks of consecutive heights.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// The height of the first one.
    pub first: u64,
    /// The headers, ascending.
    pub headers: Vec<Header>,
}

impl Headers {
    fn of(&self, height: u64) -> Option<&Header> {
        self.headers.get(usize::try_from(height.checked_sub(self.first)?).ok()?)
    }

    /// The height of the last one.
    pub fn last(&self) -> Option<u64> {
        (self.first + self.headers.len() as u64).checked_sub(1).filter(|_| !self.headers.is_empty())
    }
}

/// Advances all of `writers` at the same time, each by commits for some milliseconds: no two indexes share a row.
pub fn advance_all(writers: &mut [Writer], store: &dyn Store, to: u64) -> Vec<Result<Rest, Error>> {
    let end = Instant::now() + TURN;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for writer in writers {
            // No thread for an index that has all, which is the usual case.
            let is_complete = matches!(writer.is_behind(store, to), Ok(false));
            threads.push((!is_complete).then(|| scope.spawn(move || writer.advance_until(store, to, end))));
        }
        let join = |thread: Option<ScopedJoinHandle<'_, _>>| match thread.map(ScopedJoinHandle::join) {
            None => Ok(Rest::None),
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    })
}

/// The stored blocks that an index lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Those above this height.
    After(u64),
    /// None since the last commit.
    Completed,
    /// None, and nothing was written.
    None,
}

impl Writer {
    /// Continues `index` in `store`, or begins it if it is not stored, or in another version. Its lane must not run.
    pub fn new(store: &dyn Store, index: &'static Index, horizon: Horizon) -> Result<Self, Error> {
        index.begin(store)?;
        let lowest = undo::extent(&*store.snapshot()?, Lane::Blocks)?.lowest;
        Self::with(store, index, horizon, lowest)
    }

    /// Begins `index` at the block `from` of a copy of a database, to compare its rows.
    pub(crate) fn anew(store: &dyn Store, index: &'static Index, from: u64) -> Result<Self, Error> {
        index.begin_at(store, from)?;
        Self::with(store, index, Horizon::DEFAULT, u64::MAX)
    }

    fn with(store: &dyn Store, index: &'static Index, horizon: Horizon, lowest: u64) -> Result<Self, Error> {
        let snapshot = store.snapshot()?;
        let (codec, chain) = (Codec::load(&*snapshot)?, meta::read(&*snapshot)?.unwrap_or_default());
        let (undo, counts) = (UndoLog::new(Lane::Index(index), horizon), Counts::new(REMEMBERED_LISTS));
        Ok(Self { index, codec, undo, counts, chain, lowest })
    }

    /// Its index.
    pub fn index(&self) -> &'static Index {
        self.index
    }

    /// True if it can be written from stored blocks up to `to` and lacks some.
    fn is_behind(&self, store: &dyn Store, to: u64) -> Result<bool, Error> {
        let state = self.index.state(&*store.snapshot()?)?;
        Ok(self.index.input == Input::Records && state.is_some_and(|state| state.height < to))
    }

    /// [`Self::advance`] until nothing is left or the time is `end`, at least once.
    fn advance_until(&mut self, store: &dyn Store, to: u64, end: Instant) -> Result<Rest, Error> {
        loop {
            let rest = self.advance(store, to)?;
            if !matches!(rest, Rest::After(_)) || Instant::now() >= end {
                return Ok(rest);
            }
        }
    }

    /// Writes the rows of the next stored blocks up to `to` in one commit of bounded size. [`Rest::None`] for an index that
    /// does not follow from records.
    pub fn advance(&mut self, store: &dyn Store, to: u64) -> Result<Rest, Error> {
        match self.index.input {
            Input::Records => self.write_stored(store, to, &Headers::default()),
            Input::Headers | Input::Traces | Input::Lane => Ok(Rest::None),
        }
    }

    /// Writes the rows of the stored blocks with these headers to an index of headers.
    /// [`Rest::None`] if they are not those of the next blocks. No headers: an empty index has none below their first height.
    pub fn advance_headers(&mut self, store: &dyn Store, headers: &Headers) -> Result<Rest, Error> {
        if self.index.input != Input::Headers {
            return Ok(Rest::None);
        }
        if let Some(last) = headers.last() {
            return self.write_stored(store, last, headers);
        }
        let state = self.index.state(&*store.snapshot()?)?;
        if state.is_some_and(|state| state.height < state.from && state.from < headers.first) {
            self.index.begin_at(store, headers.first)?;
        }
        Ok(Rest::None)
    }

    fn write_stored(&mut self, store: &dyn Store, to: u64, headers: &Headers) -> Result<Rest, Error> {
        let snapshot = store.snapshot()?;
        let Some(mut state) = self.index.state(&*snapshot)?.filter(|state| state.height < to) else {
            return Ok(Rest::None);
        };
        if self.index.input == Input::Headers && headers.of(state.height + 1).is_none() {
            return Ok(Rest::None);
        }
        let last = to.min(state.height.saturating_add(MAX_BLOCKS));
        let mut txn = Txn::new(&*snapshot, &mut self.counts);
        let (start, end) = ((state.height + 1).to_be_bytes(), (last + 1).to_be_bytes());
        let bounds = Bounds { start: &start, end: Some(&end) };
        let (mut read, mut is_full) = (0, false);
        for row in RowCursor::new(&*snapshot, Blocks::SPEC, bounds, store::Order::Asc) {
            let (key, value) = row?;
            let (height, Message(block)) = store::table::decode_row::<Blocks>(&key, &value)?;
            if height != state.height + 1 {
                break;
            }
            let header = headers.of(height);
            let stored = StoredBlock::stored(height, &block, &*snapshot, &self.codec, header);
            let (numbered, chain) = (&mut state.numbered, &self.chain);
            (self.index.rows)(&stored, &mut Rows { txn: &mut txn, numbered, chain })?;
            (state.height, state.time) = (height, block.time);
            read += block.txs;
            is_full = read >= MAX_TXS || txn.bytes() >= MAX_BYTES;
            if is_full {
                break;
            }
        }
        if state.height < last && !is_full {
            let (table, key) = (Blocks::SPEC.name, (state.height + 1).to_string());
            return Err(Error::Record { table, key, reason: "the block is missing".to_owned() });
        }
        self.index.put_state(&mut txn, state);
        let (batch, pending) = if state.height > self.lowest { self.undo.finish(txn)? } else { txn.finish() };
        store.commit(batch, Durability::Buffered)?;
        self.counts.absorb(pending);
        Ok(if state.height < to { Rest::After(state.height) } else { Rest::Completed })
    }

    /// Commits what `write` does with replies of a node, as a part of the last block of the index: a rewind of that block takes it
    /// back.
    pub fn amend(
        &mut self,
        store: &dyn Store,
        write: impl FnOnce(&mut Txn<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let snapshot = store.snapshot()?;
        let height = self.index.state(&*snapshot)?.map_or(0, |state| state.height);
        let mut txn = Txn::new(&*snapshot, &mut self.counts);
        write(&mut txn)?;
        let (batch, pending) = if height > self.lowest { self.undo.finish(txn)? } else { txn.finish() };
        store.commit(batch, Durability::Buffered)?;
        self.counts.absorb(pending);
        Ok(())
    }

    /// Begins a commit of the block lane.
    pub fn open<'a>(&'a mut self, snapshot: &'a dyn Snapshot) -> Result<Open<'a>, Error> {
        let state = self.index.state(snapshot)?;
        let txn = Txn::new(snapshot, &mut self.counts);
        Ok(Open {
            index: self.index,
            codec: &self.codec,
            chain: &self.chain,
            undo: &mut self.undo,
            txn,
            state,
            outcome: Ok(()),
            blocks: 0,
        })
    }

    /// Ends a commit of the block lane that has succeeded.
    pub fn absorb(&mut self, pending: Pending) {
        self.counts.absorb(pending);
    }
}

/// An index's part of one commit of the block lane.
pub struct Open<'a> {
    index: &'static Index,
    codec: &'a Codec,
    chain: &'a Identity,
    undo: &'a mut UndoLog,
    txn: Txn<'a>,
    state: Option<State>,
    /// The error of the function of the index. It ends the index and not the lane.
    outcome: Result<(), Error>,
    blocks: u64,
}

impl<'a> Open<'a> {
    /// A block of the commit, for [`Open::write`] of each index.
    pub fn read<'b>(&self, block: PackedBlock<'b>) -> StoredBlock<'b>
    where
        'a: 'b,
    {
        StoredBlock::packed(block, self.codec)
    }

    /// Writes the rows of a block, if the index has all blocks before it, and follows from its records.
    pub fn write(&mut self, block: &StoredBlock<'_>) {
        let records = self.index.input == Input::Records;
        let Some(state) = self.state.as_mut().filter(|_| records) else { return };
        if self.outcome.is_ok() && state.height + 1 == block.height {
            (state.height, state.time) = (block.height, block.time);
            self.blocks += 1;
            let (numbered, chain) = (&mut state.numbered, self.chain);
            self.outcome = (self.index.rows)(block, &mut Rows { txn: &mut self.txn, numbered, chain });
        }
    }

    /// Adds the rows to `batch`, with an undo record if the commit is to be `reversible`.
    pub fn finish(mut self, batch: &mut Batch, reversible: bool) -> Result<Option<Pending>, Error> {
        self.outcome?;
        let Some(state) = self.state.filter(|_| self.blocks > 0) else { return Ok(None) };
        self.index.put_state(&mut self.txn, state);
        let (rows, pending) = if reversible { self.undo.finish(self.txn)? } else { self.txn.finish() };
        batch.extend(rows);
        Ok(Some(pending))
    }
}

impl Index {
    /// Removes it from `store`. No lane may write it meanwhile.
    pub fn remove(&self, store: &dyn Store) -> Result<(), Error> {
        let mut batch = Batch::new();
        self.remove_into(&mut batch);
        Ok(store.commit(batch, Durability::Synced)?)
    }

    /// Continues it in `store`, or begins it with no blocks if it is not stored, or in another version. No lane may write it
    /// meanwhile.
    pub fn begin(&self, store: &dyn Store) -> Result<(), Error> {
        if self.state(&*store.snapshot()?)?.is_some_and(|state| state.version == self.version) {
            return Ok(());
        }
        let from = meta::read::<Identity>(&*store.snapshot()?)?.map_or(0, |identity| identity.start_height);
        self.begin_at(store, from)?;
        Ok(())
    }

    /// Removes it from `store` and begins it at the block `from`.
    pub(crate) fn begin_at(&self, store: &dyn Store, from: u64) -> Result<State, Error> {
        let mut batch = Batch::new();
        self.remove_into(&mut batch);
        let state =
            State { version: self.version, from, height: from.saturating_sub(1), time: 0, numbered: 0 };
        batch.put(Meta::SPEC, self.key().to_bytes(), prost::Message::encode_to_vec(&state));
        store.commit(batch, Durability::Buffered)?;
        Ok(state)
    }

    fn remove_into(&self, batch: &mut Batch) {
        for table in self.tables {
            batch.delete_range(table, Vec::new(), KEY_END.to_vec());
            for lengths in [COUNT, RANK] {
                batch.delete_range(lengths, vec![table.tag], vec![table.tag + 1]);
            }
        }
        let lane = self.lane_tag();
        batch.delete_range(UndoRecords::SPEC, vec![lane], vec![lane + 1]);
        if self.input == Input::Lane {
            batch.delete(Meta::SPEC, meta::key::<RichLane>().to_bytes());
        }
        batch.delete(Meta::SPEC, self.key().to_bytes());
    }
}

/// Reverts the commits of `index` until it has no block above `to`; removes it if its undo log does not match.
pub(crate) fn rewind(
    store: &dyn Store,
    index: &'static Index,
    to: u64,
    revert: impl Fn(&dyn Store, Lane) -> Result<bool, Error>,
) -> Result<(), Error> {
    if index.input == Input::Traces {
        // Its rows are in the commits of another lane.
        return Ok(());
    }
    let lane = Lane::Index(index);
    while lane.height(&*store.snapshot()?)? > to {
        if !revert(store, lane)? {
            tracing::info!(index = index.name, to, "index removed: its undo log does not reach the height");
            return index.remove(store);
        }
    }
    Ok(())
}
