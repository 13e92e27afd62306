//! The feed that all streams share: the head of the index, and a cache of the events of the last blocks.
//!
//! # Invariants
//!
//! * The thread that polls the head runs while there are streams, and only then.
//! * A cached event belongs to one state of the rewind counter, so no event of a removed block is read.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use lru::LruCache;
use schema::block::Blocks;
use schema::evm_tx::EvmTxs;
use schema::index::State;
use schema::ledger::{self, LEDGER};
use schema::meta::Identity;
use schema::payload::Codec;
use schema::tx::Txs;
use store::{Message, Snapshot, Store};
use tokio::sync::{Semaphore, watch};
use web::event::Event;
use web::http_error::HttpError;

use super::SlowReader;
use super::head::Head;
use super::position::{Hashes, Position};
use super::rows::{Filter, Kind};
use crate::array::Array;
use crate::cursor::{Cursor, Start};
use crate::page::{Direction, PageRequest, page};
use crate::transfer_record::Records;
use crate::{msg_sets, record};

/// Interval of polls. A poll reads two rows.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Maximum number of events of a page.
pub(crate) const PAGE_ROWS: usize = 32;

/// A page ends with the event that reaches this many bytes; an event that has more is a page of its own.
pub(crate) const PAGE_BYTES: usize = 64 << 10;

/// Rows that are tested for their types at once, and bytes of them after which no further one is.
const TESTED_ROWS: usize = 256;
const TESTED_BYTES: usize = 1 << 20;

/// The name of the last event of a stream.
pub(crate) const END: &str = "end";

/// Bytes of cached events, of all streams.
const CACHE_BYTES: usize = 16 << 20;

/// Only events of this many last blocks are cached: no reader that is farther behind shares them.
const CACHED_BLOCKS: u64 = 256;

/// An event, and the position after it.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) event: Event,
    pub(crate) position: Position,
}

/// The next rows of a stream.
pub(crate) struct Rows {
    pub(crate) placed: Vec<Placed>,
    /// No row up to this one is left to send.
    pub(crate) tested: u64,
    /// True if the index has no further ones.
    pub(crate) is_last: bool,
}

/// The store and what the streams share.
pub(crate) struct Feed {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) start_height: u64,
    identity: Identity,
    pub(crate) slow: SlowReader,
    /// Places of the streams that read many rows.
    pub(crate) far: Arc<Semaphore>,
    /// Maximum bytes of the row of an event.
    max_row: u64,
    codec: Arc<Codec>,
    head: watch::Sender<Head>,
    /// True while the thread runs.
    is_polled: Mutex<bool>,
    cache: Mutex<Cache>,
}

