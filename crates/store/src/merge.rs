//! Merge of uncommitted rows with the rows of a snapshot.

use std::cmp::Ordering;

use crate::{
    engine::{Order, Row},
    error::Error,
};

/// The new value of a row; `None` if it was deleted.
pub(crate) type Written = Option<Vec<u8>>;

/// The first `limit` rows of two row streams that are sorted in `order`. For equal keys the written row wins.
pub(crate) fn merge(
    written: impl Iterator<Item = Result<(Vec<u8>, Written), Error>>,
    stored: impl Iterator<Item = Result<Row, Error>>,
    order: Order,
    limit: usize,
) -> Result<Vec<Row>, Error> {
    let (mut written, mut stored, mut rows) = (written.peekable(), stored.peekable(), Vec::new());
    while rows.len() < limit {
        let first = match (written.peek(), stored.peek()) {
            (None, None) => break,
            (Some(Ok((written, _))), Some(Ok((stored, _)))) => match order {
                Order::Asc => written.cmp(stored),
                Order::Desc => stored.cmp(written),
            },
            // An error is taken from its stream, and returned, below.
            (Some(Err(_)), _) | (_, None) => Ordering::Less,
            (_, Some(_)) => Ordering::Greater,
        };
        let row = if first.is_ge() { stored.next().transpose()? } else { None };
        if first.is_gt() {
            rows.extend(row);
        } else if let Some((key, Some(value))) = written.next().transpose()? {
            rows.push((key, value));
        }
    }
    Ok(rows)
}
