//! The arrays of tokens: two orders, with filters by owner, collection and id.
//!
//! # Invariants
//!
//! Filtered and unfiltered lists of an order have the same row type and order, so a cursor is valid with every filter.

use std::ops::Range;

use chain::Account;
use schema::keys::AccountKey;
use schema::nft::{
    Holdings, HoldingsByHeight, OwnedTokens, OwnedTokensByHeight, Token, Tokens, TokensByHeight,
};
use serde_json::{Map, Value};
use store::key::Text;
use store::{Error, Key as _, Message, Snapshot, Table as _};

use crate::array::Array;
use crate::array::map_rows::MapRows;
use crate::array::set::{InMemory, Set};
use crate::cursor::{Row, Space, Start};

/// A token by id, then by the height of its last change, then by collection.
pub(crate) type ById = (Text, u64, AccountKey);

/// A token by the height of its last change, then by id, then by collection.
pub(crate) type ByHeight = (u64, Text, AccountKey);

/// An array of tokens.
pub(crate) type TokenArray<'a, R> = Box<dyn Array<Row = R> + 'a>;

/// A token in one of the two orders.
pub(crate) trait TokenRow: Row + 'static {
    /// The order's space of cursors.
    const SPACE: Space;

    /// The row of a token.
    fn new(id: Text, height: u64, collection: AccountKey) -> Self;

    /// The token's key in [`Tokens`].
    fn token(&self) -> (AccountKey, Text);

    /// All tokens of a collection.
    fn of_collection(s: &dyn Snapshot, collection: AccountKey) -> Result<TokenArray<'_, Self>, Error>;

    /// All tokens of an account.
    fn of_account(s: &dyn Snapshot, owner: AccountKey) -> Result<TokenArray<'_, Self>, Error>;

    /// The tokens of an account in a collection.
    fn held(
        s: &dyn Snapshot,
        owner: AccountKey,
        collection: AccountKey,
    ) -> Result<TokenArray<'_, Self>, Error>;

    /// The tokens of an account that have an id.
    fn named(s: &dyn Snapshot, owner: AccountKey, id: Text) -> Result<TokenArray<'_, Self>, Error>;
}

/// The token `id` of a collection, if it exists and belongs to `owner` (if that is given).
pub(crate) fn one<R: TokenRow>(
    snapshot: &dyn Snapshot,
    collection: AccountKey,
    id: Text,
    owner: Option<AccountKey>,
) -> Result<Option<R>, Error> {
    let key = (collection, id);
    let Some(Message(token)) = store::table::read::<Tokens>(snapshot, &key)? else { return Ok(None) };
    let wanted = owner.is_none_or(|owner| owner.0.as_bytes() == token.owner);
    Ok(wanted.then(|| R::new(key.1, token.height, collection)))
}

/// An array of at most one token.
pub(crate) fn at_most<R: TokenRow>(token: Option<&R>) -> InMemory<'_, R> {
    InMemory(token.into_iter().collect())
}

/// The first collection in the order of keys.
const FIRST: AccountKey = AccountKey(Account::ZERO);

/// The smallest text greater than `text`.
fn next(text: &Text) -> Text {
    Text(format!("{}\0", text.0))
}

/// The height and token id in a deployed server's cursor.
fn deployed(members: &Map<String, Value>) -> Option<(u64, Text)> {
    Some((members.get("height")?.as_u64()?, Text(members.get("token_id")?.as_str()?.to_owned())))
}

impl Row for ById {
    fn deployed(_: Space, members: &Map<String, Value>) -> Option<Start<Self>> {
        let (height, id) = deployed(members)?;
        Some(Start::Beyond { from: (id.clone(), height, FIRST), to: (id, height.saturating_add(1), FIRST) })
    }
}

impl Row for ByHeight {
    fn deployed(_: Space, members: &Map<String, Value>) -> Option<Start<Self>> {
        let (height, id) = deployed(members)?;
        Some(Start::Beyond { to: (height, next(&id), FIRST), from: (height, id, FIRST) })
    }
}

impl TokenRow for ById {
    const SPACE: Space = Space::TokensById;

    fn new(id: Text, height: u64, collection: AccountKey) -> Self {
        (id, height, collection)
    }

    fn token(&self) -> (AccountKey, Text) {
        (self.2, self.0.clone())
    }

