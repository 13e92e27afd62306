//! A reader of new blocks, one after the other: of their headers, hashes, transactions or logs. Subscriptions and filters are such
//! readers.
//!
//! # Invariants
//! * Each block is read once, in order, unless it is removed by a rollback: then its logs are read again as removed, and the
//!   blocks that replace it follow.
//! * What was rolled back is known, or the reader is lost, and says so.

use std::collections::VecDeque;

use bytes::Bytes;
use chain::evm::log_filter::LogFilter;
use query::evm::{Error, EvmView};

use crate::go_json::Block;
use crate::log_query::{Blocks, LogQuery, MAX_ADDRESSES};
use crate::rpc_error::{DEFAULT, RpcError};

/// What is read of a block.
#[derive(Clone)]
pub(crate) enum Topic {
    /// Its header.
    Heads,
    /// The hash of its header.
    Hashes,
    /// The hashes of its transactions.
    Transactions,
    /// The logs that a filter selects, in blocks from one to another.
    Logs(LogFilter, u64, u64),
}

impl Topic {
    /// Tags are of new blocks, and so is a query without blocks. It is remembered, so the contracts have a limit as those of any query.
    pub(crate) fn logs(LogQuery { blocks, filter }: LogQuery) -> Result<Self, RpcError> {
        if filter.addresses().len() > MAX_ADDRESSES {
            return Err(RpcError::new(DEFAULT, "exceed max addresses"));
        }
        let number = |block| match block {
            Block::Number(number) => Some(number),
            Block::Head | Block::Hash(_) => None,
        };
        let (from, to) = match blocks {
            Blocks::Range(from, to) => (number(from), number(to)),
            Blocks::One(_) => (None, Some(0)),
        };
        match (from, to) {
            (Some(from), Some(to)) if from <= to => Ok(Self::Logs(filter, from, to)),
            (from, None) => Ok(Self::Logs(filter, from.unwrap_or(0), u64::MAX)),
            _ => Err(RpcError::new(DEFAULT, "invalid block range params")),
        }
    }

    /// What there is of a block, each as JSON.
    fn of_block(&self, view: &EvmView<'_>, height: u64) -> Result<Vec<Vec<u8>>, Error> {
        match self {
            Self::Heads => Ok(view.new_head(height)?.into_iter().collect()),
            Self::Hashes => Ok(view.block_hash(height)?.into_iter().collect()),
            Self::Transactions => view.tx_hashes(height),
            Self::Logs(filter, from, to) if (*from..=*to).contains(&height) => {
                view.block_logs(filter, height)
            }
            Self::Logs(..) => Ok(Vec::new()),
        }
    }
}

/// What is remembered of the last blocks, at most.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) blocks: usize,
    /// Of the logs of the newest of them, which are read again as removed.
    pub(crate) bytes: usize,
}

/// A block that was read.
#[derive(Clone)]
struct Seen {
    height: u64,
    /// Of its CometBFT block.
    hash: [u8; 32],
    /// Its logs that were read; `None` once they are forgotten.
    logs: Option<Vec<Bytes>>,
}

impl Seen {
    fn bytes(&self) -> usize {
        self.logs.iter().flatten().map(Bytes::len).sum()
    }
}

/// What a read found.
pub(crate) enum Found {
    /// Blocks, with something to read or not.
    Some,
    /// No new block.
    Nothing,
    /// Not where the reader is: more was rolled back than it remembers.
    Lost,
}

/// The reader.
#[derive(Clone)]
pub(crate) struct Follower {
    topic: Topic,
    memory: Memory,
    /// The last blocks, of which the newest is the last that was read.
    seen: VecDeque<Seen>,
}

impl Follower {
    /// Begins behind the last block of `view`.
    pub(crate) fn new(view: &EvmView<'_>, topic: Topic, memory: Memory) -> Result<Self, Error> {
        let (first, head) = (view.first(), view.head());
        // What it reads is indexed.
        topic.of_block(view, head.max(first))?;
        let mut seen = VecDeque::new();
        for height in head.saturating_sub(memory.blocks as u64 - 1).max(first)..=head {
            seen.extend(view.history(height)?.map(|hash| Seen { height, hash, logs: Some(Vec::new()) }));
        }
        Ok(Self { topic, memory, seen })
    }

    /// The last block that was read.
    pub(crate) fn last(&self) -> Option<u64> {
        self.seen.back().map(|last| last.height)
    }

    /// Reads the next blocks until there are `most` bytes: `out` gets what there is of them.
    pub(crate) fn read(
        &mut self,
        view: &EvmView<'_>,
        most: usize,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<Found, Error> {
        let had_some = !self.seen.is_empty();
        while let Some(last) = self.seen.back() {
            if view.history(last.height)? == Some(last.hash) {
                break;
            }
            match self.seen.pop_back().and_then(|removed| removed.logs) {
                Some(logs) => {
                    let logs = logs.iter().rev().filter_map(|log| log.strip_suffix(b"false}"));
                    out.extend(logs.map(|log| [log, b"true}"].concat()));
                }
                None if matches!(self.topic, Topic::Logs(..)) => return Ok(Found::Lost),
                None => {}
            }
        }
        if had_some && self.seen.is_empty() {
            return Ok(Found::Lost);
        }
        let mut found = if out.is_empty() { Found::Nothing } else { Found::Some };
        let mut bytes = 0;
        for height in self.last().map_or(view.first(), |last| last + 1)..=view.head() {
            match self.block(view, height, out) {
                Ok(more) => (bytes, found) = (bytes + more, Found::Some),
                // Headers that are late.
                Err(Error::Behind { is_written: true, .. }) => break,
                Err(error) => return Err(error),
            }
            if bytes >= most {
                break;
            }
        }
        Ok(found)
    }

    /// Reads a block; the bytes of what there is.
    fn block(&mut self, view: &EvmView<'_>, height: u64, out: &mut Vec<Vec<u8>>) -> Result<usize, Error> {
        let Some(hash) = view.history(height)? else { return Ok(0) };
        let results = self.topic.of_block(view, height)?;
        let bytes = results.iter().map(Vec::len).sum();
        let is_log = matches!(self.topic, Topic::Logs(..)) && bytes <= self.memory.bytes;
        let logs = is_log.then(|| results.iter().map(|log| Bytes::copy_from_slice(log)).collect());
        out.extend(results);
        self.seen.push_back(Seen { height, hash, logs });
        if self.seen.len() > self.memory.blocks {
            self.seen.pop_front();
        }
        let mut remembered: usize = self.seen.iter().map(Seen::bytes).sum();
        for oldest in &mut self.seen {
            if remembered <= self.memory.bytes {
                break;
            }
            remembered -= oldest.bytes();
            oldest.logs = None;
        }
        Ok(bytes)
    }
}
