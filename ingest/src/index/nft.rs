//! NFT index: a block's events with the node's answers become entries of the log, and the tables are a fold of the log.
//!
//! # Invariants
//! * Each event sees the effects of all earlier events.
//! * Events that wait for an answer keep their order within the collection.
//! * The log is the same whether an answer came with the block or later.

mod applier;
mod first_tx;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use chain::Account;
use chain::nft::{NftEvent, TokenRef};
use schema::keys::Owner;
use schema::meta::BlockLane;
use schema::nft::fold::{self, At};
use schema::nft::{
    About, Collections, ObjectTokens, Questions, Refused, Waiter, Waiting, question_height, question_number,
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
        let mut applier = NftApplier::new(self, at, &block.answers, &owners, txn);
        for nft in &block.nfts {
            let tx = nft.tx.map_or(0, |index| before.txs + 1 + index as u64);
            applier.event(nft, tx)?;
        }
        applier.finish()
    }

    fn late(&mut self, late: &LateAnswer, txn: &mut Txn<'_>) -> Result<(), Error> {
        // The question was asked twice, or rewound meanwhile; an event may raise one question after the other.
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
            (_, Some(asked @ (QuestionKey::Collection(subject) | QuestionKey::Object(subject)))) => {
                let answers = Answers::from([(asked, late.reply.clone())]);
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
        if is_settled(subject, txn)? {
            // An earlier call settled it: these are not the first events.
            answers.clear();
        }
        loop {
            let rows = waiting_blocks(subject, txn)?;
            let Some(((_, last, _), _)) = rows.last() else { return Ok(None) };
            let last = *last;
            self.revive(rows, &mut answers, txn)?;
            // An event that waits again has raised a question of its own, and the rest waits for that answer.
            let first = store::table::rows::<Waiting>(txn, &Owner(subject), Order::Asc, 1)?;
            let Some(((_, height, place), _)) = first.first().filter(|((_, height, _), _)| *height > last)
            else {
                return Ok(None);
            };
            if is_settled(subject, txn)? {
                return Ok(Some((*height, *place)));
            }
        }
    }

    /// Applies pending events and removes them; the first block consumes `answers`.
    fn revive(&self, rows: Vec<WaitingRow>, answers: &mut Answers, txn: &mut Txn<'_>) -> Result<(), Error> {
        let mut blocks: BTreeMap<u64, (i64, Vec<(NftAt, u64)>)> = BTreeMap::new();
        for (key, Message(waiter)) in rows {
            txn.delete::<Waiting>(&key);
            let (_, height, place) = key;
            let (tx, time) = (waiter.tx, waiter.time);
            if let Some(event) = revive(&waiter) {
                let of_block = blocks.entry(height).or_insert_with(|| (time, Vec::new()));
                of_block.1.push((NftAt { place, tx: None, event }, tx));
            }
        }
        for (height, (time, events)) in blocks {
            let answers = std::mem::take(answers);
            let nfts: Vec<NftAt> = events.iter().map(|(nft, _)| nft.clone()).collect();
            let owners = final_owners(&nfts);
            let mut applier = NftApplier::new(self, At { height, time }, &answers, &owners, txn);
            for (nft, tx) in &events {
                applier.event(nft, *tx)?;
            }
            applier.finish()?;
        }
        Ok(())
    }
}

/// Bound of events that are applied together after an answer: some megabytes of rows. Small in tests, to cover the
/// boundaries.
const RESUMED_AT_ONCE: usize = if cfg!(test) { 2 } else { 4096 };

type WaitingRow = (<Waiting as Table>::Key, Message<Waiter>);

