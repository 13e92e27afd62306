//! Cursor pagination of an array; every list endpoint uses it.
//!
//! # Invariants
//!
//! * Following `next` returns every row once, in the order of the request.
//! * `previous` of a page is exactly the page before it.
//! * A cursor is present only if its page has a row; `total` is the length of the array.
//! * Rows inserted or deleted between two requests do not affect the others: none is skipped, none is repeated.

use std::ops::Range;

use store::Error;

use crate::array::Array;
use crate::cursor::{Cursor, Row, Start};

/// The direction of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Oldest first.
    Ascending,
    /// Newest first.
    Descending,
}

/// A request for one page.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<R> {
    /// The position at which the page begins or ends.
    pub at: Start<R>,
    /// Maximum number of rows; at least 1.
    pub limit: u64,
    /// The order of the rows.
    pub direction: Direction,
}

/// A page of rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<R> {
    /// The rows, in the order of the request.
    pub rows: Vec<R>,
    /// The cursor of the next page, if there is one.
    pub next: Option<Cursor<R>>,
    /// The cursor of the previous page, if there is one.
    pub previous: Option<Cursor<R>>,
    /// Number of rows of the whole list.
    pub total: u64,
}

impl<R> PageRequest<R> {
    /// True if the page ends at a place, and not begins at one.
    pub fn is_backward(&self) -> bool {
        matches!(self.at, Start::Row(Cursor::Before(_) | Cursor::End))
    }
}

impl<R: Row> Page<R> {
    /// Keeps `n` rows, at least one: those at the place that the request names.
    pub fn cut(&mut self, n: usize, request: &PageRequest<R>) {
        let dropped = self.rows.len().saturating_sub(n);
        if dropped > 0 && request.is_backward() {
            self.rows.drain(..dropped);
            self.previous = self.rows.first().cloned().map(Cursor::Before);
        } else {
            self.cut_end(n);
        }
    }

    /// Keeps the first `n` rows, at least one.
    pub fn cut_end(&mut self, n: usize) {
        if n < self.rows.len() {
            self.rows.truncate(n);
            self.next = self.rows.last().cloned().map(Cursor::After);
        }
    }
}

/// Returns the requested page of `array`.
pub fn page<R: Row>(array: &dyn Array<Row = R>, request: &PageRequest<R>) -> Result<Page<R>, Error> {
    let total = array.len();
    let range = range(array, request)?;
    let mut rows = array.slice(range.clone())?;
    let (older, newer) = (range.start > 0, range.end < total);
    let (next, previous) = match request.direction {
        Direction::Ascending => (newer, older),
        Direction::Descending => {
            rows.reverse();
            (older, newer)
        }
    };
    Ok(Page {
        next: rows.last().filter(|_| next).map(|row| Cursor::After(row.clone())),
        // A page past the end has no first row; its previous page is the last of the list.
        previous: previous.then(|| rows.first().map_or(Cursor::End, |row| Cursor::Before(row.clone()))),
        rows,
        total,
    })
}

/// The positions of the page in the array.
fn range<R: Row>(array: &dyn Array<Row = R>, request: &PageRequest<R>) -> Result<Range<u64>, Error> {
    use Cursor::{After, Before, End};
    use Direction::{Ascending, Descending};
    let (total, limit) = (array.len(), request.limit);
    let up_from = |start: u64| start..start.saturating_add(limit).min(total);
    let down_from = |end: u64| end.saturating_sub(limit)..end;
    // Paging backward in one direction is paging forward in the other.
    Ok(match (&request.at, request.direction) {
        (Start::Offset(offset), Ascending) => up_from(total.min(*offset)),
        (Start::Offset(offset), Descending) => down_from(total.saturating_sub(*offset)),
        (Start::Row(After(row)), Ascending) | (Start::Row(Before(row)), Descending) => {
            up_from(array.upper_bound(row)?)
        }
        (Start::Row(After(row)), Descending) | (Start::Row(Before(row)), Ascending) => {
            down_from(array.position(row)?)
        }
        (Start::Row(End), Ascending) => down_from(total),
        (Start::Row(End), Descending) => up_from(0),
        (Start::Beyond { to, .. }, Ascending) => up_from(array.position(to)?),
        (Start::Beyond { from, .. }, Descending) => down_from(array.position(from)?),
    })
}
