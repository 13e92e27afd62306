//! Applies the NFT events of one block, in order.

use std::collections::HashMap;

use chain::nft::{NftEvent, TokenRef};
use chain::{Account, Vm};
use schema::keys::AccountKey;
use schema::nft::fold::{self, At};
use schema::nft::{
    About, Change, Collection, Collections, Entry, Mint, NewCollection, NewUri, NonCollections, ObjectTokens,
    Origin, PendingEvents, Question, Questions, TokenKey, TokenName, Tokens, Transfer, question_number,
};
use store::key::Text;
use store::{Message, Order, Txn};

use super::first_tx::first_tx;
use super::pending;
use crate::Error;
use crate::index::IndexContext;
use crate::nft::plan::{bare_subject, subject};
use crate::nft::{Answers, NftAt, QuestionKey, Reply};

/// The owner of each token at the end of the block; `None` if it is burnt.
type FinalOwners = HashMap<(Account, String), Option<Account>>;

/// Applies one block's events to the tables and collects the log entries.
pub(super) struct NftApplier<'s, 't> {
    context: &'s IndexContext,
    at: At,
    answers: &'s Answers,
    owners: &'s FinalOwners,
    txn: &'s mut Txn<'t>,
    entries: Vec<Entry>,
}

impl<'s, 't> NftApplier<'s, 't> {
    pub(super) fn new(
        context: &'s IndexContext,
        at: At,
        answers: &'s Answers,
        owners: &'s FinalOwners,
        txn: &'s mut Txn<'t>,
    ) -> Self {
        Self { context, at, answers, owners, txn, entries: Vec::new() }
    }

    /// Writes the log.
    pub(super) fn finish(self) -> Result<(), Error> {
        Ok(fold::log(self.txn, self.at, self.entries)?)
    }

    /// One event, of the transaction `tx`.
    pub(super) fn event(&mut self, nft: &NftAt, tx: u64) -> Result<(), Error> {
        match &nft.event {
            NftEvent::Create { collection, creator, name } => {
                let creator = creator.as_bytes().to_vec();
                let found = Collection { name: name.clone(), creator, ..self.of_this_block() };
                self.entry(nft.place, tx, new_collection(*collection, found))
            }
            NftEvent::ClassName { local, origin } => {
                let origin = Origin { local: local.clone(), origin: origin.clone() };
                self.entry(nft.place, tx, Change::Origin(origin))
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
                        self.mint(nft, tx, token, *owner, *object, Some(uri.clone()))
                    }
                    (Some(token_id), None, None) => {
                        self.mint(nft, tx, token_name(*collection, token_id), *owner, None, None)
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
                self.transfer(nft, tx, token_name(*collection, token_id), *to)
            }
            NftEvent::Transfer { token: TokenRef::Object(object), .. }
            | NftEvent::Burn { token: TokenRef::Object(object) }
            | NftEvent::SetUri { object, .. }
                if self.wait_behind_others(*object, nft, tx)? =>
            {
                Ok(())
            }
            NftEvent::Transfer { token: TokenRef::Object(object), to } => match self.object(*object)? {
                Some(token) => self.transfer(nft, tx, token, *to),
                None if self.context.mid_chain => self.mint_object(nft, tx, *object, Some(*to)),
                // All tokens are known, so this object is not a token.
                None => Ok(()),
            },
            NftEvent::Burn { token: TokenRef::Id { collection, token_id } } => {
                if self.wait_behind_others(*collection, nft, tx)?
                    || self.txn.get::<Collections>(&AccountKey(*collection))?.is_none()
                {
                    return Ok(());
                }
                self.entry(nft.place, tx, Change::Burn(token_name(*collection, token_id)))
            }
            NftEvent::Burn { token: TokenRef::Object(object) } => match self.object(*object)? {
                Some(token) => self.entry(nft.place, tx, Change::Burn(token)),
                None => Ok(()),
            },
            NftEvent::SetUri { object, uri } => match self.object(*object)? {
                Some(token) => self.entry(nft.place, tx, Change::Uri(NewUri { token, uri: uri.clone() })),
                None => Ok(()),
            },
        }
    }

    /// Whether there is a collection at `address`; `nft` waits if the node has not answered yet.
    fn is_collection(&mut self, address: Account, nft: &NftAt, tx: u64) -> Result<bool, Error> {
        let owner = AccountKey(address);
        if self.wait_behind_others(address, nft, tx)? {
            return Ok(false);
        }
        if self.txn.get::<Collections>(&owner)?.is_some() {
            return Ok(true);
        }
        if self.txn.get::<NonCollections>(&owner)?.is_some() {
            return Ok(false);
        }
        match self.answers.get(&QuestionKey::Collection(address)) {
            Some(Reply::Collection { name, creator }) => {
                let found = self.found_collection(address, name, *creator)?;
                self.entry(nft.place - 1, tx, new_collection(address, found))?;
                Ok(true)
            }
            Some(Reply::Unknown) => Ok(false),
            Some(_) => {
                self.txn.put::<NonCollections>(&owner, &self.at.height);
                Ok(false)
            }
            None => {
                self.question(nft.place, About::Collection(subject(address, self.owners)));
                self.wait(address, nft, tx);
                Ok(false)
            }
        }
    }