/// The first events that wait for an answer about `subject`, of whole blocks.
fn waiting_blocks(subject: Account, txn: &Txn<'_>) -> Result<Vec<WaitingRow>, Error> {
    let subject = Owner(subject);
    let mut rows = store::table::rows::<Waiting>(txn, &subject, Order::Asc, RESUMED_AT_ONCE)?;
    let Some((last, _)) = rows.last() else { return Ok(rows) };
    // The rest of the last block; a block bounds it.
    let (mut after, height) = (*last, last.1);
    loop {
        let more = store::table::rows_after::<Waiting>(txn, &subject, &after, Order::Asc, RESUMED_AT_ONCE)?;
        let of_block: Vec<_> = more.into_iter().take_while(|((_, of, _), _)| *of == height).collect();
        let Some((last, _)) = of_block.last() else { return Ok(rows) };
        after = *last;
        rows.extend(of_block);
    }
}

/// Whether `subject` is classified, so that events about it raise no question.
fn is_settled(subject: Account, txn: &Txn<'_>) -> Result<bool, Error> {
    let owner = Owner(subject);
    Ok(txn.get::<Collections>(&owner)?.is_some()
        || txn.get::<ObjectTokens>(&owner)?.is_some()
        || txn.get::<Refused>(&owner)?.is_some())
}

/// Kinds of [`Waiter`].
const INSTANTIATE: u32 = 0;
const MINT: u32 = 1;
const TRANSFER: u32 = 2;
const BURN: u32 = 3;
const SET_URI: u32 = 4;

/// An event as it is stored while it waits.
fn keep(event: &NftEvent, tx: u64, time: i64) -> Waiter {
    let bytes = |account: &Account| account.as_bytes().to_vec();
    let of = |token: &TokenRef| match token {
        TokenRef::Id { collection, token_id } => {
            Waiter { collection: bytes(collection), token_id: Some(token_id.clone()), ..Waiter::default() }
        }
        TokenRef::Object(object) => Waiter { object: bytes(object), ..Waiter::default() },
    };
    let waiter = match event {
        NftEvent::Instantiate { collection } => {
            Waiter { kind: INSTANTIATE, collection: bytes(collection), ..Waiter::default() }
        }
        NftEvent::Mint { collection, token_id, object, owner, uri } => Waiter {
            kind: MINT,
            collection: bytes(collection),
            token_id: token_id.clone(),
            object: object.as_ref().map(bytes).unwrap_or_default(),
            owner: owner.as_ref().map(bytes).unwrap_or_default(),
            uri: uri.clone(),
            ..Waiter::default()
        },
        NftEvent::Transfer { token, to } => Waiter { kind: TRANSFER, owner: bytes(to), ..of(token) },
        NftEvent::Burn { token } => Waiter { kind: BURN, ..of(token) },
        NftEvent::SetUri { object, uri } => {
            Waiter { kind: SET_URI, object: bytes(object), uri: Some(uri.clone()), ..Waiter::default() }
        }
        // They reveal subjects for other events, and never wait.
        NftEvent::Create { .. } | NftEvent::ClassName { .. } => Waiter::default(),
    };
    Waiter { tx, time, ..waiter }
}

/// The event of a stored row.
fn revive(waiter: &Waiter) -> Option<NftEvent> {
    let collection = Account::from_bytes(&waiter.collection);
    let object = Account::from_bytes(&waiter.object);
    let owner = Account::from_bytes(&waiter.owner);
    let token = || match (collection, &waiter.token_id) {
        (Some(collection), Some(token_id)) => Some(TokenRef::Id { collection, token_id: token_id.clone() }),
        _ => object.map(TokenRef::Object),
    };
    Some(match waiter.kind {
        INSTANTIATE => NftEvent::Instantiate { collection: collection? },
        MINT => NftEvent::Mint {
            collection: collection?,
            token_id: waiter.token_id.clone(),
            object,
            owner,
            uri: waiter.uri.clone(),
        },
        TRANSFER => NftEvent::Transfer { token: token()?, to: owner? },
        BURN => NftEvent::Burn { token: token()? },
        SET_URI => NftEvent::SetUri { object: object?, uri: waiter.uri.clone()? },
        _ => return None,
    })
}
