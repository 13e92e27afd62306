//! Arrays over ranked sets (indexable skip lists), and over rows in memory.

use std::ops::Range;

use store::ranked::ItemOf;
use store::{Error, Ranked, Snapshot, ranked};

use super::Array;

/// The ranked set of one owner, or a contiguous part of it.
pub struct Set<'a, R: Ranked> {
    snapshot: &'a dyn Snapshot,
    owner: R::Owner,
    /// The visible part.
    part: Range<u64>,
}

impl<'a, R: Ranked> Set<'a, R> {
    /// All of `owner`'s set.
    pub fn all(snapshot: &'a dyn Snapshot, owner: R::Owner) -> Result<Self, Error> {
        let part = 0..ranked::len::<R>(snapshot, &owner)?;
        Ok(Self { snapshot, owner, part })
    }

    /// Restricts the array to the items from `from` on and before `to`.
    pub fn within(mut self, from: &R::Item, to: &R::Item) -> Result<Self, Error> {
        let at = |item| ranked::position::<R>(self.snapshot, &self.owner, item);
        self.part = at(from)?..at(to)?;
        Ok(self)
    }

    /// The items in `range`, with their values.
    pub fn items(&self, range: Range<u64>) -> Result<Vec<ItemOf<R>>, Error> {
        let range = self.part.start + range.start..self.part.start + range.end;
        ranked::slice::<R>(self.snapshot, &self.owner, range)
    }
}

impl<R: Ranked> Array for Set<'_, R> {
    type Row = R::Item;

    fn len(&self) -> u64 {
        self.part.end - self.part.start
    }

    fn position(&self, item: &R::Item) -> Result<u64, Error> {
        let at = ranked::position::<R>(self.snapshot, &self.owner, item)?;
        Ok(at.clamp(self.part.start, self.part.end) - self.part.start)
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<R::Item>, Error> {
        Ok(self.items(range)?.into_iter().map(|(item, _)| item).collect())
    }
}

/// Rows in memory, in ascending order.
#[derive(Debug)]
pub struct InMemory<'a, R>(pub Vec<&'a R>);

impl<R: store::Key + Clone> Array for InMemory<'_, R> {
    type Row = R;

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn position(&self, row: &R) -> Result<u64, Error> {
        let row = row.to_bytes();
        Ok(self.0.partition_point(|found| found.to_bytes() < row) as u64)
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<R>, Error> {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(self.0.len());
        Ok(self.0[place(range.start)..place(range.end)].iter().map(|row| (*row).clone()).collect())
    }
}
