//! NFT index: a block's events with the node's answers become entries of the log, and the tables are a fold of the log.
//!
//! # Invariants
//! * Each event sees the effects of all earlier events.
//! * Events that wait for an answer keep their order within the collection.
//! * The log is the same whether an answer came with the block or later.

mod applier;
mod first_tx;
mod pending;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use chain::Account;
use schema::keys::AccountKey;
use schema::meta::BlockLane;
use schema::nft::fold::{self, At};
use schema::nft::{
    About, Collections, NonCollections, ObjectTokens, PendingEvent, PendingEvents, Questions,
    question_height, question_number,
};
use store::{Message, Order, Table, Txn};

use self::applier::NftApplier;
use super::{BlockIndex, IndexContext};
use crate::Error;
use crate::derive::Block;
use crate::nft::plan::final_owners;
use crate::nft::{Answers, LateAnswer, NftAt, QuestionKey, Reply};

/// Writes the tables of [`schema::nft`].
pub(super) struct NftRows {
    context: IndexContext,
}

impl BlockIndex for NftRows {
    fn apply(&mut self, block: &Block, before: &BlockLane, txn: &mut Txn<'_>) -> Result<(), Error> {
        if block.nfts.is_empty() {
            return Ok(());
        }
        let at = At { height: block.height, time: block.time.unix_nanos() };
        let owners = final_owners(&block.nfts);
        let mut applier = NftApplier::new(&self.context, at, &block.answers, &owners, txn);
        for nft in &block.nfts {
            let tx = nft.tx.map_or(0, |index| before.txs + 1 + index as u64);
            applier.event(nft, tx)?;
        }
        applier.finish()
    }

    fn late(&mut self, late: &LateAnswer, txn: &mut Txn<'_>) -> Result<(), Error> {
        // The question was asked twice, or rewound meanwhile; an event may raise several questions in turn.
        if txn.get::<Questions>(&late.number)?.is_none_or(|Message(open)| open != late.question) {
            return Ok(());
        }
        txn.delete::<Questions>(&late.number);
        let Some(about) = &late.question.about else { return Ok(()) };
        match (about, QuestionKey::of(about)) {
            (About::Uri(_), _) => {
                let uri = if let Reply::Uri(uri) = &late.reply { uri.as_str() } else { "" };
                Ok(fold::answer_uri(txn, late.number, question_height(late.number), uri)?)
            }
            (_, Some(key @ (QuestionKey::Collection(subject) | QuestionKey::Object(subject)))) => {
                let answers = Answers::from([(key, late.reply.clone())]);
                if let Some((height, place)) = self.resume_pending(subject, answers, txn)? {
                    // The question stays open for the rest, under the number of the first remaining event.
                    let number = question_number(height, place);
                    txn.put::<Questions>(&number, &Message(late.question.clone()));
                }
                Ok(())
            }
            (_, Some(QuestionKey::Uri(..)) | None) => Ok(()),
        }
    }
}

impl NftRows {
    pub(super) fn new(context: IndexContext) -> Self {
        Self { context }
    }

    /// Applies events that waited for an answer about `subject`, block by block, and returns the first one left for the
    /// next call. The answer belongs to the first event; later events use its effects, or raise their own questions.
    /// After an outage of hours there may be millions, so one call applies no more than about [`RESUMED_AT_ONCE`].
    fn resume_pending(
        &self,
        subject: Account,
        mut answers: Answers,
        txn: &mut Txn<'_>,
    ) -> Result<Option<(u64, u32)>, Error> {
        if is_classified(subject, txn)? {
            // An earlier call classified it: these are not the first events.
            answers.clear();
        }
        loop {
            let rows = waiting_blocks(subject, txn)?;
            let Some(((_, last, _), _)) = rows.last() else { return Ok(None) };
            let last = *last;
            self.apply_pending(rows, &mut answers, txn)?;
            // An event that waits again has raised another question, and the rest waits for that answer.
            let first = store::table::rows::<PendingEvents>(txn, &AccountKey(subject), Order::Asc, 1)?;
            let Some(((_, height, place), _)) = first.first().filter(|((_, height, _), _)| *height > last)
            else {
                return Ok(None);
            };
            if is_classified(subject, txn)? {
                return Ok(Some((*height, *place)));
            }
        }
    }

    /// Applies pending events and removes them; the first block consumes `answers`.
    fn apply_pending(
        &self,
        rows: Vec<PendingRow>,
        answers: &mut Answers,
        txn: &mut Txn<'_>,
    ) -> Result<(), Error> {
        let mut blocks: BTreeMap<u64, (i64, Vec<(NftAt, u64)>)> = BTreeMap::new();
        for (key, Message(row)) in rows {
            txn.delete::<PendingEvents>(&key);
            let (_, height, place) = key;
            let (tx, time) = (row.tx, row.time);
            if let Some(event) = pending::decode(&row) {
                let of_block = blocks.entry(height).or_insert_with(|| (time, Vec::new()));
                of_block.1.push((NftAt { place, tx: None, event }, tx));
            }
        }
        for (height, (time, events)) in blocks {
            let answers = std::mem::take(answers);
            let nfts: Vec<NftAt> = events.iter().map(|(nft, _)| nft.clone()).collect();
            let owners = final_owners(&nfts);
            let mut applier = NftApplier::new(&self.context, At { height, time }, &answers, &owners, txn);
            for (nft, tx) in &events {
                applier.event(nft, *tx)?;
            }
            applier.finish()?;
        }
        Ok(())
    }
}

/// Maximum number of events applied together after an answer: some megabytes of rows. Small in tests, to cover the
/// boundaries.
const RESUMED_AT_ONCE: usize = if cfg!(test) { 2 } else { 4096 };

type PendingRow = (<PendingEvents as Table>::Key, Message<PendingEvent>);

/// The first events that wait for an answer about `subject`, of whole blocks.
fn waiting_blocks(subject: Account, txn: &Txn<'_>) -> Result<Vec<PendingRow>, Error> {
    let subject = AccountKey(subject);
    let mut rows = store::table::rows::<PendingEvents>(txn, &subject, Order::Asc, RESUMED_AT_ONCE)?;
    let Some((last, _)) = rows.last() else { return Ok(rows) };
    // The rest of the last block; a block bounds it.
    let (mut after, height) = (*last, last.1);
    loop {
        let more =
            store::table::rows_after::<PendingEvents>(txn, &subject, &after, Order::Asc, RESUMED_AT_ONCE)?;
        let of_block: Vec<_> = more.into_iter().take_while(|((_, of, _), _)| *of == height).collect();
        let Some((last, _)) = of_block.last() else { return Ok(rows) };
        after = *last;
        rows.extend(of_block);
    }
}

/// True if `subject` is classified, so that events about it raise no question.
fn is_classified(subject: Account, txn: &Txn<'_>) -> Result<bool, Error> {
    let owner = AccountKey(subject);
    Ok(txn.get::<Collections>(&owner)?.is_some()
        || txn.get::<ObjectTokens>(&owner)?.is_some()
        || txn.get::<NonCollections>(&owner)?.is_some())
}
