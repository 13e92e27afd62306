//! Merge comparison of two versions of a table, row by row.

use std::cmp::Ordering;

use store::{Bounds, Order, RowCursor, Snapshot, TableSpec, prefix_end};

/// Calls `visit` for each key under `prefix` whose value differs, in order, with its values on the left and on the
/// right. Returns the number of compared keys.
pub fn differences<E: From<store::Error>>(
    (left, right): (&dyn Snapshot, &dyn Snapshot),
    spec: &'static TableSpec,
    prefix: &[u8],
    mut visit: impl FnMut(&[u8], Option<&[u8]>, Option<&[u8]>) -> Result<(), E>,
) -> Result<u64, E> {
    let end = prefix_end(prefix);
    let bounds = Bounds { start: prefix, end: end.as_deref() };
    let mut left = RowCursor::new(left, spec, bounds, Order::Asc).peekable();
    let mut right = RowCursor::new(right, spec, bounds, Order::Asc).peekable();
    let mut compared = 0;
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return Ok(compared),
            (Some(Ok((a, _))), Some(Ok((b, _)))) => a.cmp(b),
            // An error is taken from its side, and returned, below.
            (Some(Err(_)), _) | (_, None) => Ordering::Less,
            (_, Some(_)) => Ordering::Greater,
        };
        let a = if order.is_le() { left.next().transpose()? } else { None };
        let b = if order.is_ge() { right.next().transpose()? } else { None };
        compared += 1;
        if a != b
            && let Some((key, _)) = a.as_ref().or(b.as_ref())
        {
            visit(key, a.as_ref().map(|row| row.1.as_slice()), b.as_ref().map(|row| row.1.as_slice()))?;
        }
    }
}
