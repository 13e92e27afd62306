//! Logs by contract and topics, with conditions that are joined by "and" and "or".

use chain::evm::{Log, Receipt};
use schema::evm_tx::EvmTxs;
use schema::logs::{Content, LOGS, LogTxs, MAX_TOPICS, fingerprint};

use super::{Bounds, MAX_CANDIDATES, Rows, Window, first_of, len_of};
use crate::array::{Array, Run, Stored};
use crate::evm::tx::parse;
use crate::evm::{Error, EvmView};

/// Candidates that are read at first. Further ones are four times as many each time.
const FIRST: u64 = 64;

/// Receipts that are in memory at once.
const AT_ONCE: usize = 128;

/// A log in a list.
pub struct LogRow<'a> {
    /// The receipt that has it.
    pub receipt: &'a Receipt<'a>,
    /// The log.
    pub log: &'a Log<'a>,
    /// Its height.
    pub height: u64,
    /// The time of its block, in seconds.
    pub timestamp: u64,
}

/// Takes the sequence and the record of a receipt; true for enough.
type SeeReceipt<'a> = dyn FnMut(u64, &[u8]) -> Result<bool, Error> + 'a;

/// Conditions on a log: its contract, and topics that are compared from the left to the right.
#[derive(Clone, Debug, Default)]
pub struct TopicQuery {
    /// The contract.
    pub address: Option<[u8; 20]>,
    /// The topics.
    pub topics: [Option<[u8; 32]>; MAX_TOPICS],
    /// True at `[x][y]` if topic x or topic y suffices, where y is the next topic that is given.
    pub or: [[bool; MAX_TOPICS]; MAX_TOPICS],
}

impl TopicQuery {
    /// The topics that are given, each with its place, and whether it may stand in for those before it.
    fn given(&self) -> Vec<(usize, &[u8; 32], bool)> {
        let mut given: Vec<(usize, &[u8; 32], bool)> = Vec::new();
        for (place, topic) in self.topics.iter().enumerate() {
            let Some(topic) = topic else { continue };
            let or = given.last().is_some_and(|(before, ..)| self.or[*before][place]);
            given.push((place, topic, or));
        }
        given
    }

    fn matches(&self, log: &Log<'_>) -> bool {
        if self.address.is_some() && log.address_bytes() != self.address {
            return false;
        }
        let has = |place: usize, topic: &[u8; 32]| {
            log.topics.get(place).and_then(|text| Log::topic_bytes(text)).as_ref() == Some(topic)
        };
        self.given().iter().fold(true, |all, (place, topic, or)| {
            let has = has(*place, topic);
            if *or { all || has } else { all && has }
        })
    }

    /// Lists each of which has every match, as unions.
    fn covers(&self) -> Vec<Vec<Content<'_>>> {
        let given = self.given();
        let topics = given.iter().map(|(place, topic, _)| Content::Topic(*place, topic));
        let mut covers: Vec<Vec<Content<'_>>> = if given.iter().any(|(.., or)| *or) {
            vec![topics.collect()]
        } else {
            topics.map(|topic| vec![topic]).collect()
        };
        if let Some(address) = &self.address {
            covers.push(vec![Content::Address(address)]);
            if let (Some(topic), [_]) = (&self.topics[0], &given[..]) {
                covers.push(vec![Content::Event(address, topic)]);
            }
        }
        covers
    }
}

impl EvmView<'_> {
    /// Calls `see` with the logs that `query` selects.
    ///
    /// # Errors
    /// [`Error::Off`] and [`Error::Behind`] of the index `logs`, [`Error::Pruned`], [`Error::TooLarge`].
    pub fn logs_of(
        &self,
        query: &TopicQuery,
        window: &Window,
        see: &mut dyn FnMut(&LogRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut rows, mut block) = (Rows::new(window), None);
        self.scan(&query.covers(), window, &mut |seq, record| {
            let receipt = parse(seq, record)?;
            for log in in_order(&receipt.logs, window.newest_first) {
                if rows.is_full() {
                    break;
                }
                if query.matches(log) && rows.wants() {
                    let height = self.block_with(&mut block, &receipt)?;
                    let timestamp = block.as_ref().map_or(0, |(_, block)| schema::evm_block::seconds(block));
                    see(&LogRow { receipt: &receipt, log, height, timestamp })?;
                }
            }
            Ok(rows.is_full())
        })
    }

    /// Calls `see` with the receipts of the cheapest of `covers`, each of which is a union of lists of the index `logs` (of all
    /// receipts, if there are none), until it is true.
    pub(super) fn scan(
        &self,
        covers: &[Vec<Content<'_>>],
        window: &Window,
        see: &mut SeeReceipt<'_>,
    ) -> Result<(), Error> {
        self.state(&LOGS)?;
        let heights = self.clamped(&window.heights)?;
        if heights.is_empty() {
            return Ok(());
        }
        self.require(&LOGS, *heights.start(), *heights.end())?;
        let (run, snapshot) = (self.seqs_of(&heights)?, self.view.snapshot());
        let all: Box<dyn Array<Row = u64>> =
            Box::new(Run { first: run.start, len: run.end.saturating_sub(run.start) });
        let (mut best, mut least) = (vec![all], None);
        for cover in covers {
            let mut lists: Vec<Box<dyn Array<Row = u64> + '_>> = Vec::with_capacity(cover.len());
            for content in cover {
                lists.push(Box::new(Stored::<LogTxs>::all(snapshot, fingerprint(*content))?));
            }
            let len = len_of(&lists, &run)?;
            if least.is_none_or(|least| len < least) {
                (best, least) = (lists, Some(len));
            }
        }
        let (bounds, mut done, mut n) = (Bounds::new(), 0, FIRST);
        loop {
            let seqs = first_of(&best, &run, n, window.newest_first)?;
            for some in seqs[done..].chunks(AT_ONCE) {
                bounds.spend(some.len() as u64)?;
                let mut receipts = Vec::with_capacity(some.len());
                self.each_of::<EvmTxs>(some, |_, record| {
                    receipts.push(record.to_vec());
                    Ok(())
                })?;
                for (seq, record) in some.iter().zip(&receipts) {
                    if see(*seq, record)? {
                        return Ok(());
                    }
                }
            }
            if (seqs.len() as u64) < n {
                return Ok(());
            }
            (done, n) = (seqs.len(), (n * 4).min(MAX_CANDIDATES + 1));
        }
    }
}

/// The items in their order, or in the opposite one.
pub(super) fn in_order<T>(items: &[T], backward: bool) -> impl Iterator<Item = &T> {
    let (forward, backward) = if backward { (&items[..0], items) } else { (items, &items[..0]) };
    forward.iter().chain(backward.iter().rev())
}
