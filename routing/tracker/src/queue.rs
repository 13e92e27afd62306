//! Polling queues by chain: the order of polls and deletions.
//!
//! # Invariants
//!
//! * A chain's queue is read without rows of other chains.
//! * A read after a commit finds the committed row.
//! * Memory holds a few numbers per chain that ever had a row, and nothing per transaction.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chain::hash::Hash;
use store::key::{All, Text};
use store::{Order, Store, table};

use crate::tables::Queue;

/// The classes of a chain's queue, in the order in which they are polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Registered, and not polled since.
    New = 0,
    /// Seen on its chain; it, or what it began, is not over.
    Followed = 1,
    /// Looked at, and no node has it.
    Unseen = 2,
    /// No node had it for so long that it was abandoned.
    Abandoned = 3,
    /// Nothing is left to learn: kept for [`crate::Options::retention`] from the time in the row on.
    Ended = 4,
}

/// A row's place in the queue of its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which part of the queue.
    pub class: Class,
    /// When it is due; nanoseconds since 1970.
    pub at: u64,
}

impl Class {
    /// Classes that are polled.
    pub(crate) const POLLED: [Self; 4] = [Self::New, Self::Followed, Self::Unseen, Self::Abandoned];
    /// Classes of transactions that no node has.
    pub(crate) const UNSEEN: [Self; 3] = [Self::New, Self::Unseen, Self::Abandoned];

    pub(crate) fn key(self) -> u8 {
        self as u8
    }
}

/// By chain, where to begin to read. Rows that are gone stay in the files for a while, and a scan from the
/// beginning would have to step over all of them.
pub(crate) struct Queues(Mutex<BTreeMap<String, First>>);

/// For each class: no row is due before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct First([u64; 5]);

impl First {
    pub(crate) fn of(&self, class: Class) -> u64 {
        self.0[usize::from(class.key())]
    }

    fn of_mut(&mut self, class: Class) -> &mut u64 {
        &mut self.0[usize::from(class.key())]
    }
}

impl Queues {
    /// Opens the queues of all chains in the database.
    pub(crate) fn open(store: &dyn Store) -> Result<Self, store::Error> {
        let snapshot = store.snapshot()?;
        let mut chains = BTreeMap::new();
        let mut rows = table::rows::<Queue>(&*snapshot, &All, Order::Asc, 1)?;
        while let Some(((chain, ..), ())) = rows.pop() {
            // No class is that large.
            let last = (chain.clone(), u8::MAX, u64::MAX, [u8::MAX; 32]);
            rows = table::rows_after::<Queue>(&*snapshot, &All, &last, Order::Asc, 1)?;
            chains.insert(chain.0, First::default());
        }
        Ok(Self(Mutex::new(chains)))
    }

    /// Records a committed row.
    pub(crate) fn added(&self, chain: &str, place: Place) {
        let mut chains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match chains.get_mut(chain) {
            Some(first) => {
                let first = first.of_mut(place.class);
                *first = place.at.min(*first);
            }
            None => {
                chains.insert(chain.to_owned(), First::default());
            }
        }
    }

    /// All chains that have ever had a row.
    pub(crate) fn chains(&self) -> Vec<(String, First)> {
        let chains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        chains.iter().map(|(chain, first)| (chain.clone(), *first)).collect()
    }

    /// The first rows of a class that are due by then, at most `limit`.
    pub(crate) fn due(
        &self,
        store: &dyn Store,
        chain: &str,
        class: Class,
        by: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Hash)>, store::Error> {
        // Locked before the snapshot, so that `added` reports every later row.
        let mut chains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = chains.get_mut(chain).map(|first| first.of_mut(class)) else {
            return Ok(Vec::new());
        };
        if *first > by {
            return Ok(Vec::new());
        }
        let snapshot = store.snapshot()?;
        let (chain, class) = (Text::from(chain), class.key());
        let prefix = (chain.clone(), class);
        let rows = match first.checked_sub(1) {
            Some(before) => {
                let before = (chain, class, before, [u8::MAX; 32]);
                table::rows_after::<Queue>(&*snapshot, &prefix, &before, Order::Asc, limit.max(1))?
            }
            None => table::rows::<Queue>(&*snapshot, &prefix, Order::Asc, limit.max(1))?,
        };
        *first = rows.first().map_or(u64::MAX, |((_, _, at, _), ())| *at);
        let rows = rows.into_iter().map(|((_, _, at, hash), ())| (at, hash));
        Ok(rows.take_while(|(at, _)| *at <= by).collect())
    }
}