    fn of_collection(s: &dyn Snapshot, collection: AccountKey) -> Result<TokenArray<'_, Self>, Error> {
        let all = OfCollection(Set::all(s, collection)?);
        let map = move |rows: Vec<(Text, u64)>| {
            Ok(rows.into_iter().map(|(id, height)| (id, height, collection)).collect())
        };
        Ok(Box::new(MapRows::new(all, |row: &Self| (row.0.clone(), 0), map)))
    }

    fn of_account(s: &dyn Snapshot, owner: AccountKey) -> Result<TokenArray<'_, Self>, Error> {
        Ok(Box::new(Set::<OwnedTokens>::all(s, owner)?))
    }

    fn held(
        s: &dyn Snapshot,
        owner: AccountKey,
        collection: AccountKey,
    ) -> Result<TokenArray<'_, Self>, Error> {
        let held = Set::<Holdings>::all(s, (owner, collection))?;
        let map = move |ids| with_heights(s, collection, ids);
        Ok(Box::new(MapRows::new(held, |row: &Self| row.0.clone(), map)))
    }

    fn named(s: &dyn Snapshot, owner: AccountKey, id: Text) -> Result<TokenArray<'_, Self>, Error> {
        Ok(Box::new(named(s, owner, id)?))
    }
}

impl TokenRow for ByHeight {
    const SPACE: Space = Space::TokensByHeight;

    fn new(id: Text, height: u64, collection: AccountKey) -> Self {
        (height, id, collection)
    }

    fn token(&self) -> (AccountKey, Text) {
        (self.2, self.1.clone())
    }

    fn of_collection(s: &dyn Snapshot, collection: AccountKey) -> Result<TokenArray<'_, Self>, Error> {
        let all = Set::<TokensByHeight>::all(s, collection)?;
        Ok(Box::new(MapRows::new(all, without_collection, with_collection(collection))))
    }

    fn of_account(s: &dyn Snapshot, owner: AccountKey) -> Result<TokenArray<'_, Self>, Error> {
        Ok(Box::new(Set::<OwnedTokensByHeight>::all(s, owner)?))
    }

    fn held(
        s: &dyn Snapshot,
        owner: AccountKey,
        collection: AccountKey,
    ) -> Result<TokenArray<'_, Self>, Error> {
        let held = Set::<HoldingsByHeight>::all(s, (owner, collection))?;
        Ok(Box::new(MapRows::new(held, without_collection, with_collection(collection))))
    }

    fn named(s: &dyn Snapshot, owner: AccountKey, id: Text) -> Result<TokenArray<'_, Self>, Error> {
        // Tokens of the same id are already ordered by height.
        let named = named(s, owner, id.clone())?;
        let lower_bound = move |row: &Self| by_id_of(&id, row);
        let map = |rows: Vec<ById>| Ok(rows.into_iter().map(|(id, height, of)| (height, id, of)).collect());
        Ok(Box::new(MapRows::new(named, lower_bound, map)))
    }
}

/// The tokens of a collection by id, with the heights of their last changes, which are in the same rows. Positions are those
/// of the id.
struct OfCollection<'a>(Set<'a, Tokens>);

impl Array for OfCollection<'_> {
    type Row = (Text, u64);

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn position(&self, (id, _): &Self::Row) -> Result<u64, Error> {
        self.0.position(id)
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<Self::Row>, Error> {
        Ok(self.0.items(range)?.into_iter().map(|(id, Message(token))| (id, token.height)).collect())
    }
}

/// The account's tokens with the id `id`.
fn named(s: &dyn Snapshot, owner: AccountKey, id: Text) -> Result<Set<'_, OwnedTokens>, Error> {
    let end = (next(&id), 0, FIRST);
    Set::<OwnedTokens>::all(s, owner)?.within(&(id, 0, FIRST), &end)
}

/// The lower bound for `row` among the tokens of the id `id`, even if `row` has another id.
fn by_id_of(id: &Text, (height, other, collection): &ByHeight) -> ById {
    match other.cmp(id) {
        std::cmp::Ordering::Less => (id.clone(), *height, FIRST),
        std::cmp::Ordering::Equal => (id.clone(), *height, *collection),
        std::cmp::Ordering::Greater => (id.clone(), height.saturating_add(1), FIRST),
    }
}

fn without_collection((height, id, _): &ByHeight) -> (u64, Text) {
    (*height, id.clone())
}

fn with_collection(collection: AccountKey) -> impl Fn(Vec<(u64, Text)>) -> Result<Vec<ByHeight>, Error> {
    move |rows| Ok(rows.into_iter().map(|(height, id)| (height, id, collection)).collect())
}

/// The tokens `ids` of a collection with the heights of their last changes.
fn with_heights(s: &dyn Snapshot, collection: AccountKey, ids: Vec<Text>) -> Result<Vec<ById>, Error> {
    let keys: Vec<(AccountKey, Text)> = ids.into_iter().map(|id| (collection, id)).collect();
    let tokens = store::table::read_many::<Tokens>(s, &keys)?;
    let whole = |(key, token): ((AccountKey, Text), Option<Message<Token>>)| {
        let Some(Message(token)) = token else {
            let reason = "a token that a list names is missing";
            return Err(store::table::corrupt(Tokens::SPEC, &key.to_bytes(), reason));
        };
        Ok((key.1, token.height, collection))
    };
    keys.into_iter().zip(tokens).map(whole).collect()
}
