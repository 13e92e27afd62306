//! How busy the chain was: blocks and transactions of hours and days.
//!
//! Each block has the number of transactions before it, so a period is the difference of two blocks, which are found by
//! binary search over their times.

use std::ops::Range;

use schema::activity::{ACTIVITY, Days, Hours};
pub use schema::activity::{Activity, HOUR};
use store::{Message, Table};
use web::http_error::HttpError;

use crate::api::block;
use crate::indexer::{Indexer, View};

/// A period of time, with what the chain did in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// Its begin, in nanoseconds since 1970 UTC.
    pub from: i64,
    /// Blocks.
    pub blocks: u64,
    /// Cosmos transactions.
    pub txs: u64,
    /// EVM transactions.
    pub evm_txs: u64,
    /// Gas and accounts; `None` without the index `activity`, while it is built, and in a period that is neither an hour nor a day.
    pub activity: Option<Activity>,
}

/// A day in nanoseconds.
pub const DAY: i64 = 24 * HOUR;

/// Height of a block, and numbers of transactions before it.
#[derive(Clone, Copy)]
struct Mark {
    height: u64,
    txs: u64,
    evm_txs: u64,
}

impl Indexer {
    /// The last `number` periods of `length` nanoseconds each, oldest first. The last one is that of the last block, and has not ended;
    /// those before the first indexed block are left out.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn periods(&self, length: i64, number: u32) -> Result<Vec<Period>, HttpError> {
        let view = self.view()?;
        let lane = view.blocks()?;
        let Some(last) = block::at(&view, lane.height)?.filter(|_| length > 0) else { return Ok(Vec::new()) };
        let first = self.identity.start_height;
        let begin = last.time.div_euclid(length) - i64::from(number) + 1;
        let times: Vec<i64> = (0..=i64::from(number)).map(|n| (begin + n).saturating_mul(length)).collect();
        let mut heights = vec![0; times.len()];
        find(&view, &times, first..lane.height + 1, &mut heights)?;
        let mark = |height: u64| -> Result<Mark, HttpError> {
            if height > lane.height {
                return Ok(Mark { height, txs: lane.txs, evm_txs: lane.evm_txs });
            }
            let block = block::at(&view, height)?.ok_or_else(|| missing(height))?;
            // Sequences begin with 1.
            let before = |sequence: u64| sequence.saturating_sub(1);
            Ok(Mark { height, txs: before(block.first_tx), evm_txs: before(block.first_evm_tx) })
        };
        let marks = heights.into_iter().map(mark).collect::<Result<Vec<_>, _>>()?;
        let period = |(pair, from): (&[Mark], &i64)| match pair {
            [one, other] => Period {
                from: *from,
                blocks: other.height - one.height,
                txs: other.txs - one.txs,
                evm_txs: other.evm_txs - one.evm_txs,
                activity: None,
            },
            _ => Period::default(),
        };
        let mut periods: Vec<_> = marks.windows(2).zip(&times).map(period).collect();
        let before = marks.iter().take_while(|mark| mark.height <= first).count();
        // The last of these marks begins the period of the first block.
        periods.drain(..before.saturating_sub(1));
        if view.has_all(&ACTIVITY)? {
            for period in &mut periods {
                let number = u64::try_from(period.from / length).unwrap_or_default();
                period.activity = match length {
                    HOUR => Some(activity::<Hours>(&view, number)?),
                    DAY => Some(activity::<Days>(&view, number)?),
                    _ => None,
                };
            }
        }
        Ok(periods)
    }
}

/// What was done in the period `number` of the table; nothing if it has no row.
fn activity<T: Table<Key = u64, Value = Message<Activity>>>(
    view: &View<'_>,
    number: u64,
) -> Result<Activity, HttpError> {
    let row = store::table::read::<T>(view.snapshot(), &number).map_err(HttpError::internal)?;
    Ok(row.map(|Message(row)| row).unwrap_or_default())
}

/// For each of `times`, ascending, the first of `heights` whose block is not earlier; the end of `heights` if all are.
fn find(view: &View<'_>, times: &[i64], heights: Range<u64>, found: &mut [u64]) -> Result<(), HttpError> {
    let middle = times.len() / 2;
    let Some(time) = times.get(middle) else { return Ok(()) };
    let (mut low, mut high) = (heights.start, heights.end);
    while low < high {
        let at = low.midpoint(high);
        let block = block::at(view, at)?.ok_or_else(|| missing(at))?;
        if block.time >= *time { high = at } else { low = at + 1 }
    }
    found[middle] = low;
    let (before, after) = found.split_at_mut(middle);
    find(view, &times[..middle], heights.start..low, before)?;
    find(view, &times[middle + 1..], low..heights.end, &mut after[1..])
}

fn missing(height: u64) -> HttpError {
    HttpError::internal(format!("block {height} is missing"))
}
