//! Applies the NFT events of one block, in order.

mod tokens;

use std::collections::HashMap;

use chain::nft::{NftEvent, TokenRef};
use chain::{Account, Text as Name, Vm};
use schema::block::Blocks;
use schema::keys::AccountKey;
use schema::nft::fold;
use schema::nft::{
    About, Change, Collection, Collections, Entry, NewCollection, NewUri, NonCollections, ObjectTokens,
    Origin, Outcome, PendingEvents, Place, Question, Questions, Refusals, TokenName,
};
use store::{Message, Order, Txn};

use super::first_tx::first_tx;
use super::{earlier, pending};
use crate::Error;
use crate::index::IndexContext;
use crate::meter;
use crate::nft::plan::subject;
use crate::nft::{NftAt, QuestionKey, Replies, Reply};

/// The owner of each token at the end of the block; `None` if it is burnt.
type FinalOwners = HashMap<(Account, String), Option<Account>>;

/// The block of the events.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) height: u64,
    /// Its header time, nanoseconds since 1970 UTC.
    pub(super) time: i64,
}

/// Applies one block's events to the tables and the log.
pub(super) struct NftApplier<'s, 't> {
    context: &'s IndexContext,
    at: At,
    answers: &'s Replies,
    owners: &'s FinalOwners,
    txn: &'s mut Txn<'t>,
    /// True if it was logged that tokens are not read: a block may have many such events.
    logged: bool,
}

impl<'s, 't> NftApplier<'s, 't> {
    pub(super) fn new(
        context: &'s IndexContext,
        at: At,
        answers: &'s Replies,
        owners: &'s FinalOwners,
        txn: &'s mut Txn<'t>,
    ) -> Self {
        Self { context, at, answers, owners, txn, logged: false }
    }

    /// One event, of the transaction `tx`.
    pub(super) fn event(&mut self, nft: &NftAt, tx: u64) -> Result<(), Error> {
        let place = self.place(nft.place);
        match &nft.event {
            NftEvent::Create { collection, creator, name } => {
                let creator = creator.as_bytes().to_vec();
                let found = Collection { name: name.clone(), creator, ..self.of_this_block() };
                self.entry(&place, tx, new_collection(*collection, found))
            }
            NftEvent::ClassName { local, origin } => {
                let origin = Origin { local: local.clone(), origin: origin.clone() };
                self.entry(&place, tx, Change::Origin(origin))
            }
            NftEvent::Instantiate { collection } => {
                self.is_collection(*collection, nft, tx)?;
                Ok(())
            }
            NftEvent::Mint { collection, token_id, object, owner, uri } => {
                if !self.is_collection(*collection, nft, tx)? {
                    return Ok(());
                }
                match (token_id, uri, object) {
                    (Some(token_id), Some(uri), _) => {
                        let token = token_name(*collection, token_id);
                        self.mint(&place, tx, token, *owner, *object, Some(known(uri.clone())))
                    }
                    (Some(token_id), None, None) => {
                        self.mint(&place, tx, token_name(*collection, token_id), *owner, None, None)
                    }
                    (_, _, Some(object)) => self.mint_object(nft, tx, *object, *owner),
                    // No chain emits a mint without any identifier.
                    (None, _, None) => Ok(()),
                }
            }
            NftEvent::Transfer { token: TokenRef::Id { collection, token_id }, to } => {
                if !self.is_collection(*collection, nft, tx)? {
                    return Ok(());
                }
                self.transfer(&place, tx, token_name(*collection, token_id), *to)
            }
            NftEvent::Transfer { token: TokenRef::Object(object), .. }
            | NftEvent::Burn { token: TokenRef::Object(object) }
            | NftEvent::SetUri { object, .. }
                if self.wait_behind_others(*object, nft, tx)? =>
            {
                Ok(())
            }
            NftEvent::Transfer { token: TokenRef::Object(object), to } => match self.object(*object)? {
                Some(token) => self.transfer(&place, tx, token, *to),
                None if self.context.mid_chain => self.mint_object(nft, tx, *object, Some(*to)),
                // All tokens are known, so this object is not a token.
                None => Ok(()),
            },
            NftEvent::Burn { token: TokenRef::Id { collection, token_id } } => {
                if self.wait_behind_others(*collection, nft, tx)? || !self.is_indexed(*collection)? {
                    return Ok(());
                }
                self.burn(&place, tx, token_name(*collection, token_id))
            }
            NftEvent::Burn { token: TokenRef::Object(object) } => match self.object(*object)? {
                Some(token) => self.entry(&place, tx, Change::Burn(token)),
                None => Ok(()),
            },
            NftEvent::SetUri { object, uri } => match self.object(*object)? {
                Some(token) => {
                    let new = NewUri { token, uri: uri.clone(), ..NewUri::default() };
                    self.entry(&place, tx, Change::Uri(new))
                }
                None => Ok(()),
            },
            NftEvent::Metadata { collection, tokens } => {
                let is_subject = self.is_indexed(*collection)?
                    || Refusals::read(self.txn, AccountKey(*collection))?.is_some();
                // An address that never had tokens has no metadata.
                if self.wait_behind_others(*collection, nft, tx)?
                    || !is_subject
                    || !self.is_collection(*collection, nft, tx)?
                {
                    return Ok(());
                }
                self.metadata(&place, tx, *collection, tokens)
            }
            NftEvent::Unread { collection, first, last } => {
                if self.is_indexed(*collection)? {
                    meter::Event::UnreadTransfer.count();
                    if std::mem::replace(&mut self.logged, true) {
                        return Ok(());
                    }
                    let (contract, height) = (collection.to_hex(), self.at.height);
                    let (first, last) = (first.to_string(), last.to_string());
                    tracing::warn!(
                        contract,
                        height,
                        first,
                        last,
                        "a consecutive transfer is too long to be read"
                    );
                }
                Ok(())
            }
        }
    }

