//! Rows of Cosmos transactions: the record, and its entry in every list.

use std::num::NonZeroUsize;

use lru::LruCache;
use schema::keys::{AccountKey, Role};
use schema::meta::BlockLane;
use schema::msg_set::{MsgSet, MsgSetByNames, MsgSetByType, MsgSets, joined};
use schema::postings;
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, Txs};
use store::key::Text;
use store::{Message, Order, Snapshot, Txn};

use super::BlockIndex;
use crate::Error;
use crate::derive::Block;
use crate::priority::yield_core;

/// Message-type sets in the cache; the recorded chains have fewer than a hundred.
const REMEMBERED_SETS: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not zero");

/// Writes the tables of [`schema::tx`] and [`schema::msg_set`].
pub(super) struct TxRows {
    sets: LruCache<String, u32>,
    /// The number of the next new set.
    next_set: u32,
}

impl TxRows {
    /// Continues the database of `snapshot`.
    pub(super) fn new(snapshot: &dyn Snapshot) -> Result<Self, Error> {
        let last = store::table::rows::<MsgSets>(snapshot, &store::key::All, Order::Desc, 1)?;
        let next_set = last.first().map_or(Ok(0), |(set, _)| set.checked_add(1).ok_or(Error::TooManySets))?;
        Ok(Self { sets: LruCache::new(REMEMBERED_SETS), next_set })
    }
}

impl BlockIndex for TxRows {
    fn apply(&mut self, block: &Block, before: &BlockLane, txn: &mut Txn<'_>) -> Result<(), Error> {
        let hashes = block.txs.iter().map(|tx| &tx.hash);
        postings::put_hashed::<Txs>(txn, before.txs + 1, &block.tx_records, hashes);
        for (seq, tx) in (before.txs + 1..).zip(&block.txs) {
            let set = self.set(&tx.types, seq, txn)?;
            txn.push::<SetTxs>(&set, seq)?;
            let involved = tx.involved.iter().map(|account| (*account, Role::Involved));
            let signers = tx.signers.iter().map(|account| (*account, Role::Signer));
            for (account, role) in involved.chain(signers) {
                txn.push::<AccountTxs>(&(AccountKey(account), role), seq)?;
                txn.push::<AccountSetTxs>(&(AccountKey(account), role, set), seq)?;
            }
            yield_core();
        }
        Ok(())
    }
}

impl TxRows {
    /// The number of the set of `types`; a new set gets the next one.
    fn set(&mut self, types: &[String], seq: u64, txn: &mut Txn<'_>) -> Result<u32, Error> {
        let names = joined(types);
        if let Some(set) = self.sets.get(&names) {
            return Ok(*set);
        }
        let stored = txn.get::<MsgSetByNames>(&Text(names.clone()))?;
        let set = match stored {
            Some(set) => u32::try_from(set).map_err(|_| Error::TooManySets)?,
            None => self.add(types, &names, seq, txn)?,
        };
        self.sets.put(names, set);
        Ok(set)
    }

    fn add(&mut self, types: &[String], names: &str, seq: u64, txn: &mut Txn<'_>) -> Result<u32, Error> {
        let set = self.next_set;
        self.next_set = set.checked_add(1).ok_or(Error::TooManySets)?;
        txn.put::<MsgSets>(&set, &Message(MsgSet { names: types.to_vec(), first_tx: seq }));
        txn.put::<MsgSetByNames>(&Text(names.to_owned()), &u64::from(set));
        for name in types {
            txn.put::<MsgSetByType>(&(Text(name.clone()), set), &());
        }
        Ok(set)
    }
}
