//! NFT index: a block's events with the node's replies become entries of the log, and the tables are a fold of the log.
//!
//! # Invariants
//! * Each event sees the effects of all earlier events.
//! * Events that wait for a reply keep their order within the collection.
//! * The log is the same whether a reply came with the block or later.

mod applier;
mod earlier;
mod first_tx;
mod pending;
mod refusal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use chain::{Account, Text as Name};
use schema::keys::AccountKey;
use schema::meta::BlockLane;
use schema::nft::fold;
use schema::nft::{
    About, Change, Collections, Entry, NewName, NewUri, ObjectTokens, PendingEvent, PendingEvents, Place,
    Question, Questions, Refusals, Subject, TokenName, Tokens,
};
use store::key::Text;
use store::{Message, Order, Table, Txn};

use self::applier::{At, NftApplier, block_time};
use super::{BlockIndex, IndexContext, block};
use crate::Error;
use crate::derive::Block;
use crate::meter;
use crate::nft::plan::final_owners;
use crate::nft::{LateReply, NftAt, QuestionKey, Replies, Reply, count_if_too_long};

/// Writes the tables of [`schema::nft`].
pub(super) struct NftRows {
    context: IndexContext,
}

impl BlockIndex for NftRows {
    fn apply(&mut self, block: &Block, before: &BlockLane, txn: &mut Txn<'_>) -> Result<(), Error> {
        if block.proposer_is_open {
            let address = block.proposer_address.to_vec();
            let about = About::Proposer(Subject { address, ..Subject::default() });
            let question = Question { about: Some(about), ..Question::default() };
            txn.put::<Questions>(&Place::of_event(block.height, 0), &Message(question));
        }
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
        Ok(())
    }

    fn late(&mut self, late: &LateReply, txn: &mut Txn<'_>) -> Result<(), Error> {
        // The question was asked twice, or rewound meanwhile; an event may raise several questions in turn. It may have
        // noted transfers since it was asked.
        let Some(Message(open)) = txn.get::<Questions>(&late.place)? else { return Ok(()) };
        if open.about != late.question.about {
            return Ok(());
        }
        txn.delete::<Questions>(&late.place);
        match &open.about {
            Some(About::Uri(token)) => {
                let (outcome, uri) = late.reply.clone().into_uri();
                count_if_too_long(outcome);
                let refusals = fold::answer_uri(txn, &late.place, outcome, uri)?;
                refusal::refused(txn, token, refusals, open.later)
            }
            Some(About::Range(_)) => renew(txn, late, open),
            Some(About::Name(subject)) => rename(txn, late, subject),
            Some(about @ (About::Collection(_) | About::Object(_))) => match QuestionKey::about(about) {
                Some(key @ (QuestionKey::Collection(subject) | QuestionKey::Object(subject))) => {
                    // The reply belongs to the first event; later ones use its effects, or raise their own questions.
                    let answers = (!open.rest).then(|| (key, late.reply.clone())).into_iter().collect();
                    if let Some((height, ordinal)) = self.resume_pending(subject, answers, txn)? {
                        let rest = Question { rest: true, ..open };
                        txn.put::<Questions>(&Place::of_event(height, ordinal), &Message(rest));
                    }
                    Ok(())
                }
                Some(QuestionKey::Uri(..)) | None => Ok(()),
            },
            Some(About::Proposer(subject)) => match &late.reply {
                Reply::Proposer(proposer) => block::set_proposer(
                    txn,
                    late.place.height,
                    (self.context.prefix.as_str(), subject),
                    proposer,
                ),
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }
}

/// Stores the URIs of some tokens of a renewal, and how far it has come.
fn renew(txn: &mut Txn<'_>, late: &LateReply, mut question: Question) -> Result<(), Error> {
    let (Some(About::Range(cursor)), Reply::Range { tokens, after, done }) =
        (&mut question.about, &late.reply)
    else {
        return Ok(());
    };
    let Some(collection) = Account::from_bytes(&cursor.collection) else { return Ok(()) };
    let time = block_time(txn, late.place.height)?;
    for (token_id, reply) in tokens {
        let key = (AccountKey(collection), Text(token_id.clone()));
        // It was burnt meanwhile, which stored a query of its own.
        if txn.get::<Tokens>(&key)?.is_none_or(|Message(row)| row.minted >= late.place) {
            continue;
        }
        let token = TokenName { collection: cursor.collection.clone(), token_id: token_id.clone() };
        let (outcome, uri) = reply.clone().into_uri();
        count_if_too_long(outcome);
        let place = late.place.of_token(&token);
        let new = NewUri { token, uri, outcome: outcome.into(), refusals: 0 };
        fold::record(txn, &place, Entry { time, tx: 0, change: Some(Change::Uri(new)) })?;
    }
    if !done {
        after.clone_into(&mut cursor.after);
        txn.put::<Questions>(&late.place, &Message(question));
    }
    Ok(())
}

/// Stores the name of a collection as of the query.
fn rename(txn: &mut Txn<'_>, late: &LateReply, subject: &Subject) -> Result<(), Error> {
    let Reply::Collection { name, .. } = late.reply.clone() else { return Ok(()) };
    let name_too_long = name == Name::TooLong;
    if name_too_long {
        meter::Event::TooLong.count();
    }
    let (address, name) = (subject.address.clone(), name.plain().unwrap_or_default());
    let change = Some(Change::Name(NewName { address, name, name_too_long }));
    let time = block_time(txn, late.place.height)?;
    Ok(fold::record(txn, &late.place, Entry { time, tx: 0, change })?)
}

impl NftRows {
    pub(super) fn new(context: IndexContext) -> Self {
        Self { context }
    }

    /// Applies events that waited for a reply about `subject`, block by block, and returns the first one left for the
    /// next call. The reply belongs to the first event; later events use its effects, or raise their own questions.
    /// After an outage of hours there may be millions, so one call applies no more than about [`RESUMED_AT_ONCE`].
    fn resume_pending(
        &self,
        subject: Account,
        mut answers: Replies,
        txn: &mut Txn<'_>,
    ) -> Result<Option<(u64, u32)>, Error> {
        loop {
            let rows = waiting_blocks(subject, txn)?;
            let Some(((_, last, _), _)) = rows.last() else { return Ok(None) };
            let last = *last;
            self.apply_pending(rows, &mut answers, txn)?;
            // An event that waits again has raised another question, and the rest waits for that reply.
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
        answers: &mut Replies,
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
        }
        Ok(())
    }
}

/// Maximum number of events applied together after a reply: some megabytes of rows. Small in tests, to cover the
/// boundaries.
const RESUMED_AT_ONCE: usize = if cfg!(test) { 2 } else { 4096 };

type PendingRow = (<PendingEvents as Table>::Key, Message<PendingEvent>);

/// The first events that wait for a reply about `subject`, of whole blocks.
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

/// True if `subject` is classified, so that most events about it raise no question.
fn is_classified(subject: Account, txn: &Txn<'_>) -> Result<bool, Error> {
    let owner = AccountKey(subject);
    Ok(txn.get::<Collections>(&owner)?.is_some()
        || txn.get::<ObjectTokens>(&owner)?.is_some()
        || Refusals::read(txn, owner)?.is_some())
}
