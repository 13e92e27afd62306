//! An adapter that converts the rows of an array to another type.
//!
//! The rows of a filtered list contain fewer components than those of the unfiltered list, because the filter
//! determines the rest: in the tokens of an account in one collection, the collection is part of the owner. The
//! adapter completes them. Cursors contain complete rows, so they are valid with and without the filter.

use std::ops::Range;

use store::{Error, Key};

use super::Array;

/// `array` with its rows converted to `W`.
pub struct MapRows<'a, A: Array, W> {
    array: A,
    lower_bound: LowerBound<'a, W, A::Row>,
    map: Map<'a, A::Row, W>,
}

type LowerBound<'a, W, R> = Box<dyn Fn(&W) -> R + 'a>;
type Map<'a, R, W> = Box<dyn Fn(Vec<R>) -> Result<Vec<W>, Error> + 'a>;

impl<'a, A: Array, W: Key> MapRows<'a, A, W> {
    /// `map` converts rows, keeping their order. `lower_bound(row)` is a lower bound for `row`, which may be absent:
    /// every element before it sorts before `row`, and at most one element at or after it does.
    pub fn new(
        array: A,
        lower_bound: impl Fn(&W) -> A::Row + 'a,
        map: impl Fn(Vec<A::Row>) -> Result<Vec<W>, Error> + 'a,
    ) -> Self {
        Self { array, lower_bound: Box::new(lower_bound), map: Box::new(map) }
    }
}

impl<A: Array, W: Key> Array for MapRows<'_, A, W> {
    type Row = W;

    fn len(&self) -> u64 {
        self.array.len()
    }

    fn position(&self, row: &W) -> Result<u64, Error> {
        let at = self.array.position(&(self.lower_bound)(row))?;
        let here = self.slice(at..at.saturating_add(1).min(self.len()))?;
        // The lower bound ignores some components of the row, so the element there may still sort before it.
        Ok(at + u64::from(here.first().is_some_and(|here| here.to_bytes() < row.to_bytes())))
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<W>, Error> {
        (self.map)(self.array.slice(range)?)
    }
}
