//! Changes of single tokens, and the queries for their URIs.

use chain::nft::Updated;
use chain::{Account, Vm};
use schema::keys::AccountKey;
use schema::nft::{
    About, Change, Collections, Mint, NewUri, NonCollections, Outcome, Place, Refusals, TokenKey, TokenName,
    Tokens, Transfer, renewal,
};
use store::Message;
use store::key::Text;

use super::super::refusal;
use super::{NftApplier, block_time, token_name};
use crate::Error;
use crate::nft::plan::bare_subject;
use crate::nft::{NftAt, QuestionKey, Reply, count_if_too_long};

impl NftApplier<'_, '_> {
    /// Mints a token of which only the object is known: the node identifies it.
    pub(super) fn mint_object(
        &mut self,
        nft: &NftAt,
        tx: u64,
        object: Account,
        owner: Option<Account>,
    ) -> Result<(), Error> {
        if self.wait_behind_others(object, nft, tx)?
            || Refusals::read(self.txn, AccountKey(object))?.is_some()
        {
            return Ok(());
        }
        match self.answers.get(&QuestionKey::Object(object)) {
            Some(reply @ Reply::Token { collection, token_id, .. }) => {
                let (collection, token_id, uri) = (*collection, token_id.clone(), reply.clone().into_uri());
                // A transfer does not contain the collection, which may be unknown.
                if !self.is_collection(collection, nft, tx)? {
                    return Ok(());
                }
                let (place, token) = (self.place(nft.place), token_name(collection, &token_id));
                self.mint(&place, tx, token, owner, Some(object), Some(uri))
            }
            Some(_) => {
                self.txn.put::<NonCollections>(&(AccountKey(object), self.at.height), &());
                Ok(())
            }
            None => {
                self.question(&self.place(nft.place), About::Object(bare_subject(object)));
                self.wait(object, nft, tx);
                Ok(())
            }
        }
    }

    /// Mints a token that did not exist or was unknown. Without a URI from the event or the node, the URI is filled in
    /// later.
    pub(super) fn mint(
        &mut self,
        place: &Place,
        tx: u64,
        token: TokenName,
        owner: Option<Account>,
        object: Option<Account>,
        uri: Option<(Outcome, String)>,
    ) -> Result<(), Error> {
        let Some(collection) = Account::from_bytes(&token.collection) else { return Ok(()) };
        let Some(owner) = owner.or(self.creator(collection)?) else { return Ok(()) };
        self.end(place, &token)?;
        let object = object.map(|object| object.as_bytes().to_vec()).unwrap_or_default();
        let (outcome, uri) = match uri {
            Some(uri) => uri,
            None => self.uri(place, collection, &token, &object),
        };
        count_if_too_long(outcome);
        let owner = owner.as_bytes().to_vec();
        let mint = Mint { token, owner, uri, object, outcome: outcome.into() };
        self.entry(place, tx, Change::Mint(mint))
    }

    /// The node's reply about the URI of a token. Without one the query is stored.
    fn uri(
        &mut self,
        place: &Place,
        collection: Account,
        token: &TokenName,
        object: &[u8],
    ) -> (Outcome, String) {
        // A token that is burnt by the end of the block has no URI then.
        let stays = self.owners.get(&(collection, token.token_id.clone())).is_none_or(Option::is_some);
        match self.answers.get(&QuestionKey::Uri(collection, token.token_id.clone())) {
            Some(reply) => reply.clone().into_uri(),
            None if stays => {
                let TokenName { collection, token_id } = token.clone();
                self.question(place, About::Uri(TokenKey { collection, token_id, object: object.to_vec() }));
                (Outcome::Open, String::new())
            }
            None => (Outcome::Refused, String::new()),
        }
    }

    /// Older Move chains do not emit the first owner: it is the collection's creator.
    fn creator(&self, collection: Account) -> Result<Option<Account>, Error> {
        let row = self.txn.get::<Collections>(&AccountKey(collection))?;
        Ok(row.and_then(|Message(row)| Account::from_bytes(&row.creator)))
    }

    pub(super) fn transfer(
        &mut self,
        place: &Place,
        tx: u64,
        token: TokenName,
        to: Account,
    ) -> Result<(), Error> {
        let Some(collection) = Account::from_bytes(&token.collection) else { return Ok(()) };
        let key = (AccountKey(collection), Text(token.token_id.clone()));
        let Some(Message(row)) = self.txn.get::<Tokens>(&key)? else {
            // First seen in a transfer: the token was minted before the index began.
            return self.mint(place, tx, token, Some(to), None, None);
        };
        let transfer = Transfer { token: token.clone(), owner: to.as_bytes().to_vec() };
        self.entry(place, tx, Change::Transfer(transfer))?;
        if self.context.vm == Vm::Move {
            return Ok(());
        }
        refusal::ask_again(self.txn, (place, self.at.time), &token, &row)
    }

    pub(super) fn burn(&mut self, place: &Place, tx: u64, token: TokenName) -> Result<(), Error> {
        self.end(place, &token)?;
        self.entry(place, tx, Change::Burn(token))
    }

    /// A token ends by a burn, or by a mint without one. The queries for its URI that a renewal has not reached are stored:
    /// they are about states in which it exists.
    fn end(&mut self, place: &Place, token: &TokenName) -> Result<(), Error> {
        let Some(collection) = Account::from_bytes(&token.collection) else { return Ok(()) };
        let key = (AccountKey(collection), Text(token.token_id.clone()));
        let Some(Message(row)) = self.txn.get::<Tokens>(&key)? else { return Ok(()) };
        for place in renewal::unreached(self.txn, token, &row, place)? {
            let time = block_time(self.txn, place.height)?;
            refusal::ask(self.txn, (&place.of_token(token), time), token, 0, Vec::new())?;
        }
        Ok(())
    }

    /// Queries the URIs of `tokens`, or the collection's name, again.
    pub(super) fn metadata(
        &mut self,
        place: &Place,
        tx: u64,
        collection: Account,
        tokens: &Updated,
    ) -> Result<(), Error> {
        let owner = AccountKey(collection);
        if matches!(tokens, Updated::All | Updated::Name) {
            // Once for a block, whose end has the state.
            let part = format!("name/{}", collection.to_hex());
            let place = Place { ordinal: u32::MAX, part, ..place.clone() };
            self.question(&place, About::Name(bare_subject(collection)));
        }
        let range = match tokens {
            Updated::Token(token_id) => {
                let row = self.txn.get::<Tokens>(&(owner, Text(token_id.clone())))?;
                // On an EVM chain a mint of the same block has the URI from the same state. A query at a transfer does not
                // count: whether there is one depends on when the node answers.
                let is_known = |asked: &Place| {
                    self.context.vm == Vm::Evm && asked.height == place.height && asked.part.is_empty()
                };
                let stays = self.owners.get(&(collection, token_id.clone())).is_none_or(Option::is_some);
                if row.is_none_or(|Message(row)| is_known(row.asked())) || !stays {
                    return Ok(());
                }
                let token = token_name(collection, token_id);
                let (outcome, uri) = self.uri(place, collection, &token, &[]);
                count_if_too_long(outcome);
                let new = NewUri { token, uri, outcome: outcome.into(), refusals: 0 };
                return self.entry(place, tx, Change::Uri(new));
            }
            Updated::Range(first, last) => renewal::encode_range(*first, *last),
            Updated::All => Vec::new(),
            Updated::Name => return Ok(()),
        };
        Ok(renewal::request(self.txn, owner, range, place)?)
    }
}
