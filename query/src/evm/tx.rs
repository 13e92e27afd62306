//! Transactions and receipts.

use std::ops::Range;
use std::sync::atomic::Ordering;

use chain::Account;
use chain::evm::Receipt;
use chain::evm::transaction::EthTransaction;
use schema::block::Block;
use schema::contracts::{CONTRACTS, ContractTxs};
use schema::evm_tx::EvmTxs;
use schema::keys::AccountKey;
use schema::records::{self, Records, Step};
use schema::tx::Txs;
use serde::Deserialize;
use serde_with::{DisplayFromStr, serde_as};
use web::http_error::HttpError;
use web::limits::lane;

use super::{Error, EvmView};
use crate::api;

/// Creations of one contract in a response: each of them costs its creator a transaction.
const MAX_CREATIONS: u64 = 100;

/// A creation of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    /// The height.
    pub height: u64,
    /// The hash of the Cosmos transaction.
    pub cosmos_hash: [u8; 32],
}

/// A stored receipt with the transaction that it is of.
pub(super) struct Found {
    pub(super) receipt: Vec<u8>,
    pub(super) tx: EthTransaction,
}

impl EvmView<'_> {
    /// The receipt of a transaction. `None` above the head.
    pub fn receipt(&self, hash: &[u8; 32]) -> Result<Option<Vec<u8>>, Error> {
        let Some((seq, record)) = api::evm_tx::find(self.indexer, &self.view, hash)? else { return Ok(None) };
        if api::evm_tx::height(seq, &record)? > self.head {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(record.len());
        self.write_receipt(&mut out, seq, &record)?;
        Ok(Some(out))
    }

    /// The receipts of a block: a JSON array. `None` above the head.
    pub fn receipts(&self, height: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some(block) = self.stored(height)? else { return Ok(None) };
        let mut out = vec![b'['];
        self.each::<EvmTxs>(evm_seqs(&block), |seq, record| {
            if out.len() > 1 {
                out.push(b',');
            }
            self.write_receipt(&mut out, seq, record)
        })?;
        out.push(b']');
        Ok(Some(out))
    }

    /// The number of a block's transactions. `None` above the head.
    pub fn tx_count(&self, height: u64) -> Result<Option<u64>, Error> {
        Ok(self.stored(height)?.map(|block| block.evm_txs))
    }

    /// A transaction.
    pub fn tx(&self, hash: &[u8; 32]) -> Result<Option<Vec<u8>>, Error> {
        self.find(hash)?.map(|found| self.json(&found)).transpose()
    }

    /// The transaction whose `transactionIndex` in the block at `height` is `index`. `None` if there is no such block, or no
    /// such transaction.
    pub fn tx_at(&self, height: u64, index: u64) -> Result<Option<Vec<u8>>, Error> {
        self.find_at(height, index)?.map(|found| self.json(&found)).transpose()
    }

    /// The bytes of a transaction.
    pub fn raw_tx(&self, hash: &[u8; 32]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.find(hash)?.map(|found| found.tx.raw(self.dialect)))
    }

    /// The bytes of the transaction that [`EvmView::tx_at`] returns.
    pub fn raw_tx_at(&self, height: u64, index: u64) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.find_at(height, index)?.map(|found| found.tx.raw(self.dialect)))
    }

    /// The hash of the Cosmos transaction that wraps the transaction `hash`.
    pub fn cosmos_hash(&self, hash: &[u8; 32]) -> Result<Option<[u8; 32]>, Error> {
        Ok(self.find(hash)?.map(|found| *found.tx.cosmos_hash()))
    }

    /// The hash of the transaction that a Cosmos transaction is shown as; `None` if it is not shown.
    pub fn evm_hash(&self, cosmos: &[u8; 32]) -> Result<Option<[u8; 32]>, Error> {
        let Some((seq, record)) = api::tx::find(self.indexer, &self.view, cosmos, b"")? else {
            return Ok(None);
        };
        let of: OfBlock = serde_json::from_slice(&record).map_err(|error| damaged::<Txs>(seq, &error))?;
        let Some(block) = self.stored(of.height)? else { return Ok(None) };
        // The receipts of the block decide: a node shows one transaction as signed, as a stand-in, or not at all.
        let (place, mut found) = (seq.saturating_sub(block.first_tx), None);
        let low = place.saturating_sub(block.txs.saturating_sub(block.evm_txs));
        let near = block.first_evm_tx + low..block.first_evm_tx + (place + 1).min(block.evm_txs);
        // Where a transaction may hold several of Ethereum's, those after it are shifted.
        let seqs = if block.evm_txs > low { near.start..block.first_evm_tx + block.evm_txs } else { near };
        self.each::<EvmTxs>(seqs, |seq, receipt| {
            if found.is_some() {
                return Ok(());
            }
            let hash = parse(seq, receipt)?.hash().map_err(|error| damaged::<EvmTxs>(seq, &error))?;
            if self.rebuilt(&record, &hash).is_some() {
                found = Some(hash);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The Cosmos transactions that created a contract, oldest first, with their heights: more than one only if it destroyed
    /// itself in between. Needs the optional index `contracts`; [`EvmView::evm_hash`] gives what a node shows them as, if
    /// anything.
    pub fn creations(&self, contract: [u8; 20]) -> Result<Vec<Creation>, Error> {
        self.require(&CONTRACTS, self.first(), self.head)?;
        let (snapshot, owner) = (self.view.snapshot(), AccountKey(Account::from(contract)));
        let len = store::list::len::<ContractTxs>(snapshot, &owner)?;
        let seqs = store::list::slice::<ContractTxs>(snapshot, &owner, 0..len.min(MAX_CREATIONS))?;
        let mut creations = Vec::with_capacity(seqs.len());
        for seq in seqs {
            self.each::<Txs>(seq..seq + 1, |seq, record| {
                let of: OfBlock =
                    serde_json::from_slice(record).map_err(|error| damaged::<Txs>(seq, &error))?;
                let hash = chain::hash::parse_hash(&of.txhash).ok().flatten();
                let cosmos_hash = hash.ok_or_else(|| damaged::<Txs>(seq, &"its hash"))?;
                creations.push(Creation { height: of.height, cosmos_hash });
                Ok(())
            })?;
        }
        Ok(creations)
    }

    /// The JSON array of a block's transactions, with all members.
    pub(super) fn all_txs(&self, block: &Block) -> Result<Vec<u8>, Error> {
        let mut receipts = Vec::new();
        self.each::<EvmTxs>(evm_seqs(block), |_, receipt| {
            receipts.push(receipt.to_vec());
            Ok(())
        })?;
        let (mut out, mut next) = (vec![b'['], 0);
        self.each::<Txs>(block.first_tx..block.first_tx + block.txs, |_, record| {
            // A transaction may hold several of Ethereum's.
            while let Some(receipt) = receipts.get(next) {
                let seq = block.first_evm_tx + next as u64;
                let receipt = parse(seq, receipt)?;
                let hash = receipt.hash().map_err(|error| damaged::<EvmTxs>(seq, &error))?;
                let Some(tx) = self.rebuilt(record, &hash) else { break };
                if next > 0 {
                    out.push(b',');
                }
                tx.write_json(&mut out, &receipt, self.dialect);
                next += 1;
            }
            Ok(())
        })?;
        if next < receipts.len() {
            return Err(no_tx(block.first_evm_tx + next as u64));
        }
        out.push(b']');
        Ok(out)
    }

    pub(super) fn json(&self, found: &Found) -> Result<Vec<u8>, Error> {
        let (receipt, mut out) = (parse(0, &found.receipt)?, Vec::with_capacity(1024));
        found.tx.write_json(&mut out, &receipt, self.dialect);
        Ok(out)
    }

    pub(super) fn find(&self, hash: &[u8; 32]) -> Result<Option<Found>, Error> {
        let Some((seq, record)) = api::evm_tx::find(self.indexer, &self.view, hash)? else { return Ok(None) };
        let height = api::evm_tx::height(seq, &record)?;
        let Some(block) = self.stored(height)? else { return Ok(None) };
        self.with_tx(&block, seq, record).map(Some)
    }

    fn find_at(&self, height: u64, index: u64) -> Result<Option<Found>, Error> {
        let Some(block) = self.stored(height)? else { return Ok(None) };
        let (mut at, mut found) = (None, None);
        self.each::<EvmTxs>(
            evm_seqs(&block).start..evm_seqs(&block).end.min(block.first_evm_tx + 1),
            |seq, record| {
                // minievm counts from 1, other chains from 0.
                at = index
                    .checked_sub(parse(seq, record)?.index().unwrap_or(1))
                    .map(|place| seq.saturating_add(place));
                Ok(())
            },
        )?;
        let Some(seq) = at.filter(|seq| evm_seqs(&block).contains(seq)) else { return Ok(None) };
        self.each::<EvmTxs>(seq..seq + 1, |_, record| {
            found = Some(record.to_vec());
            Ok(())
        })?;
        found.map(|record| self.with_tx(&block, seq, record)).transpose()
    }

    pub(super) fn with_tx(&self, block: &Block, seq: u64, receipt: Vec<u8>) -> Result<Found, Error> {
        Ok(self.with_tx_from(block, seq, receipt, block.first_tx)?.0)
    }

    /// The transactions of the receipts `seqs`, ascending, of a block.
    pub(super) fn found(&self, block: &Block, seqs: &[u64]) -> Result<Vec<Found>, Error> {
        let (mut all, mut next) = (Vec::with_capacity(seqs.len()), block.first_tx);
        for &seq in seqs {
            let (found, at) = self.with_tx_from(block, seq, self.record::<EvmTxs>(seq)?, next)?;
            all.push(found);
            next = at;
        }
        Ok(all)
    }

    /// The transaction of the receipt `seq` of a block, with the sequence of its Cosmos transaction, which is `from` or later. Where
    /// each transaction has at most one receipt, in the same order, its place among the Cosmos transactions is not before its place
    /// among the receipts, and after it by the surplus at most; where one has several, it may be anywhere.
    fn with_tx_from(
        &self,
        block: &Block,
        seq: u64,
        receipt: Vec<u8>,
        from: u64,
    ) -> Result<(Found, u64), Error> {
        let hash = parse(seq, &receipt)?.hash().map_err(|error| damaged::<EvmTxs>(seq, &error))?;
        let first = block.first_tx + seq.saturating_sub(block.first_evm_tx);
        let surplus = block.txs.saturating_sub(block.evm_txs);
        let end = block.first_tx + block.txs;
        let near = first.max(from).min(end)..first.saturating_add(surplus + 1).min(end);
        let others = (from..near.start).rev().chain(near.end..end);
        for cosmos in near.clone().chain(others) {
            let record = self.record::<Txs>(cosmos)?;
            if let Some(tx) = self.rebuilt(&record, &hash) {
                return Ok((Found { receipt, tx }, cosmos));
            }
        }
        Err(no_tx(seq))
    }

    /// The record `seq`.
    pub(super) fn record<T: Records>(&self, seq: u64) -> Result<Vec<u8>, Error> {
        let mut found = Vec::new();
        self.each::<T>(seq..seq + 1, |_, record| {
            found = record.to_vec();
            Ok(())
        })?;
        Ok(found)
    }

    pub(super) fn rebuilt(&self, record: &[u8], hash: &[u8; 32]) -> Option<EthTransaction> {
        let known = &self.indexer.fee_decimals;
        let before = known.load(Ordering::Relaxed);
        let mut decimals = before;
        let tx = EthTransaction::of_record(&self.chain(), record, hash, &mut decimals);
        if decimals != before {
            known.store(decimals, Ordering::Relaxed);
        }
        tx
    }

    pub(super) fn write_receipt(&self, out: &mut Vec<u8>, seq: u64, record: &[u8]) -> Result<(), Error> {
        self.dialect.write_receipt(out, record).map_err(|error| damaged::<EvmTxs>(seq, &error))
    }

    /// Calls `see` with each of the records `seqs`.
    pub(super) fn each<T: Records>(
        &self,
        seqs: Range<u64>,
        see: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.each_of::<T>(&seqs.collect::<Vec<_>>(), see)
    }

    /// The same with sequences in any order.
    pub(super) fn each_of<T: Records>(
        &self,
        seqs: &[u64],
        mut see: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut outcome, mut next) = (Ok(()), seqs.iter().copied());
        records::walk::<T>(self.view.snapshot(), &self.indexer.codec, seqs, &mut |step| {
            outcome = match step {
                Step::Row(bytes) => lane::spend(bytes).map_err(Error::from),
                Step::Record(record) => next.next().map_or(Ok(()), |seq| see(seq, record)),
            };
            if outcome.is_ok() {
                std::ops::ControlFlow::Continue(())
            } else {
                std::ops::ControlFlow::Break(())
            }
        })?;
        outcome
    }
}

/// The members of a Cosmos transaction's record that name it and its block.
#[serde_as]
#[derive(Deserialize)]
pub(super) struct OfBlock {
    pub(super) txhash: String,
    #[serde_as(as = "DisplayFromStr")]
    pub(super) height: u64,
}

/// The sequences of a block's EVM transactions.
pub(super) fn evm_seqs(block: &Block) -> Range<u64> {
    block.first_evm_tx..block.first_evm_tx + block.evm_txs
}

/// A stored receipt.
pub(super) fn parse(seq: u64, record: &[u8]) -> Result<Receipt<'_>, Error> {
    serde_json::from_slice(record).map_err(|error| damaged::<EvmTxs>(seq, &error))
}

pub(super) fn damaged<T: Records>(seq: u64, error: &dyn std::fmt::Display) -> Error {
    Error::Failed(HttpError::internal(format!("table `{}`, key {seq}: {error}", T::SPEC.name)))
}

fn no_tx(seq: u64) -> Error {
    let reason = "no transaction of its block has the hash in the receipt";
    damaged::<EvmTxs>(seq, &reason)
}
