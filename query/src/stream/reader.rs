//! One stream: reads the rows after its position whenever the head of the index moves.
//!
//! # Invariants
//!
//! * The position is that of the last event that was sent.
//! * It is compared with the stored blocks whenever the rewind counter has changed, before any row is read.
//! * No row is read while an optional index that has the rows is behind the blocks.
//! * Rows far behind the head, and those that are tested, are read on few threads of a lower priority, one page of each
//!   stream in turn: no request waits for streams that catch up, whether they are read or not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use web::event::{Event, EventStream};
use web::http_error::HttpError;
use web::limits::priority;

use super::feed::{END, Feed, Placed, Rows};
use super::head::Head;
use super::meter::Meter;
use super::position::{Base, Hashes, Position};
use super::rows::Filter;

/// Blocks behind the head within which a stream that once had every event reads the next ones at once.
const NEAR: u64 = 16;

/// The state of a stream.
struct Reader {
    feed: Arc<Feed>,
    filter: Filter,
    head: watch::Receiver<Head>,
    position: Position,
    /// True until the position of a stream without an id is known.
    starts: bool,
    /// The state in which the position was compared; `None` before, and while the index has not reached it.
    compared: Option<u64>,
    page: VecDeque<Placed>,
    /// In the state of the rewind counter, the last row that was tested for its types, if a filter needs that.
    tested: (u64, u64),
    /// When it last had every event, and the height of the head then; `None` before it has caught up.
    caught_up: Option<(Instant, u64)>,
    is_over: bool,
    meter: Meter,
}

/// Opens a stream of the rows of `filter`: those after the event `id`, or without one the rows that are new.
///
/// # Errors
/// 400 if `id` is not one of this stream, or if none of its blocks is stored. 503 if the index is far behind it.
pub(crate) fn open(feed: &Arc<Feed>, filter: Filter, id: Option<&str>) -> Result<EventStream, HttpError> {
    let kind = filter.kind;
    let head = feed.follow()?;
    let snapshot = feed.store.snapshot().map_err(HttpError::internal)?;
    let mut hashes = Hashes::new(&*snapshot, feed.start_height);
    let now = Head::read(&*snapshot).map_err(HttpError::internal)?;
    let mut page = VecDeque::new();
    let starts = id.is_none() && kind.is_behind(&now);
    let (position, compared) = match id {
        None if starts => (Position::default(), None),
        None => {
            let position = feed.after_block(kind, now.height, &*snapshot, &mut hashes)?;
            page.push_back(notice("start", &filter, position));
            (position, Some(now.rewinds))
        }
        Some(id) => {
            let position = Position::decode(kind.space(), id).ok_or_else(|| invalid(id))?;
            match position.base(&mut hashes, now.height).map_err(HttpError::internal)? {
                Base::Same if !feed.has(kind, &position, &*snapshot)? => return Err(invalid(id)),
                Base::Same | Base::Behind(_) | Base::Fork(_) => (position, None),
                Base::FarBehind => return Err(far_behind(&position, &now)),
                Base::Unknown => return Err(unknown(id)),
            }
        }
    };
    drop(hashes);
    drop(snapshot);
    let meter = Meter::open(kind);
    let feed = Arc::clone(feed);
    let reader = Reader {
        feed,
        filter,
        head,
        position,
        starts,
        compared,
        page,
        tested: (0, 0),
        caught_up: None,
        is_over: false,
        meter,
    };
    Ok(unfold(reader, Reader::next).boxed())
}

impl Reader {
    /// The next event; `None` after the last.
    async fn next(mut self) -> Option<(Event, Self)> {
        loop {
            if let Some(placed) = self.page.pop_front() {
                self.position = placed.position;
                if placed.event.name() == END {
                    self.is_over = true;
                    self.page.clear();
                }
                self.meter.event();
                return Some((placed.event, self));
            }
            if self.is_over {
                return None;
            }
            let head = *self.head.borrow_and_update();
            let (page, reader) = self.page(head).await?;
            self = reader;
            match page {
                Ok(page) if !page.placed.is_empty() => self.page = page.placed.into(),
                Ok(page) if page.is_last => {
                    self.head.changed().await.ok()?;
                    self.caught_up = Some((Instant::now(), head.height));
                }
                // Other streams and requests of the thread come first.
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => {
                    tracing::error!(%error, stream = self.filter.kind.event(), "a stream ended with an error");
                    self.end("internal server error; resume with the id of this event");
                }
            }
        }
    }

    /// The next events; none if the stream has them all, or if none of many rows matches its filter.
    async fn page(mut self, head: Head) -> Option<(Result<Rows, HttpError>, Self)> {
        if let Some(page) = self.ready(head) {
            return Some((Ok(page), self));
        }
        let is_near = self.behind(head).is_some_and(|behind| behind <= NEAR);
        // A filter may have to test each row.
        if is_near && !self.filter.may_test() {
            return Some((self.read(), self));
        }
        // Neither fails: the semaphore is never closed, and a panic ends the stream as it would on this thread.
        let place = Arc::clone(&self.feed.far).acquire_owned().await.ok()?;
        let read = move || {
            let _place = place;
            priority::lower(priority::EXPENSIVE);
            (self.read(), self)
        };
        spawn_blocking(read).await.ok()
    }