    fn place(&self, ordinal: u32) -> Place {
        Place::of_event(self.at.height, ordinal)
    }

    fn is_indexed(&self, collection: Account) -> Result<bool, Error> {
        Ok(self.txn.get::<Collections>(&AccountKey(collection))?.is_some())
    }

    /// Whether there is a collection at `address`; `nft` waits if the node has not answered yet.
    fn is_collection(&mut self, address: Account, nft: &NftAt, tx: u64) -> Result<bool, Error> {
        let owner = AccountKey(address);
        if self.wait_behind_others(address, nft, tx)? {
            return Ok(false);
        }
        if self.is_indexed(address)? {
            return Ok(true);
        }
        let refusals = Refusals::read(self.txn, owner)?;
        if refusals.is_some_and(|it| self.context.vm == Vm::Move || !it.may_ask(self.at.height)) {
            return Ok(false);
        }
        match self.answers.get(&QuestionKey::Collection(address)) {
            Some(Reply::Collection { name, creator }) => {
                let found = self.found_collection(address, name.clone(), *creator)?;
                let place = self.place(nft.place - 1);
                self.entry(&place, tx, new_collection(address, found))?;
                if refusals.is_some() {
                    self.earlier(address, &place)?;
                }
                Ok(true)
            }
            Some(Reply::Unknown) => Ok(false),
            Some(_) => {
                self.txn.put::<NonCollections>(&(owner, self.at.height), &());
                Ok(false)
            }
            None => {
                self.question(&self.place(nft.place), About::Collection(subject(address, self.owners)));
                self.wait(address, nft, tx);
                Ok(false)
            }
        }
    }

