//! Expected rows of a derived height: made with the code of the indexes, on the database as it was before that height.
//!
//! Only the tables that indexes read are restored: the tables of NFTs, which are folded up to there from the stored
//! log, and the first transactions of contracts.

use std::sync::Arc;

use schema::audit::Ground as Audited;
use schema::meta::{BlockLane, CallLane};
use schema::nft::fold::{self, At};
use schema::nft::rebuild::FOLDED;
use schema::nft::{NameChanges, NftLog, Questions, Refused, TokenTxs, Waiting};
use schema::tx::AccountTxs;
use store::value::Value as _;
use store::{
    Bounds, COUNT, Counts, Durability, List as _, MemStore, Message, Order, RANK, Row, Snapshot, Store,
    Table as _, TableSpec, Txn,
};

use super::chain::{Chain, Derived};
use crate::Error;
use crate::index::{self, IndexContext};

/// The tables of NFTs in the chain's scratch store, as some height left them.
pub(super) struct Nfts {
    /// The first log key that is not folded yet.
    next: Vec<u8>,
    /// Rejected contracts and objects, with the heights of their rejection; ascending from the end.
    refused: Vec<(u64, Vec<u8>)>,
}

impl Nfts {
    pub(super) fn new(audited: &Audited<'_>) -> Result<Self, Error> {
        let mut refused = Vec::new();
        store::for_each_row(audited.snapshot, Refused::SPEC, Bounds::all(), |key, value| {
            refused.extend(u64::decode(value).map(|found_at| (found_at, key.to_vec())));
            Ok::<(), Error>(())
        })?;
        refused.sort_unstable();
        refused.reverse();
        Ok(Self { next: Vec::new(), refused })
    }

    /// Folds the log of the heights below `height`.
    pub(super) fn go_to(
        &mut self,
        height: u64,
        audited: &Audited<'_>,
        scratch: &dyn Store,
    ) -> Result<(), Error> {
        const BATCH_BYTES: usize = 8 << 20;
        let end = height.to_be_bytes();
        loop {
            let made = scratch.snapshot()?;
            let mut counts = Counts::new(1);
            let mut txn = Txn::new(&*made, &mut counts);
            let mut done = false;
            while txn.bytes() < BATCH_BYTES {
                let bounds = Bounds { start: &self.next, end: Some(&end) };
                let Some((key, value)) = audited.snapshot.scan(NftLog::SPEC, bounds, Order::Asc, 1)?.pop()
                else {
                    done = true;
                    break;
                };
                self.next = store::key::successor(&key);
                let Ok((height, Message(log))) = store::table::decode_row::<NftLog>(&key, &value) else {
                    continue;
                };
                for entry in &log.entries {
                    match fold::apply(&mut txn, At { height, time: log.time }, entry) {
                        // The audit has found it.
                        Ok(()) | Err(schema::Error::Record { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            while let Some((found_at, key)) = self.refused.pop_if(|(found_at, _)| *found_at < height) {
                if let Some(address) = store::Key::from_bytes(&key) {
                    txn.put::<Refused>(&address, &found_at);
                }
            }
            let (batch, _pending) = txn.finish();
            drop(made);
            scratch.commit(batch, Durability::Buffered)?;
            if done {
                return Ok(());
            }
        }
    }
}

/// The rows of `derived`, with the lanes `before` and `calls` of the previous height.
pub(super) fn rows(
    chain: &Chain,
    audited: &Audited<'_>,
    derived: &Derived,
    (before, calls): (&BlockLane, &CallLane),
) -> Result<MemStore, Error> {
    let nfts = chain.scratch.snapshot()?;
    let last_tx = before.txs + derived.block.txs.len() as u64;
    let view = View { stored: audited.snapshot, nfts: &*nfts, last_tx };
    let context = IndexContext {
        vm: chain.vm,
        prefix: chain.prefix.clone(),
        mid_chain: chain.begins_late,
        codec: Arc::clone(&chain.codec),
    };
    let mut counts = Counts::new(1024);
    let mut txn = Txn::new(&view, &mut counts);
    for index in &mut index::of_blocks(context, &view)? {
        index.apply(&derived.block, before, &mut txn)?;
    }
    if let Some(frames) = &derived.frames {
        for index in &mut index::of_calls() {
            index.apply(frames, calls, &mut txn)?;
        }
    }
    let (batch, _pending) = txn.finish();
    let made = MemStore::new();
    made.commit(batch, Durability::Buffered)?;
    Ok(made)
}

/// The database as it was before a block, for the reads of the indexes.
struct View<'a> {
    stored: &'a dyn Snapshot,
    nfts: &'a dyn Snapshot,
    /// The block's last transaction.
    last_tx: u64,
}

impl View<'_> {
    fn side(&self, table: &'static TableSpec, key: &[u8]) -> &dyn Snapshot {
        let own = [NftLog::SPEC, Refused::SPEC, Questions::SPEC, Waiting::SPEC, NameChanges::SPEC, RANK];
        let of_nfts = own.iter().chain(&FOLDED).any(|spec| spec.tag == table.tag);
        let of_their_lists = table.tag == COUNT.tag && key.first() == Some(&TokenTxs::SPEC.tag);
        if of_nfts || of_their_lists { self.nfts } else { self.stored }
    }
}

impl Snapshot for View<'_> {
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, store::Error> {
        let value = self.side(table, key).get(table, key)?;
        // Lengths that do not decode are found by the audit.
        let later = |value: &Vec<u8>| match table.tag {
            tag if tag == COUNT.tag => u64::decode(value).is_none(),
            tag if tag == AccountTxs::SPEC.tag => u64::decode(value).is_none_or(|seq| seq > self.last_tx),
            _ => false,
        };
        Ok(value.filter(|value| !later(value)))
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, store::Error> {
        self.side(table, bounds.start).scan(table, bounds, order, limit)
    }
}
