//! NFTs: a block's events, with what the node says about them, become entries of the log, and those become rows.
//!
//! What must hold: each event sees what the ones before it have made; what waits for an answer keeps the order in its
//! collection; and the log is the same whether an answer came with the block or long after it.

mod first_tx;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use chain::Account;
use chain::nft::{NftEvent, TokenRef};
use schema::keys::Owner;
use schema::meta::BlockLane;
use schema::nft::fold::{self, At};
use schema::nft::{About, Questions, Waiter, Waiting, question_height};
use store::{Message, Order, Txn};

use self::step::Step;
use super::{BlockIndex, Ground};
use crate::Error;
use crate::derive::Block;
use crate::nft::wanted::final_owners;
use crate::nft::{Answers, Asked, Late, NftAt, Reply};

/// Writes the tables of [`schema::nft`].
pub(super) struct NftRows {
    ground: Ground,
}

impl BlockIndex for NftRows {
    fn apply(&mut self, block: &Block, before: &BlockLane, txn: &mut Txn<'_>) -> Result<(), Error> {
        if block.nfts.is_empty() {
            return Ok(());
        }
        let at = At { height: block.height, time: block.time.unix_nanos() };
        let owners = final_owners(&block.nfts);
        let mut step = Step::new(self, at, &block.answers, &owners, txn);
        for nft in &block.nfts {
            let tx = nft.tx.map_or(0, |index| before.txs + 1 + index as u64);
            step.event(nft, tx)?;
        }
        step.finish()
    }

    fn late(&mut self, late: &Late, txn: &mut Txn<'_>) -> Result<(), Error> {
        // Asked twice, or taken back meanwhile; an event may raise one question after the other.
        if txn.get::<Questions>(&late.number)?.is_none_or(|Message(open)| open != late.question) {
            return Ok(());
        }
        txn.delete::<Questions>(&late.number);
        let Some(about) = &late.question.about else { return Ok(()) };
        match (about, Asked::of(about)) {
            (About::Uri(_), _) => {
                let uri = if let Reply::Uri(uri) = &late.reply { uri.as_str() } else { "" };
                Ok(fold::answer_uri(txn, late.number, question_height(late.number), uri)?)
            }
            (_, Some(asked @ (Asked::Collection(subject) | Asked::Object(subject)))) => {
                let answers = Answers::from([(asked, late.reply.clone())]);
                self.wake(subject, &answers, txn)
            }
            (_, Some(Asked::Uri(..)) | None) => Ok(()),
        }
    }
}

impl NftRows {
    pub(super) fn new(ground: Ground) -> Self {
        Self { ground }
    }

    /// Applies the events that waited for an answer about `subject`, block by block. The answer is that of the first of
    /// them; the others see what it made, or are asked about themselves.
    fn wake(&self, subject: Account, answers: &Answers, txn: &mut Txn<'_>) -> Result<(), Error> {
        let rows = store::table::rows::<Waiting>(txn, &Owner(subject), Order::Asc, usize::MAX)?;
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
        let none = Answers::new();
        let answers = std::iter::once(answers).chain(std::iter::repeat(&none));
        for ((height, (time, events)), answers) in blocks.into_iter().zip(answers) {
            let nfts: Vec<NftAt> = events.iter().map(|(nft, _)| nft.clone()).collect();
            let owners = final_owners(&nfts);
            let mut step = Step::new(self, At { height, time }, answers, &owners, txn);
            for (nft, tx) in &events {
                step.event(nft, *tx)?;
            }
            step.finish()?;
        }
        Ok(())
    }
}

/// Kinds of [`Waiter`].
const INSTANTIATE: u32 = 0;
const MINT: u32 = 1;
const TRANSFER: u32 = 2;
const BURN: u32 = 3;
const SET_URI: u32 = 4;

/// An event as it is kept while it waits.
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
        // They make known what others wait for, and wait for nothing.
        NftEvent::Create { .. } | NftEvent::ClassName { .. } => Waiter::default(),
    };
    Waiter { tx, time, ..waiter }
}

/// The event that was kept.
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
