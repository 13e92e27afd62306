//! Polling queues by chain: the order of polls and deletions.
//!
//! # Invariants
//!
//! * A chain's queue is read without rows of other chains.
//! * A read after a commit finds the committed row.
//! * Memory holds a few numbers per chain that ever had a row, none per transaction.

pub(crate) mod poll;
pub(crate) mod poll_tx;
pub(crate) mod position;
pub(crate) mod unseen;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chain::hash::Hash;
use store::key::{All, Text};
use store::{Order, Store, table};

use crate::queue::position::{Class, QueuePosition};
use crate::tables::Queue;

/// By chain, the start of the next read. Deleted rows stay in the files for a while, and a scan from the beginning
/// would step over all of them.
pub(crate) struct Queues(Mutex<BTreeMap<String, First>>);

/// For each class, a time before which no row is due.
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
    pub(crate) fn added(&self, chain: &str, position: QueuePosition) {
        let mut chains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match chains.get_mut(chain) {
            Some(first) => {
                let first = first.of_mut(position.class);
                *first = position.at.min(*first);
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

    /// The first rows of a class that are due at time `by`, at most `limit`.
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
