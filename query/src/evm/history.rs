//! Histories of accounts and contracts, as explorers list them: transactions, internal calls, token transfers and logs, in a
//! range of blocks and a window of the list.
//!
//! Each list is read from stored lists of candidates, whose records are compared. What is read for a request has bounds: past
//! them it ends with [`Error::TooLarge`], never with a short list.

mod calls;
mod creation;
mod holders;
mod logs;
mod time;
mod transfers;
mod txs;

use std::cell::Cell;
use std::ops::{Range, RangeInclusive};
use std::time::{Duration, Instant};

use chain::evm::Receipt;
use chain::evm::transaction::EthTransaction;
use schema::block::Block;

use super::tx::parse;
use super::{Error, EvmView};
use crate::array::Array;

pub use self::calls::{CallRow, CallsOf};
pub use self::creation::CreationRow;
pub use self::holders::{HeldToken, TokenHolders};
pub use self::logs::{LogRow, TopicQuery};
pub use self::time::Closest;
pub use self::transfers::{Standard, TransferRow, TransfersOf};
pub use self::txs::Parties;

/// Records that are compared for a request.
const MAX_CANDIDATES: u64 = 20_000;

/// Time for the records of a request.
const TIME: Duration = Duration::from_secs(8);

/// The part of a list that a request asks for. `skip + take` is bounded by the caller.
#[derive(Clone, Debug)]
pub struct Window {
    /// The blocks. Heights above the head are left out.
    pub heights: RangeInclusive<u64>,
    /// Rows before the first one that is wanted.
    pub skip: u64,
    /// Maximum number of rows.
    pub take: u64,
    /// The newest row is the first one.
    pub newest_first: bool,
}

/// A transaction in a list.
pub struct TxRow<'a> {
    /// Its receipt.
    pub receipt: &'a Receipt<'a>,
    /// The transaction.
    pub tx: &'a EthTransaction,
    /// Its height.
    pub height: u64,
    /// The time of its block, in seconds.
    pub timestamp: u64,
}

/// What a request may still read.
struct Bounds {
    candidates: Cell<u64>,
    end: Instant,
}

impl Bounds {
    fn new() -> Self {
        Self { candidates: Cell::new(0), end: Instant::now() + TIME }
    }

    /// Counts candidates that are about to be read.
    fn spend(&self, candidates: u64) -> Result<(), Error> {
        let read = self.candidates.get() + candidates;
        self.candidates.set(read);
        if read > MAX_CANDIDATES || Instant::now() >= self.end { Err(Error::TooLarge) } else { Ok(()) }
    }
}

/// Which rows of a list that is filtered are wanted.
struct Rows {
    skip: u64,
    take: u64,
}

impl Rows {
    fn new(window: &Window) -> Self {
        Self { skip: window.skip, take: window.take }
    }

    /// True if the next row is wanted.
    fn wants(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.take = self.take.saturating_sub(1);
        true
    }

    fn is_full(&self) -> bool {
        self.take == 0
    }
}

impl EvmView<'_> {
    /// The heights of `range` that have blocks. An empty range if none has.
    ///
    /// # Errors
    /// [`Error::Pruned`] if it begins below the first one, but for 0, which is the beginning of all that is indexed.
    fn clamped(&self, range: &RangeInclusive<u64>) -> Result<RangeInclusive<u64>, Error> {
        let first = self.first();
        if *range.start() > 0 && *range.start() < first {
            return Err(Error::Pruned { first });
        }
        Ok((*range.start()).max(first)..=(*range.end()).min(self.head))
    }

    /// The sequences of the EVM transactions of `heights`.
    fn seqs_of(&self, heights: &RangeInclusive<u64>) -> Result<Range<u64>, Error> {
        if heights.is_empty() {
            return Ok(0..0);
        }
        let (first, last) = (self.stored(*heights.start())?, self.stored(*heights.end())?);
        let (Some(first), Some(last)) = (first, last) else { return Ok(0..0) };
        Ok(first.first_evm_tx..last.first_evm_tx + last.evm_txs)
    }

    /// The block that has the receipt, unless it is `known`.
    fn block_with(&self, known: &mut Option<(u64, Block)>, receipt: &Receipt<'_>) -> Result<u64, Error> {
        let height = receipt.block_number().unwrap_or_default();
        if known.as_ref().is_none_or(|(at, _)| *at != height) {
            let block = self.stored(height)?.ok_or_else(|| missing_block(height))?;
            *known = Some((height, block));
        }
        Ok(height)
    }

    /// Calls `see` with the transaction of a receipt.
    fn with_row(
        &self,
        known: &mut Option<(u64, Block)>,
        (seq, record): (u64, &[u8]),
        see: &mut dyn FnMut(&TxRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let height = self.block_with(known, &parse(seq, record)?)?;
        let Some((_, block)) = known else { return Err(missing_block(height)) };
        let found = self.with_tx(block, seq, record.to_vec())?;
        let receipt = parse(seq, &found.receipt)?;
        let timestamp = schema::evm_block::seconds(block);
        see(&TxRow { receipt: &receipt, tx: &found.tx, height, timestamp })
    }
}

fn missing_block(height: u64) -> Error {
    Error::Failed(web::http_error::HttpError::internal(format!("block {height} is missing")))
}

/// The first or last `n` of the sequences `run` that any of `lists` has, each once, in the order of `newest_first`.
fn first_of(
    lists: &[Box<dyn Array<Row = u64> + '_>],
    run: &Range<u64>,
    n: u64,
    newest_first: bool,
) -> Result<Vec<u64>, Error> {
    let mut all = Vec::new();
    for list in lists {
        let (start, end) = (list.position(&run.start)?, list.position(&run.end)?);
        let part = if newest_first {
            end.saturating_sub(n).max(start)..end
        } else {
            start..end.min(start.saturating_add(n))
        };
        if !part.is_empty() {
            all.extend(list.slice(part)?);
        }
    }
    all.sort_unstable();
    all.dedup();
    if newest_first {
        all.reverse();
    }
    all.truncate(usize::try_from(n).unwrap_or(usize::MAX));
    Ok(all)
}

/// Entries of `lists` among the sequences `run`, each list by itself.
fn len_of(lists: &[Box<dyn Array<Row = u64> + '_>], run: &Range<u64>) -> Result<u64, Error> {
    lists.iter().try_fold(0, |sum, list| Ok(sum + list.position(&run.end)? - list.position(&run.start)?))
}
