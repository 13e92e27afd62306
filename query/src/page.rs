//! The one way a page is cut out of an array.
//!
//! What must hold: walking by `next` sees every row once in the order of the request, `previous` of a page is exactly
//! the page before, each is there only if a row is, and `total` is the length. Rows that arrive behind a page change
//! none of it.

use std::ops::Range;

use store::Error;

use crate::array::Array;
use crate::cursor::Cursor;

/// The direction of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// Which page is wanted.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest {
    /// Where it begins or ends.
    pub at: Cursor,
    /// Rows at most; at least 1.
    pub limit: u64,
    /// In which order.
    pub direction: Direction,
}

/// A page of sequences.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// The sequences, in the order of the request.
    pub seqs: Vec<u64>,
    /// Where the next page begins, if there is one.
    pub next: Option<Cursor>,
    /// Where the page before ends, if there is one.
    pub previous: Option<Cursor>,
    /// Number of rows of the whole list.
    pub total: u64,
}

/// The page of `array` that `request` asks for.
pub fn page(array: &dyn Array, request: &PageRequest) -> Result<Page, Error> {
    let total = array.len();
    let range = range(array, request)?;
    let mut seqs = array.slice(range.clone())?;
    let (older, newer) = (range.start > 0, range.end < total);
    let ((next, previous), beyond) = match request.direction {
        Direction::Ascending => ((newer, older), u64::MAX),
        Direction::Descending => {
            seqs.reverse();
            ((older, newer), 0)
        }
    };
    Ok(Page {
        next: seqs.last().filter(|_| next).map(|seq| Cursor::After(*seq)),
        // A page past the end has no first row; the page before it is the last of the list.
        previous: previous.then(|| Cursor::Before(seqs.first().copied().unwrap_or(beyond))),
        seqs,
        total,
    })
}

/// The ordinals of the page.
fn range(array: &dyn Array, request: &PageRequest) -> Result<Range<u64>, Error> {
    let (total, limit) = (array.len(), request.limit);
    let up_from = |start: u64| start..start.saturating_add(limit).min(total);
    let down_from = |end: u64| end.saturating_sub(limit)..end;
    // Going backward in one direction is going forward in the other.
    Ok(match (request.at, request.direction) {
        (Cursor::Offset(offset), Direction::Ascending) => up_from(offset.min(total)),
        (Cursor::Offset(offset), Direction::Descending) => down_from(total - offset.min(total)),
        (Cursor::After(seq), Direction::Ascending) | (Cursor::Before(seq), Direction::Descending) => {
            up_from(array.position(seq.saturating_add(1))?)
        }
        (Cursor::After(seq), Direction::Descending) | (Cursor::Before(seq), Direction::Ascending) => {
            down_from(array.position(seq)?)
        }
    })
}
