//! Migration of databases of format 1, which had one queue for all chains and no class for ended transactions.
//!
//! # Invariants
//!
//! * The migration is idempotent and can be interrupted anywhere.
//! * Unreadable rows are left in place.

use store::key::All;
use store::{Bounds, Counts, Durability, Order, Store, Table as _, Txn, for_each_row, table};

use crate::error::Error;
use crate::tables::{Due, Format, Queue, Records};

/// The format that is written.
const FORMAT: u64 = 2;

/// Rows of a commit.
const CHUNK: usize = 1_000;

/// Brings a database to the current format.
pub(crate) fn migrate(store: &dyn Store) -> Result<(), Error> {
    match table::read::<Format>(&*store.snapshot()?, &())? {
        Some(FORMAT) => return Ok(()),
        Some(found) => return Err(Error::Format { found, known: FORMAT }),
        None => {}
    }
    let mut places = Vec::new();
    let mut n = 0_usize;
    {
        let snapshot = store.snapshot()?;
        for_each_row(&*snapshot, Records::SPEC, Bounds::all(), |key, value| {
            match table::decode_row::<Records>(key, value) {
                Ok(((chain, hash), record)) => {
                    let place = record.place();
                    places.push((chain, place.class.key(), place.at, hash));
                }
                Err(error) => tracing::error!(%error, "a registered transaction is not followed any more"),
            }
            if places.len() >= CHUNK {
                n += places.len();
                put(store, &mut places)?;
            }
            Ok::<_, Error>(())
        })?;
    }
    n += places.len();
    put(store, &mut places)?;
    loop {
        let snapshot = store.snapshot()?;
        let old = table::rows::<Due>(&*snapshot, &All, Order::Asc, CHUNK)?;
        let is_last = old.is_empty();
        commit(store, |txn| {
            for (key, ()) in &old {
                txn.delete::<Due>(key);
            }
            if is_last {
                txn.put::<Format>(&(), &FORMAT);
            }
        })?;
        if is_last {
            break;
        }
    }
    if n > 0 {
        tracing::info!(transactions = n, "the tracker's database has the current format now");
    }
    Ok(())
}

fn put(store: &dyn Store, places: &mut Vec<crate::tables::QueueKey>) -> Result<(), Error> {
    commit(store, |txn| places.drain(..).for_each(|key| txn.put::<Queue>(&key, &())))
}

/// There are no lists here, so nothing is pending.
fn commit(store: &dyn Store, write: impl FnOnce(&mut Txn<'_>)) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    write(&mut txn);
    let (batch, _) = txn.finish();
    Ok(store.commit(batch, Durability::Buffered)?)
}
