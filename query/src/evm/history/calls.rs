//! Internal calls: those that a transaction's own call made, with a value, and creations.
//!
//! minievm puts a frame of its own around each transaction, with calls of its fee token next to the transaction's call. The
//! transaction's call is the last one below that frame with its sender, recipient and input: a transaction that failed before has
//! none. Messages that a contract gave to the precompile of Cosmos messages are called after it, next to it, and count as calls of
//! it. A Cosmos transaction has no call of its own: all of its frames but the first are internal.

use std::ops::Range;

use chain::evm::transaction::Summary;
use chain::{Account, JsonText, U256};
use schema::call_errors;
use schema::internal_tx::{self, AccountCalls, Calls};
use schema::keys::AccountKey;
use serde::Deserialize;
use web::http_error::HttpError;

use super::logs::in_order;
use super::{Bounds, MAX_CANDIDATES, Rows, TxRow, Window, first_of};
use crate::api;
use crate::array::{Array, Run, Stored};
use crate::evm::ots::is_dispatched;
use crate::evm::{Error, EvmView};

/// Candidates that are read at first. Further ones are four times as many each time.
const FIRST: u64 = 64;

/// Transactions that are searched for a call of the fee token.
const FEE_TXS: usize = 64;

/// The call of minievm by which it reads the decimals of the fee token before a transaction: `decimals()`.
const DECIMALS: &str = "0x313ce567";

const ZERO: &str = "0x0000000000000000000000000000000000000000";

/// Which internal calls are listed.
#[derive(Clone, Copy, Debug)]
pub enum CallsOf {
    /// Those from or to an account.
    Account([u8; 20]),
    /// Those of a transaction.
    Tx([u8; 32]),
    /// All.
    All,
}

/// A stored frame.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frame<'a> {
    height: u64,
    #[serde(borrow)]
    hash: JsonText<'a>,
    #[serde(rename = "parent_index")]
    parent_index: i64,
    /// Position in the transaction, in pre-order.
    pub index: u64,
    /// `CALL`, `CREATE`, …
    #[serde(rename = "type", borrow)]
    pub kind: JsonText<'a>,
    /// The caller.
    #[serde(borrow)]
    pub from: JsonText<'a>,
    /// The called or created address; empty for a failed creation.
    #[serde(borrow)]
    pub to: JsonText<'a>,
    /// The call data.
    #[serde(borrow)]
    pub input: JsonText<'a>,
    #[serde(borrow)]
    value: JsonText<'a>,
    #[serde(borrow)]
    gas: JsonText<'a>,
    #[serde(borrow)]
    gas_used: JsonText<'a>,
}

impl Frame<'_> {
    /// The value sent, in wei.
    pub fn value(&self) -> U256 {
        number(&self.value)
    }

    /// The gas given.
    pub fn gas(&self) -> U256 {
        number(&self.gas)
    }

    /// The gas used.
    pub fn gas_used(&self) -> U256 {
        number(&self.gas_used)
    }

    /// True if it creates a contract.
    pub fn creates(&self) -> bool {
        matches!(&*self.kind, "CREATE" | "CREATE2")
    }

    fn is_listed(&self) -> bool {
        self.creates() || self.kind == "SELFDESTRUCT" || (self.kind == "CALL" && !self.value().is_zero())
    }
}

/// An internal call in a list.
pub struct CallRow<'a> {
    /// The transaction that made it.
    pub tx: &'a TxRow<'a>,
    /// The call.
    pub frame: &'a Frame<'a>,
    /// Why it failed, or why the call failed that it is within; `None` if neither did, or the index `call_errors` does not have it.
    pub error: Option<&'a str>,
    /// Its path below the transaction's call: the place of each call among those of its caller, from 0, joined by `_`.
    pub path: &'a str,
}

