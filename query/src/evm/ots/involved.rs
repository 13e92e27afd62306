//! The EVM transactions that an account is involved in: by their receipts, and by their calls.

use schema::block::Block;
use schema::evm_tx::{AccountEvmTxs, EvmTxs};
use schema::internal_tx::{self, AccountCalls, BlockCalls, Calls};
use schema::keys::{AccountKey, Role};
use serde::Deserialize;
use store::{List, Snapshot, list};

use super::super::tx::{damaged, parse};
use super::super::{Error, EvmView};

/// The blocks of a page: those before a block or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before: pages follow each other from the newest transaction to the oldest.
    Before,
    /// After: from the oldest to the newest.
    After,
}

/// Entries of a list that are skipped one by one, before they are searched.
const NEAR: u64 = 8;

/// The transactions of an account from a block on, in one direction: a merge of two lists, each transaction once.
pub(super) struct Involved<'v, 'a> {
    view: &'v EvmView<'a>,
    side: Side,
    by_receipt: Walk<(AccountKey, Role)>,
    by_call: Walk<AccountKey>,
    /// The transaction of the next call, with the sequences of its calls.
    next_call: Option<Called>,
}

/// A list with the ordinal that is next.
struct Walk<O> {
    owner: O,
    len: u64,
    /// Entries before it have not been read yet on the way back, those from it on not on the way forward.
    at: u64,
}

/// A transaction and the sequences of its calls.
#[derive(Clone, Copy)]
struct Called {
    seq: u64,
    first: u64,
    end: u64,
}

impl<O> Walk<O> {
    /// The list of `owner`, from the entry `bound` on: those before it on the way back.
    fn new<L: List<Owner = O>>(snapshot: &dyn Snapshot, owner: O, bound: u64) -> Result<Self, Error> {
        let len = list::len::<L>(snapshot, &owner)?;
        let at = list::position::<L>(snapshot, &owner, len, bound)?;
        Ok(Self { owner, len, at })
    }

    /// The next entry.
    fn peek<L: List<Owner = O>>(&self, snapshot: &dyn Snapshot, side: Side) -> Result<Option<u64>, Error> {
        let ordinal = match side {
            Side::Before => self.at.checked_sub(1),
            Side::After => Some(self.at).filter(|at| *at < self.len),
        };
        Ok(ordinal.map(|ordinal| list::get::<L>(snapshot, &self.owner, ordinal)).transpose()?.flatten())
    }

    /// Skips the entries from `first` up to `end`, of which the next one is.
    fn skip<L: List<Owner = O>>(
        &mut self,
        snapshot: &dyn Snapshot,
        side: Side,
        first: u64,
        end: u64,
    ) -> Result<(), Error> {
        for _ in 0..NEAR {
            match self.peek::<L>(snapshot, side)? {
                Some(entry) if (first..end).contains(&entry) => match side {
                    Side::Before => self.at -= 1,
                    Side::After => self.at += 1,
                },
                _ => return Ok(()),
            }
        }
        let bound = if side == Side::Before { first } else { end };
        self.at = list::position::<L>(snapshot, &self.owner, self.len, bound)?;
        Ok(())
    }
}

impl<'v, 'a> Involved<'v, 'a> {
    /// The transactions of `account` in the blocks below `height`, newest first, or in those from `height` on, oldest first.
    /// `seq` is the first transaction of that block.
    pub(super) fn new(
        view: &'v EvmView<'a>,
        account: AccountKey,
        side: Side,
        height: u64,
        seq: u64,
    ) -> Result<Self, Error> {
        let snapshot = view.view.snapshot();
        // Calls are numbered as their blocks are, so the last block below has the last of them.
        let call = match internal_tx::last_block_before(snapshot, height)? {
            Some(last) => {
                internal_tx::of_block(snapshot, last)?.map_or(0, |calls| calls.first + calls.count())
            }
            None => 0,
        };
        let by_receipt = Walk::new::<AccountEvmTxs>(snapshot, (account, Role::Involved), seq)?;
        let by_call = Walk::new::<AccountCalls>(snapshot, account, call)?;
        let mut involved = Self { view, side, by_receipt, by_call, next_call: None };
        involved.next_call = involved.called()?;
        Ok(involved)
    }

    /// The next transaction, which is not skipped.
    pub(super) fn peek(&self) -> Result<Option<u64>, Error> {
        let receipt = self.by_receipt.peek::<AccountEvmTxs>(self.view.view.snapshot(), self.side)?;
        let call = self.next_call.map(|called| called.seq);
        Ok(match (receipt, call) {
            (Some(one), Some(other)) if self.side == Side::Before => Some(one.max(other)),
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        })
    }

    /// Skips the transaction `seq`, which is the next one.
    pub(super) fn skip(&mut self, seq: u64) -> Result<(), Error> {
        let (snapshot, side) = (self.view.view.snapshot(), self.side);
        self.by_receipt.skip::<AccountEvmTxs>(snapshot, side, seq, seq + 1)?;
        if let Some(called) = self.next_call.filter(|called| called.seq == seq) {
            self.by_call.skip::<AccountCalls>(snapshot, side, called.first, called.end)?;
            self.next_call = self.called()?;
        }
        Ok(())
    }

    /// The transaction of the next call. `None` at the end of the list, and above the head.
    fn called(&self) -> Result<Option<Called>, Error> {
        let snapshot = self.view.view.snapshot();
        let Some(call) = self.by_call.peek::<AccountCalls>(snapshot, self.side)? else { return Ok(None) };
        let record = self.view.record::<Calls>(call)?;
        let wrong = |reason: &str| damaged::<Calls>(call, &reason);
        let Of { height, hash } =
            serde_json::from_slice(&record).map_err(|error| damaged::<Calls>(call, &error))?;
        let Some(block) = self.view.stored(height)? else { return Ok(None) };
        let calls =
            internal_tx::of_block(snapshot, height)?.ok_or_else(|| wrong("its block has no calls"))?;
        let (place, first, end) =
            place_of(&calls, call).ok_or_else(|| wrong("its block has not its call"))?;
        let seq =
            self.tx_of(&block, &calls, place, hash)?.ok_or_else(|| wrong("its transaction is missing"))?;
        Ok(Some(Called { seq, first, end }))
    }

    /// The transaction `hash`, whose calls are at `place` among those of the block. Each transaction that the node could not trace
    /// moves it one place up.
    fn tx_of(&self, block: &Block, calls: &BlockCalls, place: u64, hash: &str) -> Result<Option<u64>, Error> {
        let first = block.first_evm_tx + place;
        let untraced = block.evm_txs.saturating_sub(calls.counts.len() as u64);
        if untraced == 0 {
            return Ok(Some(first));
        }
        for seq in first..=first + untraced {
            let record = self.view.record::<EvmTxs>(seq)?;
            if parse(seq, &record)?.transaction_hash.eq_ignore_ascii_case(hash) {
                return Ok(Some(seq));
            }
        }
        Ok(None)
    }
}

/// The place of the traced transaction with this call among those of its block, and the sequences of all of its calls.
fn place_of(calls: &BlockCalls, call: u64) -> Option<(u64, u64, u64)> {
    let mut first = calls.first;
    for (place, count) in (0..).zip(&calls.counts) {
        let end = first + count;
        if (first..end).contains(&call) {
            return Some((place, first, end));
        }
        first = end;
    }
    None
}

/// The members of a call's record that name its transaction.
#[derive(Deserialize)]
struct Of<'a> {
    height: u64,
    hash: &'a str,
}
