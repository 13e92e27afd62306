//! Merge comparison of two versions of a table, row by row.

use store::{Bounds, Order, Row, Snapshot, TableSpec, prefix_end};

use crate::Error;

/// Calls `visit` for each key under `prefix` on either side, in order, with its values on the left and on the right.
pub fn compare(
    (left, right): (&dyn Snapshot, &dyn Snapshot),
    spec: &'static TableSpec,
    prefix: &[u8],
    mut visit: impl FnMut(&[u8], Option<&[u8]>, Option<&[u8]>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut lefts, mut rights) = (Rows::new(left, spec, prefix), Rows::new(right, spec, prefix));
    let (mut left, mut right) = (lefts.next()?, rights.next()?);
    loop {
        let order = match (&left, &right) {
            (None, None) => return Ok(()),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let a = if order.is_le() { left.take() } else { None };
        let b = if order.is_ge() { right.take() } else { None };
        if let Some((key, _)) = a.as_ref().or(b.as_ref()) {
            visit(key, a.as_ref().map(|row| row.1.as_slice()), b.as_ref().map(|row| row.1.as_slice()))?;
        }
        if order.is_le() {
            left = lefts.next()?;
        }
        if order.is_ge() {
            right = rights.next()?;
        }
    }
}

/// A cursor over the rows of one side, read in chunks.
struct Rows<'a> {
    snapshot: &'a dyn Snapshot,
    spec: &'static TableSpec,
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    chunk: std::vec::IntoIter<Row>,
}

impl<'a> Rows<'a> {
    fn new(snapshot: &'a dyn Snapshot, spec: &'static TableSpec, prefix: &[u8]) -> Self {
        let (start, end) = (prefix.to_vec(), prefix_end(prefix));
        Self { snapshot, spec, start, end, chunk: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Result<Option<Row>, Error> {
        const ROWS: usize = 256;
        if let Some(row) = self.chunk.next() {
            return Ok(Some(row));
        }
        let bounds = Bounds { start: &self.start, end: self.end.as_deref() };
        let rows = self.snapshot.scan(self.spec, bounds, Order::Asc, ROWS)?;
        let Some((last, _)) = rows.last() else { return Ok(None) };
        self.start = store::key::successor(last);
        self.chunk = rows.into_iter();
        Ok(self.chunk.next())
    }
}