impl EvmView<'_> {
    /// Calls `see` with the internal calls of `of`; with [`CallsOf::Tx`] the blocks of `window` are not compared. False if calls of
    /// some of the blocks are not indexed, and may be missing.
    ///
    /// # Errors
    /// [`Error::Off`] without the lane of internal transactions, [`Error::Pruned`], [`Error::TooLarge`].
    pub fn calls_of(
        &self,
        of: CallsOf,
        window: &Window,
        see: &mut dyn FnMut(&CallRow<'_>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let lane = self.view.calls()?;
        if lane.height == 0 {
            return Err(Error::Off("internal_txs"));
        }
        let (list, run, heights) = match of {
            CallsOf::Tx(hash) => {
                let Some((seq, record)) = api::evm_tx::find(self.indexer, &self.view, &hash)? else {
                    return Ok(true);
                };
                let height = api::evm_tx::height(seq, &record)?;
                let run = api::internal_tx::frames(self.indexer, &self.view, &hash, (seq, &record))?;
                (None, run.first..run.first + run.len, height..=height)
            }
            CallsOf::Account(account) => {
                let heights = self.clamped(&window.heights)?;
                let list =
                    Stored::<AccountCalls>::all(self.view.snapshot(), AccountKey(Account::from(account)))?;
                (Some(list), self.frames_of(&heights)?, heights)
            }
            CallsOf::All => {
                let heights = self.clamped(&window.heights)?;
                (None, self.frames_of(&heights)?, heights)
            }
        };
        let account = if let CallsOf::Account(account) = of { Some(account) } else { None };
        let list: Box<dyn Array<Row = u64>> = match list {
            Some(list) => Box::new(list),
            None => Box::new(Run { first: run.start, len: run.end.saturating_sub(run.start) }),
        };
        self.each_call(&[list], &run, account, window, see)?;
        let is_missing = |height: &u64| heights.contains(height);
        Ok(heights.is_empty() || (*heights.end() <= lane.height && !lane.untraced.iter().any(is_missing)))
    }

    fn each_call(
        &self,
        lists: &[Box<dyn Array<Row = u64> + '_>],
        run: &Range<u64>,
        account: Option<[u8; 20]>,
        window: &Window,
        see: &mut dyn FnMut(&CallRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (bounds, mut rows, mut seen) = (Bounds::new(), Rows::new(window), 0..0);
        let (mut done, mut n) = (0, FIRST);
        loop {
            let seqs = first_of(lists, run, n, window.newest_first)?;
            for seq in &seqs[done..] {
                if seen.contains(seq) {
                    continue;
                }
                seen = self.frames_with(*seq)?;
                bounds.spend(seen.end - seen.start)?;
                self.calls_of_tx(
                    &seen,
                    |row| {
                        let is_wanted = account.is_none_or(|account| {
                            [&row.frame.from, &row.frame.to]
                                .iter()
                                .any(|text| Account::from_hex_literal(text) == Some(Account::from(account)))
                        });
                        if is_wanted && !rows.is_full() && rows.wants() { see(row) } else { Ok(()) }
                    },
                    window.newest_first,
                )?;
                if rows.is_full() {
                    return Ok(());
                }
            }
            if (seqs.len() as u64) < n {
                return Ok(());
            }
            (done, n) = (seqs.len(), (n * 4).min(MAX_CANDIDATES + 1));
        }
    }

    /// Calls `see` with the internal calls among the frames `run` of a transaction.
    fn calls_of_tx(
        &self,
        run: &Range<u64>,
        mut see: impl FnMut(&CallRow<'_>) -> Result<(), Error>,
        newest_first: bool,
    ) -> Result<(), Error> {
        let mut records = Vec::new();
        self.each::<Calls>(run.clone(), |_, record| {
            records.push(record.to_vec());
            Ok(())
        })?;
        let frames = (run.start..)
            .zip(&records)
            .map(|(seq, record)| parse(seq, record))
            .collect::<Result<Vec<_>, _>>()?;
        let Some(hash) = frames.first().map(|frame| &*frame.hash) else { return Ok(()) };
        let unknown = || damaged(run.start, "its transaction");
        let hash = chain::hash::parse_hash(hash).ok().flatten().ok_or_else(unknown)?;
        let found = api::evm_tx::find(self.indexer, &self.view, &hash)?.ok_or_else(unknown)?;
        let errors = self.errors_of(run, &frames)?;
        self.with_row(&mut None, (found.0, &found.1), &mut |tx| {
            let paths = paths(&frames, root(&frames, &tx.tx.summary(), &tx.receipt.from));
            let rows: Vec<_> = frames.iter().zip(&paths).zip(&errors).collect();
            for ((frame, path), error) in in_order(&rows, newest_first) {
                let error = error.as_deref();
                if let Some(path) = path.as_deref().filter(|path| !path.is_empty() && frame.is_listed()) {
                    see(&CallRow { tx, frame, error, path })?;
                }
            }
            Ok(())
        })
    }

    /// The error of each of the frames `run` of a transaction, which is that of the frame above unless it has its own.
    fn errors_of(&self, run: &Range<u64>, frames: &[Frame<'_>]) -> Result<Vec<Option<String>>, Error> {
        let mut own =
            call_errors::of_frames(self.view.snapshot(), run.start, run.end)?.into_iter().peekable();
        let mut errors: Vec<Option<String>> = Vec::with_capacity(frames.len());
        for (seq, frame) in run.clone().zip(frames) {
            let above =
                usize::try_from(frame.parent_index).ok().and_then(|parent| errors.get(parent)?.clone());
            errors.push(own.next_if(|(of, _)| *of == seq).map(|(_, error)| error).or(above));
        }
        Ok(errors)
    }

    /// The frames of the transaction that has the frame `seq`.
    fn frames_with(&self, seq: u64) -> Result<Range<u64>, Error> {
        let mut of = None;
        self.each::<Calls>(seq..seq + 1, |seq, record| {
            let frame = parse(seq, record)?;
            of = Some((frame.height, seq.saturating_sub(frame.index)));
            Ok(())
        })?;
        let (height, first) = of.ok_or_else(|| damaged(seq, "it is missing"))?;
        let calls = internal_tx::of_block(self.view.snapshot(), height)?
            .ok_or_else(|| damaged(seq, "its block has no frames"))?;
        let mut start = calls.first;
        for count in &calls.counts {
            if start == first {
                return Ok(start..start + count);
            }
            start += count;
        }
        Err(damaged(seq, "its block has no such transaction"))
    }

    /// The frames of the blocks `heights`.
    fn frames_of(&self, heights: &std::ops::RangeInclusive<u64>) -> Result<Range<u64>, Error> {
        if heights.is_empty() {
            return Ok(0..0);
        }
        Ok(self.frames_before(*heights.start())?..self.frames_before(heights.end().saturating_add(1))?)
    }

    /// The sequence after the last frame before `height`.
    fn frames_before(&self, height: u64) -> Result<u64, Error> {
        let snapshot = self.view.snapshot();
        let Some(last) = internal_tx::last_block_before(snapshot, height)? else { return Ok(1) };
        Ok(internal_tx::of_block(snapshot, last)?.map_or(1, |calls| calls.first + calls.count()))
    }

    /// The contract of the token in which the chain is paid: the one whose decimals minievm reads before a transaction. `None`
    /// if the last transactions read none.
    ///
    /// # Errors
    /// [`Error::NoCalls`] if no transaction has frames yet that could tell it.
    pub fn fee_token(&self) -> Result<Option<[u8; 20]>, Error> {
        let (snapshot, mut height, mut left) = (self.view.snapshot(), self.head.saturating_add(1), FEE_TXS);
        while left > 0
            && let Some(last) = internal_tx::last_block_before(snapshot, height)?
        {
            height = last;
            let Some(calls) = internal_tx::of_block(snapshot, height)? else { break };
            let mut first = calls.first;
            for count in calls.counts.into_iter().take(left) {
                left -= 1;
                if count > 1
                    && let Some(token) = self.fee_token_of(first)?
                {
                    return Ok(Some(token));
                }
                first += count;
            }
        }
        let block = self.stored(self.head)?.filter(|block| block.first_evm_tx + block.evm_txs > 1);
        if block.is_none() || left < FEE_TXS {
            return Ok(None);
        }
        let lane = self.view.calls()?;
        let is_late = lane.height < self.head;
        Err(Error::NoCalls { height: if is_late { lane.height + 1 } else { self.head }, is_late })
    }

    /// The same by the transaction whose frames begin at `first`: the first call within is of the chain itself.
    fn fee_token_of(&self, first: u64) -> Result<Option<[u8; 20]>, Error> {
        let mut token = None;
        self.each::<Calls>(first + 1..first + 2, |seq, record| {
            let frame = parse(seq, record)?;
            let is_minievm = frame.parent_index == 0 && frame.from == ZERO && frame.input == DECIMALS;
            token = Account::from_hex_literal(&frame.to)
                .filter(|_| is_minievm)
                .and_then(|account| account.as_bytes().try_into().ok());
            Ok(())
        })?;
        Ok(token)
    }
}

fn parse(seq: u64, record: &[u8]) -> Result<Frame<'_>, Error> {
    serde_json::from_slice(record).map_err(|error| damaged(seq, &error.to_string()))
}

/// The place of the transaction's own call among its frames: see the head of this file.
fn root(frames: &[Frame<'_>], tx: &Summary<'_>, sender: &str) -> Option<usize> {
    if !tx.is_signed || tx.is_root {
        return (!frames.is_empty()).then_some(0);
    }
    let to = tx.to.map(|to| format!("0x{}", hex::encode(to)));
    let input = format!("0x{}", hex::encode(tx.input));
    frames.iter().rposition(|frame| {
        let is_to = to.as_deref().map_or(frame.creates(), |to| frame.to == to);
        frame.parent_index == 0 && is_to && frame.from == sender && frame.input == input.as_str()
    })
}

/// The path of each frame below the frame at `root`, whose own path is empty; `None` of others.
fn paths(frames: &[Frame<'_>], root: Option<usize>) -> Vec<Option<String>> {
    let mut paths: Vec<Option<String>> = Vec::with_capacity(frames.len());
    let mut calls = vec![0_u64; frames.len()];
    for (place, frame) in frames.iter().enumerate() {
        let parent = usize::try_from(frame.parent_index).ok().filter(|parent| *parent < place);
        let is_of = |root: &usize| is_dispatched(frame.parent_index, place as u64, *root as u64, &frame.from);
        let parent = root.filter(is_of).or(parent);
        let ordinal = parent.and_then(|parent| calls.get_mut(parent)).map(|calls| {
            *calls += 1;
            *calls - 1
        });
        let above = parent.and_then(|parent| paths[parent].as_deref());
        let path = match (above, ordinal) {
            _ if Some(place) == root => Some(String::new()),
            (Some(""), Some(ordinal)) => Some(ordinal.to_string()),
            (Some(above), Some(ordinal)) => Some(format!("{above}_{ordinal}")),
            _ => None,
        };
        paths.push(path);
    }
    paths
}

fn number(text: &str) -> U256 {
    let digits = text.strip_prefix("0x").unwrap_or(text).trim_start_matches('0');
    // A frame's quantities are hex of at most 32 bytes.
    if digits.is_empty() { U256::ZERO } else { U256::from_str_radix(digits, 16).unwrap_or(U256::MAX) }
}

fn damaged(seq: u64, reason: &str) -> Error {
    Error::Failed(HttpError::internal(format!("table `internal_tx`, key {seq}: {reason}")))
}
