//! `eth_getLogs`.
//!
//! The cheapest lists of the index `logs` give candidates, whose receipts are read and compared with the filter. Ranges of blocks
//! are not limited; what is read for a response is.

use std::ops::{ControlFlow, RangeInclusive};

use chain::evm::log_filter::LogFilter;
use metrics::{counter, describe_counter};
use schema::evm_tx::EvmTxs;
use schema::logs::{Content, Fingerprint, LOGS, fingerprint};
use schema::records::{self, Step};
use web::limits::lane;

use super::plan::Candidates;
use super::tx::parse;
use super::{Error, EvmView};

/// Transactions that are searched for a request.
const MAX_CANDIDATES: u64 = 20_000;

/// Bytes of receipts that are read for a request.
const MAX_READ: u64 = 64 << 20;

/// Candidates that are read at once: few at first, because most requests have few.
const BATCHES: (usize, usize) = (32, 1024);

/// EVM transactions that were searched.
const CANDIDATES: &str = "cairn_evm_logs_candidates_total";

/// Logs of the responses.
const RETURNED: &str = "cairn_evm_logs_returned_total";

/// Registers the descriptions of the metrics, with values of zero.
pub(crate) fn describe() {
    describe_counter!(CANDIDATES, "EVM transactions that were searched for eth_getLogs");
    describe_counter!(RETURNED, "logs in the responses of eth_getLogs");
    for name in [CANDIDATES, RETURNED] {
        counter!(name).increment(0);
    }
}

/// Bounds of a response.
#[derive(Clone, Copy, Debug)]
pub struct LogLimits {
    /// Maximum number of logs of several blocks. Those of one block are always returned.
    pub logs: u64,
    /// Maximum bytes.
    pub bytes: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { logs: 10_000, bytes: 25_000_000 }
    }
}

impl EvmView<'_> {
    /// The logs that `filter` selects in the blocks of `heights`, in their order: a JSON array. Heights above the head are left
    /// out.
    ///
    /// # Errors
    /// [`Error::Pruned`] if the range begins below the first height, [`Error::Off`] and [`Error::Behind`] of the index `logs`,
    /// [`Error::TooMany`] and [`Error::TooLarge`] past `limits`.
    pub fn logs(
        &self,
        filter: &LogFilter,
        heights: RangeInclusive<u64>,
        limits: LogLimits,
    ) -> Result<Vec<u8>, Error> {
        self.logs_by(filter, heights, limits, fingerprint)
    }

    /// The same with other fingerprints than those that are stored.
    pub(super) fn logs_by(
        &self,
        filter: &LogFilter,
        heights: RangeInclusive<u64>,
        limits: LogLimits,
        hash: fn(Content<'_>) -> Fingerprint,
    ) -> Result<Vec<u8>, Error> {
        let (from, to) = (*heights.start(), (*heights.end()).min(self.head));
        self.state(&LOGS)?;
        if from > to {
            return Ok(b"[]".to_vec());
        }
        let (first, last) = (self.stored(from)?, self.stored(to)?);
        self.require(&LOGS, from, to)?;
        let (Some(first), Some(last)) = (first, last) else { return Ok(b"[]".to_vec()) };
        let seqs = first.first_evm_tx..last.first_evm_tx + last.evm_txs;
        let mut candidates = Candidates::of(self.view.snapshot(), filter, seqs, hash)?;
        let mut found = Found::new(self, filter, limits, (from, to));
        let mut batch = BATCHES.0;
        loop {
            let mut some = Vec::with_capacity(batch);
            while some.len() < batch
                && let Some(seq) = candidates.next()?
            {
                some.push(seq);
            }
            if some.is_empty() {
                break;
            }
            found.read(&some)?;
            batch = (batch * 2).min(BATCHES.1);
        }
        found.out.push(b']');
        Ok(std::mem::take(&mut found.out))
    }
}

impl Drop for Found<'_> {
    fn drop(&mut self) {
        counter!(CANDIDATES).increment(self.candidates);
        counter!(RETURNED).increment(self.logs);
    }
}

/// The response so far.
struct Found<'a> {
    view: &'a EvmView<'a>,
    filter: &'a LogFilter,
    limits: LogLimits,
    /// The first and last height.
    range: (u64, u64),
    out: Vec<u8>,
    logs: u64,
    candidates: u64,
    read: u64,
}

impl<'a> Found<'a> {
    fn new(view: &'a EvmView<'a>, filter: &'a LogFilter, limits: LogLimits, range: (u64, u64)) -> Self {
        Self { view, filter, limits, range, out: vec![b'['], logs: 0, candidates: 0, read: 0 }
    }

    /// Adds the logs of the candidates `seqs`.
    fn read(&mut self, seqs: &[u64]) -> Result<(), Error> {
        let (mut outcome, mut next) = (Ok(()), seqs.iter().copied());
        let (snapshot, codec) = (self.view.view.snapshot(), &self.view.indexer.codec);
        records::walk::<EvmTxs>(snapshot, codec, seqs, &mut |step| {
            outcome = match step {
                Step::Row(bytes) => {
                    self.read += bytes;
                    lane::spend(bytes).map_err(Error::from)
                }
                Step::Record(record) => next.next().map_or(Ok(()), |seq| self.add(seq, record)),
            };
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome
    }

    fn add(&mut self, seq: u64, record: &[u8]) -> Result<(), Error> {
        let receipt = parse(seq, record)?;
        self.candidates += 1;
        for (ordinal, log) in (0..).zip(&receipt.logs) {
            if !self.filter.matches(log) {
                continue;
            }
            if self.out.len() > 1 {
                self.out.push(b',');
            }
            self.view.dialect.write_log(&mut self.out, log, ordinal);
            self.logs += 1;
        }
        let is_past = self.logs > self.limits.logs
            || self.out.len() > self.limits.bytes
            || self.candidates > MAX_CANDIDATES
            || self.read > MAX_READ;
        if !is_past {
            return Ok(());
        }
        let (from, to) = self.range;
        if from < to {
            // The block of this transaction may not be complete.
            let height = receipt.block_number().unwrap_or(from);
            let retry = (from, height.saturating_sub(1).max(from));
            return Err(Error::TooMany { limit: self.limits.logs, retry });
        }
        if self.out.len() > self.limits.bytes { Err(Error::TooLarge) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