impl Feed {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        codec: Arc<Codec>,
        identity: Identity,
        slow: SlowReader,
        max_row: usize,
    ) -> Self {
        let start_height = identity.start_height;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self {
            store,
            start_height,
            identity,
            slow,
            far: Arc::new(Semaphore::new(cores.max(2))),
            max_row: max_row as u64,
            codec,
            head: watch::Sender::default(),
            is_polled: Mutex::default(),
            cache: Mutex::new(Cache { events: LruCache::unbounded(), bytes: 0 }),
        }
    }

    /// The head of the index, and its changes.
    pub(crate) fn follow(self: &Arc<Self>) -> Result<watch::Receiver<Head>, HttpError> {
        let mut is_polled = self.is_polled.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.head.subscribe();
        if !*is_polled {
            self.poll();
            let feed = Arc::downgrade(self);
            let thread = thread::Builder::new().name("stream-head".to_owned()).spawn(move || poll(&feed));
            thread.map_err(HttpError::internal)?;
            *is_polled = true;
        }
        Ok(head)
    }

    fn poll(&self) {
        let head = self.store.snapshot().map_err(schema::Error::from).and_then(|now| Head::read(&*now));
        match head {
            Ok(head) => {
                self.head.send_if_modified(|last| std::mem::replace(last, head) != head);
            }
            // The next read of a stream reports it.
            Err(error) => tracing::debug!(%error, "the head of the index cannot be read"),
        }
    }

    /// False if there is no stream; the thread must end then.
    fn has_streams(&self) -> bool {
        let mut is_polled = self.is_polled.lock().unwrap_or_else(PoisonError::into_inner);
        *is_polled = self.head.receiver_count() > 0;
        *is_polled
    }

    /// The next cached events, at most a page, of all rows after `row`, up to the head `head`.
    pub(crate) fn cached(&self, kind: Kind, row: u64, head: &Head) -> Vec<Placed> {
        let all = kind.all(self.start_height, head);
        let rows = (row + 1).max(all.first)..all.first + all.len;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let next = |row| {
            let placed = cache.events.get(&(kind, head.rewinds, row))?;
            let is_first = bytes == 0;
            bytes += placed.event.frame().len();
            (is_first || bytes <= PAGE_BYTES).then(|| placed.clone())
        };
        rows.take(PAGE_ROWS).map_while(next).collect()
    }

    /// The events of the next rows after `after` in `snapshot`, whose head is `head`. Rows up to `tested` do not match
    /// the filter.
    pub(crate) fn page(
        &self,
        filter: &Filter,
        (after, tested): (&Position, u64),
        snapshot: &dyn Snapshot,
        hashes: &mut Hashes<'_>,
        head: &Head,
    ) -> Result<Rows, HttpError> {
        let (array, has_others) = filter.array(snapshot, self.start_height, head)?;
        let limit = if has_others { TESTED_ROWS } else { PAGE_ROWS };
        let rows = rows_after(&*array, after.row.max(tested), limit).map_err(HttpError::internal)?;
        let is_last = rows.len() < limit;
        let mut page = Rows { placed: Vec::new(), tested, is_last };
        let (mut height, mut bytes, mut bytes_tested) = (after.height.max(self.start_height), 0, 0);
        for row in rows {
            if bytes >= PAGE_BYTES || bytes_tested >= TESTED_BYTES || page.placed.len() == PAGE_ROWS {
                page.is_last = false;
                break;
            }
            if has_others {
                let (matches, bytes) = self.matches(filter, row, snapshot)?;
                bytes_tested += bytes;
                if !matches {
                    page.tested = row;
                    continue;
                }
            }
            let key = (filter.kind, head.rewinds, row);
            let cached = self.cache.lock().unwrap_or_else(PoisonError::into_inner).events.get(&key).cloned();
            let one = if let Some(cached) = cached {
                cached
            } else {
                let one = self.render(filter.kind, row, height, snapshot, hashes, head)?;
                if one.position.height + CACHED_BLOCKS > head.height {
                    self.cache.lock().unwrap_or_else(PoisonError::into_inner).put(key, &one);
                }
                one
            };
            // A large event is alone in its page, so that it never waits for others to be sent.
            if one.event.frame().len() > PAGE_BYTES && !page.placed.is_empty() {
                page.is_last = false;
                break;
            }
            height = one.position.height;
            bytes += one.event.frame().len();
            page.tested = row;
            let is_end = one.event.name() == END;
            page.placed.push(one);
            if is_end {
                break;
            }
        }
        Ok(page)
    }

    /// True if `row` passes the test of `filter`; with the bytes that were read.
    fn matches(
        &self,
        filter: &Filter,
        row: u64,
        snapshot: &dyn Snapshot,
    ) -> Result<(bool, usize), HttpError> {
        if filter.kind == Kind::Transfers {
            let placed = ledger::movements(snapshot, &[row]).map_err(HttpError::internal)?;
            return Ok((placed.iter().all(|placed| filter.movements.tested.passes(&placed.movement)), 0));
        }
        // A larger row ends the stream, whatever it has.
        let record = record::one::<Txs>(snapshot, &self.codec, row, self.max_row)?;
        let Ok(record) = record else { return Ok((true, 0)) };
        Ok((msg_sets::has_any(&record, &filter.types)?, record.len()))
    }

    /// The event of `row`, whose block is at `from` or above: an `end` if it is too large.
    fn render(
        &self,
        kind: Kind,
        row: u64,
        from: u64,
        snapshot: &dyn Snapshot,
        hashes: &mut Hashes<'_>,
        head: &Head,
    ) -> Result<Placed, HttpError> {
        let record = match kind {
            Kind::Blocks => Ok(block(snapshot, row)?.json),
            Kind::Txs => record::one::<Txs>(snapshot, &self.codec, row, self.max_row)?,
            Kind::EvmTxs => record::one::<EvmTxs>(snapshot, &self.codec, row, self.max_row)?,
            Kind::Transfers => Ok(self.transfer(row, snapshot)?),
        };
        let height = if kind == Kind::Blocks { row } else { height_of(kind, row, from, snapshot, head)? };
        let position = Position::new(height, row, hashes).map_err(HttpError::internal)?;
        let id = position.encode(kind.space());
        let event = match record {
            Ok(json) => Event::new(kind.event(), &id, &json),
            Err(bytes) => {
                let reason = format!(
                    "a transaction of block {height} has {bytes} bytes, more than the {} that a stream sends: read it \
                     from the list, and go on after it with the id of this event, {id}",
                    self.max_row
                );
                Event::new(END, &id, serde_json::json!({ "reason": reason }).to_string().as_bytes())
            }
        };
        Ok(Placed { event, position })
    }

    fn transfer(&self, number: u64, snapshot: &dyn Snapshot) -> Result<Vec<u8>, HttpError> {
        let mut json = Ok(Vec::new());
        Records::new(&self.identity, &self.codec, snapshot).each(&[number], |_, _, record| {
            json = serde_json::to_vec(record);
            Ok(ControlFlow::Continue(()))
        })?;
        json.map_err(HttpError::internal)
    }

    /// The position after all rows of the block at `height`; before the first block, the beginning.
    pub(crate) fn after_block(
        &self,
        kind: Kind,
        height: u64,
        snapshot: &dyn Snapshot,
        hashes: &mut Hashes<'_>,
    ) -> Result<Position, HttpError> {
        if height < self.start_height {
            return Ok(Position::default());
        }
        let rows = kind.of_block(height, &block(snapshot, height)?, snapshot)?;
        Position::new(height, rows.first + rows.len - 1, hashes).map_err(HttpError::internal)
    }

    /// True if the block of `position` may have its row, or ends with it.
    pub(crate) fn has(
        &self,
        kind: Kind,
        position: &Position,
        snapshot: &dyn Snapshot,
    ) -> Result<bool, HttpError> {
        if position.height < self.start_height {
            return Ok(position.row == 0);
        }
        // The index of movements follows the blocks: it will have the row.
        let is_behind = |state: State| state.height < position.height;
        if kind == Kind::Transfers
            && LEDGER.state(snapshot).map_err(HttpError::internal)?.is_none_or(is_behind)
        {
            return Ok(true);
        }
        let rows = kind.of_block(position.height, &block(snapshot, position.height)?, snapshot)?;
        Ok((rows.first - 1..rows.first + rows.len).contains(&position.row))
    }
}