    /// Applies the events of a collection from before the node called it one.
    fn earlier(&mut self, collection: Account, place: &Place) -> Result<(), Error> {
        let height = self.at.height;
        let Message(block) = self.txn.find::<Blocks>(&height)?.ok_or(Error::BlockMissing { height })?;
        let events = earlier::earlier_events(self.txn, self.context, collection, block.first_tx)?;
        for (n, (tx, event)) in (0_u32..).zip(events) {
            let place = Place { part: format!("{n:08}"), ..place.clone() };
            let name = |token_id: String| token_name(collection, &token_id);
            match event {
                NftEvent::Mint { token_id: Some(id), owner, uri, .. } => {
                    self.mint(&place, tx, name(id), owner, None, uri.map(known))?;
                }
                NftEvent::Transfer { token: TokenRef::Id { token_id, .. }, to } => {
                    self.transfer(&place, tx, name(token_id), to)?;
                }
                NftEvent::Burn { token: TokenRef::Id { token_id, .. } } => {
                    self.burn(&place, tx, name(token_id))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn found_collection(
        &mut self,
        address: Account,
        name: Name,
        creator: Option<Account>,
    ) -> Result<Collection, Error> {
        if name == Name::TooLong {
            meter::Event::TooLong.count();
        }
        let name_too_long = name == Name::TooLong;
        let mut found =
            Collection { name: name.plain().unwrap_or_default(), name_too_long, ..self.of_this_block() };
        let mut creator = creator;
        if self.context.vm == Vm::Evm
            && let Some(first) = first_tx(self.txn, &self.context.codec, &self.context.prefix, address)?
        {
            (found.height, found.time) = (first.height, first.time);
            creator = first.signer;
        }
        found.creator = creator.map(|creator| creator.as_bytes().to_vec()).unwrap_or_default();
        Ok(found)
    }

    fn of_this_block(&self) -> Collection {
        Collection { height: self.at.height, time: self.at.time, ..Collection::default() }
    }

    /// The token of an object, if known.
    fn object(&self, object: Account) -> Result<Option<TokenName>, Error> {
        Ok(self.txn.get::<ObjectTokens>(&AccountKey(object))?.map(|Message(token)| token))
    }

    fn entry(&mut self, place: &Place, tx: u64, change: Change) -> Result<(), Error> {
        // On Move chains a token's transactions are those of its object.
        let tx = if self.context.vm == Vm::Move { 0 } else { tx };
        Ok(fold::record(self.txn, place, Entry { time: self.at.time, tx, change: Some(change) })?)
    }

    fn question(&mut self, place: &Place, about: About) {
        let question = Question { about: Some(about), ..Question::default() };
        self.txn.put::<Questions>(place, &Message(question));
    }

    /// True if earlier events about `subject` wait for a reply or for their turn.
    fn has_pending(&self, subject: Account) -> Result<bool, Error> {
        let waiting = store::table::rows::<PendingEvents>(self.txn, &AccountKey(subject), Order::Asc, 1)?;
        Ok(waiting.first().is_some_and(|((_, height, _), _)| *height <= self.at.height))
    }

    /// Makes an event wait if earlier ones about its subject wait; returns true if it waits.
    fn wait_behind_others(&mut self, subject: Account, nft: &NftAt, tx: u64) -> Result<bool, Error> {
        let waits = self.has_pending(subject)?;
        if waits {
            self.wait(subject, nft, tx);
        }
        Ok(waits)
    }

    fn wait(&mut self, subject: Account, nft: &NftAt, tx: u64) {
        let row = pending::encode(&nft.event, tx, self.at.time);
        self.txn.put::<PendingEvents>(&(AccountKey(subject), self.at.height, nft.place), &Message(row));
    }
}

/// The header time of an indexed block, nanoseconds since 1970 UTC.
pub(super) fn block_time(txn: &Txn<'_>, height: u64) -> Result<i64, Error> {
    let Message(block) = txn.find::<Blocks>(&height)?.ok_or(Error::BlockMissing { height })?;
    Ok(block.time)
}

fn known(uri: String) -> (Outcome, String) {
    (Outcome::Known, uri)
}

fn token_name(collection: Account, token_id: &str) -> TokenName {
    TokenName { collection: collection.as_bytes().to_vec(), token_id: token_id.to_owned() }
}

fn new_collection(address: Account, collection: Collection) -> Change {
    Change::Collection(NewCollection { address: address.as_bytes().to_vec(), collection })
}