    fn found_collection(
        &mut self,
        address: Account,
        name: &str,
        creator: Option<Account>,
    ) -> Result<Collection, Error> {
        let mut found = Collection { name: name.to_owned(), ..self.of_this_block() };
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

    /// Mints a token of which only the object is known: the node identifies it.
    fn mint_object(
        &mut self,
        nft: &NftAt,
        tx: u64,
        object: Account,
        owner: Option<Account>,
    ) -> Result<(), Error> {
        if self.wait_behind_others(object, nft, tx)?
            || self.txn.get::<NonCollections>(&AccountKey(object))?.is_some()
        {
            return Ok(());
        }
        match self.answers.get(&QuestionKey::Object(object)) {
            Some(Reply::Token { collection, token_id, uri }) => {
                let (collection, token_id, uri) = (*collection, token_id.clone(), uri.clone());
                // A transfer does not contain the collection, which may be unknown.
                if !self.is_collection(collection, nft, tx)? {
                    return Ok(());
                }
                self.mint(nft, tx, token_name(collection, &token_id), owner, Some(object), Some(uri))
            }
            Some(_) => {
                self.txn.put::<NonCollections>(&AccountKey(object), &self.at.height);
                Ok(())
            }
            None => {
                self.question(nft.place, About::Object(bare_subject(object)));
                self.wait(object, nft, tx);
                Ok(())
            }
        }
    }

    /// Mints a token that did not exist or was unknown. Without a URI from the event or the node, the URI is filled in
    /// later.
    fn mint(
        &mut self,
        nft: &NftAt,
        tx: u64,
        token: TokenName,
        owner: Option<Account>,
        object: Option<Account>,
        uri: Option<String>,
    ) -> Result<(), Error> {
        let Some(collection) = Account::from_bytes(&token.collection) else { return Ok(()) };
        let Some(owner) = owner.or(self.creator(collection)?) else { return Ok(()) };
        let object = object.map(|object| object.as_bytes().to_vec()).unwrap_or_default();
        let mut mint = Mint {
            owner: owner.as_bytes().to_vec(),
            uri: String::new(),
            object,
            question: 0,
            token: token.clone(),
        };
        let stays = self.owners.get(&(collection, token.token_id.clone())).is_none_or(Option::is_some);
        let answer = self.answers.get(&QuestionKey::Uri(collection, token.token_id.clone()));
        match (uri, answer) {
            (Some(uri), _) => mint.uri = uri,
            (None, Some(Reply::Uri(uri))) => uri.clone_into(&mut mint.uri),
            (None, None) if stays => {
                mint.question = question_number(self.at.height, nft.place);
                let TokenName { collection, token_id } = token;
                let object = mint.object.clone();
                self.question(nft.place, About::Uri(TokenKey { collection, token_id, object }));
            }
            // The node answered that the token has no URI, or the token was burnt before the question could be asked.
            (None, _) => {}
        }
        self.entry(nft.place, tx, Change::Mint(mint))
    }

    /// Older Move chains do not emit the first owner: it is the collection's creator.
    fn creator(&self, collection: Account) -> Result<Option<Account>, Error> {
        let row = self.txn.get::<Collections>(&AccountKey(collection))?;
        Ok(row.and_then(|Message(row)| Account::from_bytes(&row.creator)))
    }

    fn transfer(&mut self, nft: &NftAt, tx: u64, token: TokenName, to: Account) -> Result<(), Error> {
        let Some(collection) = Account::from_bytes(&token.collection) else { return Ok(()) };
        let key = (AccountKey(collection), Text(token.token_id.clone()));
        if self.txn.get::<Tokens>(&key)?.is_none() {
            // First seen in a transfer: the token was minted before the index began.
            return self.mint(nft, tx, token, Some(to), None, None);
        }
        self.entry(nft.place, tx, Change::Transfer(Transfer { token, owner: to.as_bytes().to_vec() }))
    }

    fn entry(&mut self, place: u32, tx: u64, change: Change) -> Result<(), Error> {
        // On Move chains a token's transactions are those of its object.
        let tx = if self.context.vm == Vm::Move { 0 } else { tx };
        let entry = Entry { place, tx, change: Some(change) };
        fold::apply(self.txn, self.at, &entry)?;
        self.entries.push(entry);
        Ok(())
    }

    fn question(&mut self, place: u32, about: About) {
        let number = question_number(self.at.height, place);
        self.txn.put::<Questions>(&number, &Message(Question { about: Some(about) }));
    }

    /// True if earlier events about `subject` wait for an answer or for their turn.
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

fn token_name(collection: Account, token_id: &str) -> TokenName {
    TokenName { collection: collection.as_bytes().to_vec(), token_id: token_id.to_owned() }
}

fn new_collection(address: Account, collection: Collection) -> Change {
    Change::Collection(NewCollection { address: address.as_bytes().to_vec(), collection })
}