/// Polls the head until there is no stream.
fn poll(feed: &Weak<Feed>) {
    loop {
        thread::sleep(POLL_EVERY);
        let Some(feed) = feed.upgrade().filter(|feed| feed.has_streams()) else { return };
        feed.poll();
    }
}

/// The first rows of `array` after `row`, at most `limit`.
fn rows_after(array: &dyn Array<Row = u64>, row: u64, limit: usize) -> Result<Vec<u64>, store::Error> {
    // Most readers of a filter are at its end, which one read shows.
    let len = array.len();
    let last = array.slice(len.saturating_sub(1)..len)?;
    if last.last().is_none_or(|last| *last <= row) {
        return Ok(Vec::new());
    }
    let at = Start::Row(Cursor::After(row));
    let request = PageRequest { at, limit: limit as u64, direction: Direction::Ascending };
    Ok(page(array, &request)?.rows)
}

/// The height of the block that has `row`: the last one whose first row is not after it. Searched from `from`, which is
/// not above it, in doubling steps and then by halves.
fn height_of(
    kind: Kind,
    row: u64,
    from: u64,
    snapshot: &dyn Snapshot,
    head: &Head,
) -> Result<u64, HttpError> {
    if kind == Kind::Transfers {
        let placed = ledger::movements(snapshot, &[row]).map_err(HttpError::internal)?;
        return Ok(placed.first().map_or(from, |placed| placed.height));
    }
    let begins_by =
        |height| Ok::<_, HttpError>(kind.of_block(height, &block(snapshot, height)?, snapshot)?.first <= row);
    let (mut low, mut high, mut step) = (from, head.height + 1, 1);
    while low + step < high && begins_by(low + step)? {
        low += step;
        step *= 2;
    }
    high = high.min(low + step);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if begins_by(middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}

fn block(snapshot: &dyn Snapshot, height: u64) -> Result<schema::block::Block, HttpError> {
    let row = store::table::read::<Blocks>(snapshot, &height).map_err(HttpError::internal)?;
    let missing = || HttpError::internal(format!("block {height} is missing"));
    row.map(|Message(block)| block).ok_or_else(missing)
}

/// A least-recently-used cache, bounded by bytes. A key has the rewind counter.
struct Cache {
    events: LruCache<(Kind, u64, u64), Placed>,
    bytes: usize,
}

impl Cache {
    fn put(&mut self, key: (Kind, u64, u64), placed: &Placed) {
        self.bytes += placed.event.frame().len();
        if let Some(other) = self.events.put(key, placed.clone()) {
            self.bytes -= other.event.frame().len();
        }
        while self.bytes > CACHE_BYTES {
            let Some((_, oldest)) = self.events.pop_lru() else { return };
            self.bytes -= oldest.event.frame().len();
        }
    }
}
