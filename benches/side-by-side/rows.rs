//! The rows of the chain that the stand-in gets, read from cairn's database.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::{Context as _, Result};
use schema::block::Blocks;
use schema::evm_tx::{AccountEvmTxs, EvmTxs};
use schema::internal_tx::{AccountCalls, Calls, CallsByHeight};
use schema::keys::{AccountKey, Role};
use schema::payload::Codec;
use schema::records::{self, Records};
use schema::tx::{AccountTxs, Txs};
use store::key::All;
use store::{Bounds, Key as _, List, Message, Order, Snapshot, Value as _};

/// Number of an account in the stand-in's dictionary, from 1.
pub(crate) type AccountId = i64;

/// An account of a record, and whether it signed it.
#[derive(Clone, Copy)]
pub(crate) struct Involved {
    pub(crate) account: AccountId,
    pub(crate) signer: bool,
}

/// A block with the sequences of its records.
pub(crate) struct Block {
    pub(crate) height: u64,
    pub(crate) json: Vec<u8>,
    pub(crate) txs: Range<u64>,
    pub(crate) evm_txs: Range<u64>,
    pub(crate) calls: Range<u64>,
}

/// The chain without its records, which are read block by block.
pub(crate) struct Rows {
    pub(crate) blocks: Vec<Block>,
    /// Addresses of the accounts; the place is the number less one.
    pub(crate) accounts: Vec<Vec<u8>>,
    /// The accounts of each transaction; the place is the sequence less one, as in the next two.
    pub(crate) of_tx: Vec<Vec<Involved>>,
    pub(crate) of_evm_tx: Vec<Vec<Involved>>,
    pub(crate) of_call: Vec<Vec<Involved>>,
    codec: Codec,
}

impl Rows {
    /// Reads the blocks and the accounts' lists of a database.
    pub(crate) fn read(snapshot: &dyn Snapshot) -> Result<Self> {
        let mut numbers = Numbers::default();
        let roles = |(account, role): (AccountKey, Role)| (account, role == Role::Signer);
        let of_tx = involved::<AccountTxs>(snapshot, &mut numbers, roles)?;
        let of_evm_tx = involved::<AccountEvmTxs>(snapshot, &mut numbers, roles)?;
        let of_call = involved::<AccountCalls>(snapshot, &mut numbers, |account| (account, false))?;
        Ok(Self {
            blocks: blocks(snapshot)?,
            accounts: numbers.accounts,
            of_tx,
            of_evm_tx,
            of_call,
            codec: Codec::load(snapshot)?,
        })
    }

    /// Number of Cosmos transactions.
    pub(crate) fn txs(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.txs.end - 1)
    }

    /// Transactions up to and including each height.
    pub(crate) fn txs_by_height(&self) -> Vec<(u64, u64)> {
        self.blocks.iter().map(|block| (block.height, block.txs.end - 1)).collect()
    }

    /// The JSON of a transaction.
    pub(crate) fn tx(&self, snapshot: &dyn Snapshot, seq: u64) -> Result<Vec<u8>> {
        self.record::<Txs>(snapshot, seq)
    }

    /// The JSON of an EVM transaction.
    pub(crate) fn evm_tx(&self, snapshot: &dyn Snapshot, seq: u64) -> Result<Vec<u8>> {
        self.record::<EvmTxs>(snapshot, seq)
    }

    /// The JSON of the call frames `seqs`.
    pub(crate) fn calls(&self, snapshot: &dyn Snapshot, seqs: Range<u64>) -> Result<Vec<Vec<u8>>> {
        let (seqs, mut frames): (Vec<u64>, _) = (seqs.collect(), Vec::new());
        records::each::<Calls>(snapshot, &self.codec, &seqs, |frame| frames.push(frame.to_vec()))?;
        Ok(frames)
    }

    fn record<T: Records>(&self, snapshot: &dyn Snapshot, seq: u64) -> Result<Vec<u8>> {
        let mut json = Vec::new();
        records::each::<T>(snapshot, &self.codec, &[seq], |record| json.extend_from_slice(record))?;
        Ok(json)
    }
}

fn blocks(snapshot: &dyn Snapshot) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut next_call = 1;
    for (height, Message(block)) in store::table::rows::<Blocks>(snapshot, &All, Order::Asc, usize::MAX)? {
        let calls = store::table::read::<CallsByHeight>(snapshot, &height)?;
        let calls =
            calls.map_or(next_call..next_call, |Message(calls)| calls.first..calls.first + calls.count());
        next_call = calls.end;
        blocks.push(Block {
            height,
            json: block.json,
            txs: block.first_tx..block.first_tx + block.txs,
            evm_txs: block.first_evm_tx..block.first_evm_tx + block.evm_txs,
            calls,
        });
    }
    Ok(blocks)
}

/// Numbers accounts in the order of their appearance.
#[derive(Default)]
struct Numbers {
    accounts: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, AccountId>,
}

impl Numbers {
    fn of(&mut self, AccountKey(account): AccountKey) -> Result<AccountId> {
        let next = AccountId::try_from(self.accounts.len() + 1)?;
        let number = *self.numbers.entry(account.as_bytes().to_vec()).or_insert(next);
        if number == next {
            self.accounts.push(account.as_bytes().to_vec());
        }
        Ok(number)
    }
}

/// The accounts of each record, from the lists of the accounts.
fn involved<L: List>(
    snapshot: &dyn Snapshot,
    numbers: &mut Numbers,
    role: impl Fn(L::Owner) -> (AccountKey, bool),
) -> Result<Vec<Vec<Involved>>> {
    let mut all: Vec<Vec<Involved>> = Vec::new();
    store::for_each_row(snapshot, L::SPEC, Bounds::all(), |key, value| {
        let mut rest = key;
        let owner = L::Owner::take(&mut rest).context("an owner that does not decode")?;
        let (account, signer) = role(owner);
        let account = numbers.of(account)?;
        let place = usize::try_from(u64::decode(value).context("an entry that is not a number")?)? - 1;
        if all.len() <= place {
            all.resize_with(place + 1, Vec::new);
        }
        // A signer is in the list of the involved, too, which comes first.
        match all[place].iter_mut().find(|known| known.account == account) {
            Some(known) => known.signer |= signer,
            None => all[place].push(Involved { account, signer }),
        }
        anyhow::Ok(())
    })?;
    Ok(all)
}
