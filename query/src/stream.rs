//! Event streams of new rows: resumable change feeds over the store.
//!
//! | module | purpose |
//! |---|---|
//! | [`rows`] | the rows of a stream and of its filters: the arrays of the JSON lists |
//! | [`position`] | event ids: a row with a block locator, compared with the stored blocks |
//! | [`head`] | the end of the index: height, sequences, rewind counter |
//! | [`feed`] | shared by all streams: the polled head, and the events of the last blocks |
//! | [`reader`] | one stream: a position, and at most a page of events |
//! | [`meter`] | metrics |
//!
//! The store is the only source, whether this process or another one writes it. One thread polls the head of the index
//! while there are streams; a stream that learns of a new head reads the rows after its position.
//!
//! # Invariants
//!
//! * The id of an event determines all later events of its history, on any replica and after any restart.
//! * The rows of a stream are sent in order, each once, unless a `reorg` event takes back all rows above its height.
//! * A stream holds at most one page, [`feed::PAGE_ROWS`] events or [`feed::PAGE_BYTES`], or one larger event.

pub(crate) mod feed;
pub(crate) mod head;
pub(crate) mod meter;
pub(crate) mod position;
pub(crate) mod reader;
pub(crate) mod rows;

use std::time::Duration;

/// When a slow reader is dropped. It must break both limits, after it has caught up once: a reader that resumes may be
/// far behind.
#[derive(Clone, Copy, Debug)]
pub struct SlowReader {
    /// Blocks behind the head of the index.
    pub blocks: u64,
    /// Time since the reader last had every event.
    pub time: Duration,
}

impl Default for SlowReader {
    fn default() -> Self {
        Self { blocks: 1000, time: Duration::from_secs(30) }
    }
}