    /// The next events if they are in memory, or the last one of a slow stream.
    fn ready(&mut self, head: Head) -> Option<Rows> {
        if let Some(behind) = self.is_too_slow(head) {
            self.meter.dropped();
            tracing::debug!(stream = self.filter.kind.event(), blocks = behind, "a slow stream was ended");
            return Some(only(vec![self.last(&format!(
                "this client reads too slowly: it is {behind} blocks behind; resume with the id of this event"
            ))]));
        }
        let is_here = !self.filter.kind.is_behind(&head) && head.height >= self.position.height;
        if self.filter.is_all() && self.compared == Some(head.rewinds) && is_here {
            let cached = self.feed.cached(self.filter.kind, self.position.row, &head);
            let last = self.filter.kind.all(self.feed.start_height, &head);
            if !cached.is_empty() || self.position.row + 1 >= last.first + last.len {
                return Some(only(cached));
            }
        }
        None
    }

    fn read(&mut self) -> Result<Rows, HttpError> {
        let feed = Arc::clone(&self.feed);
        let snapshot = feed.store.snapshot().map_err(HttpError::internal)?;
        let head = Head::read(&*snapshot).map_err(HttpError::internal)?;
        let mut hashes = Hashes::new(&*snapshot, feed.start_height);
        if self.filter.kind.is_behind(&head) {
            return Ok(only(Vec::new()));
        }
        if std::mem::take(&mut self.starts) {
            self.compared = Some(head.rewinds);
            let start = feed.after_block(self.filter.kind, head.height, &*snapshot, &mut hashes)?;
            return Ok(only(vec![notice("start", &self.filter, start)]));
        }
        if self.compared != Some(head.rewinds) || head.height < self.position.height {
            let was_here = self.compared.is_some();
            match self.position.base(&mut hashes, head.height).map_err(HttpError::internal)? {
                Base::Same => self.compared = Some(head.rewinds),
                // The index of this process has yet to reach the block.
                Base::Behind(_) | Base::FarBehind if !was_here => return Ok(only(Vec::new())),
                Base::Behind(base) | Base::Fork(base) => {
                    self.compared = Some(head.rewinds);
                    let base = feed.after_block(self.filter.kind, base, &*snapshot, &mut hashes)?;
                    return Ok(only(vec![notice("reorg", &self.filter, base)]));
                }
                Base::FarBehind | Base::Unknown => {
                    return Ok(only(vec![self.last(
                        "the blocks of this stream were rolled back beyond its last 64; start without an id",
                    )]));
                }
            }
        }
        let tested = if self.tested.0 == head.rewinds { self.tested.1 } else { 0 };
        let rows = feed.page(&self.filter, (&self.position, tested), &*snapshot, &mut hashes, &head)?;
        self.tested = (head.rewinds, rows.tested);
        Ok(rows)
    }

    /// The number of blocks that a slow reader is behind, if it is too slow.
    fn is_too_slow(&self, head: Head) -> Option<u64> {
        let ((at, _), behind) = (self.caught_up?, self.behind(head)?);
        let slow = self.feed.slow;
        (behind > slow.blocks && at.elapsed() > slow.time).then_some(behind)
    }

    /// The blocks since it last had every event; `None` if it never had, or if their rows are to come.
    fn behind(&self, head: Head) -> Option<u64> {
        let (_, height) = self.caught_up.filter(|_| !self.filter.kind.is_behind(&head))?;
        Some(head.height.saturating_sub(self.position.height.max(height)))
    }

    /// The last event.
    fn last(&mut self, reason: &str) -> Placed {
        self.is_over = true;
        let data = serde_json::json!({ "reason": reason }).to_string();
        let id = self.position.encode(self.filter.kind.space());
        Placed { event: Event::new(END, &id, data.as_bytes()), position: self.position }
    }

    fn end(&mut self, reason: &str) {
        let last = self.last(reason);
        self.page.push_back(last);
    }
}

fn only(placed: Vec<Placed>) -> Rows {
    Rows { placed, tested: 0, is_last: true }
}

/// An event about a position: `{"height":"…"}`.
fn notice(name: &'static str, filter: &Filter, position: Position) -> Placed {
    let data = format!(r#"{{"height":"{}"}}"#, position.height);
    Placed { event: Event::new(name, &position.encode(filter.kind.space()), data.as_bytes()), position }
}

fn invalid(id: &str) -> HttpError {
    HttpError::bad_request(format!(
        "[INVALID_VALUE] invalid value for last_event_id: {} (must be the id of an event of this stream)",
        crate::params::shown(id)
    ))
}

fn unknown(id: &str) -> HttpError {
    HttpError::bad_request(format!(
        "[INVALID_VALUE] invalid value for last_event_id: {} (none of its last 64 blocks is indexed here: it is of \
         another chain, or they were all rolled back; start without it)",
        crate::params::shown(id)
    ))
}

fn far_behind(position: &Position, head: &Head) -> HttpError {
    HttpError::unavailable(format!(
        "last_event_id is at height {}, but this index is at {}; try again later or on another server",
        position.height, head.height
    ))
}
