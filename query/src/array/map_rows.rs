//! An array whose rows say less than those of the list it is shown as, because its owner says the rest: the tokens
//! that an account has in one collection as tokens of the account.
//!
//! Cursors hold whole rows of the wider list, so that they are good with and without the filter.

use std::ops::Range;

use store::{Error, Key};

use super::Array;

/// `array` with the rows of a wider list.
pub struct MapRows<'a, A: Array, W> {
    array: A,
    narrow: Narrow<'a, W, A::Row>,
    widen: Widen<'a, A::Row, W>,
}

type Narrow<'a, W, R> = Box<dyn Fn(&W) -> R + 'a>;
type Widen<'a, R, W> = Box<dyn Fn(Vec<R>) -> Result<Vec<W>, Error> + 'a>;

impl<'a, A: Array, W: Key> MapRows<'a, A, W> {
    /// `widen` makes rows of the array those of the wider list, in the same order. `narrow` says for a row of the wider
    /// list, be it in the array or not, where to look for it: whatever the array has before that place comes before the
    /// row, and of what it has from there on at most one row does.
    pub fn new(
        array: A,
        narrow: impl Fn(&W) -> A::Row + 'a,
        widen: impl Fn(Vec<A::Row>) -> Result<Vec<W>, Error> + 'a,
    ) -> Self {
        Self { array, narrow: Box::new(narrow), widen: Box::new(widen) }
    }
}

impl<A: Array, W: Key> Array for MapRows<'_, A, W> {
    type Row = W;

    fn len(&self) -> u64 {
        self.array.len()
    }

    fn position(&self, row: &W) -> Result<u64, Error> {
        let at = self.array.position(&(self.narrow)(row))?;
        let here = self.slice(at..at.saturating_add(1).min(self.len()))?;
        // What the narrow row does not say can put this one before the other.
        Ok(at + u64::from(here.first().is_some_and(|here| here.to_bytes() < row.to_bytes())))
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<W>, Error> {
        (self.widen)(self.array.slice(range)?)
    }
}
