//! Splices stored JSON records into a response without parsing them.

use std::ops::ControlFlow;

use schema::payload::Codec;
use schema::records::{self, Records, Step};
use store::{Bounds, Order, Snapshot, TableSpec};
use web::http_error::HttpError;
use web::limits::lane;

use crate::page_writer::PageWriter;

/// Appends the records `seqs`, as many as the page takes.
pub(crate) fn records<T: Records>(
    page: &mut PageWriter,
    snapshot: &dyn Snapshot,
    codec: &Codec,
    seqs: &[u64],
) -> Result<(), HttpError> {
    let mut failed = None;
    records::walk::<T>(snapshot, codec, seqs, &mut |step| {
        let more = match step {
            Step::Row(bytes) => page.row(bytes),
            Step::Record(record) => page.record(record),
        };
        more.unwrap_or_else(|error| {
            failed = Some(error);
            ControlFlow::Break(())
        })
    })
    .map_err(HttpError::internal)?;
    failed.map_or(Ok(()), Err)
}

/// The record `seq`; the bytes of its row, if they are more than `max`.
pub(crate) fn one<T: Records>(
    snapshot: &dyn Snapshot,
    codec: &Codec,
    seq: u64,
    max: u64,
) -> Result<Result<Vec<u8>, u64>, HttpError> {
    let (mut found, mut refused) = (Ok(Vec::new()), None);
    records::walk::<T>(snapshot, codec, &[seq], &mut |step| {
        match step {
            Step::Row(bytes) if bytes > max => found = Err(bytes),
            Step::Row(bytes) => refused = lane::spend(bytes).err(),
            Step::Record(record) => found = Ok(record.to_vec()),
        }
        if found.is_err() || refused.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .map_err(HttpError::internal)?;
    refused.map_or(Ok(found), Err)
}

/// Appends the record `seq`, whose place in its row is `place`.
pub(crate) fn append_at<T: Records>(
    out: &mut Vec<u8>,
    snapshot: &dyn Snapshot,
    codec: &Codec,
    at: (u64, u64),
) -> Result<(), HttpError> {
    let mut refused = None;
    let admit = |bytes| {
        refused = lane::spend(bytes).err();
        refused.is_none()
    };
    records::append_at::<T>(out, snapshot, codec, at, admit).map_err(HttpError::internal)?;
    refused.map_or(Ok(()), Err)
}

/// Rows that a scan may read for a row that is wanted: a step of a scan costs a fraction of a lookup.
const DENSE: u64 = 3;

/// True if a scan from `low` to `high` is cheaper than `n` lookups.
fn is_dense(low: u64, high: u64, n: usize) -> bool {
    (high - low) / DENSE < n as u64
}

/// The rows of `seqs`, in their order: by one scan if the sequences are ascending or descending and close together, else
/// by lookups.
pub(crate) fn rows(
    snapshot: &dyn Snapshot,
    table: &'static TableSpec,
    seqs: &[u64],
) -> Result<Vec<Option<Vec<u8>>>, HttpError> {
    if let [seq] = seqs {
        return Ok(vec![snapshot.get(table, &seq.to_be_bytes()).map_err(HttpError::internal)?]);
    }
    let mut ascending = seqs.to_vec();
    let is_descending = seqs.is_sorted_by(|one, next| one > next);
    if is_descending {
        ascending.reverse();
    }
    let (Some(low), Some(high)) = (ascending.first(), ascending.last()) else { return Ok(Vec::new()) };
    let is_ascending = ascending.is_sorted_by(|one, next| one < next);
    if !is_ascending || !is_dense(*low, *high, seqs.len()) {
        let keys: Vec<Vec<u8>> = seqs.iter().map(|seq| seq.to_be_bytes().to_vec()).collect();
        return snapshot.multi_get(table, &keys).map_err(HttpError::internal);
    }
    let (start, end) = (low.to_be_bytes(), high.saturating_add(1).to_be_bytes());
    let bounds = Bounds { start: &start, end: Some(&end) };
    let limit = usize::try_from(high - low + 1).unwrap_or(usize::MAX);
    let (mut rows, mut next) = (vec![None; ascending.len()], 0);
    // In this order even if the other is wanted: RocksDB steps backward at twice the cost.
    let visited = snapshot.visit(table, bounds, Order::Asc, limit, &mut |key, row| {
        let Ok(seq) = key.try_into().map(u64::from_be_bytes) else { return };
        while ascending.get(next).is_some_and(|wanted| *wanted < seq) {
            next += 1;
        }
        if ascending.get(next) == Some(&seq) {
            rows[next] = Some(row.to_vec());
        }
    });
    visited.map_err(HttpError::internal)?;
    if is_descending {
        rows.reverse();
    }
    Ok(rows)
}

pub(crate) fn missing(table: &TableSpec, seq: u64) -> HttpError {
    HttpError::internal(format!("table `{}`: the row {seq} that a list names is missing", table.name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schema::block::Blocks;
    use store::{Batch, Durability, MemStore, Store, Table as _};

    use super::*;

    proptest! {
        #[test]
        fn rows_are_in_the_order_of_their_sequences_however_they_are_read(
            stored in prop::collection::btree_set(1_u64..200, 1..150),
            seqs in prop::collection::btree_set(1_u64..200, 0..100),
            order in 0..3,
        ) {
            let store = MemStore::new();
            let mut batch = Batch::new();
            for seq in &stored {
                batch.put(Blocks::SPEC, seq.to_be_bytes().to_vec(), seq.to_string().into_bytes());
            }
            store.commit(batch, Durability::Buffered).unwrap();
            let mut seqs: Vec<u64> = seqs.into_iter().collect();
            match order {
                0 => {}
                1 => seqs.reverse(),
                _ => seqs.sort_unstable_by_key(|seq| seq.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            }
            let expected: Vec<_> =
                seqs.iter().map(|seq| stored.contains(seq).then(|| seq.to_string().into_bytes())).collect();
            prop_assert_eq!(rows(&*store.snapshot().unwrap(), Blocks::SPEC, &seqs).unwrap(), expected);
        }
    }
}
