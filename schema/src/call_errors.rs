//! The optional index `call_errors`: why calls failed. Traces say it, and the records of calls do not, so the lane of internal
//! transactions writes it.

use store::{Bounds, Order, Snapshot, Store, Table as _, Txn};

use crate::Error;
use crate::index::{Index, Input, State};

/// The index.
pub const CALL_ERRORS: Index = Index {
    name: "call_errors",
    version: 1,
    tables: &[CallErrors::SPEC],
    replies: &[],
    input: Input::Traces,
    needs_evm: true,
    rows: |_, _| Ok(()),
};

store::tables! {
    /// Errors of call frames, of those that have one.
    ///
    /// | seq of the frame (8, BE) | → text of the error, at most 64 bytes
    pub table CallErrors("call_error", 0x34, Scan): u64 => String;
}

/// Maximum bytes of an error: those of the EVM have less, and a precompile may say anything.
const MAX_ERROR: usize = 64;

/// The writer of the index, within the commits of the lane of internal transactions.
#[derive(Debug)]
pub struct Writer(State);

impl Writer {
    /// Continues the index, whose next block is that of the lane; begins it there if it lacks blocks before.
    pub fn new(store: &dyn Store, next: u64) -> Result<Self, Error> {
        let is_next = |state: &State| state.version == CALL_ERRORS.version && state.height + 1 == next;
        if let Some(state) = CALL_ERRORS.state(&*store.snapshot()?)?.filter(is_next) {
            return Ok(Self(state));
        }
        CALL_ERRORS.begin_at(store, next).map(Self)
    }

    /// Writes the errors of the frames of the block at `height`, each with the sequence of its frame.
    pub fn write<'e>(
        &mut self,
        txn: &mut Txn<'_>,
        height: u64,
        errors: impl Iterator<Item = (u64, &'e str)>,
    ) {
        for (seq, error) in errors {
            let end = error.floor_char_boundary(MAX_ERROR);
            txn.put_unread::<CallErrors>(&seq, &error[..end].to_owned());
        }
        self.0.height = height;
        CALL_ERRORS.put_state(txn, self.0);
    }
}

/// The errors of the frames from `first` to before `end`, each with the sequence of its frame.
pub fn of_frames(snapshot: &dyn Snapshot, first: u64, end: u64) -> Result<Vec<(u64, String)>, Error> {
    let (start, end) = (first.to_be_bytes(), end.to_be_bytes());
    let bounds = Bounds { start: &start, end: Some(&end) };
    let rows = snapshot.scan(CallErrors::SPEC, bounds, Order::Asc, usize::MAX)?;
    let rows = rows.iter().map(|(key, value)| store::table::decode_row::<CallErrors>(key, value));
    Ok(rows.collect::<Result<_, _>>()?)
}
